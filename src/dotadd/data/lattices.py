"""Lattices: weighted acceptors without cycles, many of them in flat arrays.

A lattice is what a recogniser knows of a sentence: each path from the first state to a final one is a reading, and the
product of the weights along it says how likely it is. Row r of a batch has the states

    state_offsets[r] .. state_offsets[r + 1]

of all rows', and state q the arcs arc_offsets[q] .. arc_offsets[q + 1] of all states'. The states of a row are in
topological order: the first is the start, and arcs lead to later ones, which are counted from the row's first. Labels
are numbers from 1, and 0 is the empty word. What they stand for is for those to know who made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from dotadd._util.growing import GrowingOffsets
from dotadd.data.batches import Strings, numpy_of
from dotadd.data.ragged import Parts, Ragged, as_offsets, item_places
from dotadd.errors import AutomatonError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from dotadd.automata.automaton import Automaton
    from dotadd.automata.symbols import SymbolTable


class Lattices(Ragged):
    """Rows of states, states of arcs. The arrays are neither copied nor checked; `checked` does the latter.

    state_offsets, arc_offsets: made int64; those of a slice do not begin at 0.
    labels: int32 or int64, from 0 on, which is the empty word.
    targets: int32, counted from the first state of the row.
    weights, finals: float32 or float64, of arcs and of states; a final weight of 0 means that no path ends there.
    words: what labels are called, if whoever reads them knows; for people to read, and not kept in Arrow.
    """

    kind = "lattices"

    def __init__(
        self,
        state_offsets: np.ndarray,
        arc_offsets: np.ndarray,
        labels: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        finals: np.ndarray,
        *,
        words: SymbolTable | None = None,
    ) -> None:
        self.state_offsets, self.arc_offsets = as_offsets(state_offsets), as_offsets(arc_offsets)
        self.labels, self.targets, self.weights, self.finals = labels, targets, weights, finals
        self.words = words

    @classmethod
    def from_automata(cls, automata: Sequence[Automaton], symbols: SymbolTable | None = None) -> Lattices:
        """Acceptors without cycles as a batch. Of each, the states and arcs that some accepting path uses are kept.

        With `symbols`, labels are renumbered: a symbol gets the number that its name has there, a new one if it is
        new. All of the automata have to know what their labels are called then.
        """
        rows = [_in_order(automaton, row) for row, automaton in enumerate(automata)]
        if symbols is not None:
            for automaton, row in zip(automata, rows, strict=True):
                row["labels"] = _renumbered(row["labels"], automaton, symbols)
        empty = {"labels": np.int32, "targets": np.int32, "weights": np.float64, "finals": np.float64}
        parts = {
            name: np.concatenate([np.empty(0, dtype), *(row[name] for row in rows)]) for name, dtype in empty.items()
        }
        state_offsets, arc_offsets = GrowingOffsets(), GrowingOffsets()
        for row in rows:
            state_offsets.extend(np.array([0, len(row["finals"])]))
            arc_offsets.extend(row["offsets"])
        return cls(state_offsets.done(), arc_offsets.done(), **parts, words=symbols)

    def automaton(self, row: int, symbols: SymbolTable | None = None) -> Automaton:
        """One row as an acceptor."""
        from dotadd.automata.automaton import Automaton

        first, stop = (int(state) for state in self.state_offsets[row : row + 2])
        if first == stop:  # of no states, so that nothing is accepted
            return Automaton.from_arcs([], {}, symbols=symbols)
        offsets = self.arc_offsets[first : stop + 1]
        arcs = slice(int(offsets[0]), int(offsets[-1]))
        labels = self.labels[arcs]
        sources = np.repeat(np.arange(stop - first), np.diff(offsets))
        return Automaton.from_arrays(
            sources, self.targets[arcs], labels, labels, self.weights[arcs], self.finals[first:stop], 0, symbols
        )

    def checked(self) -> Lattices:
        """These lattices, if their arrays are what they have to be; else an error that says what is wrong."""
        states, arcs = self.state_offsets, self.arc_offsets
        lengths = {len(self.labels), len(self.targets), len(self.weights)}
        if len(lengths) != 1 or len(arcs) != len(self.finals) + 1:
            raise AutomatonError(
                "lattices have as many labels as targets and weights, and a final weight for each state"
            )
        for offsets, end in ((states, len(self.finals)), (arcs, len(self.labels))):
            if not len(offsets) or offsets[0] < 0 or offsets[-1] > end or (np.diff(offsets) < 0).any():
                raise AutomatonError("the offsets of lattices do not rise, or lead beyond their states or arcs")
        used = slice(int(arcs[states[0]]), int(arcs[states[-1]]))
        labels, targets, weights = self.labels[used], self.targets[used], self.weights[used]
        finals = self.finals[states[0] : states[-1]]
        if len(labels) and labels.min() < 0:
            raise AutomatonError(f"the label {labels.min()} is negative: labels are numbers from 0, the empty word")
        if not (np.isfinite(weights).all() and np.isfinite(finals).all()):
            raise AutomatonError("a lattice has a weight that is no finite number")
        counts = np.diff(states)
        within = np.arange(states[0], states[-1]) - np.repeat(states[:-1], counts)
        degrees = np.diff(arcs[states[0] : states[-1] + 1])
        wrong = (targets <= np.repeat(within, degrees)) | (targets >= np.repeat(np.repeat(counts, counts), degrees))
        if wrong.any():
            row = int(np.repeat(np.repeat(np.arange(len(self)), counts), degrees)[int(wrong.argmax())])
            raise AutomatonError(
                f"lattice {row} has an arc to state {targets[wrong][0]} of {counts[row]} that does not lie behind the "
                "one that it leaves: states have to be in topological order (Lattices.from_automata sorts them)"
            )
        return self

    def __len__(self) -> int:
        return len(self.state_offsets) - 1

    def parts(self) -> Parts:
        arrays = (self.labels, self.targets, self.weights, self.finals)
        return Parts((self.state_offsets, self.arc_offsets), arrays, (2, 2, 2, 1))

    @classmethod
    def of(cls, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        states, arcs = offsets
        labels, targets, weights, finals = arrays
        return cls(states, arcs, labels, targets, weights, finals)

    def made(self, offsets: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Self:
        batch = self.of(offsets, arrays)
        batch.words = self.words
        return batch

    def alike(self, other: Self) -> tuple[Self, Self]:
        if self.words is None and other.words is not None:
            return other.made(*self.parts()[:2]), other
        return self, other

    def to_arrow(self) -> pa.Array:
        """A list of states for each row, and a list of arcs beside the final weight of each state."""
        import pyarrow as pa

        states = slice(int(self.state_offsets[0]), int(self.state_offsets[-1]))
        arc_offsets = self.arc_offsets[states.start : states.stop + 1]
        arcs = slice(int(arc_offsets[0]), int(arc_offsets[-1]))
        columns = {"label": self.labels[arcs], "target": self.targets[arcs], "weight": self.weights[arcs]}
        items = pa.StructArray.from_arrays([pa.array(column) for column in columns.values()], list(columns))
        leaving = _lists(arc_offsets, items)
        inner = pa.StructArray.from_arrays([pa.array(self.finals[states]), leaving], ["final", "arcs"])
        return _lists(self.state_offsets, inner)


def packed(batch: Lattices) -> Strings:
    """Each row as the letters of one cell, words of 8 bytes: how many states it has; of each state its final weight and
    how many arcs leave it; of each arc its label, target and weight."""
    states = np.diff(batch.state_offsets)
    first, stop = batch.state_offsets[[0, -1]]
    leaving = np.diff(batch.arc_offsets[first : stop + 1])
    arcs = np.diff(batch.arc_offsets[batch.state_offsets])
    offsets = np.concatenate([[0], np.cumsum(1 + 2 * states + 3 * arcs)])
    words = np.empty(offsets[-1], np.int64)
    words[offsets[:-1]] = states
    at_state, at_arc = _places(offsets[:-1], states, arcs)
    words[at_state], words[at_state + 1] = batch.finals[first:stop].astype(np.float64).view(np.int64), leaving
    used = slice(int(batch.arc_offsets[first]), int(batch.arc_offsets[stop]))
    words[at_arc], words[at_arc + 1] = batch.labels[used], batch.targets[used]
    words[at_arc + 2] = batch.weights[used].astype(np.float64).view(np.int64)
    return Strings(words.view(np.uint8), offsets * 8)


def unpacked(cells: Strings, names: SymbolTable | None = None) -> Lattices:
    """The inverse of `packed`, of strings that begin where their letters do. What stands there is checked."""
    words, offsets = cells.letters[: cells.letters.size // 8 * 8].view(np.int64), cells.with_offsets().offsets
    assert offsets is not None
    sizes = np.diff(offsets) // 8
    try:
        if (offsets % 8).any() or not sizes.all():
            raise IndexError
        states = words[offsets[:-1] // 8]
        arcs = (sizes - 1 - 2 * states) // 3
        if (states < 0).any() or (states > sizes).any() or (arcs < 0).any():
            raise IndexError
        at_state, at_arc = _places(offsets[:-1] // 8, states, arcs)
        leaving, ends = words[at_state + 1], np.concatenate([[0], np.cumsum(states)])
        arc_offsets = np.concatenate([[0], np.cumsum(leaving)])
        if (leaving < 0).any() or leaving.max(initial=0) > len(words) or (np.diff(arc_offsets[ends]) != arcs).any():
            raise IndexError
        columns = (
            words[at_arc].astype(np.int32),
            words[at_arc + 1].astype(np.int32),
            words[at_arc + 2].view(np.float64),
        )
        return Lattices(ends, arc_offsets, *columns, words[at_state].view(np.float64), words=names).checked()
    except (IndexError, AutomatonError):
        raise DataError("a column that is to hold lattices was read as something else: read the table again") from None


def _places(begins: np.ndarray, states: np.ndarray, arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the states and the arcs of packed lattices lie that begin there."""
    places = []
    for counts, size, first in ((states, 2, begins + 1), (arcs, 3, begins + 1 + 2 * states)):
        before = np.cumsum(counts) - counts
        places.append(np.repeat(first - size * before, counts) + size * np.arange(counts.sum()))
    return places[0], places[1]


