"""Conformance checks for users' own maps.

    def test_my_map_keeps_the_contract():
        check_feature_map(MyMap(), batch)

Each check raises AssertionError with a sentence that says what is wrong and what the contract asks for.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING

import numpy as np

from dotadd.core.block import Block
from dotadd.data.batches import Batch, Strings
from dotadd.features.base import FeatureMap, Shape, require_kind
from dotadd.features.occurrences import non_zeros
from dotadd.features.transformer import block_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

GUARD = 3  # places after each row that nobody may touch
UNTOUCHED = 77
MOST_SLOTS = 1 << 22  # of a w that is written down


def materialize(phi: FeatureMap, batch: Batch, *, dtype: type = np.float64) -> csr_array:
    """phi of all rows as a sparse matrix, an index that occurs twice in a row with the sum of its values."""
    phi = phi.resolve(Shape.of(batch))
    block = Block.scratch(_bounds(phi, batch), phi.dim, distinct=phi.distinct, dtype=dtype)
    phi.fill(batch, np.arange(len(batch), dtype=np.int64), block)
    return _matrix(block, phi.dim)


def check_feature_map(phi: FeatureMap, batch: Batch, *, seed: int = 0) -> None:
    """Check that phi keeps the contract of FeatureMap on this batch, which should have rows of different kinds.

    phi is seen only through its public methods, and every answer is held against the matrix of its features.
    """
    require_kind(phi, batch)
    assert len(batch) > 0, "check_feature_map needs a batch with at least one row"
    phi = _check_resolve(phi, batch)
    rng = np.random.default_rng(seed)
    everything = np.arange(len(batch), dtype=np.int64)
    block = _filled(phi, batch, everything, np.float64)
    truth = _matrix(block, phi.dim)
    _check_distinct(phi, block)
    _check_dtypes(phi, batch, everything, truth)
    _check_placing(phi, batch, everything, truth)
    _check_rows(phi, batch, truth, rng)
    _check_dot_and_add(block, truth, rng)
    _check_view(phi, batch, truth)
    _check_many_at_once(phi, batch, truth, rng)
    _check_occurrences(phi, batch)
    _check_repr(phi)
    _check_transformer(phi, batch, truth)


def _check_occurrences(phi: FeatureMap, batch: Batch) -> None:
    """Where features come from lies in the row."""
    lengths = batch.lengths() if isinstance(batch, Strings) else None
    for row in range(min(len(batch), 3)):
        spans, (slots, _) = phi.spans(batch, row), non_zeros(phi, batch, row)
        assert spans is None or len(spans[0]) == len(spans[1]) == len(slots), (
            f"row {row}: spans tells of {0 if spans is None else len(spans[0])} non-zeros, and fill writes {len(slots)}"
        )
        found = phi.occurrences(batch, row)
        assert ((found.slots >= 0) & (found.slots < phi.dim)).all(), f"row {row}: occurrences in slots that are not"
        first, stop = found.first[found.first >= 0], found.stop[found.first >= 0]
        assert (first <= stop).all(), f"row {row}: an occurrence ends before it begins"
        assert lengths is None or (stop <= lengths[row]).all(), f"row {row}: an occurrence ends behind the row"


def _bounds(phi: FeatureMap, batch: Batch) -> np.ndarray:
    bound = phi.bound(batch)
    if isinstance(bound, int | np.integer):
        return np.full(len(batch), bound, np.int64)
    assert len(bound) == len(batch), f"bound has {len(bound)} entries for {len(batch)} rows: give an int or one a row"
    return np.asarray(bound, np.int64)


def _filled(
    phi: FeatureMap, batch: Batch, rows: np.ndarray, dtype: type, *, base: int = 0, scale: float = 1.0, before: int = 0
) -> Block:
    """A block of phi of these rows, `before` places of each taken already. Sees to bounds and indices."""
    bounds = _bounds(phi, batch)[rows]
    block = Block.scratch(bounds + GUARD + before, phi.dim + base + 1, distinct=phi.distinct, dtype=dtype)
    assert block.indices is not None
    assert block.values is not None
    block.base, block.scale = base, scale
    block.indices[:], block.values[:] = UNTOUCHED, UNTOUCHED
    block.end[:] = block.start + before
    first = block.end.copy()
    phi.fill(batch, rows, block)
    for j, row in enumerate(rows):
        name = f"row {row}"
        written = int(block.end[j] - first[j])
        assert 0 <= written <= bounds[j], f"{name}: fill wrote {written} non-zeros, and bound promised {bounds[j]}"
        limit = int(block.start[j + 1]) if j + 1 < len(rows) else len(block.indices)
        for part, what in ((block.indices, "indices"), (block.values, "values")):
            # between its end and its bound a row is scratch: rows that are merged, or lose features, were longer
            outside = np.r_[part[block.start[j] : first[j]], part[first[j] + bounds[j] : limit]]
            assert (outside == UNTOUCHED).all(), (
                f"{name}: fill wrote {what} outside of its part of the row; it has to begin at block.end and move it"
            )
        indices = block.indices[first[j] : block.end[j]]
        assert len(indices) == 0 or (indices.min() >= base and indices.max() < base + phi.dim), (
            f"{name}: indices reach from {indices.min()} to {indices.max()}, and have to lie in block.base = {base} "
            f"to block.base + dim = {base + phi.dim}"
        )
        values = block.values[first[j] : block.end[j]]
        assert np.isfinite(values).all(), f"{name}: a value is NaN or infinite"
    block.start = first
    return block


def _matrix(block: Block, dim: int, base: int = 0) -> csr_array:
    if base:
        assert block.indices is not None
        block = Block(block.start, block.end, block.indices.astype(np.int64) - base, block.values)
    return block_matrix(block, np.arange(len(block)), dim)


def _assert_same(found: csr_array, wanted: csr_array, sentence: str, tolerance: float = 1e-12) -> None:
    scale = max(1.0, abs(wanted).max()) if wanted.nnz else 1.0
    difference = abs(found - wanted)
    worst = difference.max() if difference.nnz else 0.0
    assert worst <= tolerance * scale, f"{sentence} (features differ by {worst:.3g})"


def _check_resolve(phi: FeatureMap, batch: Batch) -> FeatureMap:
    resolved = phi.resolve(Shape.of(batch))
    for other in (batch, batch.slice(0, 1)):
        again = resolved.resolve(Shape.of(other)).dim
        assert again == resolved.dim, f"resolve has to leave a resolved map as it is, and dim became {again}"
    bad = resolved.check(batch)
    if bad is not None:
        raise AssertionError(f"check refuses row {bad.row} of the data it was resolved with: {bad.message}")
    return resolved


def _check_distinct(phi: FeatureMap, block: Block) -> None:
    assert block.indices is not None
    if not phi.distinct:
        return
    for j in range(len(block)):
        indices = block.indices[block.start[j] : block.end[j]]
        assert len(np.unique(indices)) == len(indices), f"row {j}: the map says distinct, and an index occurs twice"


def _check_dtypes(phi: FeatureMap, batch: Batch, rows: np.ndarray, truth: csr_array) -> None:
    found = _matrix(_filled(phi, batch, rows, np.float32), phi.dim)
    _assert_same(found, truth, "a float32 block has to hold the same features as a float64 one", 1e-5)


def _check_placing(phi: FeatureMap, batch: Batch, rows: np.ndarray, truth: csr_array) -> None:
    base = 11
    block = _filled(phi, batch, rows, np.float64, base=base, scale=-0.5, before=2)
    found = _matrix(block, phi.dim, base)
    _assert_same(found, -0.5 * truth, "fill has to multiply each value by block.scale and add block.base to each index")
    block = _filled(phi, batch, rows, np.float64, base=2**33)  # too far for 32-bit indices
    _assert_same(_matrix(block, phi.dim, 2**33), truth, "fill has to work with 64-bit indices")


def _check_rows(phi: FeatureMap, batch: Batch, truth: csr_array, rng: np.random.Generator) -> None:
    order = rng.permutation(len(batch))
    some = order[: max(1, len(order) // 2)]
    for rows in (some, np.r_[order, order[:1]], np.empty(0, np.int64)):
        found = _matrix(_filled(phi, batch, rows, np.float64), phi.dim)
        _assert_same(found, truth[rows], "row j of the block has to be row rows[j] of the batch, in any order of rows")
    taken = _filled(phi, batch.take(some), np.arange(len(some)), np.float64)
    _assert_same(_matrix(taken, phi.dim), truth[some], "a row's features must not depend on the rows around it")
    middle = len(batch) // 2
    tail = _filled(phi, batch.slice(middle, len(batch)), np.arange(len(batch) - middle), np.float64)
    _assert_same(_matrix(tail, phi.dim), truth[middle:], "a slice of a batch has to give the features of its rows")


def _check_dot_and_add(block: Block, truth: csr_array, rng: np.random.Generator) -> None:
    """On the features that occur alone, since all of w may be too large to be written down."""
    from scipy.sparse import csr_array

    assert block.indices is not None
    used = np.unique(np.r_[truth.indices, 0]).astype(np.int64)
    matrix = csr_array((truth.data, np.searchsorted(used, truth.indices), truth.indptr), (len(block), len(used)))
    places = np.searchsorted(used, block.indices.astype(np.int64)).astype(np.uint32)
    small = Block(block.start, block.end, places, block.values, distinct=block.distinct)
    w = rng.standard_normal(len(used))
    assert np.allclose(small.dot(w), matrix @ w), "DOT differs from the product with the matrix"
    coefficients, added = rng.standard_normal(len(block)), np.zeros(len(used))
    small.add(coefficients, added)
    assert np.allclose(added, matrix.T @ coefficients), "ADD differs from the product with the matrix"
    norms = (matrix * matrix).sum(axis=1)
    assert np.allclose(small.squared_norms(), norms), "squared lengths differ from those of the matrix"


def _check_many_at_once(phi: FeatureMap, batch: Batch, truth: csr_array, rng: np.random.Generator) -> None:
    """`dot`, `add`, `products`, `squared_norms` and `tiles`, which a map may bring itself, as it is and prepared for
    the batch."""
    rows = np.r_[rng.permutation(len(batch)), 0]
    matrix = truth[rows]
    lengths = (matrix * matrix).sum(axis=1)
    for these in (phi, phi.prepared(batch), phi.prepared(batch, threads=2)):
        assert np.allclose(these.squared_norms(batch, rows), lengths, rtol=1e-5), "squared_norms has to tell lengths"
        found = _matrix(_filled(these, batch, rows, np.float64), phi.dim)
        _assert_same(found, matrix, "a prepared map has to write the same features", 1e-6)
        if phi.dim > MOST_SLOTS:
            continue
        w, coefficients = rng.standard_normal(phi.dim), rng.standard_normal(len(rows))
        for slots in (phi.dim, max(1, phi.dim // 3), 1):
            out, alike, added, end = np.ones(len(rows)), np.ones(len(rows)), np.zeros(phi.dim), 0
            for first, part in these.tiles(slots):
                assert first == end, f"a tile begins at slot {first}, and the one before ended at {end}"
                end = first + part.dim
                part.dot(batch, rows, w[first:end], out)
                part.add(batch, rows, coefficients, added[first:end])
                part.products(batch, rows, coefficients, alike)
            assert end == phi.dim, f"tiles end at slot {end}, and the map has {phi.dim}"
            assert np.allclose(out, matrix @ w + 1.0, rtol=1e-5, atol=1e-5), "dot has to add <w, phi(z)> to each number"
            assert np.allclose(added, matrix.T @ coefficients, rtol=1e-5, atol=1e-5), "add has to add to w"
            kernel = matrix @ (matrix.T @ coefficients) + 1.0
            assert np.allclose(alike, kernel, rtol=1e-5, atol=1e-5), "products have to be those of dot and add"


def _check_view(phi: FeatureMap, batch: Batch, truth: csr_array) -> None:
    view = phi.view(batch)
    if view is None:
        return
    assert len(view) == len(batch), f"the view has {len(view)} rows, and the batch {len(batch)}"
    _assert_same(_matrix(view, phi.dim), truth, "the view has to hold what fill writes", 1e-6)


def _check_transformer(phi: FeatureMap, batch: Batch, truth: csr_array) -> None:
    """scikit-learn's view of it."""
    _assert_same(phi.transform(batch), truth, "transform has to give the features that fill writes", 1e-6)
    assert copy.copy(phi) == phi, f"a copy has to be equal to the map {phi!r}"
    try:
        again = phi.with_params({})
    except TypeError:  # an argument is not kept under its name, and so is no parameter
        return
    assert repr(again) == repr(phi), f"the parameters of {phi!r} have to make the same map again, and make {again!r}"


def _check_repr(phi: FeatureMap) -> None:
    """Where all of its maps are known by name."""
    from dotadd.features.expression import KNOWN, METHODS, parse

    names = set(re.findall(r"\w+(?=\()", repr(phi)))
    if names and names <= {*KNOWN, *METHODS}:
        assert parse(repr(phi)) == phi, f"the expression {phi!r} has to make the same map again"
