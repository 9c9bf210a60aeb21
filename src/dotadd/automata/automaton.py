"""Automaton: a weighted automaton or transducer over the real semiring (R, +, x), as flat arrays.

The weight of an accepting path is the product of its arcs' weights and of its last state's final weight. A(x, y) is the
sum of the weights of all accepting paths that read x and write y; label 0, epsilon, is neither read nor written.
An acceptor writes what it reads, and A(x) stands for A(x, x). Weights may have either sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from dotadd._jit import plain
from dotadd.errors import AutomatonError

if TYPE_CHECKING:
    from dotadd.automata.symbols import SymbolTable

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]

EPSILON = 0
MAX_STATES = 2**31 - 1


class Path(NamedTuple):
    """An accepting path: what it reads and what it writes, without epsilons, and its weight."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weight: float


@dataclass(frozen=True, eq=False, repr=False)
class Automaton:
    """The arcs of state q are offsets[q] .. offsets[q + 1], sorted by input label and then by output label.

    offsets: int64, one more than there are states.
    ilabels, olabels: int32, what each arc reads and writes; 0 is epsilon.
    targets: int32, the state that each arc leads to.
    weights: float64, of the arcs.
    finals: float64, the final weight of each state; 0 where no path may end.
    start: the one state where all paths begin.
    symbols: what labels are called, if that is known.

    The arrays are not copied where their types are right, and cannot be written to through this object.
    """

    offsets: np.ndarray
    ilabels: np.ndarray
    olabels: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    finals: np.ndarray
    start: int = 0
    symbols: SymbolTable | None = None

    def __post_init__(self) -> None:
        arrays = (
            _typed("offsets", self.offsets, np.int64),
            _typed("labels", self.ilabels, np.int32),
            _typed("labels", self.olabels, np.int32),
            _typed("targets", self.targets, np.int32),
            _typed("weights", self.weights, np.float64),
            _typed("final weights", self.finals, np.float64),
        )
        _check(arrays, self.start)
        self._keep(arrays, int(self.start), self.symbols)

    def _keep(self, arrays: tuple[np.ndarray, ...], start: int, symbols: SymbolTable | None) -> None:
        values: dict[str, object] = {"start": start, "symbols": symbols}
        values["arrays"] = tuple(plain(array) for array in arrays)  # what kernels are given
        for name, array in zip(("offsets", "ilabels", "olabels", "targets", "weights", "finals"), arrays, strict=True):
            values[name] = shown = array.view()
            shown.setflags(write=False)
        self.__dict__.update(values)  # the class is frozen for everybody else

    if TYPE_CHECKING:

        @property
        def arrays(self) -> Arrays:
            """Offsets, input labels, output labels, targets, weights and finals, for kernels."""

    @classmethod
    def made(cls, *arrays: np.ndarray, start: int = 0, symbols: SymbolTable | None = None) -> Self:
        """An automaton of arrays that are right by construction, in the order of the fields, and are not checked."""
        automaton = object.__new__(cls)
        automaton._keep(arrays, start, symbols)
        return automaton

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.arrays, self.start, self.symbols)

    @classmethod
    def from_arrays(
        cls,
        sources: np.ndarray,
        targets: np.ndarray,
        ilabels: np.ndarray,
        olabels: np.ndarray,
        weights: np.ndarray,
        finals: np.ndarray,
        start: int = 0,
        symbols: SymbolTable | None = None,
        *,
        merge: bool = False,
    ) -> Self:
        """An automaton of arcs in any order. With `merge`, arcs that differ in nothing but their weight become one."""
        wide = [np.asarray(array, np.int64) for array in (sources, targets, ilabels, olabels)]
        n = len(finals)
        _check_arcs(n, *wide)
        sources, targets, ilabels, olabels = wide
        front, back = sources << 32 | ilabels, olabels << 32 | targets
        order = np.lexsort((back, front))
        weights = np.asarray(weights, np.float64)[order]
        if merge and len(order):
            front, back = front[order], back[order]
            first = np.flatnonzero(np.r_[True, (np.diff(front) != 0) | (np.diff(back) != 0)])
            weights, order = np.add.reduceat(weights, first), order[first]
        offsets = offsets_of(sources[order], n)
        return cls(offsets, ilabels[order], olabels[order], targets[order], weights, finals, start, symbols)

    @classmethod
    def from_arcs(
        cls,
        arcs: Iterable[Sequence[float]],
        finals: Mapping[int, float] | Iterable[int],
        start: int = 0,
        symbols: SymbolTable | None = None,
    ) -> Self:
        """An automaton of arcs (source, target, input, output, weight).

        The arcs of an acceptor may be shorter: (source, target, label, weight), or (source, target, label) with the
        weight 1. `finals` are the final states with their weights, or the final states alone.
        """
        rows = [_five(arc) for arc in arcs]
        sources, targets, ilabels, olabels, weights = zip(*rows, strict=True) if rows else ((),) * 5
        ends = {q: float(w) for q, w in finals.items()} if isinstance(finals, Mapping) else dict.fromkeys(finals, 1.0)
        states = [int(q) for q in (start, *sources, *targets, *ends)]
        if min(states) < 0:
            raise AutomatonError(f"states are numbered from 0: there is no state {min(states)}")
        final = np.zeros(max(states) + 1)
        final[list(ends)] = list(ends.values())
        leaves, leads, reads, writes = (np.array(column, np.int64) for column in (sources, targets, ilabels, olabels))
        return cls.from_arrays(leaves, leads, reads, writes, np.array(weights, np.float64), final, start, symbols)

    @classmethod
    def from_string(
        cls, labels: Sequence[int] | np.ndarray, weight: float = 1.0, symbols: SymbolTable | None = None
    ) -> Self:
        """The chain that accepts this string alone."""
        letters = np.asarray(labels)
        if letters.ndim != 1 or (len(letters) and letters.dtype.kind not in "iu"):
            raise AutomatonError("a string is a sequence of labels, which are integers from 1")
        if len(letters) and (letters.min() <= EPSILON or letters.max() > MAX_STATES):
            raise AutomatonError(f"the labels of a string are from 1 to {MAX_STATES}")
        if not np.isfinite(weight):
            raise AutomatonError(f"a weight has to be finite, and not {weight!r}")
        n = len(letters)
        letters = letters.astype(np.int32)
        offsets = np.minimum(np.arange(n + 2), n)
        finals = np.zeros(n + 1)
        finals[n] = weight
        targets = np.arange(1, n + 1, dtype=np.int32)
        return cls.made(offsets, letters, letters, targets, np.ones(n), finals, symbols=symbols)

    def part(self, states: np.ndarray, arcs: np.ndarray, stands_for: np.ndarray | None = None) -> Self:
        """The states of a mask, numbered anew, and of their arcs those of another mask, none of any other state.

        An arc leads to what stands for its target.
        """
        new, targets = (np.cumsum(states) - 1).astype(np.int32), self.targets[arcs]
        before = np.concatenate([[0], np.cumsum(arcs)])
        return self.made(
            before[np.append(self.offsets[:-1][states], len(arcs))],
            self.ilabels[arcs],
            self.olabels[arcs],
            new[targets if stands_for is None else stands_for[targets]],
            self.weights[arcs],
            self.finals[states],
            start=int(new[self.start]),
            symbols=self.symbols,
        )

    @property
    def n_states(self) -> int:
        return len(self.finals)

    @property
    def n_arcs(self) -> int:
        return len(self.targets)

    @property
    def sources(self) -> np.ndarray:
        """The state that each arc leaves."""
        return np.repeat(np.arange(self.n_states, dtype=np.int32), np.diff(self.offsets))

    @property
    def is_acceptor(self) -> bool:
        """Whether each arc writes what it reads."""
        return bool(np.array_equal(self.ilabels, self.olabels))

    @property
    def is_acyclic(self) -> bool:
        from dotadd.automata.paths import depth_first

        return depth_first(self)[1] < 0

    @property
    def is_deterministic(self) -> bool:
        """Whether no arc reads epsilon and no two arcs of a state read the same label."""
        return self.first_ambiguity() is None

    def first_ambiguity(self) -> int | None:
        """The first state that has an arc reading epsilon, or two arcs reading the same label."""
        again = np.flatnonzero(np.diff(self.ilabels) == 0) + 1
        again = again[~np.isin(again, self.offsets)]  # the neighbour belongs to the same state
        arcs = np.r_[again, np.flatnonzero(self.ilabels == EPSILON)]
        return int(self.sources[arcs.min()]) if len(arcs) else None

    def __repr__(self) -> str:
        kind = "acceptor" if self.is_acceptor else "transducer"
        return f"<{kind} of {self.n_states} states and {self.n_arcs} arcs>"

    def weight(self, x: Sequence[int] | np.ndarray, y: Sequence[int] | np.ndarray | None = None) -> float:
        """A(x, y), the sum over all accepting paths that read x and write y; of an acceptor, A(x)."""
        from dotadd.automata.composition import compose
        from dotadd.automata.paths import total

        read = compose(Automaton.from_string(x), self)
        if y is not None:
            return total(compose(read, Automaton.from_string(y)))
        if not self.is_acceptor:
            raise AutomatonError("this is a transducer: give what it reads and what it writes, weight(x, y)")
        return total(read)

    def paths(self, limit: int = 1000) -> list[Path]:
        """All accepting paths of an acyclic automaton, in the order of its arcs. An error if there are more."""
        from dotadd.automata.paths import check_acyclic, connect

        check_acyclic(self)
        paths: list[Path] = []
        for path in connect(self)._walk():
            if len(paths) == limit:
                raise AutomatonError(f"there are more than {limit} accepting paths")
            paths.append(path)
        return paths

    def _walk(self) -> Iterator[Path]:
        waiting = [(self.start, Path((), (), 1.0))]
        while waiting:
            state, (inputs, outputs, weight) = waiting.pop()
            if self.finals[state] != 0.0:
                yield Path(inputs, outputs, float(weight * self.finals[state]))
            for arc in reversed(range(self.offsets[state], self.offsets[state + 1])):
                read = inputs + ((int(self.ilabels[arc]),) if self.ilabels[arc] else ())
                written = outputs + ((int(self.olabels[arc]),) if self.olabels[arc] else ())
                waiting.append((int(self.targets[arc]), Path(read, written, float(weight * self.weights[arc]))))

    def __add__(self, other: Automaton) -> Automaton:
        from dotadd.automata.algebra import add

        return add([self, other]) if isinstance(other, Automaton) else NotImplemented

    def __mul__(self, other: Automaton | float) -> Automaton:
        from dotadd.automata.algebra import concatenate

        return concatenate(self, other) if isinstance(other, Automaton) else self.__rmul__(other)

    def __rmul__(self, number: float) -> Automaton:
        from dotadd.automata.algebra import scale

        return scale(self, number) if isinstance(number, int | float | np.number) else NotImplemented

    def __matmul__(self, other: Automaton) -> Automaton:
        from dotadd.automata.composition import compose

        return compose(self, other) if isinstance(other, Automaton) else NotImplemented


