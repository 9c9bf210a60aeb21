"""Date: hour, weekday and month of the cells of a table that hold a date or a time."""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.expression import call_repr
from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.data.table import Table
from dotadd.features.base import BadRow, Origins
from dotadd.features.cells import CellMap, checked_columns
from dotadd.features.leaves import named_by_row

HOURS, WEEKDAYS, MONTHS = 24, 7, 12
FIRSTS, PARTS = (0, HOURS, HOURS + WEEKDAYS), HOURS + WEEKDAYS + MONTHS  # slots of a date
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Date(CellMap):
    """Hour, weekday and month of dates or times, each as a category: 43 features a column. A date alone has no hour; an
    empty cell has no features at all.

    Written as 2024-03-31, 2024-03-31 07:15 or 2024-03-31T07:15:00Z; what stands behind the minute is not looked at.
    """

    distinct = True

    def __init__(self, *columns: str | int) -> None:
        self.columns = checked_columns("Date", columns)

    def __repr__(self) -> str:
        return call_repr("Date", *self.columns)

    @property
    def dim(self) -> int:
        return PARTS * len(self.columns)

    def bound(self, batch: Batch) -> int:
        return len(FIRSTS) * len(self.columns)

    @property
    def checks_rows(self) -> bool:
        return True

    def _parts(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """Hour, weekday and month in each column of each row, -1 where there is none; the month is -2 where a cell
        holds no date."""
        assert isinstance(batch, Table)
        out = np.full((len(rows), len(self.columns), len(FIRSTS)), -1, np.int64)
        for k, name in enumerate(self.columns):
            strings = batch.strings(name)
            _read_dates(plain(strings.letters), *strings.bounds(rows), k, out)
        return out

    def check(self, batch: Batch) -> BadRow | None:
        assert isinstance(batch, Table)
        rows, columns = np.nonzero(self._parts(batch, np.arange(len(batch)))[:, :, 2] == -2)
        if not len(rows):
            return None
        row, name = int(rows[0]), self.columns[columns[0]]
        shown = batch.strings(name)[row].decode(errors="backslashreplace")
        return BadRow(row, None, f"column {name!r}: {shown[:40]!r} is no date; write 2024-03-31 or 2024-03-31 07:15")

    def fill(self, batch: Batch, rows: np.ndarray, block: Block) -> None:
        parts = self._parts(batch, plain(rows))
        _write_dates(parts, block.base, block.scale, block.end, block.indices, block.values)

    def invert(self, slots: np.ndarray) -> Origins:
        found = Origins.unnamed(repr(self), len(slots))
        found.text[:] = [self._name(int(slot)).encode() for slot in slots]
        return found

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        places = np.arange(len(self.columns))[:, None] * PARTS + np.array(FIRSTS)
        parts = self._parts(batch, rows)
        slots = [(places + parts[j])[parts[j] >= 0].tolist() for j in range(len(rows))]
        return named_by_row(self, np.arange(len(rows)), nth, lambda j: [self._name(s).encode() for s in slots[j]])

    def column_of(self, slots: np.ndarray) -> list[str]:
        return [self.columns[slot // PARTS] for slot in slots]

    def _name(self, slot: int) -> str:
        name, slot = self.columns[slot // PARTS], slot % PARTS
        if slot < HOURS:
            return f"{name}:hour={slot}"
        slot -= HOURS
        return f"{name}:weekday={DAYS[slot]}" if slot < WEEKDAYS else f"{name}:month={slot - WEEKDAYS + 1}"


@inner
def _digits(letters, first, count, stop):
    """The number that so many digits write; -1 where they are not all there."""
    if first + count > stop:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(first, first + count):
        digit = np.int64(letters[i]) - np.int64(48)
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = np.int64(10) * value + digit
    return value


@kernel
def _read_dates(letters, starts, ends, column, out):
    for j in range(len(starts)):
        first, stop = np.int64(starts[j]), np.int64(ends[j])
        if first == stop:
            continue
        out[j, column, 2] = -2
        year, month, day = (
            _digits(letters, first, 4, stop), _digits(letters, first + 5, 2, stop), _digits(letters, first + 8, 2, stop)
        )  # fmt: skip
        if year < 1 or month < 1 or month > 12 or day < 1 or letters[first + 4] != 45 or letters[first + 7] != 45:
            continue
        leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
        longest = 28 + np.int64(leap) if month == 2 else 31 - np.int64(month in (4, 6, 9, 11))
        if day > longest:
            continue
        hour = np.int64(-1)
        if stop > first + 10:
            hour, minute = _digits(letters, first + 11, 2, stop), _digits(letters, first + 14, 2, stop)
            if hour < 0 or hour > 23 or minute < 0 or minute > 59 or letters[first + 13] != 58:
                continue
        # Sakamoto's way: January and February belong to the year before
        before = year - np.int64(month < 3)
        shift = (0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4)[month - 1]
        sunday_first = (before + before // 4 - before // 100 + before // 400 + shift + day) % 7
        out[j, column, 0], out[j, column, 1], out[j, column, 2] = hour, (sunday_first + 6) % 7, month - 1


@kernel
def _write_dates(parts, base, scale, cursor, out_indices, out_values):
    for j in range(len(parts)):
        p = np.uint64(cursor[j])
        for c in range(parts.shape[1]):
            for k in range(3):
                if parts[j, c, k] >= 0:
                    out_indices[p] = np.uint64(base) + np.uint64(PARTS * c + FIRSTS[k] + parts[j, c, k])
                    out_values[p] = scale
                    p += np.uint64(1)
        cursor[j] = p
