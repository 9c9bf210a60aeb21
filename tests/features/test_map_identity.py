"""A map is its expression: maps that write different features have different expressions and are not equal."""

from __future__ import annotations

import inspect
from itertools import combinations

import numpy as np
import pytest

from dotadd.automata import Automaton, gappy_ngram, mismatch, ngram
from dotadd.data.batches import DenseRows, Images, Strings
from dotadd.data.table import Cells, Table
from dotadd.features import parse
from dotadd.features.base import Shape
from dotadd.features.checks import materialize
from dotadd.features.expression import KNOWN

RNG = np.random.default_rng(0)
DNA = Strings.from_list(["".join(row) for row in RNG.choice(list("ACGT"), (9, 12))])
RNA = Strings.from_list(["ACGUUGCA", "ACCA"])
WORDS = Strings.from_list(["The end of the End", "an end", "no no no", "ÄRGER an_Áxe a%20b naïf"])
ROWS = DenseRows(RNG.normal(size=(5, 4)).astype(np.float32))
IMAGES = Images(RNG.integers(0, 256, (4, 16, 16)).astype(np.uint8))


def copying(weight: float) -> Automaton:
    return Automaton.from_arcs([(0, 0, ord(letter), ord(letter), weight) for letter in "ACGT"], [0])


TEXT = {"bits": (12, 13), "lowercase": (True, False), "accents": ("keep", "strip"), "unicode": (True, False)}
TOKENS = {
    "binary": (False, True), "tokens": ("words", "identifiers", "urls"), "shortest_word": (1, 2),
    "stop": (None, "english", ("an", "end")),
}  # fmt: skip
STRINGS = {"alphabet": ("dna", "ACGTN"), "span": (None, (2, 9))}
# of each map, a batch for it and two values or more of each of its parameters; the first ones are used together
MAPS: dict[str, tuple] = {
    "Linear": (ROWS, {"n_features": (4, 5)}),
    "Hashed": (ROWS, {"bits": (4, 5), "phi": (None, parse("Polynomial(2)"))}),
    "Polynomial": (ROWS, {"degree": (2, 3), "coef0": (0.0, 1.0, 2.0), "n_features": (4, 5)}),
    "Spectrum": (DNA, {"k": (3, 4), "strands": ("one", "both")} | STRINGS),
    "WeightedSpectrum": (
        DNA, {"k": (2, 3), "weights": (None, "uniform", [1.0, 2.0]), "strands": ("one", "both")} | STRINGS,
    ),
    "GappySpectrum": (
        DNA, {"k": (2, 3), "gaps": (1, 2), "decay": (1.0, 0.5), "strands": ("one", "both")} | STRINGS,
    ),
    "AllSubstrings": (
        DNA,
        {"decay": (1.0, 0.5), "weights": (None, (1.0, 2.0)), "up_to": (None, 2), "alphabet": ("bytes", "ACGTN"),
         "span": (None, (2, 9))},
    ),
    "MismatchSpectrum": (
        DNA,
        {"k": (3, 4), "mismatches": (1, 2), "weights": (None, (1.0, 0.5), (1.0, 0.25)), "strands": ("one", "both")}
        | STRINGS,
    ),
    "Gkm": (
        DNA,
        {"l": (5, 6), "k": (3, 4), "filter": ("truncated", "full", "count"), "strands": ("both", "one"),
         "middle": (None, (9, 2.0), (9, 3.0), (8, 2.0))},
    ),
    "LmerCounts": (
        DNA,
        {"l": (5, 6), "k": (4, 3), "mismatches": (1, 2), "filter": ("truncated", "full", "count"),
         "strands": ("both", "one"), "middle": (None, (9, 2.0), (9, 3.0), (8, 2.0))},
    ),
    "WeightedDegree": (
        DNA, {"degree": (2, 3), "weights": (None, "uniform", [1.0, 2.0]), "length": (12, 13)} | STRINGS,
    ),
    "WeightedDegreeShift": (
        DNA,
        {"degree": (2, 3), "shift": (1, 2), "weights": (None, "uniform", [1.0, 2.0]), "length": (12, 13)} | STRINGS,
    ),
    "NGrams": (
        WORDS, {"n": (2, 3, (2, 3)), "within": ("text", "words"), "unit": ("bytes", "characters")} | TEXT,
    ),
    "BagOfWords": (WORDS, TEXT | TOKENS),
    "WordNGrams": (WORDS, {"n": (1, 2, (1, 2))} | TEXT | TOKENS),
    "LBP": (IMAGES, {"levels": (None, 1), "window": (None, (8, 8)), "size": (None, (16, 16))}),
    "Rational": (
        DNA,
        {
            "transducer": (ngram(2), ngram(3), 0.5 * ngram(2), gappy_ngram(2, 0.5), gappy_ngram(2, 0.25),
                           gappy_ngram(2, 0.5, gaps=1), mismatch(2, 1), copying(1.0), copying(2.0)),
            "bits": (12, 13),
            "posteriors": (True, False),
        },
    ),
}  # fmt: skip
TABLE = Table.from_columns(
    {
        "a": Cells(np.array([1.0, np.nan, 3.0]), Strings.from_list(["x", "", "z"])),
        "b": Cells(np.array([4.0, 5.0, 6.0]), Strings.from_list(["u u", "v u", "u v"])),
        "t": Cells(strings=Strings.from_list(["2024-01-31", "2024-02-28 07:00", ""])),
        "s": Cells(strings=Strings.from_list(["2024-01-30", "2024-02-28 07:00", ""])),
    }
)
MAPS |= {
    "Column": (
        TABLE,
        {"name": ("a", "b"), "phi": (parse("WordNGrams(1, bits=9)"), parse("NGrams(2, bits=9)")), "holds": ("text",)},
    ),
    "Number": (TABLE, {"columns": (("a",), ("b",), ("a", "b"), ("b", "a")), "missing": ("indicator", "zero")}),
    "Category": (TABLE, {"columns": (("a",), ("b",), ("a", "b")), "bits": (12, 13)}),
    "Date": (TABLE, {"columns": (("t",), ("s",), ("t", "s"))}),
}
NOT_A_CHOICE = {"Rational": {"digest"}}  # follows from the transducer


