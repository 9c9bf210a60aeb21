"""Expressions of features: what is written is read back, and everything else is refused with its column."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotadd.errors import FeatureError
from dotadd.features import (
    BagOfWords,
    Hashed,
    Linear,
    NGrams,
    Polynomial,
    Spectrum,
    WeightedDegree,
    WeightedSpectrum,
    parse,
)

bits = st.integers(1, 32)
finite = st.floats(-1e6, 1e6)
alphabets = st.sampled_from(["dna", "rna", "protein", "bytes", "xy'\"z"])
spans = st.sampled_from([None, (0, 59), (-20, None), (None, -1), (3, -3)])
sizes = st.none() | st.integers(0, 10**6)


@st.composite
def string_maps(draw):
    order = draw(st.integers(1, 6))
    options = {"alphabet": draw(alphabets), "span": draw(spans)}
    if draw(st.booleans()):
        return Spectrum(order, **options)
    weight = st.floats(0, 10, allow_subnormal=False).filter(bool)
    given_weights = st.lists(weight, min_size=order, max_size=order)
    options["weights"] = draw(st.none() | st.just("uniform") | given_weights)
    if draw(st.booleans()):
        return WeightedSpectrum(order, **options)
    return WeightedDegree(order, length=draw(sizes), **options)


text_maps = st.builds(
    NGrams, st.integers(1, 9) | st.sampled_from([(1, 3), (2, 5)]), bits=bits, lowercase=st.booleans()
) | st.builds(BagOfWords, bits=bits, lowercase=st.booleans(), binary=st.booleans())
vector_maps = (
    st.builds(Linear, n_features=sizes)
    | st.builds(Polynomial, st.integers(2, 3), coef0=st.floats(0, 1e6), n_features=sizes)
    | st.builds(Hashed, bits)
)


def composed(maps):
    return (
        st.builds(lambda a, b: a + b, maps, maps)
        | st.builds(lambda factor, phi: factor * phi, finite | st.integers(-9, 9), maps)
        | st.builds(lambda phi, n: phi.hashed(n), maps, bits)
        | st.builds(lambda phi: phi.normalized(), maps)
    )


@settings(deadline=None, max_examples=150)
@given(st.recursive(string_maps() | text_maps, composed) | st.recursive(vector_maps, composed))
def test_parsing_the_repr_makes_the_same_map(phi):
    again = parse(repr(phi))
    assert again == phi
    assert repr(again) == repr(phi)
    assert hash(again) == hash(phi)


def test_the_expression_is_that_of_python():
    stack = "Spectrum(8, span=(0, 59)) + WeightedDegree(20).hashed(12)"
    assert parse(stack) == Spectrum(8, span=(0, 59)) + WeightedDegree(20).hashed(12)
    assert parse("  2 * .5 * (Linear() + Linear().normalized())\n") == Linear() + Linear().normalized()
    assert parse("Linear() * -3") == -3.0 * Linear()
    assert parse("Hashed(9, Spectrum(3) + NGrams(2))") == (Spectrum(3) + NGrams(2)).hashed(9)
    assert parse("WeightedSpectrum(2, weights=[1, 2])") == WeightedSpectrum(2, weights=(1.0, 2.0))
    assert parse("WeightedDegree(degree=3,\n alphabet='rna')") == WeightedDegree(3, alphabet="rna")


def test_repr_shows_only_what_differs_from_the_default():
    assert repr(WeightedDegree(3, weights=None, alphabet="dna", span=None)) == "WeightedDegree(3)"
    assert repr(NGrams((3, 3), bits=20)) == "NGrams(3)"
    assert repr(Polynomial(2, coef0=0).hashed(9)) == "Polynomial(2).hashed(9)"
    assert repr(Hashed(9)) == "Linear().hashed(9)"
    assert repr(0.5 * (Spectrum(1) + Spectrum(2))) == "0.5 * (Spectrum(1) + Spectrum(2))"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("Spectrm(8)", 1, "there is no map 'Spectrm'; there are Linear, Hashed, Polynomial, Spectrum"),
        ("Linear() + Spectrm(8)", 12, "there is no map 'Spectrm'"),
        ("Linear() + Linear", 12, r"Linear needs brackets"),
        ("Linear() + x", 12, "'x' is not known here"),
        ("Spectrum()", 1, "missing a required argument: 'k'; it takes k, alphabet, span"),
        ("Spectrum(3, spam=(0, 5))", 1, "unexpected keyword argument 'spam'; it takes k, alphabet, span"),
        ("Spectrum(3, 4)", 1, "too many positional arguments; it takes k, alphabet, span"),
        ("  Spectrum('3')", 3, "Spectrum: k has to be a whole number"),
        ("Spectrum(3).hashed()", 1, ".hashed: missing a required argument: 'bits'; it takes bits"),
        ("Spectrum(3).hashed(99)", 1, ".hashed: bits has to be a whole number from 1 to 32"),
        ("Spectrum(3).normalized(1)", 1, "it takes no arguments"),
        ("Spectrum(3).resolve(1)", 1, r"there is no \.resolve\(\) here"),
        ("Spectrum(3).__class__", 1, "only maps, numbers, text"),
        ("Spectrum(3) - Spectrum(2)", 1, "only maps, numbers, text"),
        ("Spectrum(3) + 2", 1, "maps are added to maps"),
        ("Spectrum(3) * Spectrum(2)", 1, "maps are added to maps"),
        ("True * Spectrum(3)", 1, "maps are added to maps"),
        ("2 + 2", 1, "maps are added to maps"),
        ("Linear() + Spectrum(2)", 1, "cannot be stacked"),
        ("-Linear()", 1, "only a number can have a sign"),
        ("Spectrum(*(3,))", 1, r"without \*"),
        ("Spectrum(**{'k': 3})", 1, r"without \*"),
        ("Spectrum(b'3')", 10, "only maps, numbers, text"),
        ("Spectrum(2**99)", 10, "only maps, numbers, text"),
        ("[Spectrum(3) for _ in 'ab']", 1, "only maps, numbers, text"),
        ("(lambda: Spectrum(3))()", 1, "only maps, numbers, text"),
        ("'text'", 1, "is not a feature map"),
        ("Spectrum(3) +", 14, "this is not an expression"),
        ("Spectrum(3", 9, "this is not an expression"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_column(text, column, message):
    with pytest.raises(FeatureError, match=message) as caught:
        parse(text)
    assert str(caught.value).startswith(f"features, column {column}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "   ", None, "\0", "(" * 500 + ")" * 500, "Linear()" + " + Linear()" * 20_000, f"{10**400} * Linear()"],
    ids=["empty", "blank", "none", "null", "brackets", "long", "huge"],
)
def test_hostile_text_is_refused_in_one_line(text):
    with pytest.raises(FeatureError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_nothing_is_ever_run(tmp_path):
    trap = tmp_path / "trap"
    for text in (f"open({str(trap)!r}, 'w')", f"__import__('os').mkdir({str(trap)!r})", f"Linear(open({str(trap)!r}))"):
        with pytest.raises(FeatureError):
            parse(text)
    assert not trap.exists()
