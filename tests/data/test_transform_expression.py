"""Expressions of transformations: what is written is read back, and everything else is refused with its column."""

from __future__ import annotations

import functools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotadd.data.transforms import TransformError, mirror, parse, reverse_complement, rotate, scale, shift, translate

fills = st.just("edge") | st.integers(0, 255) | st.floats(-1e6, 1e6)


@st.composite
def ranges(draw, make, most, **more):
    """A set with a range and, perhaps, a step that divides it."""
    most = draw(most)
    step = draw(st.none() | st.integers(1, 4).map(lambda parts: most / parts))
    options = {name: draw(value) for name, value in more.items()}
    return make(most, **options, **({} if step is None else {"step": step}))


@st.composite
def whole_ranges(draw, make, **more):
    step = draw(st.integers(1, 5))
    options = {name: draw(value) for name, value in more.items()}
    return make(step * draw(st.integers(1, 5)), step=step, **options)


image_sets = (
    whole_ranges(translate, fill=fills)
    | ranges(rotate, st.integers(1, 180) | st.floats(0.01, 180), fill=fills)
    | ranges(scale, st.floats(0.001, 0.999), fill=fills)
    | st.just(mirror())
)
string_sets = whole_ranges(shift, fill=st.sampled_from("N-'\"\\\0x")) | st.builds(
    reverse_complement, alphabet=st.sampled_from(["dna", "rna"])
)


@settings(max_examples=50)
@given(st.lists(image_sets, min_size=1, max_size=3) | st.lists(string_sets, min_size=1, max_size=3))
def test_parsing_the_repr_makes_the_same_set(factors):
    try:
        transforms = functools.reduce(operator.mul, factors)
    except TransformError:  # too many members
        return
    again = parse(repr(transforms))
    assert again == transforms
    assert repr(again) == repr(transforms)
    assert hash(again) == hash(transforms)
    assert again.names() == transforms.names()


def test_the_expression_is_that_of_python():
    assert parse("translate(2) * rotate(6, step=3) * scale(0.05)") == translate(2) * rotate(6, step=3) * scale(0.05)
    assert parse("  mirror() * (translate(pixels=1,\n fill=0) * rotate(6.0, step=2))") == (
        mirror() * translate(1, fill=0) * rotate(6, step=2)
    )
    assert parse("reverse_complement() * shift(3, fill='-')") == reverse_complement() * shift(3, fill="-")


def test_repr_shows_only_what_differs_from_the_default():
    assert repr(translate(2, step=1, fill="edge")) == "translate(2)"
    assert repr(rotate(6.0, step=6)) == "rotate(6)"
    assert repr(scale(0.1, step=0.05, fill=0.0)) == "scale(0.1, step=0.05, fill=0)"
    assert repr(shift(4, step=2, fill="N")) == "shift(4, step=2)"
    assert repr(reverse_complement(alphabet="dna")) == "reverse_complement()"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("rotat(6)", 1, "there is no transformation 'rotat'; there are translate, rotate, scale, mirror, reverse"),
        ("mirror() * rotat(6)", 12, "there is no transformation 'rotat'"),
        ("functions(len)", 1, "there is no transformation 'functions'"),
        ("mirror() * mirror", 12, "mirror needs brackets"),
        ("mirror() * x", 12, "'x' is not known here"),
        ("translate()", 1, "translate: missing a required argument: 'pixels'; it takes pixels, step, fill"),
        ("rotate(6, 3)", 1, "too many positional arguments; it takes degrees, step, fill"),
        ("scale(0.1, stop=1)", 1, "unexpected keyword argument 'stop'; it takes share, step, fill"),
        ("mirror(1)", 1, "it takes no arguments"),
        ("  translate('2')", 3, "translate: pixels has to be a whole number above 0"),
        ("mirror() * rotate(6, step=4)", 12, "rotate: step=4 does not lead from 0 to 6"),
        ("mirror() * shift(1)", 1, "no data can be changed by all of these"),
        ("mirror() * 2", 1, "transformations are multiplied with transformations"),
        ("2 * 2", 1, "transformations are multiplied with transformations"),
        ("mirror() + mirror()", 1, r"only transformations, numbers, text and \* are understood"),
        ("mirror().stages()", 1, r"only transformations, numbers, text and \* are understood"),
        ("-mirror()", 1, "only a number can have a sign"),
        ("shift(*(3,))", 1, r"without \*"),
        ("'mirror'", 1, "'mirror' is not a set of transformations: write for example translate"),
        ("mirror() *", 11, "this is not an expression"),
        ("mirror(", 7, "this is not an expression"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_column(text, column, message):
    with pytest.raises(TransformError, match=message) as caught:
        parse(text)
    assert str(caught.value).startswith(f"--virtual, column {column}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", " ", None, "\0", "(" * 500 + ")" * 500, "mirror()" + " * mirror()" * 20_000, f"rotate({10**400})"],
    ids=["empty", "blank", "none", "null", "brackets", "long", "huge"],
)
def test_hostile_text_is_refused_in_one_line(text):
    with pytest.raises(TransformError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
