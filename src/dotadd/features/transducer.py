"""Transducer: T of a rational kernel, ready for examples, with which they are composed one by one.

For T of the user's, and for those of builders that write what was not read. What X o T writes is finite for every X
without cycles exactly if T cannot write in circles without reading, and this is checked once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from dotadd.automata.automaton import EPSILON, MAX_STATES, Automaton, offsets_of
from dotadd.automata.builders import Builder
from dotadd.automata.composition import compose
from dotadd.automata.epsilon_removal import remove_epsilon
from dotadd.automata.paths import connect, depth_first, topological_order, total
from dotadd.automata.symbols import HashedSymbols, SymbolTable
from dotadd.data.batches import Batch, Strings
from dotadd.data.lattices import Lattices
from dotadd.errors import AutomatonError, FeatureError
from dotadd.features.base import BadRow
from dotadd.features.outputs import written
from dotadd.features.string_counts import Outputs, id_of

ARRAYS = ("offsets", "ilabels", "olabels", "targets", "weights", "finals")
UNKNOWN = -1
DIGITS = 16  # of a digest


class Transducer:
    """T, and which label each byte of a string is; UNKNOWN for those that T cannot read.

    The labels of lattices are T's own, unless T names its symbols: words of lattices are then known by their hashes. An
    `other` label stands for all that are not among T's symbols.
    """

    def __init__(self, automaton: Automaton, letters: np.ndarray, other: int | None = None) -> None:
        self.automaton, self.letters, self.other = _finite(automaton), letters, other

    @classmethod
    def of(cls, automaton: Automaton) -> Transducer:
        """With T's names for bytes where it has any, else bytes are labels themselves, as OpenFst has it."""
        letters, symbols = np.arange(256, dtype=np.int64), automaton.symbols
        if symbols is not None:
            letters = np.array([symbols.number(chr(b)) if chr(b) in symbols else UNKNOWN for b in range(256)], np.int64)
        letters[letters == EPSILON] = UNKNOWN
        return cls(automaton, letters)

    @classmethod
    def over(cls, symbols: np.ndarray, builder: Builder) -> Transducer:
        """A builder's T over these labels, in ascending order, and one more for all others, which is never written."""
        other = MAX_STATES
        made = builder.transducer(len(symbols) + 1)
        labels = np.concatenate([[EPSILON], symbols, [other]]).astype(np.int32)
        there = made.olabels <= len(symbols)
        automaton = Automaton.made(
            offsets_of(made.sources[there], made.n_states),
            labels[made.ilabels[there]],
            labels[made.olabels[there]],
            made.targets[there],
            made.weights[there],
            made.finals,
            start=made.start,
        )
        letters = np.arange(256, dtype=np.int64)
        return cls(automaton, np.where(np.isin(letters, symbols), letters, other), other)

    @classmethod
    def of_state(cls, state: Mapping[str, np.ndarray]) -> Transducer:
        """The transducer of a model file."""
        symbols = None
        if "names" in state:
            symbols = SymbolTable.of_lines(state["names"].tobytes().decode().splitlines())
        arrays = {name: state[name] for name in ARRAYS}
        return cls.of(Automaton(**arrays, start=int(state["start"][0]), symbols=symbols))

    def state(self) -> dict[str, np.ndarray]:
        automaton = self.automaton
        arrays = {name: np.array(getattr(automaton, name)) for name in ARRAYS} | {"start": np.array([automaton.start])}
        if automaton.symbols is None:
            return arrays
        return arrays | {"names": np.frombuffer("".join(automaton.symbols.lines()).encode(), np.uint8)}

    @cached_property
    def digest(self) -> str:
        """What tells this transducer from others: a digest of its arcs and names, as a model keeps them."""
        content = hashlib.sha256()
        for name, array in sorted(self.state().items()):
            content.update(f"{name} {array.dtype} {len(array)}\n".encode())
            content.update(array.tobytes())
        return content.hexdigest()[:DIGITS]

    def foreign(self, strings: Strings) -> BadRow | None:
        """The first letter that T does not know."""
        strings = strings.together()
        rows = np.arange(len(strings), dtype=np.int64)
        starts, ends = strings.bounds(rows)
        if not len(rows):
            return None
        unknown = np.flatnonzero(self.letters[strings.letters[starts[0] : ends[-1]]] == UNKNOWN) + starts[0]
        if not len(unknown):
            return None
        row = int(np.searchsorted(ends, unknown[0], side="right"))
        letter = bytes([strings.letters[unknown[0]]])
        return BadRow(row, int(unknown[0] - starts[row]) + 1, f"letter {letter!r} is no symbol of the transducer")

    def outputs(self, batch: Batch, rows: np.ndarray, *, posteriors: bool) -> Outputs:
        """What these rows' compositions with T write."""
        return Outputs.joined([self._outputs(batch, int(row), posteriors) for row in rows])

    def composed(self, batch: Batch, row: int) -> Automaton:
        """X o T. A letter that T does not know cannot be read."""
        if isinstance(batch, Strings):
            labels = self.letters[np.frombuffer(batch[row], np.uint8)]
            known = not len(labels) or labels.min() > EPSILON
            return compose(Automaton.from_string(labels) if known else Automaton.from_arcs([], {}), self._plain)
        assert isinstance(batch, Lattices)
        x = batch.automaton(row)
        if self.other is not None:
            known = np.isin(x.ilabels, self._read) | (x.ilabels == EPSILON)
            labels = np.where(known, x.ilabels, self.other)
            x = Automaton.from_arrays(x.sources, x.targets, labels, labels, x.weights, x.finals, x.start)
        return compose(x, self._plain if self.automaton.symbols is None else self._hashed)

    @cached_property
    def _plain(self) -> Automaton:
        return Automaton.made(*self.automaton.arrays, start=self.automaton.start)

    @cached_property
    def _read(self) -> np.ndarray:
        return np.unique(self.automaton.ilabels)

    @cached_property
    def _hashed(self) -> Automaton:
        """T with the numbers that its symbols have in lattices of words."""
        assert self.automaton.symbols is not None
        a, names, numbers = self.automaton, self.automaton.symbols, HashedSymbols()
        used = np.unique(np.concatenate([a.ilabels, a.olabels]))
        labels = np.array([numbers.add(names.name(int(label))) if label else EPSILON for label in used], np.int64)
        reads, writes = (labels[np.searchsorted(used, side)] for side in (a.ilabels, a.olabels))
        return Automaton.from_arrays(a.sources, a.targets, reads, writes, a.weights, a.finals, a.start)

    def _outputs(self, batch: Batch, row: int, posteriors: bool) -> Outputs:
        weight = total(batch.automaton(row)) if posteriors and isinstance(batch, Lattices) else 1.0
        return written(self.composed(batch, row), 1.0 / weight if weight > 0.0 else 1.0)

    def spelled(self, batch: Batch, row: int) -> dict[int, bytes]:
        """The text of each output of a row by its id. Labels that have no name are written as numbers."""
        letters = isinstance(batch, Strings)
        back = {int(label): bytes([byte]) for byte, label in enumerate(self.letters) if letters and label > EPSILON}
        if isinstance(batch, Lattices):
            back = {} if batch.words is None else {batch.words.number(name): name.encode() for name in batch.words}
            back |= {HashedSymbols().add(name): name.encode() for name in self.automaton.symbols or ()}
        between = b"" if letters else b" "
        strings = _strings(connect(self.composed(batch, row)))
        return {id_of(z): between.join(back.get(label, b"%d" % label) for label in z) for z in strings}


