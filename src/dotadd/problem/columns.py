"""Columns: the binary problems over some rows. Signs and costs are had by `sign(k)` and `cost(k)`, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Columns:
    """For each binary problem the signs (+1, -1) of the rows, and what each row costs; 0 where it does not count."""

    def __init__(self, signs: Sequence[np.ndarray], cost: np.ndarray) -> None:
        self._signs, self._cost = list(signs), cost

    def __len__(self) -> int:
        """How many binary problems there are."""
        return len(self._signs)

    def sign(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        """The signs of these rows (all by default) in problem k."""
        return self._signs[k] if rows is None else self._signs[k][rows]

    def cost(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        """The costs of these rows (all by default) in problem k."""
        return self._cost if rows is None else self._cost[rows]

    def take(self, rows: np.ndarray | slice) -> Columns:
        """The same problems over these rows."""
        return Columns([sign[rows] for sign in self._signs], self._cost[rows])

    def times(self, factor: float) -> Columns:
        """The same with all costs multiplied."""
        return Columns(self._signs, factor * self._cost)

    def within(self, rows: np.ndarray) -> Columns:
        """The same, but rows that are not among these do not count."""
        cost = np.zeros_like(self._cost)
        cost[rows] = self._cost[rows]
        return Columns(self._signs, cost)

    @staticmethod
    def join(parts: Sequence[Columns]) -> Columns:
        """The problems over the rows of all parts, one after the other."""
        signs = [np.concatenate([part.sign(k) for part in parts]) for k in range(len(parts[0]))]
        return Columns(signs, np.concatenate([part._cost for part in parts]))


class PassingColumns(Columns):
    """Columns whose signs and costs come with the rows that pass by, and are not held."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def sign(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        raise AssertionError("signs come with the pieces of a problem; `hold` it to have those of all rows")

    def cost(self, k: int, rows: np.ndarray | slice | None = None) -> np.ndarray:
        raise AssertionError("costs come with the pieces of a problem; `hold` it to have those of all rows")
