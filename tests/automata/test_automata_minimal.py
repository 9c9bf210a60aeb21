"""Determinization, pushing, minimization and equivalence of acyclic acceptors, with weights of both signs."""

import naive_automata as naive
import numpy as np
import pytest
from naive_automata import language, random_automaton, same

from dotadd.automata import Automaton, add, determinize, equivalent, gappy_ngram, minimize, ngram, project, push

SEEDS = range(40)


def acceptor(seed, **options):
    return random_automaton(np.random.default_rng(seed), **{"n_states": 7, "n_arcs": 18, "acceptor": True, **options})


@pytest.mark.parametrize("seed", SEEDS)
def test_determinization_keeps_weights_and_has_one_path_a_string(seed):
    a = acceptor(seed)
    b = determinize(a)
    assert b.is_deterministic
    assert same(language(b), language(a))
    assert len(b.paths()) == sum(abs(value) > 1e-9 for value in language(a).values())


@pytest.mark.parametrize("seed", SEEDS)
def test_pushed_weights_leave_a_sum_of_one_at_each_state(seed):
    a = acceptor(seed)
    b = push(a)
    assert same(language(b), language(a))
    size = np.abs(b.finals)
    np.add.at(size, b.sources, np.abs(b.weights))
    np.testing.assert_allclose(np.delete(size, b.start), 1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_minimal_automaton_has_the_fewest_states(seed):
    a = acceptor(seed)
    b = minimize(determinize(a))
    assert b.is_deterministic
    assert same(language(b), language(a))
    assert b.n_states == naive.fewest_states(language(a))


@pytest.mark.parametrize("seed", SEEDS)
def test_multiples_of_what_follows_are_one_state_whatever_the_sign(seed):
    """Three copies of an automaton after three letters, times 1, -2 and 0.3, need no more states than one."""
    rng = np.random.default_rng(seed)
    a = determinize(acceptor(seed))
    copies = [Automaton.from_string([5 + k], factor) * a for k, factor in enumerate(rng.permutation([1.0, -2.0, 0.3]))]
    one, three = minimize(determinize(copies[0])), minimize(determinize(add(copies)))
    assert three.n_states == one.n_states


def test_strings_whose_weights_cancel_are_not_accepted():
    a = add([Automaton.from_string([1, 2, 3]), Automaton.from_string([1, 2])], [0.1, 0.7])
    minus = add([Automaton.from_string([1, 2, 3])] * 3, [-0.3, 0.1, 0.1])
    difference = determinize(a + minus)
    assert difference.n_states == 3
    assert difference.paths() == [((1, 2), (1, 2), pytest.approx(0.7))]
    nothing = determinize(a + -1 * a)
    assert (nothing.n_states, nothing.n_arcs, nothing.finals.tolist()) == (1, 0, [0.0])
    assert minimize(nothing).n_states == 1


def test_sums_of_zero_on_the_way_are_no_obstacle():
    """What leaves the states adds up to 0, which pushing must not divide by."""
    a = Automaton.from_arcs(
        [(0, 1, 1, 2.0), (0, 2, 2, 1.0), (1, 3, 1, 3.0), (1, 3, 2, -3.0), (2, 3, 1, -1.0), (2, 3, 2, 1.0)], [3]
    )
    b = minimize(a)
    assert same(language(b), language(a))
    assert b.n_states == 3


@pytest.mark.parametrize("tolerance", [1e-9, 1e-12])
def test_weights_within_the_tolerance_are_the_same(tolerance):
    """Near copies are found also where a fingerprint falls on the border between two buckets."""
    rng = np.random.default_rng(0)
    arcs, n = [], 400
    for k in range(n):
        share = rng.uniform(0.1, 0.9)
        for copy, noise in enumerate((0.0, 0.4, -0.4)):
            q = 1 + 3 * k + copy
            arcs += [
                (0, q, 1 + 3 * k + copy, 1.0),
                (q, 3 * n + 1, 1, share),
                (q, 3 * n + 1, 2, 1 - share * (1 + noise * 1e-10)),
            ]
    a = Automaton.from_arcs(arcs, [3 * n + 1])
    assert minimize(a, tolerance).n_states == 2 + (n if tolerance == 1e-9 else 3 * n)


def test_determinization_takes_as_much_room_as_it_needs():
    """Words over two letters with a 1 at the k-th place from the end: 2k + 2 states, and 2^k when deterministic."""
    k, length = 8, 17
    arcs = [(q, q + 1, x, 1.0) for q in range(length - k) for x in (1, 2)]
    middle = length - k
    arcs += [(q, middle + 1, 1, 1.0) for q in range(length - k)]
    arcs += [(q, q + 1, x, 1.0) for q in range(middle + 1, middle + k) for x in (1, 2)]
    a = Automaton.from_arcs(arcs, [middle + k])
    b = determinize(a)
    assert b.is_deterministic
    assert b.n_states > 2**k
    for x in np.random.default_rng(0).integers(1, 3, (30, length)):
        for cut in (k, k + 1, length - 3):
            assert b.weight(x[:cut]) == pytest.approx(a.weight(x[:cut]))
    assert equivalent(minimize(b), a)


@pytest.mark.parametrize("seed", SEEDS)
def test_equivalence_sees_a_change_of_one_weight_and_nothing_else(seed):
    a = determinize(acceptor(seed))
    b = minimize(a)
    assert equivalent(a, b)
    if a.n_arcs:
        weights = a.weights.copy()
        weights[np.random.default_rng(seed).integers(len(weights))] *= 1 + 1e-5
        changed = Automaton(*a.arrays[:4], weights, a.finals, a.start)
        assert not equivalent(changed, b)
        assert equivalent(changed, b, tolerance=1e-3)


def test_weights_of_an_svm_in_minimal_form():
    """W' of strings with weights of both signs: deterministic, minimal, and the same as the naive sum."""
    rng = np.random.default_rng(5)
    T = (ngram(3) + 0.5 * gappy_ngram(2, 0.5)).transducer(4)
    parts = [project(Automaton.from_string(rng.integers(1, 5, 12)) @ T, "output") for _ in range(6)]
    coefficients = rng.normal(size=6)
    W = add(parts, coefficients)
    minimal = minimize(determinize(W))
    assert equivalent(minimal, W)
    expected = {}
    for part, c in zip(parts, coefficients, strict=True):
        expected = naive.added(expected, {z: c * w for z, w in language(part).items()})
    assert same(language(minimal), expected)
    assert minimal.n_states < determinize(W).n_states
