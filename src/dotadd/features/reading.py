"""How maps of text read it: UTF-8 made clean, row by row, before anything is counted.

Clean text has capitals folded and accents stripped where that is wanted, and a zero wherever words end. A small table
with two levels, made once from Python's own knowledge of Unicode, tells what becomes of each character: it stays, it
ends a word, or it becomes up to four other bytes, never more than it had. So a text is at most as long as before, but
where words are split by the case of their letters. Stretches of ASCII go by arithmetic that vectorises.

Letters, digits and the underscore are what `\\w` of Python's `re` matches. Small letters are those of `str.lower`, one
for one: the capital I with a dot becomes i, and the sigma at the end of Greek words is as any other. Accents are
stripped by NFKD without its combining marks, where that takes no more bytes than the letter did (Hangul stays as it
is). A byte that is no part of UTF-8 is a letter of its own.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.errors import FeatureError

TOKENS = ("words", "identifiers", "urls", "blanks", "text")  # where words end; "text" is all one
WORDS, IDENTIFIERS, URLS, BLANKS, TEXT = range(5)
POINTS = 0x40000  # code points in the table: those beyond it are no letters, as is the last one in it
BLOCK = 128  # of them that stand together in the table
BLOCKS = POINTS // BLOCK
LETTER, GAP, DIGIT, CAPITAL, CHANGED = range(5)  # entries: it stays as a letter, ..., what it becomes stands elsewhere
INVALID = 0xDC00  # and a byte that is no part of UTF-8: its code point, as Python's `surrogateescape` has it
ACCENTS = ("keep", "strip")
SIGMA_AT_THE_END = 0x3C2
SPARE = 4  # bytes after clean text that may be written to
PERCENT = np.uint8(0x25)  # with which an escape in a URL begins
STRETCH = 32  # bytes that are looked at together
NEAR = 256  # bytes of clean text within which places are numbers of one byte
_BITS = [[k for k in range(8) if byte >> k & 1] for byte in range(256)]
PLACES = np.array([sum(k << 8 * j for j, k in enumerate(bits)) for bits in _BITS], np.uint64)  # a byte for each bit set
BITS_SET = np.array([len(bits) for bits in _BITS], np.uint8)


class TextReading(NamedTuple):
    """How text is read, as a map's parameters say."""

    tokens: str
    lowercase: bool
    accents: str
    unicode: bool

    def checked(self) -> TextReading:
        if self.accents not in ACCENTS:
            raise FeatureError(f"accents has to be one of {', '.join(ACCENTS)}, and not {self.accents!r}")
        if self.accents == "strip" and not self.unicode:
            raise FeatureError('accents="strip" needs unicode=True: bytes have no accents')
        return self

    @property
    def codes(self) -> np.ndarray:
        """For each code point an entry, over two levels; and last what each character of ASCII becomes."""
        return _table(self.tokens, self.lowercase, self.accents)[0]

    @property
    def numbers(self) -> tuple[int, int, int]:
        """What kernels want to know of it, first in their plans."""
        return TOKENS.index(self.tokens), int(self.lowercase), int(self.unicode)

    @property
    def changes(self) -> np.ndarray:
        """What characters become, next in plans: bytes, the first one lowest; 32 bits higher their number; and 40 bits
        higher the entry that the character would otherwise have."""
        return _table(self.tokens, self.lowercase, self.accents)[1]

    def clean(self, text: bytes) -> bytes:
        """The clean text, with zeros between words."""
        plan = np.concatenate([np.array(self.numbers, np.int64), self.changes])
        return _cleaned(np.frombuffer(text + b" ", np.uint8)[:-1], self.codes, plan).tobytes()

    def placed(self, text: bytes) -> tuple[bytes, np.ndarray]:
        """The clean text, and of each of its bytes where in the text the character begins and ends that it was made
        of. Words that are split by the case of their letters have a zero between them that was made of nothing."""
        letters = text.decode("utf-8", "surrogateescape") if self.unicode else text.decode("latin-1")
        code = ("utf-8", "surrogateescape") if self.unicode else ("latin-1", "strict")
        written, at = self.clean(text), 0
        place: list[tuple[int, int]] = []
        known: dict[str, tuple[int, bytes]] = {}
        for part in re.findall(r"%[0-9a-fA-F]{2}|.", letters, re.S) if self.tokens == "urls" else letters:
            if part not in known:
                raw = part.encode(*code)
                known[part] = len(raw), self.clean(raw)
            length, becomes = known[part]
            if becomes and not written.startswith(becomes, len(place)):
                place.append((at, at))
            place += [(at, at + length)] * len(becomes)
            at += length
        return written, np.array(place, np.int64).reshape(-1, 2)

    def words(self, text: bytes) -> list[bytes]:
        return [word for word in self.clean(text).split(b"\0") if word]


