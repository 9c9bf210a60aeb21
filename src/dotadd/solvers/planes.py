"""Planes: what a bundle method knows of the risk, kept within a budget of bytes.

By Fenchel's inequality any dual variables alpha give a plane below the risk R(w, b) = sum_i C_i loss(m_i),

    R(w, b) >= c - <a, w> - s b,  a = sum_i alpha_i y_i phi(z_i),  s = sum_i alpha_i y_i,  c = sum_i dual_term(alpha_i),

which touches R where alpha_i = -C_i loss'(m_i). The lowest point of |w|^2 / 2 above all planes is w = sum_t beta_t a_t,
with beta >= 0 and sum_t beta_t = 1 from a small quadratic program over the planes' inner products. It is below the
minimum of P, and alpha = sum_t beta_t alpha_t are dual variables that prove it. The first plane is R >= 0.

A plane is as large as w, or has a number for each row (points.py). Planes that have not counted for a while are
dropped. When no room is left, the two that count least are merged into one, their weighted mean, which is a plane too
and does not change the lowest point. Where planes are so large that few fit into memory, they lie in a memory map of a
nameless temporary file; there may be as many then as the disk has room for.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import IO

import numpy as np

from dotadd._jit import inner, kernel
from dotadd._util.memory import words
from dotadd._util.threads import for_each
from dotadd.core.block import inner_product
from dotadd.errors import DotaddError
from dotadd.solvers.saving import Saved, State
from dotadd.solvers.simplex_qp import solve_on_simplex

FEWEST, ENOUGH, MOST = 3, 32, 1000  # planes: to work at all, to work well, to be of any use
IDLE = 20  # iterations after which a plane that does not count is dropped
STRETCH = 1 << 20  # slots of w that a thread takes at a time
MOST_STEPS = 100_000  # of the quadratic program
NUMBERS = ("slopes", "offsets", "beta", "idle")
SHARED = ("rows", "rest", "bits", "dense")


class Planes:
    """Planes of dimension `dim` for so many examples, in `nbytes` of memory, or else on disk."""

    def __init__(self, dim: int, rows: int, dtype: np.dtype, *, nbytes: int, exact: bool, threads: int) -> None:
        """`exact`: dual variables are mostly 0 or C_i, and take a bit each."""
        self.dim, self.rows, self.threads = dim, rows, threads
        size = dim * dtype.itemsize
        most = max(1, self.most_bytes(dim, rows, dtype, exact=exact))
        self.capacity = int(MOST * min(nbytes, most) // most)
        self._file: IO[bytes] | None = None  # on disk, with room for so many planes
        self._taken = 0
        if self.capacity >= ENOUGH:
            self.vectors = np.empty((self.capacity, dim), dtype)
        else:
            room = shutil.disk_usage(tempfile.gettempdir()).free // 2
            self.capacity = int(min(2 * ENOUGH, room // max(1, size)))
            if self.capacity < FEWEST:
                raise self._no_room(size)
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it goes with the planes)
            self.vectors = np.asarray(np.memmap(self._file, dtype, "w+", shape=(self.capacity, dim)))
            if not self._room_for(0):
                raise self._no_room(size)
        self.vectors[0] = 0.0
        self.count = 1
        self.slopes, self.offsets, self.beta = (np.zeros(self.capacity) for _ in range(3))
        self.beta[0] = 1.0
        self.idle = np.zeros(self.capacity, np.int64)
        self.gram = np.zeros((self.capacity, self.capacity))
        self.shares: list[Shares | None] = [None]  # of R >= 0, whose dual variables are 0

    @staticmethod
    def most_bytes(dim: int, rows: int, dtype: np.dtype, *, exact: bool) -> int:
        """Bytes of as many planes as are of any use."""
        return MOST * (dim * dtype.itemsize + (rows // 8 if exact else 4 * rows))

    def state(self) -> State:
        """What `restore` needs. It holds until the next plane comes."""
        n = self.count
        found: State = {"vectors": self.vectors[:n], "gram": np.ascontiguousarray(self.gram[:n, :n])}
        found |= {name: getattr(self, name)[:n].copy() for name in NUMBERS}
        for t, shares in enumerate(self.shares):
            if shares is not None:
                found |= {f"share.{name}.{t}": array for name, array in shares.arrays().items()}
        return found | {"capacity": self.capacity}

    def restore(self, saved: Saved) -> bool:
        """Hold these planes again; False if there is no room for them any more, and nothing has changed."""
        gram = saved["gram"]
        n = len(gram)
        if n > self.capacity or not all(self._room_for(t) for t in range(n)):
            return False
        self.count, self.capacity = n, min(self.capacity, saved["capacity"])
        saved.into("vectors", self.vectors[:n])
        self.gram[:n, :n] = gram
        for name in NUMBERS:
            getattr(self, name)[:n] = saved[name]
        arrays, rows = saved.below("share."), self.rows
        self.shares = [None]
        for t in range(1, n):
            own = {name: arrays[f"{name}.{t}"] for name in SHARED if f"{name}.{t}" in arrays}
            self.shares.append(Shares.of_arrays(rows, own))
        return True

    def append(
        self, a: np.ndarray, slope: float, offset: float, shares: Shares, *, by: np.ndarray | None = None
    ) -> None:
        """One more plane. Inner products of planes are those of `by` with the vectors, if that is not a itself."""
        self._make_room()
        if not self._room_for(self.count):
            if self.count < FEWEST:
                raise self._no_room(self.vectors[0].nbytes)
            self.capacity = self.count  # from now on, two become one
            self._make_room()
        t = self.count
        self.count += 1
        self.vectors[t] = a
        self.slopes[t], self.offsets[t], self.beta[t], self.idle[t] = slope, offset, 0.0, 0
        self.shares.append(shares)
        self.gram[t, : t + 1] = self.gram[: t + 1, t] = self._products(by, t) + slope * self.slopes[: t + 1]

    def _room_for(self, t: int) -> bool:
        """Take the room of plane t on the disk: writing to a map that finds none would end the process by a signal."""
        if self._file is None or t < self._taken or not hasattr(os, "posix_fallocate"):
            return True
        size = self.vectors[0].nbytes
        try:
            os.posix_fallocate(self._file.fileno(), t * size, size)
        except OSError:
            return False
        self._taken = t + 1
        return True

    def _no_room(self, size: int) -> DotaddError:
        return DotaddError(
            f"{tempfile.gettempdir()} has no room for {FEWEST} cutting planes of {words(size)}; "
            "set TMPDIR to a folder that has, or use solver='dcd'"
        )

    def solve(self, tol: float) -> float:
        """Find beta, and return the height of the lowest point, which no P is below."""
        n = self.count
        gram, offsets, beta = np.ascontiguousarray(self.gram[:n, :n]), self.offsets[:n].copy(), self.beta[:n].copy()
        solve_on_simplex(gram, offsets, beta, tol, MOST_STEPS)
        self.beta[:n] = beta
        self.idle[:n] = np.where(beta > 0.0, 0, self.idle[:n] + 1)
        return float(beta @ offsets - 0.5 * beta @ gram @ beta)

    def lowest(self, w: np.ndarray) -> float:
        """Write w = sum_t beta_t a_t; returns the intercept that belongs to it."""
        used = np.flatnonzero(self.beta[: self.count])
        beta = self.beta[used]

        def stretch(first: int) -> None:
            _combine(self.vectors, used, beta, first, min(first + STRETCH, self.dim), w)

        for_each(range(0, self.dim, STRETCH), stretch, self.threads)
        return float(self.slopes[used] @ beta)

    def alpha(self, cost: np.ndarray) -> np.ndarray:
        """The dual variables behind the lowest point."""
        total = np.zeros(len(cost))
        for shares, beta in zip(self.shares, self.beta, strict=False):
            if shares is not None and beta > 0.0:
                shares.add_to(total, beta)
        return total * cost

    def _products(self, by: np.ndarray | None, t: int) -> np.ndarray:
        """<a_t, a_u> for each plane u up to t."""
        row = self.vectors[t] if by is None else by
        firsts = range(0, self.dim, STRETCH)
        parts = np.zeros((len(firsts), t + 1))

        def stretch(number: int) -> None:
            first = firsts[number]
            _products(self.vectors, row, first, min(first + STRETCH, self.dim), parts[number])

        for_each(range(len(firsts)), stretch, self.threads)
        return parts.sum(axis=0)

    def _make_room(self) -> None:
        for t in range(self.count - 1, 0, -1):
            if self.idle[t] > IDLE:
                self._drop(t)
        if self.count < self.capacity:
            return
        idlest = int(self.idle[1 : self.count].argmax()) + 1
        if self.idle[idlest] > 0:
            self._drop(idlest)
        else:
            least, next_least = np.argsort(self.beta[1 : self.count])[:2] + 1
            self._merge(least, next_least)

    def _drop(self, t: int) -> None:
        """Forget plane t; the last one takes its place."""
        last = self.count - 1
        if t != last:
            self.vectors[t] = self.vectors[last]
            for numbers in (self.slopes, self.offsets, self.beta, self.idle):
                numbers[t] = numbers[last]
            self.gram[t, : self.count] = self.gram[last, : self.count]
            self.gram[: self.count, t] = self.gram[: self.count, last]
            self.shares[t] = self.shares[last]
        self.shares.pop()
        self.count = last

    def _merge(self, t: int, u: int) -> None:
        """Put the mean of planes t and u, weighted by their beta, into the place of t."""
        total = self.beta[t] + self.beta[u]
        p, q = self.beta[t] / total, self.beta[u] / total
        kind = self.vectors.dtype.type
        self.vectors[t] *= kind(p)
        self.vectors[t] += kind(q) * self.vectors[u]
        one, other = self.shares[t], self.shares[u]
        assert one is not None
        assert other is not None
        self.shares[t] = one.mean(p, other, q)
        for numbers in (self.slopes, self.offsets):
            numbers[t] = p * numbers[t] + q * numbers[u]
        self.beta[t], self.beta[u] = total, 0.0
        n = self.count
        products = p * self.gram[t, :n] + q * self.gram[u, :n]
        products[t] = p * products[t] + q * products[u]
        self.gram[t, :n] = self.gram[:n, t] = products
        self._drop(u)


class Shares:
    """alpha_i / C_i of one plane: a bit each where nearly all are 0 or 1, 4 bytes each otherwise."""

    def __init__(self, shares: np.ndarray) -> None:
        self.count = len(shares)
        self.rows = np.flatnonzero((shares != 0.0) & (shares != 1.0))
        self.dense = shares.astype(np.float32) if 32 * len(self.rows) > self.count else None
        if self.dense is None:
            self.rest = shares[self.rows]
            self.bits = np.packbits(shares == 1.0)

    def arrays(self) -> dict[str, np.ndarray]:
        """What it is made of."""
        return {name: getattr(self, name) for name in SHARED if getattr(self, name, None) is not None}

    @classmethod
    def of_arrays(cls, count: int, arrays: dict[str, np.ndarray]) -> Shares:
        shares = cls(np.empty(0))
        shares.count, shares.dense = count, arrays.get("dense")
        for name, array in arrays.items():
            setattr(shares, name, array)
        return shares

    @classmethod
    def of(cls, alpha: np.ndarray, cost: np.ndarray) -> Shares:
        return cls(np.divide(alpha, cost, out=np.zeros_like(alpha), where=cost > 0.0))

    def add_to(self, total: np.ndarray, factor: float) -> None:
        """total += factor * shares."""
        if self.dense is not None:
            total += factor * self.dense
        else:
            total += factor * np.unpackbits(self.bits, count=self.count)
            total[self.rows] += factor * self.rest

    def mean(self, p: float, other: Shares, q: float) -> Shares:
        """p times these and q times the others."""
        total = np.zeros(self.count)
        self.add_to(total, p)
        other.add_to(total, q)
        return Shares(total)


@kernel
def _combine(vectors, used, beta, first, stop, out):
    """out[k] = sum_t beta_t vectors[t, k] for these slots, a cacheful at a time."""
    sums = np.empty(2048)
    for low in range(first, stop, 2048):
        high = min(low + 2048, stop)
        sums[:] = 0.0
        for j in range(len(used)):
            _add_to(vectors[used[j], low:high], beta[j], sums)
        part = out[low:high]
        for k in range(np.uint64(len(part))):
            part[k] = sums[k]


@kernel
def _products(vectors, row, first, stop, out):
    """out[u] = <row, vectors[u]> over these slots, for as many u as there are places, a cacheful at a time."""
    for low in range(first, stop, 4096):
        high = min(low + 4096, stop)
        for u in range(len(out)):
            out[u] += inner_product(row[low:high], vectors[u, low:high])


@inner
def _add_to(row, factor, sums):
    for k in range(np.uint64(len(row))):
        sums[k] += factor * np.float64(row[k])
