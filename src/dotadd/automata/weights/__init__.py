"""W', the weight vector of a rational kernel's SVM as a weighted automaton: a string's weight in it is its w.

Algorithm 2 of Allauzen, Cortes and Mohri does two things with W': D(Phi'_i o W'), the gradient, and the update
W' + alpha Phi'_i. Their table 3 has three forms, and an open question: can a minimal automaton be updated at a cost
that does not depend on its size? Here are their forms, and two answers.

    form                 gradient         update               transitions
    NaiveSum             |Phi'_i| |W'|    1                    m + sum of |Phi'_i|
    WeightTrie           n l              n l                  prefixes of all strings
    RecomputedMinimal    |Phi'_i o W'|    |W'|                 the fewest of any deterministic automaton
    IncrementalMinimal   |Phi'_i o W'|    |Phi'_i o W'| d      the fewest, up to rounding
    NumberedMinimal      |Phi'_i o W'|    |Phi'_i o W'|        those of the strings without weights, and a vector

n is the number of strings of Phi'_i, l their length, d the arcs of a state on their paths, and |Phi'_i o W'| at most
n l. `benchmarks.automata` measures them.

These are for looking at W', and for comparing its forms. To train, use `dotadd.Rational` with any solver: its w is a
flat array under ids of strings, faster than all of these.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.automata.algebra import add, project
from dotadd.automata.automaton import Automaton, check_acceptor, check_deterministic
from dotadd.automata.composition import compose
from dotadd.automata.determinization import determinize
from dotadd.automata.epsilon_removal import remove_epsilon
from dotadd.automata.minimization import minimize
from dotadd.automata.paths import check_acyclic, total
from dotadd.automata.scratch import longer, mixed


def feature_automaton(x: Automaton, transducer: Automaton) -> Automaton:
    """Phi' of an example: the minimal deterministic automaton of what X o T writes."""
    return minimize(determinize(remove_epsilon(project(compose(x, transducer), "output"))))


class WeightAutomaton:
    """W'. What is added and scored are deterministic acceptors without cycles."""

    def add(self, alpha: float, phi: Automaton) -> None:
        """W' + alpha Phi'."""
        raise NotImplementedError

    def score(self, phi: Automaton) -> float:
        """D(Phi' o W'), the sum over all strings of the products of their weights."""
        raise NotImplementedError

    @property
    def transitions(self) -> int:
        raise NotImplementedError

    def automaton(self) -> Automaton:
        """W' as an automaton."""
        raise NotImplementedError


class NaiveSum(WeightAutomaton):
    """All Phi' side by side, each under an epsilon of weight alpha (section 5.1). One that is added again moves it."""

    def __init__(self) -> None:
        self._alphas: dict[int, float] = {}
        self._phis: dict[int, Automaton] = {}

    def add(self, alpha: float, phi: Automaton) -> None:
        self._phis[id(phi)] = phi
        self._alphas[id(phi)] = self._alphas.get(id(phi), 0.0) + alpha

    def score(self, phi: Automaton) -> float:
        return sum(alpha * total(compose(phi, self._phis[k])) for k, alpha in self._alphas.items() if alpha)

    @property
    def transitions(self) -> int:
        return len(self._phis) + sum(phi.n_arcs for phi in self._phis.values())

    def automaton(self) -> Automaton:
        if not self._phis:
            return Automaton.from_arcs([], {})
        return add(list(self._phis.values()), list(self._alphas.values()))


class RecomputedMinimal(WeightAutomaton):
    """The minimal deterministic automaton, made anew at each update by sum, determinization and minimization."""

    def __init__(self) -> None:
        self._w = Automaton.from_arcs([], {})

    def add(self, alpha: float, phi: Automaton) -> None:
        if alpha:
            self._w = minimize(determinize(add([self._w, phi], [1.0, alpha])))

    def score(self, phi: Automaton) -> float:
        return total(compose(phi, self._w))

    @property
    def transitions(self) -> int:
        return self._w.n_arcs

    def automaton(self) -> Automaton:
        return self._w


def check_feature_automaton(phi: Automaton) -> None:
    """Refuse an automaton in which a string may have several paths, or infinitely many strings one.

    What has been looked at is not looked at again: examples come in every pass.
    """
    if "checked" in phi.__dict__:
        return
    check_acceptor(phi, "a feature vector")
    check_deterministic(phi)
    check_acyclic(phi)
    phi.__dict__["checked"] = True


class WeightTrie(WeightAutomaton):
    """A deterministic trie, a node for each prefix of the strings (section 5.2): gradient and update in O(n l).

    A node's children are found in one hash table of (node, label), and a string's weight lies with its last node.
    """

    def __init__(self) -> None:
        self._count, self._weights = 1, np.zeros(64)
        self._edges, self._table = np.zeros(64, np.uint64), np.zeros(128, np.int32)

    def add(self, alpha: float, phi: Automaton) -> None:
        check_feature_automaton(phi)
        while True:  # the nodes first: when there is no room for them, nothing has been added yet
            self._count, done = _grow(phi.arrays, phi.start, self._edges, self._table, self._count)
            if done:
                break
            room = 2 * len(self._edges)
            self._edges, known = longer(self._edges, room), len(self._weights)
            self._weights = longer(self._weights, room)
            self._weights[known:] = 0.0
            self._table = np.zeros(2 * room, np.int32)
            _index(self._edges, self._count, self._table)
        _visit(phi.arrays, phi.start, float(alpha), self._edges, self._table, self._weights, True)

    def score(self, phi: Automaton) -> float:
        check_feature_automaton(phi)
        return float(_visit(phi.arrays, phi.start, 1.0, self._edges, self._table, self._weights, False))

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
def _grow(phi, start, edges, table, count):
    """Nodes for all strings; how many there are, and whether there was room for all."""
    offsets, labels, _, targets, _, _ = phi
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
def _visit(phi, start, factor, edges, table, w, adding):
    """Add Phi', times the factor, to w; or the sum of the products of their weights."""
    offsets, labels, _, targets, weights, finals = phi
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
