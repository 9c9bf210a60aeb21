"""Store: the examples that StreamSVM keeps in memory, within a budget of bytes: raw, or their packed features.

Beside each lie its number, its code and weight, its length and its dual variables. The dual variables of rows in the
store are those in the store; they go back to where all are kept when the row leaves. Rows leave because they have told
what they can (`release`), or at random when there is no room for new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np

from dotadd.core.block import row_numbers
from dotadd.data.batches import Batch, Strings
from dotadd.data.pool import LOOSE, Pool
from dotadd.data.ragged import joined
from dotadd.problem.columns import NO_WEIGHT, Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.expanded import expanded, over_features, worth_expanding
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Piece, Problem
from dotadd.solvers.run import shuffle
from dotadd.solvers.sweep import Variables

FULL = 0.9  # of the capacity: time to be less generous
SPARE = 1 / 8  # of the capacity is set free at a time when there is no room


class Store:
    """Rows in at most `capacity` bytes. Arrays have an entry for each place of the pool; `present` says which count.

    `alphas_of_all` is where the dual variables of all rows are kept. `order` holds the places that are still to be
    visited in this round; rows that arrive meanwhile wait for the next one.
    """

    def __init__(self, problem: Problem[OnDisk], alphas_of_all: list[np.ndarray], capacity: int, seed: int) -> None:
        self.problem, self.alphas_of_all, self.capacity = problem, alphas_of_all, capacity
        self.beside = bytes_beside(len(problem))
        self.expanded: bool | None = None if problem.examples.keep else False
        """Whether features lie in the pool, and not raw rows; None until rows were seen."""
        self.kept = np.zeros(len(problem.examples), np.bool_)  # of every row, whether it is here
        self.pool: Pool | None = None
        self.random = np.random.default_rng(seed)
        self.rows, self.present = np.empty(0, np.int64), np.empty(0, np.bool_)
        self.codes, self.weight, self.norms = np.empty(0, np.uint16), NO_WEIGHT, np.empty(0)
        self.columns: Columns | None = None  # of no rows: what codes mean
        problems = range(len(problem))
        self.alphas = [np.empty(0) for _ in problems]
        self.active = [np.empty(0, np.uint8) for _ in problems]
        self.order = np.empty(0, np.uint32)
        self._beside_rows: tuple[str, ...] = ("rows", "present", "codes", "norms")
        self.examples: InMemory | None = None
        self._changed = False

    def __len__(self) -> int:
        return int(np.count_nonzero(self.present))

    @property
    def full(self) -> bool:
        return self.pool is not None and self.pool.nbytes > FULL * self.capacity

    @property
    def features(self) -> tuple[int, int]:
        """Of how many rows features are here, and in how many bytes."""
        if not self.expanded or self.pool is None:
            return 0, 0
        places = self.places()
        return len(places), int(self.pool.batch.row_bytes()[places].sum())

    def places(self) -> np.ndarray:
        """Where the rows are."""
        return np.flatnonzero(self.present)

    def add(
        self,
        piece: Piece,
        stay: np.ndarray,
        norms: np.ndarray,
        alphas: Sequence[np.ndarray],
        active: Sequence[np.ndarray],
    ) -> None:
        """Keep these rows of a piece; others leave at random if there is no room."""
        if not len(stay):
            return
        if self.expanded is None:
            self.expanded = worth_expanding(piece.examples, stay, self.capacity / len(self.kept) - self.beside)
        batch, fit = self._make_room(self._rows_of(piece, stay))
        assert self.pool is not None
        room = self.pool.room
        places = self.pool.put(batch)
        if self.pool.room != room:
            self.examples = None  # or rows would stay in memory where they lay before, too
        several = ([array[fit] for array in some] for some in (alphas, active))
        stay = stay[fit].astype(np.int64)
        self._note(places, piece.rows.start + stay, piece.columns.take(stay), norms[fit], *several)
        self._changed = True
        if len(self.order):  # what lies there now is not what was to be visited
            new = np.zeros(len(self.rows), np.bool_)
            new[places] = True
            self.order = self.order[~new[self.order]]

    def _rows_of(self, piece: Piece, rows: np.ndarray) -> Batch:
        """These rows as they lie in the pool."""
        return expanded(piece.examples, rows) if self.expanded else piece.examples.batch.take(rows).own()

    def begin_round(self, rng: np.ndarray) -> int:
        """Put all rows that are active in any of the problems in random order; returns how many."""
        self._squeeze(LOOSE)
        if self._changed:
            self.examples, self._changed = None, False
        self.order = row_numbers(np.logical_or.reduce(self.active))
        shuffle(self.order, rng)
        return len(self.order)

    def next(self, count: int) -> tuple[InMemory, np.ndarray]:
        """The next so many places of this round, and phi over the batch of all places."""
        if self.examples is None:
            self.examples = self.over()
        some, self.order = self.order[:count], self.order[count:]
        return self.examples, some[self.present[some]]

    def over(self) -> InMemory:
        """phi over the batch of all places that there are now."""
        assert self.pool is not None
        over = over_features if self.expanded else OnDisk.over
        return over(self.problem.examples, self.pool.batch)

    def variables(self, k: int) -> Variables:
        """What a sweep moves of binary problem k, with an entry for each place."""
        assert self.columns is not None
        return Variables(self.columns[k]._replace(codes=self.codes, weight=self.weight), self.alphas[k], self.active[k])

    def release(self, places: np.ndarray) -> None:
        """Let those of these rows go that are no longer active in any problem."""
        self._leave(places[~np.logical_or.reduce([active[places] for active in self.active]).astype(np.bool_)])

    def wake(self, proved: Sequence[bool]) -> None:
        """Let each row move again in every problem that it counts in and that is not proved. One that stays for the
        sake of one problem does not arrive again, and if another has let it go too early, nobody else would look at it.
        """
        for k, active in enumerate(self.active if self.columns is not None else ()):
            active[:] = self.present & (self.variables(k).column.cost() > 0.0) & (not proved[k])
        self.release(self.places())

    def write_back(self) -> None:
        """Bring the dual variables of all rows up to date."""
        self._write_back(self.places())

    def state(self) -> dict[str, np.ndarray]:
        """Which rows are here, where, and which of them are to be visited: everything but the examples themselves."""
        if self.pool is None:
            return {}
        places = self.places()
        state = {"rows": self.rows[places], "order": self.order, "norms": self.norms[places]}
        state |= {"changed": np.array([self._changed]), "packed": np.array([bool(self.expanded)])}
        state |= {f"active.{k}": active[places] for k, active in enumerate(self.active)}
        return state | {f"pool.{name}": array for name, array in self.pool.layout(places).items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Read the rows again that were here; their dual variables are where all are.

        They come to the places where they were. Where there is less room now than there was then, they come as new
        ones, and push each other out.
        """
        if "packed" not in state:  # there were none, or an earlier version wrote it: they come again with the next pass
            return
        rows = state["rows"]
        by_number = np.argsort(rows)
        layout = {name[len("pool.") :]: array for name, array in state.items() if name.startswith("pool.")}
        pool: Pool | None = None
        was = bool(state["packed"][0])
        self.expanded = was and self.problem.examples.keep
        with closing(self.problem.pieces()) as pieces:
            for number, piece in enumerate(pieces):
                if number == 0 and self.expanded == was:
                    kind = Strings if self.expanded else type(piece.examples.batch.typical())
                    self.pool = pool = Pool.again(layout, kind, self.capacity, self.beside)
                first, stop = np.searchsorted(rows, [piece.rows.start, piece.rows.stop], sorter=by_number)
                self._restore_rows(piece, by_number[first:stop], state, layout, pool)
                if stop == len(rows):
                    break
        if pool is not None:
            self.order = state["order"].astype(np.uint32)
            self._changed = bool(state["changed"][0])

    def _restore_rows(
        self,
        piece: Piece,
        mine: np.ndarray,
        state: Mapping[str, np.ndarray],
        layout: Mapping[str, np.ndarray],
        pool: Pool | None,
    ) -> None:
        """Put the rows of a piece back that were here: those of these numbers in the state."""
        rows = state["rows"][mine]
        at = rows - piece.rows.start
        norms = state["norms"][mine]
        alphas = [np.array(alpha[rows]) for alpha in self.alphas_of_all]
        active = [state[f"active.{k}"][mine] for k in range(len(self.problem))]
        if pool is None:
            self.add(piece, at, norms, alphas, active)
            return
        batch = self._rows_of(piece, at)
        if not pool.takes(batch):  # the pool was made wide enough for all of them
            batch = joined([pool.batch.slice(0, 0), batch])
        places = layout["places"][mine]
        pool.write(places, batch)
        self._note(places, rows, piece.columns.take(at), norms, alphas, active)

    def _make_room(self, batch: Batch) -> tuple[Batch, np.ndarray]:
        """The rows of this batch that there is room for, in a form that the pool takes, and which they are."""
        if self.pool is None:
            self.pool = Pool.like(batch, self.capacity, self.beside)
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
            wanted = max(SPARE * self.capacity, float(batch.row_bytes().sum())) / mean
            self._leave(self.random.permutation(places)[: int(wanted) + 1])
        return batch, fit

    def _like_mine(self, batch: Batch) -> Batch:
        """The batch as wide as the rows in the pool, which is made wider if it has to be."""
        assert self.pool is not None
        mine = self.pool.batch
        batch = joined([mine.slice(0, 0), batch])
        if not self.pool.takes(batch):
            places = self.places()
            rows = joined([mine.take(places), batch.slice(0, 0)])
            self.pool = Pool.like(rows, self.capacity, self.beside)
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
        for name in self._beside_rows:
            setattr(self, name, getattr(self, name)[places])
        for several in (self.alphas, self.active):
            several[:] = [array[places] for array in several]
        self.examples = None

    def _note(
        self,
        places: np.ndarray,
        rows: np.ndarray,
        columns: Columns,
        norms: np.ndarray,
        alphas: Sequence[np.ndarray],
        active: Sequence[np.ndarray],
    ) -> None:
        """What lies beside the rows that are at these places now."""
        if self.columns is None:
            self.columns = columns.take(slice(0, 0))
            self.codes = self.codes.astype(columns[0].codes.dtype)
            if columns.weighted:
                self._beside_rows = (*self._beside_rows, "weight")
        self._grow()
        self.rows[places], self.present[places], self.kept[rows] = rows, True, True
        column = columns[0]
        self.codes[places], self.norms[places] = column.codes, norms
        if columns.weighted:
            self.weight[places] = column.weight
        for k in range(len(self.problem)):
            self.alphas[k][places], self.active[k][places] = alphas[k], active[k]

    def _grow(self) -> None:
        """Give every array an entry for each place of the pool."""
        assert self.pool is not None
        length = len(self.pool)
        for name in self._beside_rows:
            setattr(self, name, _longer(getattr(self, name), length))
        for several in (self.alphas, self.active):
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


def bytes_beside(problems: int) -> int:
    """Bytes that an example in memory takes beside its row: number, code, weight, length, offsets; and for
    each binary problem alpha and whether it is active."""
    return 48 + 10 * problems


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    if length <= len(array):
        return array
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer
