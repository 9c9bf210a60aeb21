"""IncrementalMinimal: W' as a minimal deterministic automaton that is updated in place. The paper's open question.

W' is a canonical state and a factor (`canonical`), and W' + alpha Phi' is a sum of canonical states: it makes anew the
states on the paths of Phi' and no others. So an update costs the arcs of these states, |Phi'_i o W'| times their
degree, and not |W'|; and the result is minimal, since everything that can be reached in a store of canonical states is.

Up to rounding: weights are products along paths and are normalised again at each update, so that states whose weights
ought to be multiples of each other are found to be so within a tolerance, and taken for the same then.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import kernel
from dotadd.automata.automaton import Automaton
from dotadd.automata.canonical import NONE, CanonicalStates
from dotadd.automata.weight_automaton import WeightAutomaton, check_feature_automaton


class IncrementalMinimal(WeightAutomaton):
    """Gradient in O(|Phi' o W'|), update in O(|Phi' o W'| degree), whatever |W'|."""

    def __init__(self) -> None:
        self._store = CanonicalStates(plain=False)
        self._root, self._factor = NONE, 0.0

    def add(self, alpha: float, phi: Automaton) -> None:
        check_feature_automaton(phi)
        if alpha:
            self._root, self._factor = self._store.sum(self._root, self._factor, phi, float(alpha))
            self._root = self._store.collected(self._root)

    def score(self, phi: Automaton) -> float:
        check_feature_automaton(phi)
        if self._root == NONE:
            return 0.0
        begins, _, finals, _, labels, targets, weights = self._store.arrays
        return float(
            _product(*phi.arrays, phi.start, begins, finals, labels, targets, weights, self._root, self._factor)
        )

    @property
    def transitions(self) -> int:
        self._root = self._store.collected(self._root, at_once=True)
        return self._store.arcs

    def automaton(self) -> Automaton:
        self._root = self._store.collected(self._root, at_once=True)
        return self._store.automaton(self._root, self._factor)


@kernel
def _product(
    p_offsets, p_labels, _, p_targets, p_weights, p_finals, p_start,
    begins, finals, labels, targets, weights, root, factor,
):  # fmt: skip
    """D(Phi' o W') by going along the strings of both."""
    room = len(p_labels) + 1
    states, nodes, factors = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    states[0], nodes[0], factors[0], depth = p_start, root, factor, 1
    total = 0.0
    while depth > 0:
        depth -= 1
        p, q, here = states[depth], nodes[depth], factors[depth]
        total += here * p_finals[p] * finals[q]
        i, stop = begins[q], begins[q + 1]
        for j in range(p_offsets[p], p_offsets[p + 1]):
            while i < stop and labels[i] < p_labels[j]:
                i += 1
            if i < stop and labels[i] == p_labels[j]:
                states[depth], nodes[depth] = p_targets[j], targets[i]
                factors[depth] = here * p_weights[j] * weights[i]
                depth += 1
    return total