def _strings(a: Automaton) -> set[tuple[int, ...]]:
    """All strings that an automaton without cycles writes."""
    so_far: list[set[tuple[int, ...]]] = [set() for _ in range(a.n_states)]
    so_far[a.start].add(())
    found: set[tuple[int, ...]] = set()
    for q in topological_order(a).tolist():
        found |= so_far[q] if a.finals[q] != 0.0 else set()
        for arc in range(a.offsets[q], a.offsets[q + 1]):
            label = int(a.olabels[arc])
            so_far[a.targets[arc]] |= {(*z, label) for z in so_far[q]} if label else so_far[q]
        so_far[q] = set()
    return found


def _finite(automaton: Automaton) -> Automaton:
    """T without silent arcs, if it cannot write in circles without reading."""
    try:
        automaton = remove_epsilon(automaton)
    except AutomatonError as error:
        raise FeatureError(f"the transducer cannot be used: {error}") from None
    unread = automaton.ilabels == EPSILON
    offsets = offsets_of(automaton.sources[unread], automaton.n_states)
    columns = (array[unread] for array in (automaton.ilabels, automaton.olabels, automaton.targets, automaton.weights))
    state = depth_first(Automaton.made(offsets, *columns, automaton.finals, start=automaton.start))[1]
    if state >= 0:
        raise FeatureError(
            f"the transducer has a cycle through state {state} that writes without reading, so that an example would "
            "have infinitely many features: give one in which each cycle reads a symbol"
        )
    return automaton
