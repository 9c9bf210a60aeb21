"""The strongest features of a model by name, without retraining.

A hashed slot does not know what fell into it. One pass over data tells: examples are expanded block by block, the few
non-zeros that fall into a wanted slot are picked out, and only for those the map is asked what they were made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dotadd._jit import kernel
from dotadd.errors import DotaddError
from dotadd.features.base import Origins
from dotadd.model.linear import Model
from dotadd.problem.examples import InMemory
from dotadd.problem.survey import usable_rows
from dotadd.sources.base import Chunk

if TYPE_CHECKING:
    from dotadd.core.block import Block
    from dotadd.sources.base import Source

ROWS = 100_000
NAMES_KEPT = 1_000_000  # in memory, for all slots together; beyond it only the most frequent ones of each slot are
FEWEST_KEPT = 1_000
HITS_NAMED = 1 << 14  # at a time


class Name(NamedTuple):
    """What a feature is: see `Origins`. The position counts from 0."""

    part: str
    position: int | None
    text: str


@dataclass
class Feature:
    """A slot of w, what it weighs, and what was found in it.

    `names` are the most frequent first, each with its occurrences in each class and, last, in rows without a label that
    the model knows. `others` counts names that were let go for lack of memory. `value` is the mean of the values that
    were found in the slot: weight times value is what one occurrence adds to the score. It is None if the slot was not
    found in any row.
    """

    slot: int
    weight: float
    names: list[tuple[Name, list[int]]] = field(default_factory=list)
    others: int = 0
    value: float | None = None

    @property
    def contribution(self) -> float | None:
        return None if self.value is None else self.weight * self.value


def strongest_features(
    model: Model,
    data: object = None,
    *,
    largest: int = 20,
    rows: int | None = ROWS,
    on_progress: Callable[[int], None] | None = None,
) -> list[list[Feature]]:
    """The slots with the largest weights, for each row of w, with the names of what falls into them.

    data : anything `dotadd.open` takes; a pass over its first `rows` rows (None: all) names the slots. Without data,
        slots of tables that are not hashed are named by their number, and others have no names.
    largest : so many slots for each row of w.
    on_progress : called with the number of rows done.
    """
    from dotadd.sources import open as open_source

    if rows is not None and rows < 1:
        raise DotaddError(f"rows={rows!r}: give a number of rows to read, or None for all")
    strongest = model.inspect(largest=largest)["largest"]
    slots = np.unique(np.array([slot for row in strongest for slot, _ in row], np.int64))
    found = _Slots(model.phi.invert(slots), model.classes)
    if data is not None:
        _read(model, open_source(data, like=model.like(labels=True)), slots, rows, found, on_progress)
    number = {slot: k for k, slot in enumerate(slots.tolist())}
    return [[found.feature(number[slot], slot, weight) for slot, weight in row] for row in strongest]


class _Slots:
    """What fell into some slots, in the order of their numbers. `told` are names that the numbers themselves tell."""

    def __init__(self, told: Origins, classes: np.ndarray) -> None:
        self.told = [_name(*origin) for origin in zip(*(column.tolist() for column in told), strict=True)]
        self.kinds, count = len(classes) + 1, len(self.told)
        self.numbers = {label: number for number, label in enumerate(classes.tolist())}
        self.counts: list[dict[Name, list[int]]] = [{} for _ in range(count)]
        self.others, self.met, self.total = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count)

    def labels(self, chunk: Chunk) -> np.ndarray:
        """The number of each row's class; the last one for rows without a label that the model knows."""
        if chunk.y is None:
            return np.full(len(chunk), self.kinds - 1)
        labels, at = np.unique(chunk.y, return_inverse=True)
        return np.array([self.numbers.get(label, self.kinds - 1) for label in labels.tolist()], np.int64)[at]

    def count(self, which: np.ndarray, origins: Origins, labels: np.ndarray) -> None:
        """Count what fell into the slots number `which` in rows with these labels, where it has a name."""
        columns = (which, *origins, labels)
        seen = Counter(zip(*(column.tolist() for column in columns), strict=True))
        for (slot, part, position, text, label), times in seen.items():
            if (name := _name(part, position, text) or self.told[slot]) is not None:
                self.counts[slot].setdefault(name, [0] * self.kinds)[label] += times
        if sum(map(len, self.counts)) > NAMES_KEPT:
            for slot, names in enumerate(self.counts):
                kept = sorted(names.items(), key=_frequency)[:FEWEST_KEPT]
                self.others[slot] += len(names) - len(kept)
                self.counts[slot] = dict(kept)

    def feature(self, number: int, slot: int, weight: float) -> Feature:
        value = self.total[number] / self.met[number] if self.met[number] else None
        names = sorted(self.counts[number].items(), key=_frequency)
        if not names and (told := self.told[number]) is not None:
            names = [(told, [0] * self.kinds)]
        return Feature(slot, weight, names, int(self.others[number]), value)


