"""Sets of transformations: what each member does to a row, whatever rows are asked for, and what is refused."""

from __future__ import annotations

import itertools

import naive_images as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotadd.data.batches import DenseRows, Images, Strings
from dotadd.data.transforms import (
    TransformError,
    functions,
    mirror,
    reverse_complement,
    rotate,
    scale,
    shift,
    translate,
)

DTYPES = ["uint8", "uint16", "float32", "float64"]


def pictures(n, height, width, dtype="uint8", seed=0):
    rng = np.random.default_rng(seed)
    if dtype.startswith("uint"):
        return Images(rng.integers(0, np.iinfo(dtype).max, (n, height, width), dtype, endpoint=True))
    return Images(rng.normal(size=(n, height, width)).astype(dtype))


def strings(*several):
    return Strings.from_list(several)


def fixed(*several):
    return Strings(np.frombuffer("".join(several).encode(), np.uint8), width=len(several[0]))


def each_member(transforms, batch, row=0):
    """The row changed by every member."""
    members = np.arange(len(transforms))
    return transforms.apply(batch, np.full(len(members), row), members)


def halve(rows):
    return rows / 2


def reverse(rows):
    return rows[:, ::-1]


BATCHES = {
    "images": pictures(5, 6, 9),
    "floats": pictures(4, 7, 5, "float32"),
    "strings": strings("ACGTT", "acgRYKnnn-", "GATTACA"),
    "fixed strings": fixed("ACGTT", "GGGTA", "NNACC"),
    "vectors": DenseRows(np.random.default_rng(1).normal(size=(6, 4))),
}
CASES = [
    (translate(2), "images"),
    (translate(4, step=2, fill=7), "images"),
    (mirror(), "images"),
    (rotate(20, step=10), "images"),
    (scale(0.3, fill=100), "images"),
    (translate(1) * rotate(6, fill=0) * scale(0.05, fill=0) * mirror(), "images"),
    (translate(1) * rotate(6) * scale(0.05), "floats"),
    (reverse_complement(), "strings"),
    (shift(2) * reverse_complement(), "strings"),
    (shift(4, step=2, fill="-"), "fixed strings"),
    (reverse_complement() * shift(2), "fixed strings"),
    (functions(halve, reverse), "vectors"),
    (functions(halve) * functions(reverse), "vectors"),
    (mirror() * functions(halve), "images"),
]
cases = pytest.mark.parametrize(("transforms", "kind"), CASES, ids=lambda case: str(case))


def rows_of(batch):
    return list(batch.values) if isinstance(batch, DenseRows) else [batch[r] for r in range(len(batch))]


@cases
def test_the_identity_changes_no_bit(transforms, kind):
    batch = BATCHES[kind]
    transforms.check(batch)
    rows = np.arange(len(batch))
    same = transforms.apply(batch, rows, np.full(len(batch), transforms.identity))
    assert type(same) is type(batch)
    if isinstance(batch, Strings):
        assert rows_of(same) == rows_of(batch)
        assert same.width == batch.width
    else:
        assert same.values.dtype == batch.values.dtype
        assert same.values.tobytes() == batch.values.tobytes()


@cases
@settings(max_examples=20)
@given(data=st.data())
def test_a_row_depends_neither_on_the_others_nor_on_its_place(transforms, kind, data):
    batch = BATCHES[kind]
    pair = st.tuples(st.integers(0, len(batch) - 1), st.integers(0, len(transforms) - 1))
    pairs = data.draw(st.lists(pair, max_size=9))
    rows, which = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    made = transforms.apply(batch, rows, which)
    assert len(made) == len(pairs)
    for got, row, member in zip(rows_of(made), rows, which, strict=True):
        alone = transforms.apply(batch, np.array([row]), np.array([member]))
        np.testing.assert_array_equal(got, rows_of(alone)[0])


@cases
def test_every_member_has_a_name_of_its_own(transforms, kind):
    names = transforms.names()
    assert len(set(names)) == len(names) == len(transforms)
    assert names[transforms.identity] == "as it is"


@cases
def test_rows_of_a_slice_are_rows_of_the_whole(transforms, kind):
    batch = BATCHES[kind]
    rows, which = np.array([1, 0]), np.array([0, len(transforms) - 1])
    part = transforms.apply(batch.slice(1, 3), rows, which)
    whole = transforms.apply(batch, rows + 1, which)
    for one, other in zip(rows_of(part), rows_of(whole), strict=True):
        np.testing.assert_array_equal(one, other)


