"""Stacks, scaled, normalized and hashed maps."""

from __future__ import annotations

import numpy as np
import pytest

from dotadd.core.block import Block
from dotadd.data.batches import DenseRows, Strings
from dotadd.errors import FeatureError
from dotadd.features import (
    BagOfWords,
    Linear,
    NGrams,
    Polynomial,
    Shape,
    Spectrum,
    Stack,
    WeightedDegree,
    WeightedSpectrum,
    terms,
)
from dotadd.features.checks import check_feature_map, materialize
from dotadd.problem.examples import InMemory

STRINGS = Strings.from_list(["ACGTACGT", "", "AACCG", "TTTTTTTTTTTT", "GATTACA", "C"])


def matrix(phi, batch=STRINGS) -> np.ndarray:
    return materialize(phi, batch).toarray()


def test_stack_sets_its_parts_side_by_side():
    a, b, c = Spectrum(2), WeightedDegree(3), WeightedSpectrum(2, span=(0, 4))
    assert np.allclose(matrix(a + b + c), np.hstack([matrix(a), matrix(b), matrix(c)]))


def test_stacks_of_stacks_are_flat():
    a, b, c = Spectrum(1), Spectrum(2), Spectrum(3)
    assert (a + (b + c)) == ((a + b) + c) == Stack(a, b, c)
    assert len((a + (b + c)).parts) == 3


def test_factors_scale_and_collapse():
    phi = Spectrum(2)
    assert np.allclose(matrix(-0.5 * phi), -0.5 * matrix(phi))
    assert np.allclose(matrix(2 * (phi + 3 * phi)), np.hstack([2 * matrix(phi), 6 * matrix(phi)]))
    assert 2 * (0.25 * phi) == terms.Term(phi, 0.5)
    assert 2 * (0.5 * phi) == phi * 1.0 == phi


def test_normalized_rows_have_length_one_and_zeros_stay():
    for phi in (Spectrum(1), WeightedDegree(3), WeightedSpectrum(3).hashed(2), 3 * Spectrum(2) + WeightedDegree(2)):
        plain, unit = matrix(phi), matrix(phi.normalized())
        lengths = np.linalg.norm(plain, axis=1)
        assert (lengths == 0).any()
        assert np.allclose(unit * lengths[:, None], plain)
        assert np.allclose(np.linalg.norm(unit, axis=1), lengths > 0)


def test_normalized_part_leaves_the_rest_of_a_stack_alone():
    a, b = Spectrum(2), WeightedDegree(2)
    stacked = a + 0.5 * b.normalized() + a
    assert np.allclose(matrix(stacked), np.hstack([matrix(a), 0.5 * matrix(b.normalized()), matrix(a)]))


def test_normalized_in_float32_is_as_long_as_float32_allows():
    unit = materialize(Spectrum(2).normalized(), STRINGS, dtype=np.float32).toarray()
    assert np.allclose(np.linalg.norm(unit, axis=1), [1, 0, 1, 1, 1, 0], atol=1e-6)


@pytest.mark.parametrize("around", [lambda phi: phi, lambda phi: phi.hashed(8), lambda phi: 0.5 * phi.hashed(8) + phi])
def test_lengths_of_rows_in_memory_are_measured_once(around, monkeypatch):
    batch = Strings.from_list(["ACGTACGT", "AAAA", "ACCA"])
    examples = InMemory(around(Spectrum(2).normalized()), batch)
    wanted = materialize(examples.phi, batch).power(2).sum(axis=1)

    def again(*args):
        raise AssertionError("measured again")

    monkeypatch.setattr(terms, "squared_norms", again)
    monkeypatch.setattr(Spectrum, "squared_norms", again)
    found = [Block.squared_norms(block) for block, _, _ in examples.blocks()]
    np.testing.assert_allclose(np.concatenate(found), wanted, rtol=1e-5)


def test_hashed_stack_hashes_the_indices_of_the_whole():
    """Parts with the same k-mers must not fall on top of each other."""
    twice = materialize((Spectrum(3) + Spectrum(3)).hashed(20), STRINGS)
    assert twice.nnz == 2 * materialize(Spectrum(3), STRINGS).nnz


def test_distinct_only_if_all_parts_are():
    assert (WeightedDegree(2) + WeightedDegree(3)).distinct
    assert not (WeightedDegree(2) + Spectrum(3)).distinct
    assert (0.5 * WeightedDegree(2)).normalized().distinct
    assert not WeightedDegree(2).hashed(3).hashed(4).distinct


def test_stack_reports_the_first_bad_row_of_any_part():
    phi = (Spectrum(2, span=(0, 1)) + WeightedDegree(2, length=5)).normalized()
    bad = phi.check(Strings.from_list(["ACG", "CNA", "NCA"]))
    assert (bad.row, bad.column) == (1, 2)


def test_maps_of_different_data_cannot_be_stacked():
    with pytest.raises(FeatureError, match="cannot be stacked: Linear"):
        Linear() + Spectrum(3)
    with pytest.raises(FeatureError, match="finite"):
        float("nan") * Linear()


def test_resolved_sizes_are_those_of_the_parts():
    phi = (0.5 * (WeightedDegree(2) + Spectrum(1))).normalized().resolve(Shape.of(STRINGS))
    assert phi.dim == 12 * 20 + 4
    assert phi.resolve(Shape("strings", length=99)) == phi


def test_strings_and_vectors_keep_the_contract_in_any_composition():
    for phi in (
        Spectrum(2) + 2 * WeightedDegree(4).hashed(3) + WeightedSpectrum(2).normalized(),
        (Spectrum(2) + WeightedDegree(2)).normalized().hashed(6),
        0.5 * (NGrams(2) + BagOfWords(binary=True)).normalized() + Spectrum(3, alphabet="bytes"),
    ):
        check_feature_map(phi, STRINGS)
    vectors = DenseRows(np.random.default_rng(0).standard_normal((5, 4)))
    for phi in (Linear() + Polynomial(2), Linear().normalized(), (2 * Linear() + Linear().hashed(3)).hashed(4)):
        check_feature_map(phi, vectors)


def test_fill_goes_on_where_the_row_ends():
    phi = Spectrum(1)
    block = Block.scratch(np.array([10]), 100)
    phi.fill(STRINGS, np.array([2]), block)
    phi.fill(STRINGS, np.array([2]), block.placed(4, 1.0))
    assert block.indices[:10].tolist() == [0, 0, 1, 1, 2, 4, 4, 5, 5, 6]
    assert block.end[0] == 10