def _lists(offsets: np.ndarray, items: pa.Array) -> pa.Array:
    import pyarrow as pa

    offsets = np.ascontiguousarray(offsets if offsets[0] == 0 else offsets - offsets[0], np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), items)


def is_lattices(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lattices: lists of states, which have a final weight and lists of arcs."""
    import pyarrow as pa

    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not lists or not pa.types.is_struct(kind.value_type):
        return False
    return [field.name for field in kind.value_type] == ["final", "arcs"]


def lattices_from_arrow(array: pa.Array) -> Lattices:
    """The batch over an Arrow array's memory; the inverse of `to_arrow`. What stands there is checked."""
    states = array.values
    leaving = states.field("arcs")
    items = leaving.values
    names = ("label", "target", "weight")
    try:
        columns = {name: items.field(name) for name in names}
    except (KeyError, AttributeError):
        raise ValueError(f"cannot read a column of {array.type} as lattices: arcs have label, target, weight") from None
    finals = states.field("final")
    if any(part.null_count for part in (array, states, leaving, items, finals, *columns.values())):
        raise ValueError("column has missing values; fill or drop them first")
    kinds = {"label": np.integer, "target": np.integer, "weight": np.floating, "final": np.floating}
    arrays = {name: numpy_of(column) for name, column in {**columns, "final": finals}.items()}
    for name, values in arrays.items():
        if not np.issubdtype(values.dtype, kinds[name]):
            raise ValueError(f"the {name}s of lattices cannot be numbers of type {values.dtype}")
    return Lattices(
        numpy_of(array.offsets),
        numpy_of(leaving.offsets),
        arrays["label"],
        arrays["target"].astype(np.int32, copy=False),
        arrays["weight"],
        arrays["final"],
    ).checked()


def _in_order(automaton: Automaton, row: int) -> dict[str, np.ndarray]:
    """The arrays of one row, states in topological order."""
    from dotadd.automata.automaton import check_acceptor
    from dotadd.automata.paths import connect, topological_order

    try:
        check_acceptor(automaton, "a lattice")
        useful = connect(automaton)
        order = topological_order(useful)
    except AutomatonError as error:
        raise AutomatonError(f"lattice {row}: {error}") from None
    new = np.empty(useful.n_states, np.int32)
    new[order] = np.arange(useful.n_states, dtype=np.int32)
    offsets, arcs = item_places(useful.offsets, order)
    return {
        "offsets": offsets,
        "labels": useful.ilabels[arcs],
        "targets": new[useful.targets[arcs]],
        "weights": useful.weights[arcs],
        "finals": useful.finals[order],
    }


def _renumbered(labels: np.ndarray, automaton: Automaton, symbols: SymbolTable) -> np.ndarray:
    if automaton.symbols is None:
        raise AutomatonError("labels cannot be renumbered: an automaton does not know what its labels are called")
    used, at = np.unique(labels, return_inverse=True)
    names = [automaton.symbols.name(int(label)) if label else None for label in used]
    return np.array([0 if name is None else symbols.add(name) for name in names], np.int32)[at]