def test_read_only_images_can_be_changed():
    batch = pictures(2, 4, 4)
    batch.values.flags.writeable = False
    for transforms in (translate(1), mirror(), rotate(9)):
        assert len(each_member(transforms, batch)) == len(transforms)


# Images


def test_the_set_of_the_paper_has_375_members():
    paper = translate(2) * rotate(6, step=3) * scale(0.05)
    assert len(paper) == 5**2 * 5 * 3
    assert [len(stage) for stage in paper.stages()] == [15, 25]
    assert [stage.costly for stage in paper.stages()] == [True, False]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", ["edge", 3])
def test_translations_are_windows_of_the_padded_image(dtype, fill):
    batch = pictures(2, 4, 6, dtype)
    moves = list(itertools.product(range(-3, 4), repeat=2))
    made = each_member(translate(3, fill=fill), batch, row=1)
    assert made.values.dtype == dtype
    for got, (down, right) in zip(made.values, moves, strict=True):
        np.testing.assert_array_equal(got, naive.translate(batch.values[1], down, right, fill))


def test_translations_go_in_steps():
    batch = pictures(1, 9, 9)
    made = each_member(translate(6, step=3), batch)
    for got, (down, right) in zip(made.values, itertools.product((-6, -3, 0, 3, 6), repeat=2), strict=True):
        np.testing.assert_array_equal(got, naive.translate(batch.values[0], down, right))


def test_a_translation_can_leave_a_single_line_or_column():
    batch = pictures(1, 2, 2, "uint16")
    made = each_member(translate(1), batch)
    for got, (down, right) in zip(made.values, itertools.product((-1, 0, 1), repeat=2), strict=True):
        np.testing.assert_array_equal(got, naive.translate(batch.values[0], down, right))


def test_names_of_moves_say_where_to():
    batch = Images(np.zeros((1, 3, 3), np.uint8))
    batch.values[0, 1, 1] = 1
    places = {name: tuple(np.argwhere(image)[0]) for name, image in _named(translate(1), batch)}
    assert places["1 up"] == (0, 1)
    assert places["1 down, 1 right"] == (2, 2)
    assert places["1 left"] == (1, 0)