def _again(cls: type[Automaton], arrays: Arrays, start: int, symbols: SymbolTable | None) -> Automaton:
    return cls.made(*arrays, start=start, symbols=symbols)


def offsets_of(sources: np.ndarray, n_states: int) -> np.ndarray:
    """Where the arcs of each state begin, for arcs that are sorted by the state that they leave."""
    return np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n_states))]).astype(np.int64)


def common_symbols(*automata: Automaton) -> SymbolTable | None:
    """The symbol table of automata that are put together. One without a table goes with any other."""
    tables = [automaton.symbols for automaton in automata if automaton.symbols is not None]
    if any(table is not tables[0] and table != tables[0] for table in tables[1:]):
        raise AutomatonError("the automata have different symbol tables: read them with the same one")
    return tables[0] if tables else None


def check_acceptor(automaton: Automaton, what: str) -> None:
    if not automaton.is_acceptor:
        raise AutomatonError(f"this is a transducer, and {what} is for acceptors: project it on its inputs or outputs")


def check_deterministic(a: Automaton) -> None:
    if (state := a.first_ambiguity()) is not None:
        raise AutomatonError(f"state {state} has two arcs for one label, or one for epsilon: determinize it first")


def _five(arc: Sequence[float]) -> tuple[float, ...]:
    match tuple(arc):
        case (source, target, label):
            return source, target, label, label, 1.0
        case (source, target, label, weight):
            return source, target, label, label, weight
        case (_, _, _, _, _) as whole:
            return whole
    raise AutomatonError(f"an arc is (source, target, input, output, weight) or shorter, and not {arc!r}")


