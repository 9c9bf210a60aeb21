"""TabledLmers: what maps whose features are l-mers with mismatches share, where tables of all l-mers do DOT and ADD."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dotadd._jit import plain
from dotadd._util.threads import for_each, over_rows, row_pieces
from dotadd.core.block import squared_length
from dotadd.data.batches import Batch, Strings
from dotadd.features import mismatch_table
from dotadd.features.base import Arrays, FeatureMap
from dotadd.features.gkm_weights import kernel_weights
from dotadd.features.kmers import LetterMap
from dotadd.features.mismatch_pairs import pair_plan, squared_lengths
from dotadd.features.mismatch_table import LAYOUTS, MismatchTable

Self = TypeVar("Self", bound="TabledLmers")

FEW = 4.0  # non-zeros for each slot of w: fewer are touched one by one sooner than a table is made
FAR = 20_000  # letters of a string: where its pairs of l-mers take longer than a table does
SHARE = 4  # pieces of rows for each thread
CALL_LETTERS, CALL_PAIRS = 1 << 24, 1 << 29  # what one kernel call goes through, so that Ctrl-C is answered in time


class TabledLmers(LetterMap):
    """A map with a MismatchTable. It wants all rows at once (`whole`), since a table is made once for them."""

    keeps = False  # a row has hundreds of non-zeros for each letter
    threads = 1
    order: int
    strands: str

    @property
    def table(self) -> MismatchTable | None:
        """None where features are hashed, or the letters are not four."""
        raise NotImplementedError

    def place_weights(self) -> np.ndarray:
        """What an l-mer counts at so many places from the middle; one number if that does not matter."""
        return np.ones(1)

    def prepared(self: Self, batch: Batch, threads: int = 1) -> Self:
        twin = copy.copy(self)
        twin.threads = threads
        return twin

    def _nonzeros(self, batch: Batch, rows: np.ndarray) -> float:
        bound = np.asarray(self.bound(batch))
        return float(bound) * len(rows) if bound.ndim == 0 else float(bound[rows].sum())

    def read(self, batch: Batch, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The letters of all rows, where these begin and end, and the letters' numbers."""
        assert isinstance(batch, Strings)
        return plain(batch.letters), *self.places(batch, rows), self.codes()

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        table = self.table
        if table is None or self._nonzeros(batch, rows) < FEW * table.dim:

            def some(first: int, stop: int) -> None:
                for w, out in zip(ws, outs, strict=True):
                    FeatureMap.dot(self, batch, rows[first:stop], w, out[first:stop])

            over_rows(some, len(rows), self.threads)
            return
        for w, out in zip(ws, outs, strict=True):
            self._look_up(batch, rows, table.spread(w, self.threads), LAYOUTS[table.layout], out)

    def _look_up(self, batch: Batch, rows: np.ndarray, entries: np.ndarray, layout: int, out: np.ndarray) -> None:
        letters, starts, ends, codes = self.read(batch, rows)
        places = self.place_weights()

        def work(piece: tuple[int, int]) -> None:
            some = slice(*piece)
            text = letters, starts[some], ends[some], codes
            mismatch_table.look_up(*text, self.order, layout, places, entries, out[some])

        for_each(_pieces(starts, ends, self.threads), work, self.threads)

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        self.dots(batch, rows, [w], [out])

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        table = self.table
        if table is None or self._nonzeros(batch, rows) < FEW * table.dim:
            FeatureMap.add(self, batch, rows, coefficients, w)
            return
        counts = self.counted(batch, rows, coefficients, table)
        table.gather(counts, w, self.threads)

    def products(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        """Two strings have c(z)' M M c(z') in common, so that one table will do instead of two."""
        table = self.table
        if table is None or table.layout == "both":  # whose w is shorter than its table
            super().products(batch, rows, coefficients, out)
            return
        used = np.flatnonzero(coefficients)
        counts = self.counted(batch, rows[used], coefficients[used], table)
        table.squared.apply(counts, self.threads)
        self._look_up(batch, rows, counts, LAYOUTS[table.layout], out)

    def counted(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, table: MismatchTable) -> np.ndarray:
        """The l-mers of all rows in a table. Each thread has a part of it, to which it adds row by row."""
        letters, starts, ends, codes = self.read(batch, rows)
        counts = np.zeros(table.dim)
        parts = min(self.threads, table.dim)
        cuts = [table.dim * k // parts for k in range(parts + 1)]

        def work(k: int) -> None:
            for piece in _pieces(starts, ends, 1):
                some = slice(*piece)
                mismatch_table.count(
                    letters, starts[some], ends[some], codes, self.order, LAYOUTS[table.layout],
                    self.place_weights(), coefficients[some], cuts[k], counts[cuts[k] : cuts[k + 1]],
                )  # fmt: skip

        for_each(range(parts), work, self.threads)
        return counts

    def squared_norms(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        table = self.table
        if table is None or (table.layout == "both" and table.palindrome == 1.0 and self.order % 2 == 0):
            return FeatureMap.squared_norms(self, batch, rows)
        pair = kernel_weights(table.weights, self.order)
        plan = pair_plan(self.order, pair, both=table.layout != "one", places=self.place_weights())

        def of_long(row: np.ndarray) -> float:
            phi = np.zeros(table.dim)
            table.gather(self.counted(batch, row, np.ones(1), table), phi, 1)
            return float(squared_length(phi))

        return self.lengths_by_pairs(batch, rows, plan, of_long)

    def lengths_by_pairs(
        self, batch: Batch, rows: np.ndarray, plan: np.ndarray, of_long: Callable[[np.ndarray], float]
    ) -> np.ndarray:
        """Squared lengths by pairs of l-mers; those of long strings, of which there are too many, as somebody knows."""
        letters, starts, ends, codes = self.read(batch, rows)
        out, long = np.empty(len(rows)), ends - starts > FAR
        near = np.flatnonzero(~long)
        longest = max(1, int((ends - starts)[near].max(initial=0)))
        step = max(1, CALL_PAIRS // longest**2)
        for first in range(0, len(near), step):
            some = near[first : first + step]
            found = np.empty(len(some))
            squared_lengths(letters, starts[some], ends[some], codes, plan, found)
            out[some] = found
        for j in np.flatnonzero(long):
            out[j] = of_long(rows[j : j + 1])
        return out


def _pieces(starts: np.ndarray, ends: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Rows in pieces, of so many letters at most."""
    step = max(1, CALL_LETTERS // max(1, int((ends - starts).max(initial=0))))
    pieces = row_pieces(len(starts), threads, SHARE if threads > 1 else 1)
    return [(at, min(at + step, stop)) for first, stop in pieces for at in range(first, stop, step)]
