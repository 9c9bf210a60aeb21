"""Store: the examples that StreamSVM keeps in memory, raw, within a budget of bytes.

Beside each lie its number, its cost, its length and its dual variables. The dual variables of rows in the store are
those in the store; they go back to where all are kept when the row leaves. Rows leave because they have told what they
can (`release`), or at random when there is no room for new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dotadd.batch import Batch
from dotadd.expand import Expansion
from dotadd.pool import LOOSE, Pool
from dotadd.solvers.flow import Flow, piece_bytes
from dotadd.solvers.settings import row_numbers, shuffle

FULL = 0.9  # of the capacity: time to be less generous
SPARE = 1 / 8  # of the capacity is set free at a time when there is no room


class Store:
    """Rows in at most `capacity` bytes. Arrays have an entry for each place of the pool; `present` says which count.

    `alphas_of_all` is where the dual variables of all rows are kept. `order` holds the places that are still to be
    visited in this round; rows that arrive meanwhile wait for the next one.
    """

    def __init__(self, flow: Flow, alphas_of_all: list[np.ndarray], capacity: int, seed: int) -> None:
        self.flow, self.alphas_of_all, self.capacity = flow, alphas_of_all, capacity
        self.kept = np.zeros(flow.rows, np.bool_)  # of every row, whether it is here
        self.pool: Pool | None = None
        self.random = np.random.default_rng(seed)
        self.rows, self.present = np.empty(0, np.int64), np.empty(0, np.bool_)
        self.cost, self.norms = np.empty(0), np.empty(0)
        problems = range(flow.problems)
        self.signs = [np.empty(0, np.int8) for _ in problems]
        self.alphas = [np.empty(0) for _ in problems]
        self.active = [np.empty(0, np.uint8) for _ in problems]
        self.order = np.empty(0, np.uint32)
        self.examples: Expansion | None = None
        self._changed = False

    def __len__(self) -> int:
        return int(np.count_nonzero(self.present))

    @property
    def full(self) -> bool:
        return self.pool is not None and self.pool.nbytes > FULL * self.capacity

    def places(self) -> np.ndarray:
        """Where the rows are."""
        return np.flatnonzero(self.present)

    def add(
        self,
        rows: np.ndarray,
        batch: Batch,
        signs: Sequence[np.ndarray],
        cost: np.ndarray,
        norms: np.ndarray,
        alphas: Sequence[np.ndarray],
        active: Sequence[np.ndarray],
    ) -> None:
        """Keep these rows; others leave at random if there is no room."""
        if not len(rows):
            return
        batch, fit = self._make_room(batch.own())
        assert self.pool is not None
        room = self.pool.room
        places = self.pool.put(batch)
        if self.pool.room != room:
            self.examples = None  # or rows would stay in memory where they lay before, too
        several = ([array[fit] for array in some] for some in (signs, alphas, active))
        self._note(places, rows[fit], cost[fit], norms[fit], *several)
        self._changed = True
        if len(self.order):  # what lies there now is not what was to be visited
            new = np.zeros(len(self.rows), np.bool_)
            new[places] = True
            self.order = self.order[~new[self.order]]

    def begin_round(self, rng: np.ndarray) -> int:
        """Put all rows that are active in any of the problems in random order; returns how many."""
        self._squeeze(LOOSE)
        if self._changed:
            self.examples, self._changed = None, False
        self.order = row_numbers(np.logical_or.reduce(self.active))
        shuffle(self.order, rng)
        return len(self.order)

    def next(self, count: int) -> tuple[Expansion, np.ndarray]:
        """The next so many places of this round, and phi over the batch of all places."""
        if self.examples is None:
            assert self.pool is not None
            flow = self.flow
            self.examples = Expansion(flow.phi, self.pool.batch, dtype=flow.dtype, threads=flow.threads)
        some, self.order = self.order[:count], self.order[count:]
        return self.examples, some[self.present[some]]

    def release(self, places: np.ndarray) -> None:
        """Let those of these rows go that are no longer active in any problem."""
        self._leave(places[~np.logical_or.reduce([active[places] for active in self.active]).astype(np.bool_)])

    def write_back(self) -> None:
        """Bring the dual variables of all rows up to date."""
        self._write_back(self.places())

    def state(self) -> dict[str, np.ndarray]:
        """Which rows are here, where, and which of them are to be visited: everything but the examples themselves."""
        if self.pool is None:
            return {}
        places = self.places()
        state = {"rows": self.rows[places], "order": self.order, "changed": np.array([self._changed])}
        state |= {f"active.{k}": active[places] for k, active in enumerate(self.active)}
        return state | {f"pool.{name}": array for name, array in self.pool.layout(places).items()}

    def restore(self, state: Mapping[str, np.ndarray], step: float) -> None:
        """Read the rows again that were here; their dual variables are where all are. `step` is added to lengths.

        They come to the places where they were. Where there is less room now than there was then, they come as new
        ones, and push each other out.
        """
        if not state:
            return
        rows = state["rows"]
        by_number = np.argsort(rows)
        layout = {name[len("pool.") :]: array for name, array in state.items() if name.startswith("pool.")}
        pool: Pool | None = None
        for number, piece in enumerate(self.flow.read(piece_bytes(self.flow.memory))):
            if number == 0:
                pool = Pool.again(layout, type(piece.batch.typical()), self.capacity, self.flow.beside)
                self.pool = pool
            first, stop = np.searchsorted(rows, [piece.first_row, piece.first_row + len(piece)], sorter=by_number)
            mine = by_number[first:stop]
            at = rows[mine] - piece.first_row
            batch = piece.batch.take(at).own()
            norms = self.flow.phi.squared_norms(batch, np.arange(len(batch))) + step
            signs = [sign[at] for sign in piece.signs]
            alphas = [np.array(alpha[rows[mine]]) for alpha in self.alphas_of_all]
            active = [state[f"active.{k}"][mine] for k in range(self.flow.problems)]
            if pool is None:
                self.add(rows[mine], batch, signs, piece.cost[at], norms, alphas, active)
            else:
                if not pool.takes(batch):  # the pool was made wide enough for all of them
                    batch = type(batch).concat([pool.batch.slice(0, 0), batch])  # type: ignore[list-item]
                places = layout["places"][mine]
                pool.write(places, batch)
                self._note(places, rows[mine], piece.cost[at], norms, signs, alphas, active)
            if stop == len(rows):
                break
        if pool is not None:
            self.order = state["order"].astype(np.uint32)
            self._changed = bool(state["changed"][0])

    def _make_room(self, batch: Batch) -> tuple[Batch, np.ndarray]:
        """The rows of this batch that there is room for, in a form that the pool takes, and which they are."""
        if self.pool is None:
            self.pool = Pool.like(batch, self.capacity, self.flow.beside)
        if not self.pool.takes(batch):
            batch = self._like_mine(batch)
        fit = np.arange(len(batch))
        while not self.pool.has_room(batch):
            places = self.places()
            if self._squeeze(0.0):
                continue
            if not len(places):  # not even an empty pool would do
                some = np.sort(self.random.permutation(len(batch))[: len(batch) // 2])
                batch, fit = batch.take(some), fit[some]
                continue
            mean = self.pool.nbytes / len(places)
            wanted = max(SPARE * self.capacity, float(batch.nbytes)) / mean
            self._leave(self.random.permutation(places)[: int(wanted) + 1])
        return batch, fit

    def _like_mine(self, batch: Batch) -> Batch:
        """The batch as wide as the rows in the pool, which is made wider if it has to be."""
        assert self.pool is not None
        mine = self.pool.batch
        batch = type(mine).concat([mine.slice(0, 0), batch])  # type: ignore[list-item]
        if not self.pool.takes(batch):
            places = self.places()
            rows = type(mine).concat([mine.take(places), batch.slice(0, 0)])  # type: ignore[list-item]
            self.pool = Pool.like(rows, self.capacity, self.flow.beside)
            self.pool.put(rows)
            self._move(places)
        return batch

    def _squeeze(self, loose: float) -> bool:
        """Close the gaps if more than this share of the pool is lost in them."""
        if self.pool is None or self.pool.loose <= loose:
            return False
        places = self.places()
        if not self.pool.squeeze(places):
            return False
        self._move(places)
        return True

    def _move(self, places: np.ndarray) -> None:
        """What was at these places is at the places from 0 on."""
        to = np.full(len(self.rows), -1, np.int64)
        to[places] = np.arange(len(places))
        order = to[self.order]
        self.order = order[order >= 0].astype(self.order.dtype)
        for name in ("rows", "present", "cost", "norms"):
            setattr(self, name, getattr(self, name)[places])
        for several in (self.signs, self.alphas, self.active):
            several[:] = [array[places] for array in several]
        self.examples = None

    def _note(
        self,
        places: np.ndarray,
        rows: np.ndarray,
        cost: np.ndarray,
        norms: np.ndarray,
        signs: Sequence[np.ndarray],
        alphas: Sequence[np.ndarray],
        active: Sequence[np.ndarray],
    ) -> None:
        """What lies beside the rows that are at these places now."""
        self._grow()
        self.rows[places], self.present[places], self.kept[rows] = rows, True, True
        self.cost[places], self.norms[places] = cost, norms
        for k in range(self.flow.problems):
            self.signs[k][places], self.alphas[k][places], self.active[k][places] = signs[k], alphas[k], active[k]

    def _grow(self) -> None:
        """Give every array an entry for each place of the pool."""
        assert self.pool is not None
        length = len(self.pool)
        for name in ("rows", "present", "cost", "norms"):
            setattr(self, name, _longer(getattr(self, name), length))
        for several in (self.signs, self.alphas, self.active):
            several[:] = [_longer(array, length) for array in several]

    def _leave(self, places: np.ndarray) -> None:
        if len(places):
            assert self.pool is not None
            self._write_back(places)
            self.kept[self.rows[places]] = False
            self.present[places] = False
            for active in self.active:
                active[places] = 0
            self.pool.free(places)

    def _write_back(self, places: np.ndarray) -> None:
        for all_of_them, mine in zip(self.alphas_of_all, self.alphas, strict=True):
            all_of_them[self.rows[places]] = mine[places]


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    if length <= len(array):
        return array
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer
