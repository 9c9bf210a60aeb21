"""Folds: which rows are trained on and which are held out, for each fold of a cross-validation.

Rows that are treated alike in all folds are one part of the data, and it takes one small number to know the part of a
row. Rows are dealt out class by class, so that each fold has its share of every class; or group by group, so that no
group is on both sides; or in the order of time, where each fold is tested on what comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dotadd.errors import DataError, DotaddError

FEWEST, MOST = 2, 1000


@dataclass(frozen=True)
class Folds:
    """Fold f trains on the rows of part p where trains[f, p], and is tested on them where tests[f, p]."""

    parts: np.ndarray
    trains: np.ndarray
    tests: np.ndarray

    def __len__(self) -> int:
        return len(self.trains)

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
        if len(names) < count:
            raise DataError(f"{count} folds need {count} groups or more, and there are {len(names):,}")
        classes = int(codes.max()) + 1
        sizes = np.bincount(numbers * classes + codes, minlength=len(names) * classes).reshape(len(names), classes)
        shares = sizes / sizes.sum(axis=0)
        fold_of, held = np.empty(len(names), np.int64), np.zeros((count, classes))
        for group in np.argsort(-shares.max(axis=1), kind="stable"):
            with_it = ((held + shares[group]) ** 2 - held**2).sum(axis=1)
            fold_of[group] = fold = int(np.argmin(with_it))
            held[fold] += shares[group]
        if len(np.unique(fold_of)) < count:  # one group has nearly everything
            raise DataError(f"the groups are too uneven for {count} folds: give fewer, or other groups")
        return cls.one_part_each(fold_of[numbers], count)

    @classmethod
    def by_time(cls, order: np.ndarray, count: int) -> Folds:
        """So many folds, each trained on what came before the rows that it is tested on; `order` tells when each row
        came, and rows of the same time stay together."""
        if len(np.unique(order)) <= count:
            raise DataError(f"{count} folds by time need more than {count} different times")
        ranked = np.sort(order)
        cuts = ranked[np.linspace(0, len(order), count + 2).astype(np.int64)[1:-1]]
        parts = np.searchsorted(cuts, order, side="right")
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


def _rows(given: object, rows: int) -> np.ndarray:
    """Row numbers, of which a mask may have been given."""
    found = np.asarray(given)
    found = np.flatnonzero(found) if found.dtype == np.bool_ and len(found) == rows else found.astype(np.int64)
    if len(found) and not -rows <= found.min() <= found.max() < rows:
        raise DotaddError(f"cv= names row {int(found.max())}, and there are {rows:,}")
    return found


class Dealer:
    """Deals rows out to folds class by class, in whatever pieces they come: of as many rows of a class as there are
    folds, one after the other, each goes to another fold."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed
        self._left: dict[int, tuple[np.random.Generator, np.ndarray]] = {}  # folds that are still to be dealt to

    def deal(self, codes: np.ndarray) -> np.ndarray:
        """The fold of each of the next rows, which are of these classes."""
        parts = np.empty(len(codes), np.uint16)
        for code in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == code)
            if code not in self._left:
                sequence = np.random.SeedSequence(self.seed, spawn_key=(code,))
                self._left[code] = np.random.default_rng(sequence), np.empty(0, np.int64)
            random, left = self._left[code]
            rounds = max(0, -(-(len(rows) - len(left)) // self.count))
            more = np.argsort(random.random((rounds, self.count)), axis=1).ravel()
            dealt = np.concatenate([left, more])
            parts[rows], self._left[code] = dealt[: len(rows)], (random, dealt[len(rows) :])
        return parts


def require_rows(codes: np.ndarray, classes: np.ndarray, count: int) -> None:
    """Refuse to deal out a class of which there are fewer rows than folds: some would be tested on none of it."""
    counts = np.bincount(codes, minlength=len(classes))
    if counts.min() < count:
        label, found = classes[int(np.argmin(counts))], int(counts.min())
        rows = f"{found:,} row{'s' * (found != 1)}"
        raise DataError(f"class {label!s} has {rows}, and {count} folds need {count} or more: give fewer folds")


def require_classes(folds: Folds, codes: np.ndarray, classes: np.ndarray) -> None:
    """Refuse folds in which a class is missing among the rows to train on, or that are tested on nothing."""
    shape = len(classes), folds.trains.shape[1]
    counts = np.bincount(codes * shape[1] + folds.parts, minlength=shape[0] * shape[1]).reshape(shape)
    for fold in range(len(folds)):
        trained, tested = counts @ folds.trains[fold], counts @ folds.tests[fold]
        if not tested.any():
            raise DataError(f"fold {fold + 1} of {len(folds)} has no rows to be tested on")
        if not trained.all():
            label, found = classes[int(np.argmin(trained))], int(counts[int(np.argmin(trained))].sum())
            raise DataError(
                f"fold {fold + 1} of {len(folds)} has no row of class {label!s} to train on ({found:,} in all): "
                "give fewer folds, or other groups"
            )
