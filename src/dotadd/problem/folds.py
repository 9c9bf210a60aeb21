"""Folds: which rows are trained on and which are held out, for each fold of a cross-validation.

Rows that are treated alike in all folds are one part of the data, and it takes one small number to know the part of a
row. Rows are dealt out class by class, so that each fold has its share of every class; or group by group, so that no
group is on both sides; or in the order of time, where each fold is tested on what comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    import pyarrow as pa

FEWEST, MOST = 2, 1000


@dataclass(frozen=True)
class Folds:
    """Fold f trains on the rows of part p where trains[f, p], and is tested on them where tests[f, p]."""

    parts: np.ndarray
    trains: np.ndarray
    tests: np.ndarray

    def __len__(self) -> int:
        return len(self.trains)

    def counts(self, codes: np.ndarray, classes: int) -> np.ndarray:
        """How many rows of each class, by their numbers, are in each part."""
        shape = classes, self.trains.shape[1]
        places = codes.astype(np.int64) * shape[1] + self.parts
        return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)

    def held_out(self, fold: int) -> np.ndarray:
        """The rows that this fold is tested on."""
        return np.flatnonzero(self.tests[fold][self.parts])

    @classmethod
    def one_part_each(cls, parts: np.ndarray, count: int) -> Folds:
        """Each fold is tested on one part, and trained on all others."""
        tests = np.eye(count, dtype=np.bool_)
        return cls(parts.astype(np.uint16), ~tests, tests)

    @classmethod
    def stratified(cls, codes: np.ndarray, count: int, seed: int) -> Folds:
        """So many folds, with the same share of each class as far as that goes; `codes` number the classes."""
        return cls.one_part_each(Dealer(count, seed).deal(codes), count)

    @classmethod
    def by_group(cls, groups: np.ndarray, codes: np.ndarray, count: int) -> Folds:
        """So many folds, each group of rows in one of them, with about the same share of each class.

        The groups are dealt out from the largest to the smallest, each to the fold that makes the shares of its classes
        most even.
        """
        names, numbers = np.unique(groups, return_inverse=True)
        classes = int(codes.max()) + 1
        sizes = np.bincount(numbers * classes + codes, minlength=len(names) * classes).reshape(len(names), classes)
        return cls.one_part_each(folds_of_groups(sizes, count)[numbers], count)

    @classmethod
    def by_time(cls, order: np.ndarray, count: int) -> Folds:
        """So many folds, each trained on what came before the rows that it is tested on; `order` tells when each row
        came, and rows of the same time stay together."""
        _, numbers, sizes = np.unique(order, return_inverse=True, return_counts=True)
        return cls.one_after_the_other(parts_of_times(sizes, count)[numbers], count)

    @classmethod
    def one_after_the_other(cls, parts: np.ndarray, count: int) -> Folds:
        """Each fold is tested on one part, and trained on those before it."""
        trains, tests = np.tri(count, count + 1, dtype=np.bool_), np.eye(count, count + 1, k=1, dtype=np.bool_)
        return cls(parts.astype(np.uint16), trains, tests)

    @classmethod
    def given(cls, splits: Iterable[tuple[object, object]], rows: int) -> Folds:
        """Folds of which somebody else tells the rows to train on, and those to be tested on."""
        role: list[np.ndarray] = []
        for train, test in splits:
            mine = np.zeros(rows, np.int8)
            mine[_rows(train, rows)] = 1
            held = np.zeros(rows, np.bool_)
            held[_rows(test, rows)] = True
            if (mine[held] == 1).any():
                raise DotaddError(
                    f"row {int(np.flatnonzero(held & (mine == 1))[0])} is trained on and tested on at once"
                )
            mine[held] = 2
            role.append(mine)
        if not role:
            raise DotaddError("cv= has no folds")
        roles, parts = np.unique(np.stack(role, axis=1), axis=0, return_inverse=True)
        if len(roles) > 1 << 16:
            raise DotaddError(
                f"cv= treats rows in {len(roles):,} different ways; at most {1 << 16:,} can be told apart"
            )
        return cls(parts.reshape(rows).astype(np.uint16), (roles == 1).T, (roles == 2).T)


def in_order(column: pa.ChunkedArray, name: str) -> tuple[pa.Array, np.ndarray]:
    """The values that a column has, in their order, and the number of each row's among them."""
    import pyarrow.compute as pc

    if column.null_count:
        row = int(pc.index(pc.is_null(column), True).as_py())
        raise DataError(f"column {name!r} has no value in row {row}, and every row has to be in a fold")
    numbers = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(numbers.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(ranks))
    return numbers.dictionary.take(order), ranks[numbers.indices.to_numpy()]


