"""Streamed: phi over rows that are read again for each request, for solvers that ask for DOT and ADD of all rows only.

It has the face of an Expansion and holds no rows: a chunk is there while it is worked on, and the next one is read
meanwhile, unless there is but one thread. What is asked for several w at once shares one reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dotadd import expand
from dotadd.ahead import ReadAhead
from dotadd.batch import Batch
from dotadd.errors import DataError
from dotadd.expand import Asked, Expansion, Seen, squared_distance
from dotadd.features.base import FeatureMap, require_room


class Streamed:
    """phi over so many rows that chunks() brings, chunk by chunk and from the first row on, each time it is called."""

    in_memory = False
    """Rows are read and expanded for each request."""

    def __init__(
        self,
        phi: FeatureMap,
        chunks: Callable[[], Iterator[Batch]],
        rows: int,
        *,
        dtype: type = np.float32,
        threads: int = 1,
    ) -> None:
        require_room(phi)
        self.phi, self.dtype, self.threads = phi, dtype, threads
        self._chunks, self._rows = chunks, rows
        self.passes = 0  # readings of all rows

    def __len__(self) -> int:
        return self._rows

    @property
    def dim(self) -> int:
        return self.phi.dim

    @property
    def bulk(self) -> bool:
        """Whether `dot` of many rows is much faster than visiting them one by one."""
        return self.phi.bulk

    def squared_norms(self) -> np.ndarray:
        """|phi(z_i)|^2 of every row."""
        out = np.empty(len(self))

        def measure(mine: slice, examples: Expansion) -> None:
            out[mine] = examples.squared_norms()

        self._read(measure)
        return out

    def see(self, ws: Sequence[np.ndarray]) -> Seen:
        """What a proof asks of all rows, in one reading."""
        seen = Seen([np.empty(len(self)) for _ in ws], np.empty(len(self)), 0)

        def look(mine: slice, examples: Expansion) -> None:
            nonlocal seen
            outputs, seen.norms[mine], terms = examples.see(ws)
            for output, theirs in zip(seen.outputs, outputs, strict=True):
                output[mine] = theirs
            seen = seen._replace(terms=max(seen.terms, terms))

        self._read(look)
        return seen

    def dot(self, ws: Sequence[np.ndarray], rows: np.ndarray | None = None) -> list[np.ndarray]:
        """<w, phi(z_i)> of these rows (all by default) for each of several w."""
        outputs = [np.empty(len(self)) for _ in ws]

        def dot(mine: slice, examples: Expansion) -> None:
            for output, theirs in zip(outputs, examples.dot(ws), strict=True):
                output[mine] = theirs

        self._read(dot)
        return outputs if rows is None else [output[rows] for output in outputs]

    def add(
        self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray], squares: Sequence[np.ndarray] = ()
    ) -> None:
        """w += sum_i coefficient_i phi(z_i) for each of several w; the same of phi's squared values, if wanted."""
        self._read(lambda mine, examples: examples.add([some[mine] for some in coefficients], ws, squares))

    def dot_add(self, scales: Sequence[np.ndarray], vs: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> None:
        """w += sum_i scale_i <v, phi(z_i)> phi(z_i) for each of several scales, v and w."""
        self._read(lambda mine, examples: examples.dot_add([some[mine] for some in scales], vs, ws))

    def dense(self, asked: Sequence[Asked]) -> None:
        """Write some rows out in full: out[at[j]] += phi(z_rows[j]) for each of several requests, in one reading."""

        def write(mine: slice, examples: Expansion) -> None:
            for rows, at, out in asked:
                inside = (mine.start <= rows) & (rows < mine.stop)
                if inside.any():
                    examples.dense([(rows[inside] - mine.start, at[inside], out)])

        self._read(write)

    def squared_distances(self, coefficients: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> list[float]:
        """|w - sum_i coefficient_i phi(z_i)|^2 for each of several w, the sum built from scratch in float64.

        So many sums as fit in EXACT_BYTES share one reading; one sum in full is no more than a batch solver holds.
        """
        together = max(1, expand.EXACT_BYTES // max(1, 8 * self.dim))
        found = []
        for first in range(0, len(ws), together):
            some = slice(first, first + together)
            sums = [np.zeros(self.dim) for _ in ws[some]]
            self.add(coefficients[some], sums)
            found += [squared_distance(w, total) for w, total in zip(ws[some], sums, strict=True)]
        return found

    def _read(self, work: Callable[[slice, Expansion], None]) -> None:
        """work(which rows these are, phi over them) for each chunk. A stream of another length than told is refused."""
        self.passes += 1
        first = 0
        with ReadAhead(self._chunks(), ahead=self.threads > 1) as batches:
            for batch in batches:
                stop = first + len(batch)
                if stop > len(self):
                    raise self._changed("more")
                if stop > first:
                    work(slice(first, stop), Expansion(self.phi, batch, dtype=self.dtype, threads=self.threads))
                first = stop
        if first < len(self):
            raise self._changed(f"only {first}")

    def _changed(self, brings: str) -> DataError:
        return DataError(
            f"the data had {len(self)} rows, and now brings {brings}: leave it as it is while training runs"
        )
