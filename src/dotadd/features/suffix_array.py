"""SuffixArray: ids as pieces of one text of digits, their places in it sorted. ADD and DOT in O(|phi(z)|) for k-mers.

The id of a k-mer over four letters has them as digits of two bits, and the next k-mer of the string has all of these
but the first: together they are k + 1 digits. So ids that come one after the other make a run of text, a digit for each
but the first, and an id is kept as its place there. Beside each place stands where the ids begin that have its digits
but the first one (a suffix link): who looks for one k-mer after the other goes there, and finds the next among at most
four. Only the first of them, or one after a k-mer that is not there, takes a search by halves.

That is 8 bytes an id and a quarter of a byte a letter. Ids that are no k-mers of such an alphabet, or that come in
another order, are found just as well, but each is a run of its own: `digits` of text more, up to 8 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from dotadd._jit import inner, kernel, plain, prefetch
from dotadd.errors import FeatureError
from dotadd.features.forms import GROUP, MISSING, Form, checked_state

DIGIT_BITS = 2
MOST_DIGITS = 64 // DIGIT_BITS
MOST_PLACES = 2**32 - 1
SAMPLED = 6  # the run of every 2**6th place is noted


class SuffixArray(Form):
    """Ids get slots in the order in which they come. Insert many at a time: each call moves all places."""

    name = "suffix_array"
    moves = True

    def __init__(self) -> None:
        self._text = np.zeros(2, np.uint64)  # MOST_DIGITS digits a word, the first ones on top, and a word more
        self._at, self._link, self._begins = (np.empty(0, np.uint32) for _ in range(3))
        self._digits, self._places = 1, 0
        self._samples = np.zeros(1, np.uint32)

    @property
    def size(self) -> int:
        return len(self._at)

    def find(self, ids: np.ndarray) -> np.ndarray:
        slots = np.empty(len(ids), np.uint64)
        if self.size == 0:
            slots[:] = MISSING
            return slots
        _find(self._tables(), self._digits, plain(ids), slots)
        return slots

    def _tables(self) -> tuple[np.ndarray, ...]:
        return self._text, self._at, self._link, self._begins, self._samples

    def insert(self, ids: np.ndarray) -> None:
        ids = ids[self.find(ids) == MISSING]
        if len(ids) == 0:
            return
        new, order = _first_ones(ids)
        digits = max(self._digits, -(-max(1, int(new.max()).bit_length()) // DIGIT_BITS))
        sorted_ids = np.empty(0, np.uint64)
        if digits > self._digits:  # all are written anew, with zeros in front
            new, order = _first_ones(np.concatenate([self.ids(), new]))
            self._at = self._begins = np.empty(0, np.uint32)
            self._digits, self._places = digits, 0
        elif self.size:
            sorted_ids = np.empty(self.size, np.uint64)
            _read(self._text, digits, self._at, sorted_ids)
        runs = _overlapping(new, digits)
        runs[0] = True  # what was inserted before is over
        places = np.cumsum(np.where(runs, digits, 1)) + self._places - digits
        total = int(places[-1]) + digits
        if total > MOST_PLACES:
            raise FeatureError('the suffix array has no room for more digits: use .indexed("hash_table")')
        text = np.zeros(-(-total // MOST_DIGITS) + 1, np.uint64)
        text[: len(self._text) - 1] = self._text[:-1]
        _write(new, places, runs, digits, text)
        self._text, self._places = text, total
        self._begins = np.concatenate([self._begins, places[runs].astype(np.uint32)])
        self._merge(sorted_ids, new[order], places[order].astype(np.uint32))
        self._samples = _sampled(self._begins, total)

    def _merge(self, ids: np.ndarray, new: np.ndarray, places: np.ndarray) -> None:
        count = len(ids) + len(new)
        at, merged = np.empty(count, np.uint32), np.empty(count, np.uint64)
        _merge(ids, self._at, new, places, merged, at)
        self._at, self._link = at, np.empty(count, np.uint32)
        _link(merged, self._digits, self._link)

    def ids(self) -> np.ndarray:
        order = np.sort(self._at)  # slots go along the text
        ids = np.empty(self.size, np.uint64)
        _read(self._text, self._digits, order, ids)
        return ids

    def state(self) -> dict[str, np.ndarray]:
        shape = np.array([self._digits, self._places], np.uint64)
        return {"text": self._text, "at": self._at, "link": self._link, "begins": self._begins, "shape": shape}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        form = cls()
        digits, places = (int(number) for number in checked_state(state, "shape", (np.uint64,), 2))
        text, begins = checked_state(state, "text", (np.uint64,)), checked_state(state, "begins", (np.uint32,))
        at = checked_state(state, "at", (np.uint32,))
        link = checked_state(state, "link", (np.uint32,), len(at))
        fits = 0 < digits <= MOST_DIGITS and places == len(at) + (digits - 1) * len(begins)
        if not fits or len(text) != max(1, -(-places // MOST_DIGITS)) + 1:
            raise ValueError(f"{len(at)} ids of {digits} digits in {len(begins)} runs do not take {places} places")
        form._text, form._at, form._link, form._begins = plain(text), plain(at), plain(link), plain(begins)
        form._digits, form._places, form._samples = digits, places, _sampled(begins, places)
        return form


def _first_ones(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each id once, in the order in which they come, and what sorts them."""
    order = np.argsort(ids)  # which takes most of the time; a stable sort takes several times as long
    ordered = ids[order]
    alike = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    first = np.minimum.reduceat(order, alike)
    number = np.zeros(len(ids), np.int64)
    number[first] = 1
    once = ids[number == 1]
    return once, np.cumsum(number)[first] - 1


