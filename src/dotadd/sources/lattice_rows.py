"""LatticeRows: many drafts of lattices put together to one batch.

The arcs of all of them are sorted together, and one kernel then orders the states of each, leaves out those that no
accepting path uses, and turns costs into probabilities, as `automata.posterior` does: made one by one, lattices of
twenty words take longer to put into arrays than to read.
"""

from __future__ import annotations

import math

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import offsets_of
from dotadd.automata.draft import Draft, Numbering
from dotadd.automata.symbols import SymbolTable
from dotadd.data.lattices import Lattices

NO_PATH = -1


class LatticeRows:
    """Lattices that have been read so far."""

    def __init__(self) -> None:
        self.counts: list[int] = []  # of states
        self.starts: list[int] = []
        self.costs: list[bool] = []
        self.sources: list[int] = []
        self.targets: list[int] = []
        self.labels: list[int] = []
        self.weights: list[float] = []
        self.finals: list[float] = []

    def append(self, draft: Draft, numbering: Numbering) -> None:
        """One more. DataError if something is wrong with it, and the others stay as they are."""
        labels = draft.labels(numbering)[1]
        sources, targets, finals, start = draft.states()
        first = len(self.finals)
        self.counts.append(len(finals))
        self.starts.append(first + start)
        self.costs.append(draft.costs)
        self.sources.extend([first + state for state in sources])
        self.targets.extend([first + state for state in targets])
        self.labels.extend(labels)
        self.weights.extend(draft.weights)
        self.finals.extend(finals)

    def batch(self, words: SymbolTable) -> tuple[Lattices, dict[int, str]]:
        """The batch, and complaints about rows that are no lattices; these are empty. `words` are its labels' names."""
        sources, targets = np.array(self.sources, np.int64), np.array(self.targets, np.int64)
        labels, weights = np.array(self.labels, np.int32), np.array(self.weights, np.float64)
        finals, costs = np.array(self.finals, np.float64), np.array(self.costs, np.bool_)
        order = np.lexsort((targets, labels, sources))
        rows = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        offsets = offsets_of(sources, len(finals))
        labels, weights, starts = labels[order], weights[order], np.array(self.starts, np.int64)
        state_offsets, arc_offsets, leads, faults = _assemble(
            rows, starts, costs, offsets, labels, targets[order], weights, finals
        )
        states, arcs = int(state_offsets[-1]), len(leads)
        batch = Lattices(state_offsets, arc_offsets, labels[:arcs], leads, weights[:arcs], finals[:states], words=words)
        return batch, {row: _complaint(int(faults[row])) for row in np.flatnonzero(faults).tolist()}


def _complaint(fault: int) -> str:
    if fault == NO_PATH:
        return "no path leads from the start to a final state"
    return f"the lattice has a cycle through state {fault - 1}, and a lattice has none"


