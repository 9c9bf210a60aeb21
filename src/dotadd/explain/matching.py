"""What each letter adds to the score of a model of gapped k-mers: gkmexplain (Shrikumar et al. 2019), by tables.

A score is a sum over pairs of an l-mer v of the string and an l-mer u with a weight: c_u f(m), m the number of places
at which they differ. Each pair is split evenly over the l - m places at which they agree; a pair that agrees nowhere is
split over all l of them. So at place p of an l-mer

    E_p[v] = sum over u with u_p = v_p of c_u f(m(u, v)) / (l - m(u, v)),

and the sum of E_p over all p is what v adds to the score. For each letter at p, that is M (features/mismatch_table.py)
of l-mers without this place, with the weights f(m) / (l - m): l tables of all l-mers, each as costly as one for DOT,
however many pairs there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dotadd.data.batches import Strings
from dotadd.features.alphabet import FOREIGN
from dotadd.features.gkm import Gkm
from dotadd.features.gkm_weights import LETTERS
from dotadd.features.mismatch_table import MismatchTable


def numbers_of(order: int) -> tuple[np.ndarray, np.ndarray]:
    """The number of every l-mer, and that of its reverse complement."""
    number = np.arange(LETTERS**order)
    if order < 2:
        return number, LETTERS**order - 1 - number
    before, after = order // 2, order - order // 2  # letters: the halves change places
    other = numbers_of(before)[1][:, None] + (numbers_of(after)[1] << 2 * before)
    return number, other.reshape(-1)


def unfolded(table: MismatchTable, w: np.ndarray) -> np.ndarray:
    """The weight of every l-mer, from weights in the layout of this table."""
    if table.layout == "one":
        return w.astype(np.float64)
    if table.layout == "both":
        number, other = numbers_of(table.order)
        return w[np.minimum(number, other)] * np.where(number == other, table.palindrome, 1.0)
    _, other = numbers_of((table.order - 1) // 2)  # of what stands on either side of the middle
    found = np.empty((len(other), LETTERS, len(other)))
    for letter, slab in enumerate(w.reshape(2, len(other), -1)):  # of A and C; T and G are their complements
        found[:, letter] = slab
        found[:, 3 - letter] = slab[np.ix_(other, other)].T
    return found.reshape(-1)


def matching_tables(counts: np.ndarray, order: int, weights: Sequence[float], threads: int) -> Iterator[np.ndarray]:
    """E_0, E_1, .. of the weights c_u of all l-mers; `weights` are f(0), f(1), .."""
    agree = tuple(f / (order - m) for m, f in enumerate(weights[:order]))
    nowhere: np.ndarray | float = 0.0
    if len(weights) > order and weights[order]:
        apart = (0.0,) * order + (weights[order] / order,)
        nowhere = MismatchTable(order, apart, "one").spread(counts, threads)
    if order == 1:
        yield counts * agree[0] + nowhere
        return
    table = MismatchTable(order - 1, agree, "one")
    for p in range(order):
        letters = np.moveaxis(counts.reshape(LETTERS**p, LETTERS, -1), 1, 0)
        spread = [table.spread(part.reshape(-1), threads).reshape(part.shape) for part in letters]
        yield np.stack(spread, axis=1).reshape(-1) + nowhere


def read_lmers(phi: Gkm, batch: Strings, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the l-mers of a row, where each begins, and what it counts there."""
    codes = phi.codes()[np.frombuffer(batch[row], np.uint8)]
    count = max(len(codes) - phi.l + 1, 0)
    windows = np.lib.stride_tricks.sliding_window_view(codes, phi.l) if count else np.empty((0, phi.l), codes.dtype)
    where = np.flatnonzero((windows != FOREIGN).all(axis=1))
    numbers = (windows[where].astype(np.int64) << 2 * np.arange(phi.l - 1, -1, -1)).sum(axis=1)
    places = phi.place_weights()
    return numbers, where, places[np.minimum(abs(count // 2 - where), len(places) - 1)]


def hypothetical(
    phi: Gkm,
    batch: Strings,
    counts: np.ndarray,
    weights: Sequence[float],
    factors: np.ndarray,
    threads: int,
) -> list[np.ndarray]:
    """For each row an array (4, letters): what each letter would add at each position, the others as they are.

    counts: the weight of every l-mer, and `weights` what pairs with so many mismatches count.
    factors: what each row is multiplied with.
    """
    found = [np.zeros((LETTERS, length)) for length in batch.lengths().tolist()]
    read = [read_lmers(phi, batch, row) for row in range(len(batch))]
    for p, table in enumerate(matching_tables(counts, phi.l, weights, threads)):
        shift = 2 * (phi.l - 1 - p)
        for (numbers, where, count), out, factor in zip(read, found, factors.tolist(), strict=True):
            without = numbers & ~(3 << shift)
            for letter in range(LETTERS):
                out[letter, where + p] += table[without | letter << shift] * count * factor
    return found