def _name(part: str, position: int, text: bytes) -> Name | None:
    """None for what nobody can name."""
    if not text and position < 0:
        return None
    return Name(part, None if position < 0 else position, text.decode(errors="backslashreplace"))


def _frequency(item: tuple[Name, list[int]]) -> tuple[int, str, int]:
    """The order of names: the most frequent first."""
    name, times = item
    return -sum(times), name.text, name.position or 0


def _read(
    model: Model,
    source: Source,
    slots: np.ndarray,
    rows: int | None,
    found: _Slots,
    on_progress: Callable[[int], None] | None,
) -> None:
    """One pass over the source, counting what falls into the slots."""
    keys, places = _table(slots)
    done = 0
    for chunk in source.chunks():
        if rows is not None and len(chunk) > rows - done:
            chunk = chunk.take(np.arange(rows - done))
        done += len(chunk)
        chunk = usable_rows(model.fitting(chunk), model.phi, source)
        labels = found.labels(chunk)
        for block, at, some in InMemory(model.phi, chunk.batch).blocks():
            row, nth, which, value = _hits(block, at, some, keys, places)
            found.met += np.bincount(which, minlength=len(slots))
            found.total += np.bincount(which, value, minlength=len(slots))
            for first in range(0, len(row), HITS_NAMED):
                part = slice(first, first + HITS_NAMED)
                origins = model.phi.origins(chunk.batch, row[part], nth[part])[0]
                found.count(which[part], origins, labels[row[part]])
            if on_progress is not None:
                on_progress(done - len(chunk) + int(some[-1]) + 1)
        if rows is not None and done >= rows:
            break


def _hits(
    block: Block, at: np.ndarray, rows: np.ndarray, keys: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The non-zeros in wanted slots: of each its row, its number within the row, its slot among them, its value."""
    room = int((block.end[at] - block.start[at]).sum())
    hits, value = np.empty((3, room), np.int64), np.empty(room)
    count = _pick(block.start, block.end, block.indices, block.values, at, keys, places, hits, value)
    row, nth, which = hits[:, :count]
    return rows[row], nth, which, value[:count]


def _table(slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A hash table of the wanted slots: the slot + 1 (0 where empty), and its place among them.

    It is sparse, so that nearly all other slots are dismissed by one look at one cache line.
    """
    size = 1 << max(6, (32 * len(slots)).bit_length())
    keys, places = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    for place, slot in enumerate(slots.tolist()):
        at = (slot * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32 & size - 1
        while keys[at]:
            at = at + 1 & size - 1
        keys[at], places[at] = slot + 1, place
    return keys, places


@kernel
def _pick(start, end, indices, values, at, keys, places, hits, value):
    """Write down the non-zeros of rows `at` whose slot is in the table, and return how many there are.

    The rows of `hits` are the number in `at`, the number within the row, and the place of the slot.
    """
    mask = np.uint64(len(keys) - 1)
    count = np.uint64(0)
    for j in range(len(at)):
        lo = np.uint64(start[at[j]])
        for k in range(lo, np.uint64(end[at[j]])):
            slot = k - lo if indices is None else np.uint64(indices[k])
            place = np.uint64(slot * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & mask
            while keys[place] != np.uint64(0):
                if keys[place] == slot + np.uint64(1):
                    hits[0, count] = j
                    hits[1, count] = k - lo
                    hits[2, count] = places[place]
                    value[count] = 1.0 if values is None else values[k]
                    count += np.uint64(1)
                    break
                place = (place + np.uint64(1)) & mask
    return count
