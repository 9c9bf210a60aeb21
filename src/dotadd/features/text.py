"""NGrams: counts of runs of characters, hashed; and what maps of text have in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.expression import quoted
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.base import Origins
from dotadd.features.kmer_layout import SEED, packed
from dotadd.features.kmers import LetterMap, Writer
from dotadd.features.leaves import checked_bits, checked_flag, checked_int, named_by_row
from dotadd.features.occurrences import Spans
from dotadd.features.reading import TextReading, character, clean, find_words, room_for_words, word_places
from dotadd.features.spectrum import MAX_ORDER

AT_ONCE = 32  # bytes that are looked at together
SHORT = 16  # symbols that are moved at once: most words have fewer


def _lengths(n: int | tuple[int, int]) -> tuple[int, int]:
    """The shortest and the longest of the lengths that n allows."""
    pair = tuple(n) if isinstance(n, tuple | list) else (n, n)
    if len(pair) != 2:
        raise FeatureError(f"n has to be a length or a pair (shortest, longest), and not {n!r}")
    shortest = checked_int("n", pair[0], 1, MAX_ORDER)
    return shortest, checked_int("n", pair[1], shortest, MAX_ORDER)


class TextMap(LetterMap):
    """Runs of n characters or words, hashed into 2**bits slots."""

    def __init__(
        self, n: int | tuple[int, int], bits: int, lowercase: bool, accents: str, tokens: str, unicode: bool
    ) -> None:
        self.shortest, self.longest = _lengths(n)
        self.bits, self.lowercase, self.accents = checked_bits(bits), checked_flag("lowercase", lowercase), accents
        self.unicode = checked_flag("unicode", unicode)
        self.reading = TextReading(tokens, self.lowercase, accents, self.unicode).checked()

    @property
    def n(self) -> int | tuple[int, int]:
        return self.longest if self.shortest == self.longest else (self.shortest, self.longest)

    @property
    def dim(self) -> int:
        return 2**self.bits

    def codes(self) -> np.ndarray:
        return self.reading.codes


class NGrams(TextMap):
    """Counts of the runs of n bytes or characters, blanks and all, hashed into 2**bits slots.

    n: their length, or a pair (shortest, longest) for all lengths between. Where texts are not equally long, use
        `.normalized()`: counts of long ones would outweigh the others.
    unit: "bytes" of UTF-8, of which letters beyond ASCII have two or more, so that one n does for every script; or
        "characters".
    within: "text", or "words" for the runs within words, which end at blanks and count with a blank before and after
        them. A word that is shorter than all n counts as a whole.
    lowercase, accents, unicode: as for WordNGrams.
    """

    def __init__(
        self,
        n: int | tuple[int, int],
        *,
        bits: int = 20,
        lowercase: bool = True,
        accents: str = "keep",
        unit: str = "bytes",
        within: str = "text",
        unicode: bool = True,
    ) -> None:
        for name, value, known in (("unit", unit, ("bytes", "characters")), ("within", within, ("text", "words"))):
            if value not in known:
                raise FeatureError(f"{name} has to be one of {', '.join(known)}, and not {quoted(value)}")
        super().__init__(n, bits, lowercase, accents, "blanks" if within == "words" else "text", unicode)
        if unit == "characters" and not self.unicode:
            raise FeatureError('unit="characters" needs unicode=True')
        self.unit, self.within = unit, within

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        letters = batch.lengths().astype(np.int64) if batch.width is None else np.array(batch.width, np.int64)
        total = np.zeros_like(letters)
        for n in range(self.shortest, self.longest + 1):
            if self.within == "text":
                total += np.maximum(letters - n + 1, 0)
            else:  # of a word and its two blanks at most as many as it has letters, where n > 2
                total += np.where(letters > 0, letters + (n < 3) + (n < 2) * ((letters + 1) // 2), 0)
        return total if batch.width is None else int(total)

    def writer(self) -> Writer:
        numbers = self.shortest, self.longest, self.bits, self.unit == "characters", self.within == "words"
        return _write_ngrams, _plan(self.reading, numbers)

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        assert isinstance(batch, Strings)
        return named_by_row(self, rows, nth, lambda row: self._runs(batch[row]))

    def _runs(self, text: bytes) -> list[bytes]:
        """The runs of a text in the order in which `fill` writes them."""
        whole = self.within == "words"
        words = [b" " + word + b" " for word in self.reading.words(text)] if whole else [self.reading.clean(text)]
        symbols = [self._symbols(word) for word in words]
        return [b"".join(symbols[word][at : at + n]) for word, at, n in self._places([len(word) for word in symbols])]

    def _places(self, lengths: list[int]) -> Iterator[tuple[int, int, int]]:
        """Word, place in it and length of each run, of words of so many symbols."""
        for n in range(1, min(self.longest, max(lengths, default=0)) + 1):
            for word, length in enumerate(lengths):
                if n >= self.shortest or (self.within == "words" and n == length):
                    yield from ((word, at, n) for at in range(length - n + 1))

    def spans(self, batch: Batch, row: int) -> Spans | None:
        """Blanks that are added to words are made of the letters that they stand beside."""
        assert isinstance(batch, Strings)
        clean, place = self.reading.placed(batch[row])
        words = word_places(clean) if self.within == "words" else [(0, len(clean))]
        begins: list[list[int]] = []
        ends: list[list[int]] = []
        for first, stop in words:
            sizes = [len(symbol) for symbol in self._symbols(clean[first:stop])]
            edges = np.cumsum([first, *sizes])
            begin, end = place[edges[:-1], 0].tolist(), place[edges[1:] - 1, 1].tolist()
            pad = self.within == "words"
            begins.append([*begin[:pad], *begin, *begin[-1:][:pad]])
            ends.append([*end[:1][:pad], *end, *end[-1:][:pad]])
        runs = [(begins[word][at], ends[word][at + n - 1]) for word, at, n in self._places(list(map(len, begins)))]
        spans = np.array(runs, np.int64).reshape(-1, 2)
        return spans[:, 0], spans[:, 1]

    def _symbols(self, text: bytes) -> list[bytes]:
        if self.unit == "bytes":
            return [text[at : at + 1] for at in range(len(text))]
        return [c.encode("utf-8", "surrogateescape") for c in text.decode("utf-8", "surrogateescape")]


@lru_cache(64)
def _plan(reading: TextReading, numbers: tuple[int, ...]) -> np.ndarray:
    return packed((*reading.numbers, *numbers), reading.changes)


@inner
def _widened(text, first, end, characters, out, count):
    """The symbols of clean text, its bytes or its characters, written from `count` on. Returns where they end."""
    i = first
    while i < end:
        here = min(end - i, np.uint64(AT_ONCE))
        odd = np.uint8(0)
        if characters:
            for k in range(here):
                odd |= text[i + k]
        if odd < np.uint8(0x80):
            for k in range(here):
                out[count + k] = text[i + k]
            count += here
            i += here
            continue
        stop = i + here
        while i < stop:
            raw = np.uint32(text[i])
            for k in range(np.uint64(1), min(end - i, np.uint64(4))):
                raw |= np.uint32(text[i + k]) << np.uint32(np.uint64(8) * k)
            point, length = character(raw)
            out[count] = point
            count += np.uint64(1)
            i += length
    return count


@inner
def _move_eight(source, at, out, count):
    """All are read before one is written, so that this is one load and one store."""
    a, b, c, d = source[at], source[at + np.uint64(1)], source[at + np.uint64(2)], source[at + np.uint64(3)]
    at += np.uint64(4)
    e, f, g, h = source[at], source[at + np.uint64(1)], source[at + np.uint64(2)], source[at + np.uint64(3)]
    out[count], out[count + np.uint64(1)], out[count + np.uint64(2)], out[count + np.uint64(3)] = a, b, c, d
    count += np.uint64(4)
    out[count], out[count + np.uint64(1)], out[count + np.uint64(2)], out[count + np.uint64(3)] = e, f, g, h


@inner
def _move_sixteen(source, at, out, count):
    _move_eight(source, at, out, count)
    _move_eight(source, at + np.uint64(8), out, count + np.uint64(8))


@inner
def _padded(text, edges, words, characters, out):
    """The symbols of words, each with a blank before and after it; where words begin and end among them comes to stand
    where it stood of their bytes. Returns how many symbols there are."""
    count = np.uint64(0)
    for k in range(words):
        at, end = edges[np.uint64(2) * k], edges[np.uint64(2) * k + np.uint64(1)]
        edges[np.uint64(2) * k] = count
        out[count] = np.uint32(32)
        count += np.uint64(1)
        if characters or end - at > np.uint64(SHORT):
            count = _widened(text, at, end, characters, out, count)
        else:
            _move_sixteen(text, at, out, count)  # how often a loop runs would have to be guessed
            count += end - at
        out[count] = np.uint32(32)
        count += np.uint64(1)
        edges[np.uint64(2) * k + np.uint64(1)] = count
    return count


@inner
def _inside(number, edges, words, n, whole, out):
    """The hashes of the runs of n symbols that lie within a word, or that are a whole one. Returns how many."""
    count = np.uint64(0)
    for k in range(words):
        at, length = edges[np.uint64(2) * k], edges[np.uint64(2) * k + np.uint64(1)] - edges[np.uint64(2) * k]
        runs = np.uint64(length == n) if whole else max(length + np.uint64(1), n) - n
        _move_sixteen(number, at, out, count)
        for i in range(np.uint64(SHORT), runs):
            out[count + i] = number[at + i]
        count += runs
    return count


@inner
def _next(h, symbol):
    """The hash of a run, from that of all but its last symbol; as those of k-mers are made."""
    return np.uint32(np.uint32(np.uint32(h) * np.uint32(0x9E3779B1)) ^ np.uint32(symbol + np.uint32(1)))


@inner
def _slot(h, shift):
    """The top bits of a hash that is stirred by the finalizer of murmur3."""
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA6B))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h >> shift)


@kernel
def _write_ngrams(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    shortest, longest, shift = np.uint64(plan[3]), np.uint64(plan[4]), np.uint32(32 - plan[5])
    characters, in_words = plan[6] != 0, plan[7] != 0
    wide = out_indices.dtype.type
    most = np.int64(0)
    for j in range(len(starts)):
        most = max(most, np.int64(ends[j] - starts[j]))
    room = room_for_words(most)
    text, edges = room[1], room[4]
    spare = np.int64(SHORT + 2)
    symbols = np.empty(2 * most + spare if in_words else most, np.uint32)
    number = np.empty(len(symbols), np.uint32)
    picked = np.empty(len(symbols) if in_words else 0, np.uint32)
    none = words = np.uint64(0)
    for j in range(len(starts)):
        if in_words:
            words = find_words(letters, starts[j], np.uint64(ends[j]), codes, plan, 8, room)
            count = _padded(text, edges, words, characters, symbols)
        else:
            count = clean(letters, starts[j], np.uint64(ends[j]), codes, plan, 8, text)
            count = _widened(text, none, count, characters, symbols, none)
        p = np.uint64(cursor[j])
        number[:count] = np.uint32(SEED)
        for n in range(np.uint64(1), min(longest, count) + np.uint64(1)):
            last, runs = n - np.uint64(1), count - n + np.uint64(1)
            for i in range(runs):
                number[i] = _next(number[i], symbols[i + last])
            chosen = number
            if in_words and (n >= shortest or n > np.uint64(2)):  # no word with its blanks has two symbols
                runs = _inside(number, edges, words, n, n < shortest, picked)
                chosen = picked
            elif n < shortest:
                continue
            for i in range(runs):
                out_indices[p + i] = wide(base) + wide(_slot(chosen[i], shift))
                out_values[p + i] = scale
            p += runs
        cursor[j] = p
