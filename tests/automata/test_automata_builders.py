"""Builders of transducers against the counts that they stand for, and their expressions."""

from collections import defaultdict
from itertools import combinations, product

import naive_automata as naive
import numpy as np
import pytest
from naive_automata import language, same

from dotadd.automata import Automaton, compose, gappy_ngram, mismatch, ngram, parse, project
from dotadd.errors import AutomatonError


def features(builder, x, n_symbols=3):
    """{z: T(x, z)}"""
    transducer = builder.transducer(n_symbols)
    return language(project(compose(Automaton.from_string(x), transducer), "output"))


def counted(pairs):
    counts = defaultdict(float)
    for z, value in pairs:
        counts[tuple(z), tuple(z)] += value
    return dict(counts)


def grams(x, n):
    return [tuple(x[k : k + n]) for k in range(len(x) - n + 1)]


def strings():
    rng = np.random.default_rng(7)
    return [[], [2], [1, 2], [3, 3, 3, 3], *(rng.integers(1, 4, length).tolist() for length in (5, 6, 7, 7))]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_ngram_counts_occurrences(n):
    for x in strings():
        assert same(features(ngram(n), x), counted((z, 1.0) for z in grams(x, n)))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("decay", [0.5, 1, 0.9])
def test_gappy_ngram_counts_subsequences_by_their_span(n, decay):
    for x in strings():
        places = list(combinations(range(len(x)), n))
        expected = counted(([x[i] for i in at], decay ** (at[-1] - at[0] + 1 - n)) for at in places)
        assert same(features(gappy_ngram(n, decay), x), expected)


@pytest.mark.parametrize(("k", "m"), [(1, 0), (1, 1), (3, 0), (3, 1), (3, 2), (3, 3)])
def test_mismatch_counts_substrings_within_a_distance(k, m):
    for x in strings():
        near = [
            (z, 1.0)
            for u in grams(x, k)
            for z in product((1, 2, 3), repeat=k)
            if sum(a != b for a, b in zip(u, z, strict=True)) <= m
        ]
        assert same(features(mismatch(k, m), x), counted(near))


def test_sums_and_multiples_of_builders_are_those_of_transducers():
    x = [1, 2, 1, 1, 3]
    both = ngram(2) + 0.5 * (gappy_ngram(2, 0.5) + ngram(3)) + 2 * ngram(1) * 3
    parts = [(1, ngram(2)), (0.5, gappy_ngram(2, 0.5)), (0.5, ngram(3)), (6, ngram(1))]
    expected = {}
    for factor, part in parts:
        expected = naive.added(expected, {z: factor * value for z, value in features(part, x).items()})
    assert same(features(both, x), expected)


def test_an_expression_makes_the_builder_again():
    texts = ["ngram(4)", "gappy_ngram(4, 0.5)", "mismatch(5, 1)", "ngram(3) + ngram(4) + 0.5 * gappy_ngram(3, 0.25)"]
    for text in texts:
        assert repr(parse(text)) == text
    for builder in (2 * (ngram(1) + ngram(2)), 0.5 * (2 * ngram(1)), 3 * ngram(2) + mismatch(2, 1), -1 * ngram(2)):
        assert parse(repr(builder)) == builder
    assert parse("gappy_ngram(n=2, decay=1)") == gappy_ngram(2, 1.0)
    assert 0.5 * (2 * ngram(1)) == ngram(1)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("ngram(0)", "column 1: ngram: n has to be an integer from 1"),
        ("ngram(2) + gappy_ngram(3, 1.5)", "column 12: gappy_ngram: decay has to be"),
        ("ngram(2) + gappy_ngram(3)", "column 12: gappy_ngram: missing a required argument"),
        ("mismatch(3, 4)", "m has to be an integer from 0 to 3"),
        ("bigram(2)", "there is no transducer 'bigram'"),
        ("ngram(2) * ngram(3)", "multiplied with numbers"),
        ("ngram(2) + 1", "added to transducers"),
        ("0.5", "is not a transducer"),
        ("ngram(2) * 1e400", "finite"),
        ("", "empty"),
        ("ngram", "needs brackets"),
    ],
)
def test_a_bad_expression_is_refused_with_its_place(text, place):
    with pytest.raises(AutomatonError, match=r"^[^\n]*$") as caught:
        parse(text)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "make", [lambda: ngram(True), lambda: ngram(2.0), lambda: gappy_ngram(2, 0), lambda: mismatch(2, -1)]
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(AutomatonError):
        make()


def test_a_transducer_too_large_is_refused_before_it_is_made():
    with pytest.raises(AutomatonError, match=r"mismatch\(5, 1\) has .* arcs over 100000 symbols"):
        mismatch(5, 1).transducer(100_000)
    with pytest.raises(AutomatonError, match="number of symbols"):
        ngram(2).transducer(0)
