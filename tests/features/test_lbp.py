"""Local binary patterns are those of their definition, in all types and sizes, and many at once as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from naive_features import dot, lbp

from dotadd import LinearSVM, load
from dotadd.core.block import Block
from dotadd.data.batches import DenseRows, Images
from dotadd.errors import DotaddError, FeatureError
from dotadd.features import LBP, Shape, parse
from dotadd.features import lbp as module
from dotadd.features.checks import check_feature_map, materialize
from dotadd.problem.examples import InMemory

TYPES = [np.uint8, np.uint16, np.float32, np.float64]
SIZES = [(3, 3), (3, 9), (13, 4), (7, 5), (24, 17), (31, 40)]


def images(size: tuple[int, int], dtype: type = np.uint8, n: int = 7) -> Images:
    """Images of several kinds: noise of all gray values and of few (so that many neighbours are equal), waves, one
    gray value, and the largest values that there are."""
    rng = np.random.default_rng(0)
    top = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1000.0
    noise = rng.random((n, *size))
    noise[1::6] = np.floor(3 * noise[1::6]) / 3
    down, right = np.indices(size)
    noise[2::6] = 0.5 + 0.5 * np.sin(0.4 * down + 0.7 * right)
    noise[3::6] = 0.5
    noise[4::6] = 1.0 - (noise[4::6] < 0.3) / top
    return Images((noise * top).astype(dtype))


def slots_of(z: np.ndarray, levels: int | None = None) -> list[int]:
    return [256 * number + pattern for number, (*_, pattern) in enumerate(lbp(z, levels))]


def written(phi: LBP, batch: Images) -> list[list[int]]:
    return [row.indices.tolist() for row in materialize(phi, batch)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_features_are_the_patterns_of_the_pyramid(dtype, size):
    batch = images(size, dtype)
    matrix = materialize(LBP(), batch)
    assert (matrix.data == 1.0).all()
    assert written(LBP(), batch) == [slots_of(z) for z in batch.values]


@pytest.mark.parametrize("levels", [1, 2, 9])
def test_levels_end_when_so_many_are_reached(levels):
    batch = images((24, 17))
    assert written(LBP(levels=levels), batch) == [slots_of(z, levels) for z in batch.values]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("window", "rows", "columns"), [((14, 9), (5, 19), (4, 13)), ((3, 17), (10, 13), (0, 17))])
def test_a_window_is_the_middle_of_the_image(dtype, window, rows, columns):
    batch = images((24, 17), dtype)
    middle = Images(batch.values[:, slice(*rows), slice(*columns)])
    assert written(LBP(window=window), batch) == written(LBP(), middle)


def test_the_dot_product_counts_equal_patterns():
    batch = images((9, 12))
    matrix = materialize(LBP(), batch)
    features = [lbp(z) for z in batch.values]
    np.testing.assert_array_equal((matrix @ matrix.T).toarray(), [[dot(a, b) for b in features] for a in features])


def test_a_window_of_60_by_40_has_the_dimensions_of_the_paper():
    phi = LBP().resolve(Shape("images", n_features=2400, size=(60, 40)))
    assert phi.sizes == [(60, 40), (30, 20), (15, 10), (7, 5)]
    assert phi.dim == 723_712
    assert phi.bound(images((60, 40))) == 2_827
    assert {len(row) for row in written(phi, images((60, 40)))} == {2_827}


def test_sums_of_many_levels_are_exact():
    """Sums that differ by 1 in 2**18 times the largest gray value, more than 16 or 32 bits or float32 tell apart."""
    for dtype in (np.uint8, np.uint16):
        values = np.full((2, 3 * 64, 3 * 64), np.iinfo(dtype).max, dtype)
        values[0, 64, 64] -= 1  # the centre of level 6, which has one pixel inside
        values[1, 0, 0] -= 1  # its neighbour above on the left
        last = [row[-1] % 256 for row in written(LBP(), Images(values))]
        assert last == [0b11111111, 0b11111110]


@pytest.mark.parametrize("dtype", TYPES)
def test_the_first_level_does_not_change_with_increasing_maps_of_gray_values(dtype):
    gray = images((24, 17)).values
    table = np.cumsum(np.random.default_rng(1).integers(1, 200, 256)).astype(dtype if dtype != np.uint8 else np.uint16)
    assert written(LBP(levels=1), Images(table[gray])) == written(LBP(levels=1), Images(gray))


@pytest.mark.parametrize(("factor", "constant"), [(1, 17), (3, 0), (2, 5)])
def test_no_level_changes_with_brightness_and_contrast(factor, constant):
    gray = images((24, 17)).values // 4
    for dtype in TYPES:
        changed = (factor * gray.astype(np.int64) + constant).astype(dtype)
        assert written(LBP(), Images(changed)) == written(LBP(), Images(gray))


@pytest.mark.parametrize("phi", [LBP(), LBP(levels=2, window=(7, 10)), LBP().hashed(9), LBP().normalized()], ids=repr)
def test_the_contract_of_maps_is_kept(phi):
    check_feature_map(phi, images((8, 13)))


def test_the_contract_is_kept_in_sums_and_for_floats():
    check_feature_map(2.0 * LBP(levels=1) + LBP(window=(5, 5)).normalized(), images((6, 8), np.float32))


@pytest.mark.parametrize("size", [(24, 17), (9, 11)])
def test_many_at_once_are_as_one_by_one(size, monkeypatch):
    monkeypatch.setattr(module, "STRIP_BYTES", 1 << 13)
    batch = images(size, n=300)
    phi = LBP().resolve(Shape.of(batch))
    assert phi.bulk
    rng = np.random.default_rng(2)
    w, coefficients = rng.normal(size=phi.dim), rng.normal(size=len(batch))
    coefficients[::3] = 0.0
    rows = np.arange(len(batch))
    block = Block.scratch(np.full(len(batch), phi.bound(batch)), phi.dim, dtype=np.float64)
    phi.fill(batch, rows, block)
    added = np.zeros(phi.dim)
    block.add(coefficients, added)
    for threads in (1, 2):
        examples = InMemory(phi, batch, dtype=np.float64, threads=threads)
        np.testing.assert_allclose(examples.dot([w])[0], block.dot(w), atol=1e-9)
        np.testing.assert_allclose(examples.dot([w], rows[::-2])[0], block.dot(w)[::-2], atol=1e-9)
        np.testing.assert_array_equal(examples.squared_norms(), block.squared_norms())
        sums = np.zeros(phi.dim)
        examples.add([coefficients], [sums])
        np.testing.assert_allclose(sums, added, atol=1e-9)


@pytest.mark.parametrize("slots", [1, 256 * 5, 256 * 101, 10**9])
def test_tiles_cover_all_slots_and_are_as_large_as_wanted(slots):
    phi = LBP(size=(24, 17))
    tiles = phi.tiles(slots)
    assert [first for first, _ in tiles] == np.cumsum([0, *(part.dim for _, part in tiles[:-1])]).tolist()
    assert sum(part.dim for _, part in tiles) == phi.dim
    assert all(part.dim <= max(256, slots) for _, part in tiles)


def test_slots_are_named_by_level_pixel_and_pattern():
    batch = images((11, 13), n=4)
    phi = LBP().resolve(Shape.of(batch))
    for row, z in enumerate(batch.values):
        wanted = [f"level {a}, row {b}, column {c}, pattern {pattern:#010b}".encode() for a, b, c, pattern in lbp(z)]
        assert phi.invert(np.array(slots_of(z))).text.tolist() == wanted
        nth = np.arange(phi.pixels + 2)[::-1].copy()
        names, beyond = phi.origins(batch, np.full(len(nth), row), nth)
        assert names.text.tolist() == [b"", b"", *wanted[::-1]]
        assert beyond.tolist() == [1, 0, *[-1] * phi.pixels]


@pytest.mark.parametrize(
    "phi", [LBP(), LBP(levels=3), LBP(window=(60, 40), levels=2), LBP(size=(8, 9)).hashed(12), 2 * LBP(window=[5, 4])]
)
def test_the_expression_makes_the_map_again(phi):
    assert parse(repr(phi)) == phi
    resolved = phi.resolve(Shape("images", n_features=8000, size=(100, 80)))
    assert parse(repr(resolved)) == resolved
    assert "size=" in repr(resolved)
    assert repr(LBP(levels=3)) != repr(LBP(levels=2))


def test_a_model_of_images_comes_back_from_its_file(tmp_path):
    rng = np.random.default_rng(3)
    values, y = rng.integers(0, 256, (40, 8, 9), np.uint8), np.arange(40) % 2
    values[y == 1, 3, 3] = 255
    svm = LinearSVM("LBP()", random_state=0).fit(values, y)
    svm.model_.save(tmp_path / "m.dotadd")
    model = load(tmp_path / "m.dotadd")
    assert model.shape == svm.model_.shape
    assert model.shape.size == (8, 9)
    assert model.phi == LBP(size=(8, 9))
    assert (model.predict(values) == y).all()
    with pytest.raises(DotaddError, match="has 9 x 8 pixels, and the model was made for 8 x 9"):
        model.predict(values.reshape(40, 9, 8))


def test_the_shape_of_images_is_that_of_all():
    one, other = Shape.of(images((5, 6))), Shape.of(images((6, 5)))
    assert one.size == (5, 6)
    assert one.joined(one) == one
    assert one.joined(other).size is None
    assert Shape(**{**one.to_dict(), "size": [5, 6]}) == one
    assert "size" not in Shape("strings", length=3).to_dict()


@pytest.mark.parametrize(
    ("phi", "size", "message"),
    [
        (LBP(), (2, 9), r"images of 2 x 9 pixels have no patterns: 3 x 3 is the least"),
        (LBP(window=(60, 40)), (60, 39), r"images of 60 x 39 pixels are smaller than window=\(60, 40\)"),
        (LBP(), None, r"LBP\(\) reads images of one size"),
    ],
)
def test_images_that_do_not_suit_are_refused_in_one_line(phi, size, message):
    with pytest.raises(FeatureError, match=message) as caught:
        phi.resolve(Shape("images", size=size))
    assert "\n" not in str(caught.value)


def test_images_of_another_size_are_refused():
    phi = LBP(window=(4, 4)).resolve(Shape.of(images((6, 7))))
    assert phi.check(images((6, 7))) is None
    assert phi.check(images((7, 7))).message == "has 7 x 7 pixels, and the model was made for 6 x 7"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": 0}, "levels has to be a whole number from 1"),
        ({"levels": 1.5}, "levels has to be a whole number"),
        ({"window": 60}, r"window has to be \(height, width\)"),
        ({"window": (60, 40, 1)}, r"window has to be \(height, width\)"),
        ({"window": (60, 2)}, r"window = \(height, width\): each has to be a whole number from 3"),
        ({"window": (60, 40), "size": (20, 50)}, "smaller than window"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options, message):
    with pytest.raises(FeatureError, match=message):
        LBP(**options)


def test_what_is_not_resolved_or_not_an_image_is_refused():
    with pytest.raises(FeatureError, match="does not know the size of the images yet"):
        LBP().dim  # noqa: B018
    with pytest.raises(FeatureError, match="reads images, and the data is dense rows"):
        LinearSVM(LBP()).fit(DenseRows(np.eye(4)), [0, 1, 0, 1])