def _typed(what: str, array: object, dtype: type[np.generic]) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in ("iuf" if dtype is np.float64 else "iu")):
        raise AutomatonError(f"{what} have to be a flat array of numbers, and not {array.dtype} of shape {array.shape}")
    if dtype is np.int32 and len(array) and (array.min() < 0 or array.max() > MAX_STATES):
        raise AutomatonError(f"{what} are from 0 to {MAX_STATES}, and not from {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, dtype)


def _check(arrays: Arrays, start: int) -> None:
    offsets, ilabels, olabels, targets, weights, finals = arrays
    n, arcs = len(finals), len(targets)
    if not 0 < n <= MAX_STATES:
        raise AutomatonError(f"an automaton has from 1 to {MAX_STATES} states, and not {n}")
    if not 0 <= start < n:
        raise AutomatonError(f"the start is state {start}, but there are {n} states")
    if not len(ilabels) == len(olabels) == len(weights) == arcs:
        raise AutomatonError(f"{arcs} arcs have {len(ilabels)} and {len(olabels)} labels and {len(weights)} weights")
    if len(offsets) != n + 1 or offsets[0] != 0 or offsets[n] != arcs or (np.diff(offsets) < 0).any():
        raise AutomatonError(f"the offsets of {n} states have to be {n + 1} numbers that rise from 0 to {arcs}")
    sources = np.repeat(np.arange(n), np.diff(offsets))
    _check_arcs(n, sources, targets, ilabels, olabels)
    if len(bad := np.flatnonzero(~np.isfinite(weights))):
        arc = f"from state {sources[bad[0]]} to state {targets[bad[0]]}"
        raise AutomatonError(f"the arc {arc} has the weight {weights[bad[0]]}: weights have to be finite")
    if len(bad := np.flatnonzero(~np.isfinite(finals))):
        raise AutomatonError(f"state {bad[0]} has the final weight {finals[bad[0]]}: weights have to be finite")
    labels = ilabels.astype(np.int64) << 32 | olabels
    if len(bad := np.flatnonzero((np.diff(labels) < 0) & (np.diff(sources) == 0))):
        raise AutomatonError(f"the arcs of state {sources[bad[0]]} are not sorted by label: use Automaton.from_arrays")


def _check_arcs(n: int, sources: np.ndarray, targets: np.ndarray, ilabels: np.ndarray, olabels: np.ndarray) -> None:
    for states, does in ((sources, "leaves"), (targets, "leads to")):
        if len(bad := np.flatnonzero((states < 0) | (states >= n))):
            raise AutomatonError(f"an arc {does} state {states[bad[0]]}, but there are {n} states, numbered from 0")
    for labels in (ilabels, olabels):
        if len(bad := np.flatnonzero((labels < 0) | (labels > MAX_STATES))):
            raise AutomatonError(f"the label {labels[bad[0]]} is not from 0 to {MAX_STATES}")
