"""Operations on automata against all paths, one after the other."""

import naive_automata as naive
import numpy as np
import pytest
from naive_automata import language, random_automaton, same

from dotadd.automata import (
    Automaton,
    add,
    closure,
    compose,
    connect,
    invert,
    project,
    remove_epsilon,
    shortest_distance,
    topological_order,
    total,
)

SEEDS = range(25)


def pair(seed, **options):
    rng = np.random.default_rng(seed)
    return random_automaton(rng, **options), random_automaton(rng, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_rational_operations_are_those_of_languages(seed):
    a, b = pair(seed)
    A, B = language(a), language(b)
    assert same(language(a + b), naive.added(A, B))
    assert same(language(a * b), naive.concatenated(A, B))
    assert same(language(-1.5 * a), {key: -1.5 * value for key, value in A.items()})
    assert same(language(a * 2), naive.added(A, A))
    assert same(language(invert(a)), {(y, x): value for (x, y), value in A.items()})
    assert same(language(project(a, "input")), naive.projected(A, 0))
    assert same(language(project(a, "output")), naive.projected(A, 1))
    assert same(language(add([a, b, a], [2.0, 0.0, -0.5])), {key: 1.5 * value for key, value in A.items()})


@pytest.mark.parametrize("seed", SEEDS)
def test_composition_counts_each_pair_of_paths_once(seed):
    a, b = pair(seed, n_states=5, n_arcs=10)
    expected = naive.composed(language(a), language(b))
    assert same(language(a @ b), expected)
    assert total(a @ b) == pytest.approx(sum(expected.values()), abs=1e-9)


def test_epsilons_on_both_sides_make_one_path():
    """Three that A writes alone and two that B reads alone can be shuffled in ten ways; one of them is a path."""
    a = Automaton.from_arcs([(0, 1, 1, 0, 2.0), (1, 2, 1, 0, 3.0), (2, 3, 1, 0, 5.0)], [3])
    b = Automaton.from_arcs([(0, 1, 0, 1, 7.0), (1, 2, 0, 1, 11.0)], [2])
    assert (a @ b).paths() == [((1, 1, 1), (1, 1), 2.0 * 3.0 * 5.0 * 7.0 * 11.0)]


@pytest.mark.parametrize("seed", SEEDS)
def test_composition_with_cycles_is_the_sum_over_what_is_between(seed):
    rng = np.random.default_rng(seed)
    a = random_automaton(rng, 4, 8, acyclic=False, epsilons=False)
    b = random_automaton(rng, 4, 8, acyclic=False)
    c = a @ b
    for x in naive.strings(2, 3):
        between = [z for z in naive.strings(2, 3) if len(z) == len(x)]
        for y in naive.strings(2, 2):
            expected = sum(naive.weight(a, x, z) * naive.weight(b, z, y) for z in between)
            assert naive.weight(c, x, y) == pytest.approx(expected)
            assert c.weight(x, y) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_weight_is_the_sum_over_the_paths_of_a_string(seed):
    a = random_automaton(np.random.default_rng(seed), 4, 9, acyclic=False)
    for x in naive.strings(2, 2):
        for y in naive.strings(2, 2):
            assert a.weight(x, y) == pytest.approx(naive.weight(a, x, y), abs=1e-9)
    acceptor = project(random_automaton(np.random.default_rng(seed), 4, 9, acyclic=False, epsilons=False), "input")
    for x in naive.strings(2, 3):
        assert acceptor.weight(x) == acceptor.weight(x, x) == pytest.approx(naive.weight(acceptor, x, x))


def test_composition_takes_as_much_room_as_it_needs():
    n = 40
    loop = Automaton.from_arcs([(0, 0, 1)], [0])
    full = Automaton.from_arcs([(p, q, 1, 1, 1.0) for p in range(n) for q in range(n)], [n - 1])
    composed = loop @ full
    assert (composed.n_states, composed.n_arcs) == (n, n * n)
    assert composed.weight([1, 1, 1]) == n * n
    assert sorted(map(tuple, naive.arcs_of(composed))) == sorted(map(tuple, naive.arcs_of(full)))


def test_composition_finds_labels_however_they_are_spread():
    rng = np.random.default_rng(1)
    labels = np.unique(rng.integers(1, 2**31 - 1, 200))
    labels = np.concatenate([[1, 2, 3, 5], labels[labels > 5], [2**31 - 1]])
    b = Automaton.from_arcs([(0, 1, int(x), int(x), k + 1.0) for k, x in enumerate(labels)], [1])
    for k, label in enumerate(labels):
        assert b.weight([int(label)]) == k + 1
    for missing in (4, 6, 2**31 - 2):
        assert b.weight([missing]) == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_arcs_of_results_are_sorted_and_in_range(seed):
    a, b = pair(seed, acyclic=False)
    for made in (a + b, a * b, closure(a), a @ b, invert(a), project(a, "output"), connect(a), remove_epsilon(a)):
        Automaton(*made.arrays, made.start)  # checks all of it


@pytest.mark.parametrize("seed", SEEDS)
def test_closure_is_the_sum_of_all_powers(seed):
    a = random_automaton(np.random.default_rng(seed), 4, 7, epsilons=False)
    a = a if a.finals[a.start] == 0.0 else Automaton(*a.arrays[:-1], np.where(np.arange(4) == a.start, 0.0, a.finals))
    A = language(a)
    power = powers = {((), ()): 1.0}
    for _ in range(4):
        power = {key: w for key, w in naive.concatenated(power, A).items() if len(key[0]) <= 3 and len(key[1]) <= 3}
        powers = naive.added(powers, power)
    star = closure(a)
    for x in naive.strings(2, 3):
        y = x[::-1]
        assert naive.weight(star, x, y) == pytest.approx(powers.get((x, y), 0.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_epsilon_removal_leaves_weights_and_no_epsilons(seed):
    a = random_automaton(np.random.default_rng(seed), 7, 18, n_symbols=1)
    bare = remove_epsilon(a)
    assert not ((bare.ilabels == 0) & (bare.olabels == 0)).any()
    assert same(language(bare), language(a))


def test_ways_of_epsilons_to_the_same_arc_become_one_arc():
    a = Automaton.from_arcs([(0, 1, 0, 2.0), (0, 1, 0, 3.0), (0, 2, 0, 5.0), (2, 1, 0, 7.0), (1, 3, 1, 1.0)], [3])
    assert naive.arcs_of(remove_epsilon(a)) == [(0, 1, 1, 1, 2.0 + 3.0 + 5.0 * 7.0)]


def test_long_chains_of_epsilons_beside_each_other_do_not_blow_up():
    n = 2000
    arcs = [(q, q + 1, 0, 1.0) for q in range(n)] + [(n + 1 + q, n + 2 + q, 0, 1.0) for q in range(n)]
    arcs += [(q, n + 1 + q, 1, 1.0) for q in range(n)]
    bare = remove_epsilon(Automaton.from_arcs(arcs, [2 * n + 1]))
    assert bare.n_arcs == n
    assert bare.weight([1]) == n


def epsilon_cycles(weight):
    arcs = [(0, 1, 0, 1.0), (1, 0, 0, weight), (1, 1, 0, weight / 2), (1, 2, 1, 3.0), (2, 1, 0, 0.25), (2, 2, 2, 0.5)]
    return Automaton.from_arcs(arcs, {1: 2.0, 2: 5.0})


@pytest.mark.parametrize("weight", [0.3, -0.3])
def test_cycles_of_epsilons_are_summed_up(weight):
    a = epsilon_cycles(weight)
    bare = remove_epsilon(a)
    assert (bare.ilabels > 0).all()
    around = 1 / (1 - weight - weight / 2)
    assert bare.weight([]) == a.weight([]) == pytest.approx(2 * around)
    assert bare.weight([1]) == pytest.approx(around * 3 * (5 + 0.25 * around * 2))
    for x in naive.strings(2, 3):
        expected = naive.weight_with_epsilon_cycles(a, x)
        assert bare.weight(x) == pytest.approx(expected)
        assert a.weight(x) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_cycles_of_epsilons_are_summed_up(seed):
    rng = np.random.default_rng(seed)
    arcs = [
        (*rng.integers(80 if seed == 0 else 5, size=2), rng.choice([0, 0, 1, 2]), rng.choice([-0.2, 0.05, 0.15, 0.2]))
        for _ in range(200 if seed == 0 else 12)
    ]
    a = Automaton.from_arcs(arcs, {0: 1.0, 3: -2.0, 4: 1.0})
    bare = remove_epsilon(a)
    assert (bare.ilabels > 0).all()
    for x in naive.strings(2, 2):
        assert bare.weight(x) == pytest.approx(naive.weight_with_epsilon_cycles(a, x), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_connection_keeps_accepting_paths_and_what_they_use(seed):
    a = random_automaton(np.random.default_rng(seed), 8, 10)
    b = connect(a)
    assert [p for p in a.paths() if p.weight] == b.paths()
    sizes = Automaton.made(*b.arrays[:4], np.abs(b.weights), np.abs(b.finals), start=b.start)
    through = shortest_distance(sizes) * shortest_distance(sizes, backward=True)
    assert (through > 0).all() or b.n_states == 1


def test_where_nothing_is_accepted_the_start_is_all_there_is():
    a = connect(Automaton.from_arcs([(0, 0, 1), (0, 1, 1), (1, 0, 1), (2, 2, 1)], [2]))
    assert (a.n_states, a.n_arcs, a.start) == (1, 0, 0)


def test_arcs_of_weight_zero_are_not_connections():
    a = Automaton.from_arcs([(0, 1, 1, 0.0), (0, 2, 1, 2.0), (1, 3, 1, 1.0), (2, 3, 2, 1.0)], [3])
    assert connect(a).paths() == [((1, 2), (1, 2), 2.0)]
    assert connect(a).n_states == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_topological_order_puts_states_before_their_targets(seed):
    rng = np.random.default_rng(seed)
    a = random_automaton(rng, 9, 20)
    name = rng.permutation(9)
    b = Automaton.from_arcs([(name[q], name[t], *arc) for q, t, *arc in naive.arcs_of(a)], [int(name[8])], int(name[0]))
    order = topological_order(b)
    assert sorted(order) == list(range(b.n_states))
    place = np.argsort(order)
    assert (place[b.sources] < place[b.targets]).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("acyclic", [True, False])
def test_distances_are_sums_over_paths(seed, acyclic):
    """With cycles, weights are so small that paths of up to 60 arcs are all that matter."""
    a = random_automaton(np.random.default_rng(seed), 6, 14, acyclic=acyclic, values=(-0.1, 0.05, 0.1, 0.15))
    matrix = np.zeros((a.n_states, a.n_states))
    np.add.at(matrix, (a.sources, a.targets), a.weights)
    power, sums = np.eye(a.n_states), np.zeros_like(matrix)
    for _ in range(60):
        sums += power
        power = power @ matrix
    np.testing.assert_allclose(shortest_distance(a), sums[a.start], atol=1e-12)
    np.testing.assert_allclose(shortest_distance(a, backward=True), sums @ a.finals, atol=1e-12)
    assert total(a) == pytest.approx(sums[a.start] @ a.finals, abs=1e-12)
    assert a.is_acyclic == (np.abs(np.linalg.matrix_power(matrix != 0, a.n_states)).sum() == 0)


def test_cycles_that_lead_nowhere_have_no_say():
    a = Automaton.from_arcs([(0, 1, 1, 3.0), (0, 2, 1, 1.0), (2, 2, 1, 9.0), (3, 3, 0, 5.0), (3, 1, 1, 1.0)], [1])
    assert total(a) == 3.0
    assert a.paths() == [((1,), (1,), 3.0)]
    assert remove_epsilon(a).n_states == 2


def test_operations_leave_what_they_take_as_it_was():
    a, b = pair(3)
    before = [array.copy() for array in a.arrays + b.arrays]
    for made in (
        a + b,
        a * b,
        a @ b,
        2 * a,
        closure(a),
        invert(a),
        project(a, "output"),
        connect(a),
        remove_epsilon(a),
    ):
        assert made is not None
    for array, copy in zip(a.arrays + b.arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_composition_with_a_read_only_array_is_the_same():
    a, b = pair(4)
    arrays = [array.copy() for array in b.arrays]
    for array in arrays:
        array.flags.writeable = False
    assert same(language(compose(a, Automaton(*arrays))), language(a @ b))
