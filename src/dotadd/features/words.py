"""WordNGrams and BagOfWords: counts of words and of runs of words, hashed.

The kernel goes through a row in steps that vectorise or have no branch that is hard to guess: clean text
(`features/reading.py`); eight bytes at a time the places where words begin and end; a number of 64 bits for each word,
eight of its bytes at a time; and order by order the numbers of runs. Byte by byte, it took twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.expression import quoted
from dotadd.core.block import Block, table_size
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.base import FeatureMap, Origins
from dotadd.features.forms import slot_of
from dotadd.features.kmer_layout import packed
from dotadd.features.kmers import Writer
from dotadd.features.leaves import checked_flag, checked_int, named_by_row
from dotadd.features.occurrences import Occurrences, Spans
from dotadd.features.reading import IDENTIFIERS, TextReading, find_words, room_for_words, word_places
from dotadd.features.text import TextMap

TOKENS = ("words", "identifiers", "urls")
LONGEST_WORD = 1 << 16  # characters that `shortest_word` may ask for
_FREQUENT = """
a about after all also am an and any are as at be because been before being both but by can could did do does doing
down during each for from further had has have having he her here hers him his how i if in into is it its just me more
most my no nor not now of off on once only or other our out over own same she should so some such than that the their
them then there these they this those through to too under until up very was we were what when where which while who
whom why will with would you your yours
"""
ENGLISH = tuple(_FREQUENT.split())
Stop = str | Sequence[str] | None


class WordNGrams(TextMap):
    """Counts of the runs of n words, hashed into 2**bits slots. Words follow each other whatever stands between them,
    and their order counts. With binary=True a slot that occurs has the value 1, however often.

    n: how many words, or a pair (shortest, longest) for all lengths between: (1, 2) are single words and pairs.
    lowercase: whether capitals are as small letters, of every script.
    accents: "keep" them, or "strip" them, so that naïve is naive.
    tokens: what a word is. "words" are runs of letters, digits and underscores of every script (`\\w+` of Python's re).
        "identifiers" are the parts of names in programs: split at underscores, between letters and digits, before a
        capital that follows a small letter, and before the last of several capitals if a small letter follows, so that
        parseHTTPHeader_2 is parse, http, header, 2. "urls" are runs of letters and digits; %20 and the like stand
        between words.
    shortest_word: words of fewer characters are left out. Words on both sides of them then follow each other.
    stop: words that are left out in the same way, or "english" for a list of the most frequent ones.
    unicode: False reads text as versions up to 0.1 did: capitals are ASCII's, and all bytes beyond it are letters.
    """

    def __init__(
        self,
        n: int | tuple[int, int],
        *,
        bits: int = 20,
        lowercase: bool = True,
        binary: bool = False,
        accents: str = "keep",
        tokens: str = "words",
        shortest_word: int = 1,
        stop: Stop = None,
        unicode: bool = True,
    ) -> None:
        if tokens not in TOKENS:
            raise FeatureError(f"tokens has to be one of {', '.join(TOKENS)}, and not {quoted(tokens)}")
        super().__init__(n, bits, lowercase, accents, tokens, unicode)
        self.tokens = tokens
        self.once = self.distinct = checked_flag("binary", binary)  # `binary` is a method of maps
        self.shortest_word = checked_int("shortest_word", shortest_word, 1, LONGEST_WORD)
        self.stop = _checked_stop(stop, self.reading)

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | {"binary": self.once}

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        letters = batch.lengths().astype(np.int64) if batch.width is None else batch.width
        words = letters if self.tokens == "identifiers" else (letters + 1) // 2  # between others is at least one byte
        runs = sum(np.maximum(words - n + 1, 0) for n in range(self.shortest, self.longest + 1))
        return runs if isinstance(runs, np.ndarray) else int(runs)

    def writer(self) -> Writer:
        numbers = self.shortest, self.longest, self.bits, self.once, self.shortest_word
        return _write_words, _plan(self.reading, numbers, self._left_out())

    def _left_out(self) -> tuple[str, ...]:
        return ENGLISH if self.stop == "english" else tuple(self.stop or ())

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        assert isinstance(batch, Strings)
        return named_by_row(self, rows, nth, lambda row: self._runs(batch.take(np.array([row]))))

    def _counted(self, clean: bytes) -> list[tuple[int, int]]:
        """Where the words of a clean text stand that count."""
        left_out = {word for stop in self._left_out() for word in self.reading.words(stop.encode())}

        def counts(word: bytes) -> bool:
            return word not in left_out and sum(byte & 0xC0 != 0x80 for byte in word) >= self.shortest_word

        return [place for place in word_places(clean) if counts(clean[slice(*place)])]

    def _places(self, words: int) -> Iterator[tuple[int, int]]:
        """The first word of each run of so many words, and how many it has."""
        for n in range(self.shortest, self.longest + 1):
            yield from ((at, n) for at in range(words - n + 1))

    def _each_time(self) -> FeatureMap:
        """The same map, with a word each time it occurs."""
        return self.with_params(self.get_params() | {"binary": False})

    def spans(self, batch: Batch, row: int) -> Spans | None:
        if self.once:  # one non-zero for all occurrences; `occurrences` tells of each
            return None
        assert isinstance(batch, Strings)
        clean, place = self.reading.placed(batch[row])
        words = self._counted(clean)
        runs = [(place[words[at][0], 0], place[words[at + n - 1][1] - 1, 1]) for at, n in self._places(len(words))]
        first, stop = np.array(runs, np.int64).reshape(-1, 2).T
        return first, stop

    def occurrences(self, batch: Batch, row: int) -> Occurrences:
        return self._each_time().occurrences(batch, row) if self.once else super().occurrences(batch, row)

    def _runs(self, text: Strings) -> list[bytes]:
        """The runs of words of one text in the order in which `fill` writes them."""
        clean = self.reading.clean(text[0])
        words = [clean[first:stop] for first, stop in self._counted(clean)]
        runs = [b" ".join(words[at : at + n]) for at, n in self._places(len(words))]
        if not self.once:
            return runs
        block = Block.scratch(np.array([len(runs)]), self.dim)
        self._each_time().fill(text, np.zeros(1, np.int64), block)
        assert block.indices is not None
        _, first = np.unique(block.indices, return_index=True)
        return [runs[k] for k in np.sort(first)]


class BagOfWords(WordNGrams):
    """Counts of words, hashed into 2**bits slots: WordNGrams(1), and its parameters are as there."""

    def __init__(
        self,
        *,
        bits: int = 20,
        lowercase: bool = True,
        binary: bool = False,
        accents: str = "keep",
        tokens: str = "words",
        shortest_word: int = 1,
        stop: Stop = None,
        unicode: bool = True,
    ) -> None:
        super().__init__(
            1, bits=bits, lowercase=lowercase, binary=binary, accents=accents, tokens=tokens,
            shortest_word=shortest_word, stop=stop, unicode=unicode,
        )  # fmt: skip


def _checked_stop(stop: Stop, reading: TextReading) -> Stop:
    if stop is None or stop == "english":
        return stop
    if not isinstance(stop, tuple | list) or not all(isinstance(word, str) for word in stop):
        raise FeatureError(f'stop has to be "english" or a tuple of words, and not {quoted(stop)}')
    for word in stop:
        if len(parts := reading.words(word.encode("utf-8", "surrogatepass"))) != 1:
            raise FeatureError(f"stop: {quoted(word)} is {len(parts)} words as text is read, and has to be one")
    return tuple(stop)


@lru_cache(64)
def _plan(reading: TextReading, numbers: tuple[int, ...], stop: tuple[str, ...]) -> np.ndarray:
    """Numbers of the reading, then these, then where changes and stop words begin, what finds the place of a stop word
    and at how many places one has to look, and the two."""
    first = len(reading.numbers) + len(numbers) + 4
    plan = packed((*reading.numbers, *numbers, first, first + len(reading.changes), 0, 0), reading.changes)
    if not stop:
        return plan
    several = [np.frombuffer(word.encode("utf-8", "surrogatepass"), np.uint8) for word in stop]
    left_out = np.unique(np.array([_number(letters, reading.codes, plan) for letters in several], np.uint64))
    table = np.zeros(1 << int(SPARSE * len(left_out) - 1).bit_length(), np.uint64)
    factors = ODD + np.arange(0, 2 * TRIES, 2, dtype=np.uint64)
    apart = (factor for factor in factors if len(np.unique(_places(left_out, factor, table))) == len(left_out))
    plan[10] = factor = next(apart, ODD).view(np.int64)
    plan[11] = _insert_numbers(table, left_out, np.uint64(factor.view(np.uint64)))
    return packed(tuple(plan.tolist()), table)


def _places(numbers: np.ndarray, factor: np.uint64, table: np.ndarray) -> np.ndarray:
    return numbers * factor >> np.uint64(32) & np.uint64(len(table) - 1)


SPARSE = 16  # places of a table of stop words for each of them
TRIES = 512  # at a factor by which no two stop words have one place: of those for 125 words, one of fifty is such
ODD = np.uint64(0x9E3779B97F4A7C15)
PIECE = np.uint64(1 << 12)  # bytes of a text that are gone through at once, so that all stays in the cache


@inner
def _eight(text, at):
    """Eight bytes from this one on: LLVM makes one load of these."""
    return (
        np.uint64(text[at])
        | np.uint64(text[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(text[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(text[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(text[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(text[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(text[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(text[at + np.uint64(7)]) << np.uint64(56)
    )


@inner
def _number_words(text, edges, count, numbers):
    for k in range(count):
        at, end, h = edges[np.uint64(2) * k], edges[np.uint64(2) * k + np.uint64(1)], np.uint64(0)
        while at + np.uint64(8) < end:
            h = _stirred(h ^ _eight(text, at))
            at += np.uint64(8)
        numbers[k] = h ^ (_eight(text, at) & _up_to(end, at))


@inner
def _number_words_as_before(text, edges, count, numbers):
    """As versions up to 0.1 did, byte by byte."""
    for k in range(count):
        h = np.uint64(0)
        for i in range(edges[np.uint64(2) * k], edges[np.uint64(2) * k + np.uint64(1)]):
            h = _stirred(h + np.uint64(text[i]) + np.uint64(1))
        numbers[k] = h


@inner
def _up_to(end, at):
    """The bits of eight bytes from `at` on that stand before `end`."""
    return ~np.uint64(0) >> (np.uint64(64) - ((end - at) << np.uint64(3)))


@inner
def _leave_out_short(text, edges, shortest, count, numbers):
    """Move the words of so many characters together; returns how many these are. A character has one byte that does not
    begin with the bits 10."""
    kept = np.uint64(0)
    for k in range(count):
        at, end = edges[np.uint64(2) * k], edges[np.uint64(2) * k + np.uint64(1)]
        characters = end - at
        while at < end:
            here = _eight(text, at) & _up_to(min(end, at + np.uint64(8)), at)
            later = here >> np.uint64(7) & ~(here >> np.uint64(6)) & np.uint64(0x0101010101010101)
            characters -= np.uint64(later * np.uint64(0x0101010101010101)) >> np.uint64(56)
            at += np.uint64(8)
        numbers[kept] = numbers[k]
        kept += np.uint64(characters >= np.uint64(shortest))
    return kept


@inner
def _leave_out_stop(plan, count, numbers):
    """Move the words that are no stop words together; returns how many these are. There is no branch, as whether a word
    is left out cannot be guessed: most often a stop word can be at one place alone."""
    stop, factor, places, kept = np.uint64(plan[9]), np.uint64(plan[10]), np.uint64(plan[11]), np.uint64(0)
    mask = np.uint64(len(plan)) - stop - np.uint64(1)
    for k in range(count):
        number = numbers[k]
        place = np.uint64(number * factor) >> np.uint64(32) & mask
        counts = np.uint64(plan[stop + place]) != number
        for more in range(np.uint64(1), places):
            counts &= np.uint64(plan[stop + ((place + more) & mask)]) != number
        numbers[kept] = number
        kept += np.uint64(counts | (number == np.uint64(0)))
    return kept


@inner
def _piece_end(letters, first, end):
    """Where to stop for now: behind a blank, at which words end however text is read."""
    stop = min(end, first + PIECE)
    if stop == end:
        return end
    while stop > first and letters[stop - np.uint64(1)] != np.uint8(32):
        stop -= np.uint64(1)
    if stop == first:
        stop += PIECE
        while stop < end and letters[stop - np.uint64(1)] != np.uint8(32):
            stop += np.uint64(1)
    return stop


@inner
def _room(letters, plan):
    """For so many letters as they are read, and for the numbers of their words."""
    letters = np.int64(2 * letters if plan[0] == IDENTIFIERS else letters)
    return room_for_words(letters), np.empty(letters // 2 + 1, np.uint64)


@kernel
def _number(letters, codes, plan):
    """That of the first word of a text."""
    room, numbers = _room(len(letters), plan)
    count = find_words(letters, np.uint64(0), np.uint64(len(letters)), codes, plan, plan[8], room)
    if plan[2] != 0:
        _number_words(room[1], room[4], count, numbers)
    else:
        _number_words_as_before(room[1], room[4], count, numbers)
    return numbers[0]


@kernel
def _insert_numbers(table, numbers, factor):
    """Put numbers into a table, each at the first place from its own on that is empty; returns how far the farthest one
    is, counted from 1."""
    mask, farthest = np.uint64(len(table) - 1), np.uint64(0)
    for number in numbers:
        place, far = np.uint64(number * factor) >> np.uint64(32) & mask, np.uint64(1)
        while table[place] != np.uint64(0):
            place = (place + np.uint64(1)) & mask
            far += np.uint64(1)
        table[place] = number
        farthest = max(farthest, far)
    return farthest


@kernel
def _write_words(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    shortest, longest, bits, binary = plan[3], plan[4], plan[5], plan[6] != 0
    wide = out_indices.dtype.type
    most = np.int64(0)
    for j in range(len(starts)):
        most = max(most, np.int64(ends[j] - starts[j]))
    room, numbers = _room(most, plan)
    text, edges = room[1], room[4]
    run = np.empty(len(numbers) if longest > 1 else 0, np.uint64)  # of the n words from here on
    seen = np.zeros(0, np.uint64)
    for j in range(len(starts)):
        words, at, end = np.uint64(0), np.uint64(starts[j]), np.uint64(ends[j])
        while at < end:  # in this function and not in one of its own, which took a nanosecond more for a word
            stop = _piece_end(letters, at, end)
            count, some = find_words(letters, at, stop, codes, plan, plan[8], room), numbers[words:]
            if plan[2] != 0:
                _number_words(text, edges, count, some)
            else:
                _number_words_as_before(text, edges, count, some)
            if plan[7] > 1:
                count = _leave_out_short(text, edges, plan[7], count, some)
            if plan[9] < len(plan):
                count = _leave_out_stop(plan, count, some)
            words += count
            at = stop
        p = np.uint64(cursor[j])
        if binary:
            size = table_size(words * np.uint64(longest - shortest + 1))
            if np.uint64(len(seen)) < size:
                seen = np.zeros(size, np.uint64)
            table = seen[:size]
            table[:] = np.uint64(0)
        for n in range(np.uint64(1), min(np.uint64(longest), words) + np.uint64(1)):
            runs = words - n + np.uint64(1)
            if n == np.uint64(1):
                run[: words if longest > 1 else 0] = numbers[: words if longest > 1 else 0]
            else:
                for i in range(runs):
                    run[i] = _stirred(_stirred(run[i]) + numbers[i + n - np.uint64(1)])
            if n < np.uint64(shortest):
                continue
            these = run if longest > 1 else numbers
            if binary:
                for i in range(runs):
                    slot = slot_of(these[i], bits)
                    out_indices[p] = wide(base) + wide(slot)  # the next one stands there if this one is not new
                    out_values[p] = scale
                    p += np.uint64(_insert(table, slot + np.uint64(1)))
                continue
            for i in range(runs):
                out_indices[p + i] = wide(base) + wide(slot_of(these[i], bits))
                out_values[p + i] = scale
            p += runs
        cursor[j] = p


@inner
def _stirred(h):
    """One step of a hash."""
    h = np.uint64(h * np.uint64(0x9E3779B97F4A7C15))
    return np.uint64(h ^ (h >> np.uint64(29)))


@inner
def _home(number):
    """Where one begins to look for a number in a table."""
    return np.uint64(number * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)


@inner
def _insert(table, number):
    """Put a number into a table, in which zeros are empty places, and say whether it is new there."""
    mask = np.uint64(len(table) - 1)
    place = _home(number) & mask
    while (table[place] != np.uint64(0)) & (table[place] != number):
        place = (place + np.uint64(1)) & mask
    new = table[place] == np.uint64(0)
    table[place] = number
    return new