def _overlapping(ids: np.ndarray, digits: int) -> np.ndarray:
    """Whether each id begins a run: it has other digits than those of the one before without the first."""
    kept = np.uint64(2 ** (DIGIT_BITS * (digits - 1)) - 1)
    begins = np.ones(len(ids), np.bool_)
    begins[1:] = ids[1:] >> np.uint64(DIGIT_BITS) != ids[:-1] & kept
    return begins


def _sampled(begins: np.ndarray, places: int) -> np.ndarray:
    """The run that every so many places is in."""
    every = np.arange(0, places + 1, 1 << SAMPLED, dtype=np.int64)
    return (np.maximum(np.searchsorted(begins, every, side="right"), 1) - 1).astype(np.uint32)


@inner
def _id_at(text, digits, place):
    """The digits that begin at a place of the text, as a number; by two shifts where one by 64 would be too far."""
    word = np.uint64(place) >> np.uint64(5)
    shift = np.uint64(DIGIT_BITS) * (place & np.uint64(MOST_DIGITS - 1))
    after = (text[word + np.uint64(1)] >> np.uint64(1)) >> (np.uint64(63) - shift)
    return (text[word] << shift | after) >> np.uint64(64 - DIGIT_BITS * digits)


@kernel
def _read(text, digits, at, ids):
    for k in range(np.uint64(len(at))):
        ids[k] = _id_at(text, digits, np.uint64(at[k]))