def variants(name):
    """The map with the first value of each parameter, and those with another one of them."""
    values = MAPS[name][1]
    first = {parameter: some[0] for parameter, some in values.items()}
    yield made(name, **first)
    for parameter, some in values.items():
        for other in some[1:]:
            if name == "MismatchSpectrum" and parameter == "mismatches":  # without weights, one for each number of them
                yield made(name, **first | {parameter: other, "weights": None})
            else:
                yield made(name, **first | {parameter: other})


def made(kind, /, columns=(), **parameters):
    return KNOWN[kind](*columns, **parameters)


def around(phi):
    yield from (phi, 2.0 * phi, 3.0 * phi, phi.normalized(), phi.hashed(9), phi.hashed(10), phi + phi)


def learned(phi, batch):
    return phi.resolve(Shape.of(batch)).learn(batch)


def features(phi, batch):
    matrix = materialize(phi, batch).tocoo()
    return phi.dim, tuple(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True))


@pytest.mark.parametrize("name", KNOWN)
def test_every_parameter_is_looked_at(name):
    parameters = set(inspect.signature(KNOWN[name]).parameters) - NOT_A_CHOICE.get(name, set())
    assert set(MAPS[name][1]) == parameters


@pytest.mark.parametrize("name", KNOWN)
def test_maps_that_write_different_features_have_different_expressions(name):
    batch = MAPS[name][0]
    maps = [*variants(name), *(phi for phi in around(next(variants(name))))]
    written = [features(learned(phi, batch), batch) for phi in maps]
    for (one, mine), (other, theirs) in combinations(zip(maps, written, strict=True), 2):
        assert (repr(one) == repr(other)) == (one == other)
        assert one != other or hash(one) == hash(other)
        assert mine == theirs or repr(one) != repr(other)


@pytest.mark.parametrize("name", KNOWN)
def test_an_expression_makes_the_same_features_again(name):
    batch = MAPS[name][0]
    for phi in (*variants(name), *around(next(variants(name)))):
        phi = learned(phi, batch)
        again = parse(repr(phi)).resolve(Shape.of(batch)).with_state(phi.state())
        assert features(again, batch) == features(phi, batch)
