"""WeightTrie: W' as a deterministic trie, a node for each prefix of its strings (section 5.2 of the paper).

A node's children are found in one hash table of (node, label), and a string's weight lies with its last node.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.automaton import Automaton
from dotadd.automata.scratch import longer, mixed
from dotadd.automata.weights.automaton import WeightAutomaton, check_feature_automaton


class WeightTrie(WeightAutomaton):
    """Gradient and update in O(n l), n strings of up to l labels."""

    def __init__(self) -> None:
        self._count, self._weights = 1, np.zeros(64)
        self._edges, self._table = np.zeros(64, np.uint64), np.zeros(128, np.int32)

    def add(self, alpha: float, phi: Automaton) -> None:
        check_feature_automaton(phi)
        while True:  # the nodes first: when there is no room for them, nothing has been added yet
            self._count, done = _grow(*phi.arrays, phi.start, self._edges, self._table, self._count)
            if done:
                break
            room = 2 * len(self._edges)
            self._edges, known = longer(self._edges, room), len(self._weights)
            self._weights = longer(self._weights, room)
            self._weights[known:] = 0.0
            self._table = np.zeros(2 * room, np.int32)
            _index(self._edges, self._count, self._table)
        _visit(*phi.arrays, phi.start, float(alpha), self._edges, self._table, self._weights, True)

    def score(self, phi: Automaton) -> float:
        check_feature_automaton(phi)
        return float(_visit(*phi.arrays, phi.start, 1.0, self._edges, self._table, self._weights, False))

    @property
    def transitions(self) -> int:
        return self._count - 1

    @property
    def n_strings(self) -> int:
        """Strings with a weight other than 0."""
        return int(np.count_nonzero(self._weights[: self._count]))

    def automaton(self) -> Automaton:
        edges = self._edges[1 : self._count]
        labels = (edges & np.uint64(2**32 - 1)).astype(np.int64)
        sources, targets = (edges >> np.uint64(32)).astype(np.int64), np.arange(1, self._count)
        ones = np.ones(len(edges))
        return Automaton.from_arrays(sources, targets, labels, labels, ones, self._weights[: self._count].copy())


@inner
def _child(edge, edges, table):
    """The place in the table of an edge, a node and a label; what is there is the child, or 0 if there is none."""
    mask = np.uint64(len(table)) - np.uint64(1)
    place = mixed(np.uint64(0), edge) & mask
    while table[place] != 0 and edges[table[place]] != edge:
        place = (place + np.uint64(1)) & mask
    return place


@kernel
def _index(edges, count, table):
    for node in range(1, count):
        table[_child(edges[node], edges, table)] = node


@inner
def _edge(node, label):
    return np.uint64(node) << np.uint64(32) | np.uint64(label)


@kernel
def _grow(offsets, labels, _, targets, weights, finals, start, edges, table, count):
    """Nodes for all strings; how many there are, and whether there was room for all."""
    nodes, states = np.empty(len(labels) + 1, np.int64), np.empty(len(labels) + 1, np.int64)
    nodes[0], states[0], depth = 0, start, 1
    while depth > 0:
        depth -= 1
        node, p = nodes[depth], states[depth]
        for k in range(offsets[p], offsets[p + 1]):
            edge = _edge(node, labels[k])
            place = _child(edge, edges, table)
            if table[place] == 0:
                if count == len(edges):
                    return count, False
                edges[count], table[place] = edge, count
                count += 1
            nodes[depth], states[depth] = table[place], targets[k]
            depth += 1
    return count, True


@kernel
def _visit(offsets, labels, _, targets, weights, finals, start, factor, edges, table, w, adding):
    """Add Phi', times the factor, to w; or the sum of the products of their weights."""
    nodes, states = np.empty(len(labels) + 1, np.int64), np.empty(len(labels) + 1, np.int64)
    factors = np.empty(len(labels) + 1)
    nodes[0], states[0], factors[0], depth = 0, start, factor, 1
    total = 0.0
    while depth > 0:
        depth -= 1
        node, p, here = nodes[depth], states[depth], factors[depth]
        if adding:
            w[node] += here * finals[p]
        else:
            total += here * finals[p] * w[node]
        for k in range(offsets[p], offsets[p + 1]):
            child = table[_child(_edge(node, labels[k]), edges, table)]
            if child != 0:
                nodes[depth], states[depth], factors[depth] = child, targets[k], here * weights[k]
                depth += 1
    return total