@kernel
def _write(ids, places, runs, digits, text):
    """Add the digits that are new to the text: all of a run's first id, the last one of others."""
    for k in range(np.uint64(len(ids))):
        for digit in range(np.int64(0 if runs[k] else digits - 1), digits):
            value = ids[k] >> np.uint64(DIGIT_BITS * (digits - 1 - digit)) & np.uint64(3)
            place = np.uint64(places[k] + digit)
            shift = np.uint64(64 - DIGIT_BITS) - np.uint64(DIGIT_BITS) * (place % np.uint64(MOST_DIGITS))
            text[place // np.uint64(MOST_DIGITS)] |= value << shift


@kernel
def _merge(ids, at, new, places, merged, merged_at):
    """Both sorted arrays in one."""
    i, j = np.uint64(0), np.uint64(0)
    n, m = np.uint64(len(ids)), np.uint64(len(new))
    for k in range(np.uint64(len(merged))):
        if j == m or (i < n and ids[i] < new[j]):
            merged[k], merged_at[k] = ids[i], at[i]
            i += np.uint64(1)
        else:
            merged[k], merged_at[k] = new[j], places[j]
            j += np.uint64(1)


@kernel
def _link(ids, digits, link):
    """Where the ids begin that have the digits of each one but the first. Among ids with the same first digit, these
    come in order."""
    n = len(ids)
    kept = np.uint64(2 ** (DIGIT_BITS * (digits - 1)) - 1)
    first, to = np.uint64(4), 0
    for k in range(n):
        digit = ids[k] >> np.uint64(DIGIT_BITS * (digits - 1))
        if digit != first:
            first, to = digit, 0
        while to < n and ids[to] >> np.uint64(DIGIT_BITS) < ids[k] & kept:
            to += 1
        link[k] = to


@inner
def _slot(begins, samples, digits, size, place):
    """The slot of the id at a place: there are so many ids before it in the text."""
    run = np.uint64(samples[min(np.uint64(place) >> np.uint64(SAMPLED), np.uint64(len(samples) - 1))])
    last = np.uint64(len(begins) - 1)
    run = min(run, last)
    while run < last and begins[run + np.uint64(1)] <= place:
        run += np.uint64(1)
    slot = np.uint64(place) - run * np.uint64(digits - 1)
    return slot if slot < np.uint64(size) else MISSING


@inner
def _search(text, digits, at, keys, lanes, count, found):
    """For lanes[:count] the last id that is not above the key of the lane, by halving what is left, side by side."""
    here, wanted, places = np.zeros(GROUP, np.uint64), np.empty(GROUP, np.uint64), np.empty(GROUP, np.uint64)
    for g in range(count):
        wanted[g] = keys[lanes[g]]
    left, last = np.uint64(len(at)), np.uint64(len(text) - 1)
    while left > np.uint64(1):
        half = left // np.uint64(2)
        for g in range(count):
            place = np.uint64(at[here[g] + half])
            places[g] = place if place >> np.uint64(5) < last else np.uint64(0)
            prefetch(text, places[g] >> np.uint64(5))
        for g in range(count):
            here[g] = here[g] + half if _id_at(text, digits, places[g]) <= wanted[g] else here[g]
        left -= half
    for g in range(count):
        found[lanes[g]] = here[g]


@kernel
def _find(tables, digits, ids, slots):
    """The ids in GROUP stretches, one of each at a time, so that the cache misses of all of them overlap."""
    text, at, link, begins, samples = tables
    n, size = np.uint64(len(ids)), np.uint64(len(at))
    places = np.uint64(len(text) - 1) * np.uint64(MOST_DIGITS)
    kept = np.uint64(2 ** (DIGIT_BITS * (digits - 1)) - 1)
    most = kept << np.uint64(DIGIT_BITS) | np.uint64(3)
    step = (n + np.uint64(GROUP - 1)) // np.uint64(GROUP)
    keys, found = np.zeros(GROUP, np.uint64), np.zeros(GROUP, np.uint64)
    known, linked, lanes = np.zeros(GROUP, np.bool_), np.zeros(GROUP, np.bool_), np.zeros(GROUP, np.int64)
    for t in range(step):
        m = np.uint64(0)
        while m < np.uint64(GROUP) and m * step + t < n:
            m += np.uint64(1)
        searched = 0
        for g in range(m):
            key = ids[g * step + t]
            linked[g] = known[g] and t > np.uint64(0) and key >> np.uint64(DIGIT_BITS) == keys[g] & kept
            keys[g] = key
            if linked[g]:
                found[g] = min(np.uint64(link[found[g]]), size - np.uint64(1))
                prefetch(at, found[g])
            else:
                lanes[searched] = g
                searched += 1
        _search(text, digits, at, keys, lanes, searched, found)
        for g in range(m):
            prefetch(text, np.uint64(at[found[g]]) >> np.uint64(5))
        for g in range(m):
            known[g] = False
            slots[g * step + t] = MISSING
            tries = np.uint64(4 if linked[g] else 1)
            while tries > np.uint64(0) and found[g] < size:
                place = np.uint64(at[found[g]])
                value = _id_at(text, digits, place) if place < places else most
                if value >= keys[g]:
                    known[g] = value == keys[g] and keys[g] <= most
                    break
                found[g] += np.uint64(1)
                tries -= np.uint64(1)
            if known[g]:
                slots[g * step + t] = _slot(begins, samples, digits, size, np.uint64(at[found[g]]))
                known[g] = slots[g * step + t] != MISSING
                prefetch(link, found[g])