def word_places(clean: bytes) -> list[tuple[int, int]]:
    """Where the words of a clean text begin and end."""
    return [match.span() for match in re.finditer(rb"[^\0]+", clean)]


@lru_cache
def _every_character() -> str:
    return np.arange(POINTS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


@lru_cache
def _small_letters() -> np.ndarray:
    """For each code point that of its small letter."""
    text = _every_character()
    text = f"{text[:0x130]}i{text[0x131:]}".lower()  # İ alone would become two
    small = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    small[[0x3A3, SIGMA_AT_THE_END]] = 0x3C3
    return small


@lru_cache
def _marked(pattern: str) -> np.ndarray:
    """Whether each character matches a pattern."""
    found = np.zeros(POINTS, bool)
    for match in re.finditer(f"{pattern}+", _every_character()):
        found[slice(*match.span())] = True
    return found


def _gaps(tokens: str) -> np.ndarray:
    """Whether words end at each character."""
    if tokens == "text":
        return np.zeros(POINTS, bool)
    if tokens == "blanks":
        return _marked(r"\s")
    gaps = ~_marked(r"\w")
    gaps[ord("_")] |= tokens != "words"
    return gaps


@lru_cache
def _without_accents() -> dict[int, str]:
    """What code points become without accents, of those that become something else."""
    found = {}
    for point in range(0x80, POINTS):
        letter = chr(point)
        if unicodedata.combining(letter) or unicodedata.decomposition(letter):
            parts = unicodedata.normalize("NFKD", letter)
            found[point] = "".join(part for part in parts if not unicodedata.combining(part))
    return found


@lru_cache
def _table(tokens: str, lowercase: bool, accents: str) -> tuple[np.ndarray, np.ndarray]:
    """The entries, and what characters become."""
    points, small, gaps = np.arange(POINTS), _small_letters(), _gaps(tokens)
    entries = np.where(gaps, GAP, LETTER)
    if tokens == "identifiers":
        entries[_marked(r"\d") & ~gaps] = DIGIT
        entries[(small != points) & (points != SIGMA_AT_THE_END) & ~gaps] = CAPITAL
    becomes = {point: [chr(small[point])] for point in np.flatnonzero(small != points).tolist()} if lowercase else {}
    if accents == "strip":
        bare = _without_accents()
        for point in {*bare, *(point for point, letters in becomes.items() if ord(letters[0]) in bare)}:
            before = becomes.get(point, [chr(point)])
            parts = bare.get(ord(before[0]), before[0])
            becomes[point] = ["".join(chr(small[ord(part)]) for part in parts) if lowercase else parts, *before]
    numbers: dict[int, int] = {}
    for point, choices in becomes.items():
        room = len(chr(point).encode("utf-8", "surrogatepass"))
        for letters in choices:  # the first that is short enough
            written = b"".join(b"\0" if gaps[ord(letter)] else letter.encode() for letter in letters)
            if len(written) <= room:
                kind = GAP if not written.strip(b"\0") else LETTER if gaps[point] else int(entries[point])
                change = int.from_bytes(written, "little") | len(written) << 32 | kind << 40
                entries[point] = CHANGED + numbers.setdefault(change, len(numbers))
                break
    data, blocks, size = entries.astype(np.uint16).tobytes(), dict[bytes, int](), 2 * BLOCK
    index = [blocks.setdefault(data[at : at + size], len(blocks)) for at in range(0, len(data), size)]
    codes = np.concatenate([np.array(index, np.uint16), np.frombuffer(b"".join(blocks), np.uint16)])
    ascii = np.where(gaps, 0, small if lowercase else points)[:128].astype(np.uint16)
    return np.concatenate([codes, ascii]), np.array([*numbers], np.int64)


@inner
def character(raw):
    """The character that four bytes begin with, the first one lowest: its code point, and how many of them it has.

    No array is handed over, as these would be counted at each call: that took 10 ns a character."""
    a, b, c = (
        np.uint32(raw & np.uint32(0xFF)),
        np.uint32(raw >> np.uint32(8) & 0x3F),
        np.uint32(raw >> np.uint32(16) & 0x3F),
    )
    if a < np.uint32(0x80):
        return a, np.uint64(1)
    if np.uint32(0xC2) <= a < np.uint32(0xE0) and raw & np.uint32(0xC000) == np.uint32(0x8000):
        return np.uint32((a & np.uint32(0x1F)) << np.uint32(6) | b), np.uint64(2)
    if np.uint32(0xE0) <= a < np.uint32(0xF0) and raw & np.uint32(0xC0C000) == np.uint32(0x808000):
        point = np.uint32((a & np.uint32(0xF)) << np.uint32(12) | b << np.uint32(6) | c)
        if point >= np.uint32(0x800) and not np.uint32(0xD800) <= point < np.uint32(0xE000):
            return point, np.uint64(3)
    if np.uint32(0xF0) <= a < np.uint32(0xF5) and raw & np.uint32(0xC0C0C000) == np.uint32(0x80808000):
        d = np.uint32(raw >> np.uint32(24) & 0x3F)
        point = np.uint32((a & np.uint32(7)) << np.uint32(18) | b << np.uint32(12) | c << np.uint32(6) | d)
        if np.uint32(0x10000) <= point < np.uint32(0x110000):
            return point, np.uint64(4)
    return np.uint32(INVALID) + a, np.uint64(1)


@inner
def _is_among(letter, first, count):
    """Whether a byte is one of so many, in one comparison."""
    return np.uint8(letter - np.uint8(first)) < np.uint8(count)


@inner
def _is_plain(letters, i, stop, tokens, unicode):
    """Whether no byte there needs a look of its own."""
    if tokens == IDENTIFIERS:
        return i == stop
    odd = np.uint8(0)
    for k in range(i, stop):
        odd |= letters[k]
    return odd < np.uint8(0x80) or not unicode


@inner
def _copy_ascii(letters, i, stop, tokens, lowercase, out, m):
    """Clean text of a stretch of ASCII; bytes beyond it are letters. No table is asked, so that this vectorises."""
    shift, underscore = np.uint8(32 if lowercase else 0), np.uint8(0x5F if tokens == WORDS else 0xFF)
    if tokens == TEXT:
        for k in range(stop - i):
            a = letters[i + k]
            out[m + k] = np.uint8(a + shift) if _is_among(a, 0x41, 26) else a
    elif tokens == BLANKS:
        for k in range(stop - i):
            a = letters[i + k]
            gap = (a == np.uint8(32)) | _is_among(a, 9, 5) | _is_among(a, 28, 4)
            a = np.uint8(a + shift) if _is_among(a, 0x41, 26) else a
            out[m + k] = np.uint8(0) if gap else a
    else:
        for k in range(stop - i):
            a = letters[i + k]
            a = np.uint8(a + shift) if _is_among(a, 0x41, 26) else a
            letter = _is_among(a | np.uint8(32), 0x61, 26) | _is_among(a, 0x30, 10) | (a == underscore)
            out[m + k] = a if letter | (a >= np.uint8(0x80)) else np.uint8(0)


@inner
def _is_escape(a, b, c):
    """Whether three bytes are %20 or the like."""
    first = _is_among(b, 0x30, 10) | _is_among(b | np.uint8(32), 0x61, 6)
    second = _is_among(c, 0x30, 10) | _is_among(c | np.uint8(32), 0x61, 6)
    return (a == PERCENT) & first & second


@inner
def _leave_out_escapes(letters, first, stop, end, out, m):
    """Make blanks of %20 and the like in a stretch that was copied; returns where it ends, behind the last of them."""
    last = stop
    for begin in range(first, stop, STRETCH):
        some, found = min(begin + np.uint64(STRETCH), stop), False
        for k in range(begin, some):
            found |= letters[k] == PERCENT
        if found:
            for k in range(begin, min(some, max(end, np.uint64(2)) - np.uint64(2))):
                if _is_escape(letters[k], letters[k + np.uint64(1)], letters[k + np.uint64(2)]):
                    at = m + k - first
                    out[at + np.uint64(1)], out[at + np.uint64(2)] = np.uint8(0), np.uint8(0)
                    last = max(last, k + np.uint64(3))
    return last


@inner
def _kind(letter, becomes):
    """What a byte of ASCII is where names are read. No branch, which would have to be guessed at each letter."""
    kind = np.uint64(GAP) * np.uint64(becomes == np.uint64(0))
    kind += np.uint64(DIGIT) * np.uint64(_is_among(letter, 0x30, 10))
    return kind + np.uint64(CAPITAL) * np.uint64(_is_among(letter, 0x41, 26))


@inner
def _is_joint(kind, now):
    """Whether an identifier is split between two characters of these kinds."""
    digits = (now == np.uint64(DIGIT)) != (kind == np.uint64(DIGIT))
    rises = (now == np.uint64(CAPITAL)) & (kind == np.uint64(LETTER))
    return (digits | rises) & (kind != np.uint64(GAP)) & (now != np.uint64(GAP))


@inner
def clean(letters, first, end, codes, plan, changes, out):
    """Write letters[first:end] to `out`, clean; returns how many bytes that are, after which SPARE are used.
    `plan` begins with the numbers of the TextReading, and its changes begin at plan[changes]."""
    tokens, lowercase, unicode = plan[0], plan[1] != 0, plan[2] != 0
    i, m, one, two, three = np.uint64(first), np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
    kind, earlier, begin = np.uint64(GAP), np.uint64(GAP), np.uint64(0)  # of the last characters; where the last begins
    simple, ascii = tokens != IDENTIFIERS, np.uint64(len(codes) - 128)
    stop = end if _is_plain(letters, i, end, tokens, unicode) else i
    while i < end:
        while stop < end and _is_plain(letters, stop, min(stop + np.uint64(STRETCH), end), tokens, unicode):
            stop = min(stop + np.uint64(STRETCH), end)
        if i < stop:
            _copy_ascii(letters, i, stop, tokens, lowercase, out, m)
            last = _leave_out_escapes(letters, i, stop, end, out, m) if tokens == URLS else stop
            m += last - i
            i = stop = last
        stop = min(stop + np.uint64(STRETCH), end)
        while i < stop:
            if letters[i] < np.uint8(0x80) and simple and (tokens != URLS or letters[i] != PERCENT):
                out[m] = codes[ascii + np.uint64(letters[i])]
                m += one
                i += one
                continue
            if letters[i] < np.uint8(0x80) and tokens == IDENTIFIERS:
                change, written, length = np.uint64(codes[ascii + np.uint64(letters[i])]), one, one
                now = _kind(letters[i], change)
            else:
                raw = np.uint32(letters[i])
                for k in range(one, min(end - i, np.uint64(4))):
                    raw |= np.uint32(letters[i + k]) << np.uint32(np.uint64(8) * k)
                point, length = character(raw) if unicode else (np.uint32(letters[i]), one)
                entry = np.uint64(LETTER)
                if point < np.uint32(0x80) or length > one:
                    block = np.uint64(codes[min(point >> np.uint32(7), np.uint32(BLOCKS - 1))])
                    entry = np.uint64(
                        codes[np.uint64(BLOCKS) + (block << np.uint64(7)) + np.uint64(point & np.uint32(127))]
                    )
                written, change, now = length, np.uint64(raw), entry
                if entry == np.uint64(GAP):
                    written, change = one, np.uint64(0)
                    escape = _is_escape(np.uint8(raw), np.uint8(raw >> np.uint32(8)), np.uint8(raw >> np.uint32(16)))
                    written = length = three if tokens == URLS and escape else length
                elif entry >= np.uint64(CHANGED):
                    change = np.uint64(plan[np.uint64(changes) + entry - np.uint64(CHANGED)])
                    written, now = change >> np.uint64(32) & np.uint64(7), change >> np.uint64(40)
            if tokens == IDENTIFIERS and written > np.uint64(0):
                if (now == np.uint64(LETTER)) & (kind == np.uint64(CAPITAL)) & (earlier == kind):  # HTTPServer
                    for k in range(m, begin, -1):
                        out[k] = out[k - 1]
                    out[begin] = np.uint8(0)
                    m += one
                elif _is_joint(kind, now):
                    out[m] = np.uint8(0)
                    m += one
                kind, earlier, begin = now, kind, m
            out[m], out[m + one] = np.uint8(change), np.uint8(change >> np.uint64(8))  # some more than there are:
            out[m + two], out[m + three] = (
                np.uint8(change >> np.uint64(16)),
                np.uint8(change >> np.uint64(24)),
            )  # no loop
            m += written
            i += length
        stop = i
    return m


@inner
def room_for_words(letters):
    """For clean text of so many bytes, eight of them together and one by one, and, in steps, for where its words begin
    and end."""
    eights, near, blanks = np.empty(letters // 8 + 4, np.uint64), np.empty(NEAR + 8, np.uint8), np.empty(32, np.uint8)
    return eights, eights.view(np.uint8), near, blanks, np.empty(letters + 16, np.uint64)


@inner
def find_words(letters, first, end, codes, plan, changes, room):
    """Clean text of letters[first:end], and last in its room where each word of it begins and ends; returns how many
    words there are."""
    eights, text, near, blanks, edges = room
    m = clean(letters, first, end, codes, plan, changes, text)
    low, one, eight = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(1), np.uint64(8)
    count, blank, blocks = np.uint64(0), one, (m >> np.uint64(3)) + one
    eights[blocks - one] &= (one << ((m & np.uint64(7)) << np.uint64(3))) - one  # zeros after the text
    for k in range(np.uint64(0), blocks, np.uint64(NEAR // 8)):
        some = min(blocks - k, np.uint64(NEAR // 8))
        for i in range(some):
            x = eights[k + i]
            zeros = ~(((x & low) + low) | x | low)  # the highest bit of each byte that is zero
            blanks[i] = np.uint8(np.uint64((zeros >> np.uint64(7)) * np.uint64(0x0102040810204080)) >> np.uint64(56))
        found = np.uint64(0)
        for i in range(some):
            now = np.uint64(blanks[i])
            change = (now ^ (now << one | blank)) & np.uint64(0xFF)
            blank = now >> np.uint64(7)
            places = PLACES[change] + np.uint64(i * np.uint64(0x0808080808080808))
            for j in range(eight):  # one store; more are written than there are, as a branch would have to be guessed
                near[found + j] = np.uint8(places >> np.uint64(eight * j))
            found += np.uint64(BITS_SET[change])
        for j in range(found):
            edges[count + j] = (k << np.uint64(3)) + np.uint64(near[j])
        count += found
    return count >> one


@kernel
def _cleaned(letters, codes, plan):
    out = np.empty(2 * len(letters) + SPARE, np.uint8)
    return out[: clean(letters, 0, np.uint64(len(letters)), codes, plan, 3, out)].copy()