def _named(transforms, batch):
    return zip(transforms.names(), each_member(transforms, batch).values, strict=True)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_mirror_exchanges_left_and_right(dtype):
    batch = pictures(3, 4, 5, dtype)
    made = each_member(mirror(), batch, row=2)
    np.testing.assert_array_equal(made.values[1], batch.values[2][:, ::-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", ["edge", 40])
@pytest.mark.parametrize(
    "make",
    [lambda fill: rotate(40, step=20, fill=fill), lambda fill: scale(0.3, step=0.1, fill=fill)],
    ids=["rotate", "scale"],
)
def test_warps_are_one_affine_map_with_bilinear_interpolation(make, dtype, fill):
    batch = pictures(2, 12, 9, dtype)
    warps = make(fill)
    made = each_member(warps, batch, row=1).values
    assert made.dtype == dtype
    for got, degrees, factor in zip(made, warps.angles, warps.factors, strict=True):
        _assert_close(got, naive.warp(batch.values[1], degrees, factor, fill))


def _assert_close(got, wanted):
    """Up to rounding to whole numbers, and to float32 weights of the four pixels."""
    atol = 0.51 if got.dtype.kind == "u" else 1e-5
    np.testing.assert_allclose(got.astype(float), wanted, rtol=0, atol=atol)


def test_angles_and_factors_are_those_that_were_asked_for():
    np.testing.assert_allclose(rotate(6, step=3).angles, [-6, -3, 0, 3, 6])
    np.testing.assert_allclose(rotate(10).angles, [-10, 0, 10])
    np.testing.assert_allclose(scale(0.05).factors, [0.95, 1, 1.05])
    np.testing.assert_allclose(scale(0.3, step=0.1).factors, [0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3])


@pytest.mark.parametrize("side", [7, 8])
def test_quarter_turns_only_move_pixels(side):
    batch = pictures(1, side, side)
    made = dict(_named(rotate(180, step=90), batch))
    assert len(made) == 4  # half a turn is the same to the left and to the right
    for name, quarters in {
        "turned left by 90 degrees": 1,
        "turned left by 180 degrees": 2,
        "turned right by 90 degrees": 3,
    }.items():
        np.testing.assert_array_equal(made[name], np.rot90(batch.values[0], quarters))


def test_a_larger_factor_shows_things_larger():
    batch = Images(np.zeros((1, 21, 21)))
    batch.values[0, 8:13, 8:13] = 1.0
    smaller, same, larger = each_member(scale(0.4), batch).values.sum(axis=(1, 2))
    assert smaller < same < larger


def test_a_flat_image_stays_flat_unless_it_is_filled():
    batch = Images(np.full((1, 10, 10), 255, np.uint8))
    assert (each_member(rotate(45, step=5) * scale(0.5, step=0.1), batch).values == 255).all()
    assert each_member(rotate(45, fill=0), batch).values[0, 0, 0] == 0


def test_an_image_of_one_pixel_can_be_turned():
    batch = Images(np.full((1, 1, 1), 9, np.uint8))
    assert (each_member(rotate(45) * scale(0.5), batch).values == 9).all()


@pytest.mark.parametrize("order", [lambda a, b: a * b, lambda a, b: b * a], ids=["turn last", "turn first"])
def test_turning_and_scaling_is_interpolated_once(order):
    batch = pictures(1, 15, 11, "float64")
    turns, scales = rotate(30), scale(0.2)
    both = order(turns, scales)
    (stage,) = both.stages()
    made = each_member(both, batch).values
    for got, degrees, factor in zip(made, stage.angles, stage.factors, strict=True):
        _assert_close(got, naive.warp(batch.values[0], degrees, factor))
    first, last = reversed(both.factors)
    by_hand = each_member(last, each_member(first, batch, row=0), row=0).values[0]
    assert np.abs(made[0] - by_hand).max() > 0.01  # twice interpolated is blurred


def test_members_are_numbered_alike_whether_stages_are_merged_or_not():
    merged, apart = rotate(30) * scale(0.2), rotate(30) * scale(0.2, fill=0)
    assert len(apart.stages()) == 2
    assert [name.replace(", then ", ", ") for name in apart.names()] == [
        ", ".join(reversed(name.split(", "))) for name in merged.names()
    ]


# Products


def test_in_a_product_the_last_set_changes_first():
    batch = pictures(2, 5, 6)
    product = mirror() * translate(1, fill=0)
    made = each_member(product, batch, row=1).values
    by_hand = [
        naive.translate(batch.values[1], down, right, 0)[:, ::step]
        for down, right in itertools.product((-1, 0, 1), repeat=2)
        for step in (1, -1)
    ]
    np.testing.assert_array_equal(made, by_hand)
    moved = each_member(translate(1, fill=0), batch, row=1)
    for member, got in enumerate(made):
        alone = mirror().apply(moved, np.array([member // 2]), np.array([member % 2]))
        np.testing.assert_array_equal(alone.values[0], got)


def test_products_of_products_are_flat():
    a, b, c = translate(1), mirror(), rotate(9)
    assert (a * b) * c == a * (b * c)
    assert hash((a * b) * c) == hash(a * (b * c))
    assert a * b != b * a
    assert len(a * b * c) == 9 * 2 * 3


def test_the_first_set_of_a_product_does_not_hide_rows_from_the_next():
    with pytest.raises(TransformError, match="moves a string of 2 letters"):
        (shift(2) * reverse_complement()).check(strings("ACGT", "AC"))


# Strings


@pytest.mark.parametrize("form", [strings, fixed])
def test_the_reverse_complement_is_that_of_the_letters_meanings(form):
    several = ["ACGTRYSWKM", "BDHVNacgtn", "rywskbdhvm", "AC-*xXA..?"]
    made = rows_of(reverse_complement().apply(form(*several), np.arange(4), np.ones(4, int)))
    assert [string.decode() for string in made] == [naive.reverse_complement(string) for string in several]


def test_rna_stays_rna():
    made = reverse_complement(alphabet="rna").apply(strings("ACGUrykm", "augc"), np.arange(2), np.ones(2, int))
    assert rows_of(made) == [b"kmryACGU", b"gcau"]


@pytest.mark.parametrize("fill", ["N", "-"])
@pytest.mark.parametrize(("form", "several"), [(strings, ["ACGTA", "TTGACCA"]), (fixed, ["ACGTA", "TTGAC"])])
def test_shifts_are_windows_of_the_longer_string(form, several, fill):
    batch = form(*several)
    for row, string in enumerate(several):
        made = each_member(shift(4, step=2, fill=fill), batch, row=row)
        assert made.width == batch.width
        wanted = [naive.shift(string, right, fill) for right in (-4, -2, 0, 2, 4)]
        assert [string.decode() for string in rows_of(made)] == wanted


def test_a_string_that_has_left_is_all_fill():
    assert rows_of(each_member(shift(3), strings("AC"))) == [b"NN", b"NN", b"CN", b"AC", b"NA", b"NN", b"NN"]
    assert rows_of(each_member(shift(1), strings(""))) == [b""] * 3


def test_names_of_shifts_say_where_to():
    assert shift(2, step=2).names() == ["2 to the left", "as it is", "2 to the right"]


# A user's own functions


def test_functions_get_many_rows_at_once_and_change_their_own_alone():
    batch = DenseRows(np.arange(12.0).reshape(4, 3))
    seen = []

    def add(rows):
        seen.append(len(rows))
        rows += 100  # even in place
        return rows

    made = functions(add, halve).apply(batch, np.array([0, 3, 3, 1]), np.array([1, 0, 1, 2])).values
    np.testing.assert_array_equal(made, [[100, 101, 102], [9, 10, 11], [109, 110, 111], [1.5, 2, 2.5]])
    assert seen == [2]
    assert batch.values.max() == 11


def test_functions_of_images_get_images_and_results_are_rounded():
    batch = Images(np.array([[[10, 255], [3, 0]]], np.uint8))
    made = each_member(functions(lambda x: x * 1.5, lambda x: x - 20.0, names=["brighter", "darker"]), batch)
    assert isinstance(made, Images)
    assert made.values.dtype == np.uint8
    np.testing.assert_array_equal(made.values[1:], [[[15, 255], [4, 0]], [[0, 235], [0, 0]]])


def test_functions_are_told_apart_by_themselves_and_not_by_their_names():
    one, other = (lambda x: x), (lambda x: x + 1)
    assert functions(one) != functions(other)
    assert functions(one) == functions(one)
    assert functions(one) * functions(halve) != functions(other) * functions(halve)
    assert repr(functions(halve, other, names=["half", "next"])) == "functions(half, next)"
    assert functions(halve).costly
    assert not functions(halve, costly=False).costly


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, 0], "bad gives an array with 1 dimensions, and not 2"),
        (lambda x: x[1:], "bad gives 2 rows for 3"),
        (lambda x: x[:, 1:], "bad gives rows of 3 values for rows of 4"),
        (lambda x: x * np.nan, "bad gives NaN"),
        (lambda x: x.astype(str), "bad gives an array of .*, and not of numbers"),
        (lambda x: None, "bad gives an array of object, and not of numbers"),
        (lambda x: [[1], [2, 3]], "bad fails: ValueError: "),
        (lambda x: x @ np.ones((2, 3)), "bad fails: ValueError: "),
        (lambda x: {}["a\nb"], "bad fails: KeyError: "),
    ],
)
def test_what_is_wrong_with_a_function_is_said_in_one_line(function, message):
    bad = functions(halve, function, names=["half", "bad"])
    for attempt in (bad.check, lambda batch: each_member(bad, batch, row=2)):
        with pytest.raises(TransformError, match=message if attempt == bad.check else "bad") as caught:
            attempt(DenseRows(np.ones((3, 4))))
        assert "\n" not in str(caught.value)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: translate(0), "pixels has to be a whole number above 0, and not 0"),
        (lambda: translate(1.5), "pixels has to be a whole number above 0, and not 1.5"),
        (lambda: translate(True), "pixels has to be a whole number"),
        (lambda: translate(2, step=0), "step has to be a whole number above 0, and not 0"),
        (lambda: translate(2, step=3), "step has to be above 0 and at most 2, and not 3"),
        (lambda: translate(3, step=2), "step=2 does not lead from 0 to 3"),
        (lambda: translate(501), "step=1 makes more than 500 steps"),
        (lambda: translate(1, fill="egde"), "fill has to be \"edge\" or a number, and not 'egde'"),
        (lambda: rotate(1, fill=np.inf), 'fill has to be "edge" or a number, and not inf'),
        (lambda: scale(0.1, fill=None), 'fill has to be "edge" or a number, and not None'),
        (lambda: rotate("6"), "degrees has to be a number, and not '6'"),
        (lambda: rotate(0), "degrees has to be above 0 and at most 180, and not 0"),
        (lambda: rotate(181), "degrees has to be above 0 and at most 180, and not 181"),
        (lambda: rotate(np.nan), "degrees has to be a number, and not nan"),
        (lambda: rotate(6, step=-3), "step has to be above 0 and at most 6, and not -3"),
        (lambda: rotate(6, step=7), "step has to be above 0 and at most 6, and not 7"),
        (lambda: rotate(6, step=4), "step=4 does not lead from 0 to 6"),
        (lambda: rotate(6, step=1e-9), "makes more than 500 steps"),
        (lambda: scale(0), "share has to be above 0 and below 1, and not 0"),
        (lambda: scale(1), "share has to be above 0 and below 1, and not 1"),
        (lambda: scale(-0.1), "share has to be above 0 and below 1"),
        (lambda: scale(0.1, step=0.2), "step has to be above 0 and at most 0.1, and not 0.2"),
        (lambda: shift(0), "letters has to be a whole number above 0"),
        (lambda: shift(2, step=5), "step has to be above 0 and at most 2, and not 5"),
        (lambda: shift(2, fill="NN"), "fill has to be one ASCII letter, and not 'NN'"),
        (lambda: shift(2, fill="ß"), "fill has to be one ASCII letter"),
        (lambda: shift(2, fill=0), "fill has to be one ASCII letter"),
        (lambda: reverse_complement(alphabet="protein"), 'alphabet has to be "dna" or "rna", and not \'protein\''),
        (lambda: functions(), "functions has to be given one or more functions"),
        (lambda: functions(3), "functions has to be given one or more functions"),
        (lambda: functions(halve, names=["a", "b"]), "names has to be 1 names, one for each function"),
        (lambda: functions(halve, names="h"), "names has to be 1 names"),
        (lambda: translate(1) * shift(1), r"translate\(1\) \* shift\(1\): no data can be changed by all of these"),
        (lambda: translate(300) * translate(9), "has more than 1,048,576 members"),
    ],
)
def test_arguments_out_of_range_are_refused(make, message):
    with pytest.raises(TransformError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("transforms", "batch", "message"),
    [
        (
            translate(24),
            pictures(1, 24, 24),
            r"translate\(24\) moves an image of 24 x 24 pixels out of its frame",
        ),
        (translate(4), pictures(1, 9, 4), "moves an image of 9 x 4 pixels out of its frame"),
        (mirror() * translate(4), pictures(1, 4, 9), "moves an image of 4 x 9 pixels out of its frame"),
        (translate(1), DenseRows(np.ones((2, 3))), r"translate\(1\) changes images, and the data is dense rows"),
        (rotate(1), strings("ACG"), r"rotate\(1\) changes images, and the data is strings"),
        (mirror(), Images(np.ones((1, 2, 2), np.int64)), r"mirror\(\) changes images of .*, and these are of int64"),
        (rotate(1, fill=256), pictures(1, 3, 3), r"rotate\(1, fill=256\): 256 is no gray value of images of uint8"),
        (scale(0.1, fill=-1), pictures(1, 3, 3, "uint16"), "-1 is no gray value of images of uint16"),
        (translate(1, fill=0.5), pictures(1, 3, 3), "0.5 is no gray value of images of uint8"),
        (shift(4), fixed("ACGT"), r"shift\(4\) moves a string of 4 letters out of its place"),
        (shift(3), strings("ACGT", "ACG"), "moves a string of 3 letters out of its place"),
        (shift(1), pictures(1, 3, 3), r"shift\(1\) changes strings, and the data is images"),
        (reverse_complement(), strings("ACGT", "acgu"), r"the letter U: use reverse_complement\(alphabet='rna'\)"),
        (reverse_complement(alphabet="rna"), fixed("AT"), r"the letter T: use reverse_complement\(\)"),
        (functions(halve), strings("A"), r"functions\(halve\) changes dense rows, and the data is strings"),
    ],
)
def test_data_that_cannot_be_changed_is_refused(transforms, batch, message):
    with pytest.raises(TransformError, match=message) as caught:
        transforms.check(batch)
    assert "\n" not in str(caught.value)


def test_data_without_rows_is_not_refused():
    for transforms, batch in [
        (shift(3), Strings(np.empty(0, np.uint8), np.zeros(1, np.int64))),
        (translate(1) * rotate(3) * mirror(), pictures(0, 4, 4)),
        (functions(halve), DenseRows(np.ones((0, 3)))),
    ]:
        transforms.check(batch)
        none = np.empty(0, np.int64)
        assert len(transforms.apply(batch, none, none)) == 0


def test_letters_outside_of_a_slice_are_not_looked_at():
    batch = strings("ACGU", "ACGT", "UUUU")
    reverse_complement().check(batch.slice(1, 2))
