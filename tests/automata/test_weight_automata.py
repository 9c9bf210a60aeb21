"""W' of rational kernels: all forms have the weights of the definition, the minimal ones the fewest transitions."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from dotadd.automata import Automaton, determinize, equivalent, minimize, ngram
from dotadd.automata.weights import NaiveSum, RecomputedMinimal, WeightTrie, feature_automaton, minimal
from dotadd.automata.weights.minimal import IncrementalMinimal, NumberedMinimal
from dotadd.errors import AutomatonError

FORMS = [NaiveSum, WeightTrie, RecomputedMinimal, IncrementalMinimal, NumberedMinimal]
SYMBOLS = 3


def phi_of(rng, most=12, longest=5) -> tuple[dict, Automaton]:
    """A random vector of strings, the empty one perhaps among them, and its minimal automaton."""
    weights = defaultdict(float)
    for _ in range(rng.integers(1, most)):
        weights[tuple(rng.integers(1, SYMBOLS + 1, rng.integers(0, longest + 1)).tolist())] += float(rng.integers(1, 5))
    chains = [Automaton.from_string(z, weight) for z, weight in weights.items()]
    whole = chains[0]
    for chain in chains[1:]:
        whole = whole + chain
    return dict(weights), minimize(determinize(whole))


def product(one: dict, other: dict) -> float:
    return sum(weight * other.get(z, 0.0) for z, weight in one.items())


def language(automaton: Automaton) -> dict:
    weights = defaultdict(float)
    for path in automaton.paths(limit=100_000):
        weights[path.inputs] += path.weight
    return {z: weight for z, weight in weights.items() if abs(weight) > 1e-9}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_every_form_has_the_weights_of_the_sum(form, seed, monkeypatch):
    monkeypatch.setattr(minimal, "FEWEST", 10)
    rng = np.random.default_rng(seed)
    phis = [phi_of(rng) for _ in range(12)]
    w, truth = form(), defaultdict(float)
    for turn in range(40):
        vector, phi = phis[rng.integers(len(phis))]
        assert w.score(phi) == pytest.approx(product(vector, truth), abs=1e-8)
        alpha = float(rng.normal()) if turn % 5 else 0.0
        w.add(alpha, phi)
        for z, weight in vector.items():
            truth[z] += alpha * weight
    assert language(w.automaton()) == pytest.approx({z: v for z, v in truth.items() if abs(v) > 1e-9}, abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_incremental_automaton_is_minimal_after_every_update(seed):
    rng = np.random.default_rng(seed)
    phis = [phi_of(rng, most=30) for _ in range(6)]
    w, recomputed = IncrementalMinimal(), RecomputedMinimal()
    for _ in range(25):
        _, phi = phis[rng.integers(len(phis))]
        alpha = float(rng.choice([-1.0, -0.5, 0.25, 1.0, 2.0]))  # so that weights meet, and cancel
        w.add(alpha, phi)
        recomputed.add(alpha, phi)
        assert w.transitions == recomputed.transitions
        assert equivalent(w.automaton(), recomputed.automaton())


def test_what_is_taken_back_leaves_nothing():
    rng = np.random.default_rng(0)
    _, phi = phi_of(rng)
    _, other = phi_of(rng)
    for form in (RecomputedMinimal, IncrementalMinimal):
        w = form()
        for alpha, what in ((0.3, phi), (0.7, other), (-0.7, other), (-0.3, phi)):
            w.add(alpha, what)
        assert w.transitions == 0
        assert w.score(phi) == pytest.approx(0.0, abs=1e-12)


def test_the_numbered_automaton_is_that_of_the_strings():
    rng = np.random.default_rng(1)
    w, support = NumberedMinimal(), set()
    for _ in range(30):
        vector, phi = phi_of(rng)
        w.add(float(rng.normal()), phi)
        support |= set(vector)
    w.settle()
    chains = [Automaton.from_string(z) for z in sorted(support)]
    whole = chains[0]
    for chain in chains[1:]:
        whole = whole + chain
    assert w.n_strings == len(support)
    # every weight 1: states are one if they have the same strings behind them
    assert w.transitions == minimize(determinize(whole)).n_arcs


def test_numbers_are_the_places_in_the_sorted_list():
    w = NumberedMinimal()
    strings = [(), (1,), (1, 2), (2, 2), (3,), (3, 1, 1)]
    for k, z in enumerate(strings):
        w.add(float(k + 1), Automaton.from_string(z))
    w.settle()
    assert w._weights.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("form", FORMS)
def test_tables_1_and_2_of_the_paper(form):
    """Algorithm 2 with the strings that fit the tables' numbers, see test_automata_paper."""
    T, w, alphas = ngram(2).transducer(3), form(), []
    for text, y in (([1, 2, 1, 2, 1], 1), ([1, 2, 2, 1, 2], 1), ([1, 2, 3, 2, 1], -1)):
        phi = feature_automaton(y * Automaton.from_string(text), T)
        alphas.append(-(w.score(phi) - 1.0) / squared_length(phi))
        w.add(alphas[-1], phi)
    np.testing.assert_allclose(alphas, [1 / 8, 1 / 24, 13 / 32])


def squared_length(phi: Automaton) -> float:
    return sum(weight**2 for weight in language(phi).values())


@pytest.mark.parametrize("form", [WeightTrie, IncrementalMinimal, NumberedMinimal])
def test_an_ambiguous_vector_is_refused(form):
    twice = Automaton.from_arcs([(0, 1, 1), (0, 2, 1)], [1, 2])
    with pytest.raises(AutomatonError, match="determinize"):
        form().add(1.0, twice)


def test_the_store_is_cleaned_while_updates_go_on():
    rng = np.random.default_rng(2)
    phis = [phi_of(rng, most=60)[1] for _ in range(10)]
    w = IncrementalMinimal()
    for _ in range(300):
        w.add(float(rng.normal()), phis[rng.integers(10)])
    assert w._store.arcs < 20_000  # of some 300 * 100 that were made
    assert w._store.arcs > w.transitions
