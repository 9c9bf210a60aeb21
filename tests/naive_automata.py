"""Weighted automata by their definition: all paths, one after the other. And random small automata to try things on."""

from collections import defaultdict
from itertools import product

import numpy as np

from dotadd.automata import Automaton


def arcs_of(a):
    """(source, target, input, output, weight) of each arc."""
    return [
        (q, int(a.targets[k]), int(a.ilabels[k]), int(a.olabels[k]), float(a.weights[k]))
        for q in range(a.n_states)
        for k in range(a.offsets[q], a.offsets[q + 1])
    ]


def _leaving(a):
    arcs = defaultdict(list)
    for source, *rest in arcs_of(a):
        arcs[source].append(rest)
    return arcs


def language(a):
    """{(x, y): A(x, y)} by walking along all accepting paths; there must be no cycle."""
    leaving, weights = _leaving(a), defaultdict(float)

    def walk(state, x, y, weight):
        if a.finals[state]:
            weights[x, y] += weight * float(a.finals[state])
        for target, i, o, w in leaving[state]:
            walk(target, x + (i,) * (i > 0), y + (o,) * (o > 0), weight * w)

    walk(a.start, (), (), 1.0)
    return dict(weights)


def weight(a, x, y):
    """A(x, y) by walking along the paths that read x and write y; there must be no cycle of epsilons."""
    leaving, x, y = _leaving(a), tuple(x), tuple(y)

    def walk(state, x, y):
        total = 0.0 if x or y else float(a.finals[state])
        for target, i, o, w in leaving[state]:
            if (i == 0 or x[:1] == (i,)) and (o == 0 or y[:1] == (o,)):
                total += w * walk(target, x[i > 0 :], y[o > 0 :])
        return total

    return walk(a.start, x, y)


def weight_with_epsilon_cycles(a, x):
    """A(x) of an acceptor as a product of matrices, one a symbol, with all powers of that of epsilon between them."""
    matrices = defaultdict(lambda: np.zeros((a.n_states, a.n_states)))
    for source, target, label, _, w in arcs_of(a):
        matrices[label][source, target] += w
    silent = sum(np.linalg.matrix_power(matrices[0], n) for n in range(300))
    row = np.eye(a.n_states)[a.start] @ silent
    for label in x:
        row = row @ matrices[label] @ silent
    return row @ a.finals


def strings(n_symbols, longest):
    return [x for length in range(longest + 1) for x in product(range(1, n_symbols + 1), repeat=length)]


def same(one, other, tolerance=1e-9):
    """Whether two languages have the same weights; strings of weight 0 may be missing."""
    keys = set(one) | set(other)
    size = max((abs(value) for values in (one, other) for value in values.values()), default=1.0)
    return all(abs(one.get(key, 0.0) - other.get(key, 0.0)) <= tolerance * max(size, 1.0) for key in keys)


def added(one, other):
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in set(one) | set(other)}


def concatenated(one, other):
    weights = defaultdict(float)
    for (x1, y1), u in one.items():
        for (x2, y2), v in other.items():
            weights[x1 + x2, y1 + y2] += u * v
    return dict(weights)


def composed(one, other):
    weights = defaultdict(float)
    for (x, z), u in one.items():
        for (also, y), v in other.items():
            if also == z:
                weights[x, y] += u * v
    return dict(weights)


def projected(weights, side):
    sums = defaultdict(float)
    for key, value in weights.items():
        sums[key[side], key[side]] += value
    return dict(sums)


def fewest_states(weights):
    """States of the smallest deterministic acceptor: prefixes whose rests are not multiples of one another.

    Exact for weights that are small integers.
    """
    rests = defaultdict(dict)
    for (x, _), value in weights.items():
        if value:
            for cut in range(len(x) + 1):
                rests[x[:cut]][x[cut:]] = value
    classes = {
        tuple((rest, w / next(iter(sorted(r.items())))[1]) for rest, w in sorted(r.items())) for r in rests.values()
    }
    return max(len(classes), 1)


def random_automaton(
    rng, n_states=6, n_arcs=12, n_symbols=2, *, acyclic=True, acceptor=False, epsilons=True, values=(-2, -1, 1, 2, 3)
):
    """Some arcs between some states; those that neither read nor write never form a cycle."""
    low = 0 if epsilons else 1
    arcs = []
    for _ in range(n_arcs):
        i = int(rng.integers(low, n_symbols + 1))
        o = i if acceptor else int(rng.integers(low, n_symbols + 1))
        source, target = rng.integers(n_states, size=2)
        if acyclic or not (i or o):
            if source == target:
                continue
            source, target = sorted((source, target))
        arcs.append((int(source), int(target), i, o, float(rng.choice(values))))
    finals = {int(q): float(rng.choice(values)) for q in rng.choice(n_states, 2, replace=False)}
    return Automaton.from_arcs(arcs, {**finals, n_states - 1: float(rng.choice(values))})
