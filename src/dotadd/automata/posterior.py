"""Posterior: an acyclic automaton of costs as one whose paths have probabilities that sum to 1.

A path of cost c gets exp(-c) / sum over all paths of exp(-cost). Everything is done in logarithms, since the costs of
lattices are in the thousands. Each state's arcs and its final weight sum to 1, too.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import Automaton
from dotadd.automata.order import topological_order
from dotadd.automata.symbols import SymbolTable
from dotadd.errors import AutomatonError


def posterior(
    sources: np.ndarray,
    targets: np.ndarray,
    ilabels: np.ndarray,
    olabels: np.ndarray,
    costs: np.ndarray,
    final_costs: np.ndarray,
    start: int = 0,
    symbols: SymbolTable | None = None,
) -> Automaton:
    """The automaton of these arcs, in any order. Infinite costs are of arcs and ends that do not exist."""
    there = np.isfinite(costs)
    sources, targets, ilabels, olabels, costs = (a[there] for a in (sources, targets, ilabels, olabels, costs))
    ends = np.isfinite(final_costs).astype(np.float64)
    structure = Automaton.from_arrays(sources, targets, ilabels, olabels, costs, ends, start, symbols)
    offsets, reads, writes, leads, weights, _ = structure.arrays
    weights = weights.copy()
    finals = final_costs.astype(np.float64)
    if not _normalize(offsets, leads, weights, finals, topological_order(structure), start):
        raise AutomatonError("no path leads from the start to a final state")
    return Automaton.made(offsets, reads, writes, leads, weights, finals, start=start, symbols=symbols)


@kernel
def _normalize(offsets, targets, weights, finals, order, start):
    """Costs become probabilities, in place; whether there is any path."""
    n = len(finals)
    rest = np.full(n, -np.inf)  # log of the sum over all ways from a state to an end
    for place in range(n - 1, -1, -1):
        q = order[place]
        most = -finals[q]
        for arc in range(offsets[q], offsets[q + 1]):
            most = max(most, rest[targets[arc]] - weights[arc])
        if most == -np.inf:
            finals[q] = 0.0
            for arc in range(offsets[q], offsets[q + 1]):
                weights[arc] = 0.0
            continue
        total = np.exp(-finals[q] - most)
        for arc in range(offsets[q], offsets[q + 1]):
            total += np.exp(rest[targets[arc]] - weights[arc] - most)
        rest[q] = most + np.log(total)
        finals[q] = np.exp(-finals[q] - rest[q])
        for arc in range(offsets[q], offsets[q + 1]):
            weights[arc] = np.exp(rest[targets[arc]] - weights[arc] - rest[q])
    return rest[start] != -np.inf