def folds_of_groups(sizes: np.ndarray, count: int) -> np.ndarray:
    """The fold of each group, of which so many rows are of each class."""
    if len(sizes) < count:
        raise DataError(f"{count} folds need {count} groups or more, and there are {len(sizes):,}")
    shares = sizes / sizes.sum(axis=0)
    fold_of, held = np.empty(len(sizes), np.int64), np.zeros((count, sizes.shape[1]))
    for group in np.argsort(-shares.max(axis=1), kind="stable"):
        with_it = ((held + shares[group]) ** 2 - held**2).sum(axis=1)
        fold_of[group] = fold = int(np.argmin(with_it))
        held[fold] += shares[group]
    if len(np.unique(fold_of)) < count:  # one group has nearly everything
        raise DataError(f"the groups are too uneven for {count} folds: give fewer, or other groups")
    return fold_of


def parts_of_times(sizes: np.ndarray, count: int) -> np.ndarray:
    """The part of each time, from the first to the last, so many rows having each, for as many folds."""
    if len(sizes) <= count:
        raise DataError(f"{count} folds by time need more than {count} different times")
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, cuts_in_time(int(ends[-1]), count), side="right")
    return np.searchsorted(cuts, np.arange(len(sizes)), side="right")


def cuts_in_time(rows: int, count: int) -> np.ndarray:
    """The first row of each part but the first, where so many rows come one after the other."""
    return np.linspace(0, rows, count + 2).astype(np.int64)[1:-1]


def _rows(given: object, rows: int) -> np.ndarray:
    """Row numbers, of which a mask may have been given."""
    found = np.asarray(given)
    found = np.flatnonzero(found) if found.dtype == np.bool_ and len(found) == rows else found.astype(np.int64)
    if len(found) and not -rows <= found.min() <= found.max() < rows:
        raise DotaddError(f"cv= names row {int(found.max())}, and there are {rows:,}")
    return found


class Dealer:
    """Deals rows out to folds class by class, in whatever pieces they come: of as many rows of a class as there are
    folds, one after the other, each goes to another fold. So many rows of each class have been dealt out `before`."""

    def __init__(self, count: int, seed: int, before: np.ndarray | None = None) -> None:
        self.count, self.seed, self.before = count, seed, before
        self._left: dict[int, tuple[np.random.Generator, np.ndarray]] = {}  # folds that are still to be dealt to

    def deal(self, codes: np.ndarray) -> np.ndarray:
        """The fold of each of the next rows, which are of these classes."""
        parts = np.empty(len(codes), np.uint16)
        for code in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == code)
            random, left = self._left[code] if code in self._left else self._begun(code)
            more = self._rounds(random, max(0, -(-(len(rows) - len(left)) // self.count)))
            dealt = np.concatenate([left, more])
            parts[rows], self._left[code] = dealt[: len(rows)], (random, dealt[len(rows) :])
        return parts

    def _begun(self, code: int) -> tuple[np.random.Generator, np.ndarray]:
        """Where dealing out this class begins."""
        bits = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(code,)))
        rounds, over = (0, 0) if self.before is None else divmod(int(self.before[code]), self.count)
        random = np.random.Generator(bits.advance(rounds * self.count))  # a number of each round for each fold
        return random, self._rounds(random, int(over > 0))[over:]

    def _rounds(self, random: np.random.Generator, rounds: int) -> np.ndarray:
        """So many times all folds, each time in another order."""
        return np.argsort(random.random((rounds, self.count)), axis=1).ravel()


def require_rows(counts: np.ndarray, classes: np.ndarray, count: int) -> None:
    """Refuse to deal out a class of which there are fewer rows than folds: some would be tested on none of it."""
    if counts.min() < count:
        label, found = classes[int(np.argmin(counts))], int(counts.min())
        rows = f"{found:,} row{'s' * (found != 1)}"
        raise DataError(f"class {label!s} has {rows}, and {count} folds need {count} or more: give fewer folds")


def require_classes(trains: np.ndarray, tests: np.ndarray, counts: np.ndarray, classes: np.ndarray) -> None:
    """Refuse folds in which a class is missing among the rows to train on, or that are tested on nothing; so many rows
    of each class are in each part."""
    for fold in range(len(trains)):
        trained, tested = counts @ trains[fold], counts @ tests[fold]
        if not tested.any():
            raise DataError(f"fold {fold + 1} of {len(trains)} has no rows to be tested on")
        if not trained.all():
            label, found = classes[int(np.argmin(trained))], int(counts[int(np.argmin(trained))].sum())
            raise DataError(
                f"fold {fold + 1} of {len(trains)} has no row of class {label!s} to train on ({found:,} in all): "
                "give fewer folds, or other groups"
            )
