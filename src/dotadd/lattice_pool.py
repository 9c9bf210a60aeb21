"""A pool of lattices: see `pool`. Rows lie one after the other in two levels, their states and the arcs of these."""

from __future__ import annotations

import numpy as np

from dotadd._jit import plain
from dotadd.batch import Batch, item_places
from dotadd.lattices import Lattices
from dotadd.pool import Pool, longer, slide


class LatticePool(Pool):
    """Lattices, one after the other: their states, and the arcs of these."""

    ARCS = ("labels", "targets", "weights")

    def __init__(self, batch: Lattices, nbytes: int, beside: int) -> None:
        self._limit, self._beside = nbytes, beside
        an_arc = sum(getattr(batch, name).itemsize for name in self.ARCS)
        a_state = batch.finals.itemsize + 8
        self._arcs = {name: np.zeros(0, getattr(batch, name).dtype) for name in self.ARCS}
        self._finals = np.zeros(0, batch.finals.dtype)
        self._arc_offsets = np.zeros(1, np.int64)
        self._state_offsets = np.zeros(1, np.int64)
        self._gone = np.zeros(0, np.bool_)
        self._sizes = an_arc, a_state

    @staticmethod
    def empty(layout: dict[str, np.ndarray]) -> Lattices:
        """No lattices, of the types that those had which lay so."""
        none = np.zeros(1, np.int64)
        return Lattices(none, none, *(layout[name] for name in (*LatticePool.ARCS, "finals")))

    @property
    def room(self) -> int:
        arrays = (*self._arcs.values(), self._finals, self._arc_offsets)
        return sum(array.nbytes for array in arrays)

    def __len__(self) -> int:
        return len(self._state_offsets) - 1

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return self._used(int(self._state_offsets[-1]), int(self._row_arcs[-1]), len(self))

    def _used(self, states: int, arcs: int, rows: int) -> int:
        an_arc, a_state = self._sizes
        return arcs * an_arc + states * a_state + rows * self._beside

    @property
    def _row_arcs(self) -> np.ndarray:
        """Where the arcs of each row begin."""
        return self._arc_offsets[self._state_offsets]

    @property
    def batch(self) -> Lattices:
        states, arcs = int(self._state_offsets[-1]), int(self._row_arcs[-1])
        labels, targets, weights = (array[:arcs] for array in self._arcs.values())
        offsets = self._arc_offsets[: states + 1]
        return Lattices(self._state_offsets, offsets, labels, targets, weights, self._finals[:states])

    def takes(self, batch: Batch) -> bool:
        assert isinstance(batch, Lattices)
        mine = {**self._arcs, "finals": self._finals}
        return all(getattr(batch, name).dtype == array.dtype for name, array in mine.items())

    def has_room(self, batch: Batch) -> bool:
        assert isinstance(batch, Lattices)
        states = int(batch.state_offsets[-1] - batch.state_offsets[0])
        arcs = int(np.diff(batch.arc_offsets[batch.state_offsets]).sum())
        return self.nbytes + self._used(states, arcs, len(batch)) <= self._limit

    def put(self, batch: Batch) -> np.ndarray:
        assert isinstance(batch, Lattices)
        places = np.arange(len(self), len(self) + len(batch))
        state, arc = int(self._state_offsets[-1]), int(self._row_arcs[-1])
        states = batch.state_offsets.astype(np.int64) - int(batch.state_offsets[0]) + state
        arcs = np.diff(batch.arc_offsets[batch.state_offsets])
        self._extend(int(states[-1]), arc + int(arcs.sum()))
        self._state_offsets = np.concatenate([self._state_offsets, states[1:]])
        self._arc_offsets[self._state_offsets[-1]] = arc + int(arcs.sum())
        self._arc_offsets[states[:-1]] = arc + np.cumsum(arcs) - arcs
        self._gone = np.concatenate([self._gone, np.zeros(len(batch), np.bool_)])
        self.write(places, batch)
        return places

    def free(self, places: np.ndarray) -> None:
        self._gone[places] = True

    def layout(self, places: np.ndarray) -> dict[str, np.ndarray]:
        form = {name: array[:0] for name, array in {**self._arcs, "finals": self._finals}.items()}
        lengths = {"states": np.diff(self._state_offsets), "arcs": np.diff(self._row_arcs)}
        return {"places": places, **lengths, **form}

    def reserve(self, layout: dict[str, np.ndarray]) -> bool:
        states, arcs = int(layout["states"].sum()), int(layout["arcs"].sum())
        if self._used(states, arcs, len(layout["states"])) > self._limit:
            return False
        self._extend(states, arcs)
        self._lay(layout["states"], layout["arcs"])
        self._gone = np.ones(len(self), np.bool_)
        self._gone[layout["places"]] = False
        return True

    def _extend(self, states: int, arcs: int) -> None:
        """Room for so many states and arcs; which of them will need more of the memory nobody knows."""
        an_arc, a_state = self._sizes
        for name, array in self._arcs.items():
            self._arcs[name] = longer(array, arcs, self._limit // an_arc)
        self._finals = longer(self._finals, states, self._limit // a_state)
        self._arc_offsets = longer(self._arc_offsets, states + 1, self._limit // a_state + 1)

    def _lay(self, states: np.ndarray, arcs: np.ndarray) -> None:
        """Rows with so many states and arcs; the arcs of each belong to its last state as yet."""
        self._state_offsets = np.concatenate([[0], np.cumsum(states)])
        ends = np.concatenate([[0], np.cumsum(arcs)])
        self._arc_offsets[: self._state_offsets[-1] + 1] = np.append(np.repeat(ends[:-1], states), ends[-1])

    def write(self, places: np.ndarray, batch: Batch) -> None:
        assert isinstance(batch, Lattices)
        theirs = batch.take(np.arange(len(batch)))
        begins = self._row_arcs[places]
        _, states = item_places(self._state_offsets, places)
        shift = begins - theirs.arc_offsets[theirs.state_offsets[:-1]]
        self._arc_offsets[states] = theirs.arc_offsets[:-1] + np.repeat(shift, np.diff(theirs.state_offsets))
        self._finals[states] = theirs.finals
        counts = np.diff(theirs.arc_offsets[theirs.state_offsets])
        to = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(len(theirs.labels))
        for name, array in self._arcs.items():
            array[to] = getattr(theirs, name)

    def squeeze(self, places: np.ndarray) -> bool:
        if not self._gone.any():
            return False
        places = plain(places)
        states, arcs = np.diff(self._state_offsets)[places], np.diff(self._row_arcs)[places]
        degrees = np.diff(self._arc_offsets[: self._state_offsets[-1] + 1])
        for array in self._arcs.values():
            slide(array, self._row_arcs, places)
        slide(self._finals, self._state_offsets, places)
        slide(degrees, self._state_offsets, places)
        self._lay(states, arcs)
        np.cumsum(degrees[: self._state_offsets[-1]], out=self._arc_offsets[1 : self._state_offsets[-1] + 1])
        self._gone = np.zeros(len(places), np.bool_)
        return True

    @property
    def loose(self) -> float:
        states, arcs = np.diff(self._state_offsets)[self._gone], np.diff(self._row_arcs)[self._gone]
        return self._used(int(states.sum()), int(arcs.sum()), int(np.count_nonzero(self._gone))) / max(1, self.nbytes)