@kernel
def _assemble(rows, starts, costs, offsets, labels, targets, weights, finals):
    """Write the states and arcs of each row that lie on accepting paths, in topological order, over labels, weights and
    finals: what has been written never overtakes what is read.

    Returns the offsets of rows and of states, the targets, and for each row 1 + a state on a cycle, or NO_PATH, or 0.
    """
    most_states, most_arcs = np.int64(0), np.int64(0)
    for row in range(len(starts)):
        most_states = max(most_states, rows[row + 1] - rows[row])
        most_arcs = max(most_arcs, offsets[rows[row + 1]] - offsets[rows[row]])
    finished, stack = np.empty(most_states, np.int64), np.empty(most_states, np.int64)
    arc, new = np.empty(most_states, np.int64), np.empty(most_states, np.int64)
    mark, useful = np.empty(most_states, np.int8), np.empty(most_states, np.bool_)
    rest, kept_finals = np.empty(most_states), np.empty(most_states)
    kept_labels, kept_weights = np.empty(most_arcs, np.int32), np.empty(most_arcs)
    state_offsets, arc_offsets = np.zeros(len(rows), np.int64), np.zeros(len(finals) + 1, np.int64)
    leads, faults = np.empty(len(labels), np.int32), np.zeros(len(starts), np.int64)
    states, arcs = np.int64(0), np.int64(0)
    for row in range(len(starts)):
        first, n = rows[row], rows[row + 1] - rows[row]
        count, fault = _finish(first, n, starts[row], costs[row], offsets, targets, weights, mark, stack, arc, finished)
        if fault == 0:
            _useful(first, n, count, costs[row], offsets, targets, weights, finals, finished, useful)
            fault = np.int64(0 if useful[starts[row] - first] else NO_PATH)
        faults[row] = fault
        if fault == 0:
            if costs[row]:
                _probabilities(first, count, offsets, targets, weights, finals, finished, useful, rest)
            base, kept = states, np.int64(0)
            for place in range(count - 1, -1, -1):
                if useful[finished[place]]:
                    new[finished[place]] = states - base
                    states += 1
            begin = arcs
            for place in range(count - 1, -1, -1):
                q = finished[place]
                if not useful[q]:
                    continue
                kept_finals[new[q]] = finals[first + q]
                for k in range(offsets[first + q], offsets[first + q + 1]):
                    to = targets[k] - first
                    if weights[k] != 0.0 and useful[to]:
                        kept_labels[kept], kept_weights[kept], leads[arcs] = labels[k], weights[k], new[to]
                        kept += 1
                        arcs += 1
                arc_offsets[base + new[q] + 1] = arcs
            labels[begin:arcs], weights[begin:arcs] = kept_labels[:kept], kept_weights[:kept]
            finals[base:states] = kept_finals[: states - base]
        state_offsets[row + 1] = states
    return state_offsets, arc_offsets[: states + 1], leads[:arcs], faults


@inner
def _there(weight, costs):
    """Whether an arc or an end of this weight exists."""
    return weight != math.inf if costs else weight != 0.0


@inner
def _finish(first, n, start, costs, offsets, targets, weights, mark, stack, arc, finished):
    """The states that can be reached, in the order in which a depth-first walk is done with them; how many, and 1 + a
    state on a cycle, or 0. `mark` is 0 where the walk never came."""
    for q in range(n):
        mark[q] = 0
    count, depth = np.int64(0), np.int64(1)
    stack[0] = start - first
    arc[0] = offsets[start]
    mark[start - first] = 1
    while depth > 0:
        q = stack[depth - 1]
        if arc[depth - 1] == offsets[first + q + 1]:
            depth -= 1
            mark[q] = 2
            finished[count] = q
            count += 1
            continue
        k = arc[depth - 1]
        arc[depth - 1] += 1
        if not _there(weights[k], costs):
            continue
        to = targets[k] - first
        if mark[to] == 1:
            return count, to + 1
        if mark[to] == 0:
            stack[depth], arc[depth] = to, offsets[first + to]
            mark[to] = 1
            depth += 1
    return count, np.int64(0)


@inner
def _useful(first, n, count, costs, offsets, targets, weights, finals, finished, useful):
    """Mark the states, of those that can be reached, from which there is a way to an end."""
    for q in range(n):
        useful[q] = False
    for place in range(count):
        q = finished[place]
        useful[q] = _there(finals[first + q], costs)
        for k in range(offsets[first + q], offsets[first + q + 1]):
            if _there(weights[k], costs) and useful[targets[k] - first]:
                useful[q] = True


@inner
def _probabilities(first, count, offsets, targets, weights, finals, finished, useful, rest):
    """Costs become probabilities: those of what may follow a useful state sum to 1."""
    for place in range(count):
        q = finished[place]
        most = -finals[first + q]
        for k in range(offsets[first + q], offsets[first + q + 1]):
            to = targets[k] - first
            if weights[k] != math.inf and useful[to]:
                most = max(most, rest[to] - weights[k])
        rest[q] = most
        if useful[q]:
            total = math.exp(-finals[first + q] - most)
            for k in range(offsets[first + q], offsets[first + q + 1]):
                to = targets[k] - first
                if weights[k] != math.inf and useful[to]:
                    total += math.exp(rest[to] - weights[k] - most)
            rest[q] = most + math.log(total)
            finals[first + q] = math.exp(-finals[first + q] - rest[q])
            for k in range(offsets[first + q], offsets[first + q + 1]):
                to = targets[k] - first
                there = weights[k] != math.inf and useful[to]
                weights[k] = math.exp(rest[to] - weights[k] - rest[q]) if there else 0.0
