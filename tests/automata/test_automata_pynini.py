"""Operations on automata against OpenFst by way of pynini, over its log semiring: weights are positive there."""

import naive_automata as naive
import numpy as np
import pytest

import dotadd.automata as automata
from dotadd.automata import Automaton
from dotadd.errors import AutomatonError

pynini = pytest.importorskip("pynini", reason="pynini (OpenFst), the oracle of these tests, is not installed")

SEEDS = range(25)
POSITIVE = (0.25, 0.5, 1, 2, 3)


def to_pynini(a):
    fst = pynini.Fst("log64")
    for _ in range(a.n_states):
        fst.add_state()
    fst.set_start(a.start)
    for source, target, i, o, w in naive.arcs_of(a):
        fst.add_arc(source, pynini.Arc(i, o, pynini.Weight("log64", -np.log(w)), target))
    for state in np.flatnonzero(a.finals):
        fst.set_final(int(state), pynini.Weight("log64", -np.log(a.finals[state])))
    return fst


def from_pynini(fst):
    arcs = [
        (state, arc.nextstate, arc.ilabel, arc.olabel, np.exp(-float(arc.weight)))
        for state in fst.states()
        for arc in fst.arcs(state)
    ]
    finals = {state: np.exp(-float(fst.final(state))) for state in fst.states()}
    return Automaton.from_arcs(arcs, {q: w for q, w in finals.items() if w}, max(fst.start(), 0))


def language(a):
    return naive.language(a if isinstance(a, Automaton) else from_pynini(a))


def same(one, other):
    return naive.same(one, other, 1e-4)  # pynini takes numbers as text of few digits


def pair(seed, **options):
    rng = np.random.default_rng(seed)
    made = [naive.random_automaton(rng, 6, 11, values=POSITIVE, **options) for _ in range(2)]
    return made, [to_pynini(a) for a in made]


@pytest.mark.parametrize("seed", SEEDS)
def test_operations_have_the_languages_of_openfst(seed):
    (a, b), (f, g) = pair(seed)
    assert same(language(a + b), language(pynini.union(f, g)))
    assert same(language(a * b), language(pynini.concat(f, g)))
    assert same(language(automata.invert(a)), language(pynini.invert(f)))
    assert same(language(automata.project(a, "output")), language(pynini.project(f, "output")))
    assert same(language(automata.remove_epsilon(a)), language(pynini.rmepsilon(f)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("acyclic", [True, False])
def test_composition_is_that_of_openfst(seed, acyclic):
    (a, b), (f, g) = pair(seed, acyclic=acyclic)
    composed = from_pynini(pynini.compose(f.arcsort("olabel"), g.arcsort("ilabel")))
    if acyclic:
        assert same(language(a @ b), language(composed))
    for x in naive.strings(2, 2):
        for y in naive.strings(2, 2):
            assert _or_none(a @ b, x, y) == _or_none(composed, x, y)


def _or_none(a, x, y):
    """A(x, y), or nothing where it is no finite number, since both sides may have cycles of epsilons."""
    try:
        return pytest.approx(a.weight(x, y), rel=1e-4, abs=1e-4)
    except AutomatonError:
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_distances_are_those_of_openfst(seed):
    (a, _), (f, _) = pair(seed)
    for backward in (False, True):
        expected = [np.exp(-float(w)) for w in pynini.shortestdistance(f, reverse=backward)]
        np.testing.assert_allclose(
            automata.shortest_distance(a, backward),
            np.pad(expected, (0, a.n_states - len(expected))),
            rtol=1e-4,
            atol=1e-6,
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_connection_leaves_as_much_as_openfst_does(seed):
    (a, _), (f, _) = pair(seed, acyclic=False)
    g = f.connect()
    assert automata.connect(a).n_states == max(g.num_states(), 1)
    assert automata.connect(a).n_arcs == sum(g.num_arcs(state) for state in g.states())


@pytest.mark.parametrize("seed", SEEDS)
def test_minimal_automaton_is_as_large_as_that_of_openfst(seed):
    a = naive.random_automaton(np.random.default_rng(seed), 7, 18, acceptor=True, values=POSITIVE)
    f = pynini.determinize(pynini.rmepsilon(to_pynini(a)))
    determined = automata.determinize(a)
    assert determined.n_states == f.num_states()
    assert same(language(determined), language(f))
    minimal = automata.minimize(determined)
    f.minimize()
    assert minimal.n_states == f.num_states()
    assert same(language(minimal), language(f))


@pytest.mark.parametrize("seed", SEEDS)
def test_pushing_positive_weights_is_that_of_openfst(seed):
    a = automata.determinize(naive.random_automaton(np.random.default_rng(seed), 7, 18, acceptor=True, values=POSITIVE))
    f = from_pynini(pynini.push(to_pynini(a), push_weights=True, remove_total_weight=True))
    b = automata.push(a)
    total = automata.total(a)
    others = np.arange(b.n_states) != b.start
    np.testing.assert_allclose(b.finals[others], f.finals[others], atol=1e-4)
    np.testing.assert_allclose(b.weights / np.where(b.sources == b.start, total, 1.0), f.weights, rtol=1e-4)
