"""WeightedDegreeShift against the kernel's definition."""

from __future__ import annotations

import naive_features as naive
import numpy as np
import pytest
from test_features_strings import DNA, STRINGS, gram, kernel_matrix, random_strings

from dotadd.data.batches import Strings
from dotadd.errors import FeatureError
from dotadd.features import Shape, WeightedDegree, WeightedDegreeShift
from dotadd.features.checks import check_feature_map, materialize
from dotadd.features.weighted_degree import taps


@pytest.mark.parametrize("shift", [0, 1, 2, 9, 100, 1000])
def test_autocorrelation_of_the_taps_is_the_weight_of_each_shift(shift):
    c = taps(shift)
    wanted = [1.0] + [1 / (2 * (s + 1)) for s in range(1, shift + 1)]
    assert len(c) == shift + 1
    assert np.correlate(c, c, "full")[shift:] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("shift", [0, 1, 3, 40])
def test_inner_products_are_the_kernel(shift):
    strings = [*STRINGS, STRINGS[-1][2:], "GG" + STRINGS[-1][:20]]
    wanted = kernel_matrix(naive.shifted_kernel, strings, naive.falling_weights(4), shift)
    assert np.allclose(gram(WeightedDegreeShift(4, shift), strings), wanted)
    assert np.allclose(gram(WeightedDegreeShift(4, shift).hashed(24), strings), wanted)


@pytest.mark.parametrize(
    ("letters", "alphabet", "degree", "bits"),
    [(DNA, "dna", 20, 22), (DNA, "dna", 9, 5), ("ACDEFGHIKLMNPQRSTVWY", "protein", 7, 24)],
)
def test_hashed_orders_without_collisions_are_the_kernel(letters, alphabet, degree, bits):
    strings = random_strings(letters, [30, 30, 25, 8])
    phi = WeightedDegreeShift(degree, 3, alphabet=alphabet).hashed(bits)
    wanted = kernel_matrix(naive.shifted_kernel, strings, naive.falling_weights(degree), 3)
    if bits == 5:  # collisions only ever add
        assert (gram(phi, strings) > wanted - 1e-9).all()
        assert np.linalg.norm(gram(phi, strings) - wanted) < 0.2 * np.linalg.norm(wanted)
    else:
        assert np.allclose(gram(phi, strings), wanted)


def test_no_shift_is_weighted_degree():
    assert np.allclose(gram(WeightedDegreeShift(5, 0), STRINGS), gram(WeightedDegree(5), STRINGS))
    assert WeightedDegreeShift(5, 0).distinct
    assert not WeightedDegreeShift(5, 1).distinct


def test_weights_of_the_orders_are_used():
    betas = [0.5, 0.0, 3.0]
    strings = random_strings(DNA, [10, 12])
    wanted = kernel_matrix(naive.shifted_kernel, strings, betas, 2)
    assert np.allclose(gram(WeightedDegreeShift(3, 2, weights=betas), strings), wanted)
    phi = WeightedDegreeShift(3, 2, weights=betas, length=12)
    assert phi.bound(Strings.from_list(strings)).tolist() == [3 * (10 + 8), 3 * (12 + 10)]


def test_kmers_of_more_than_32_bits_have_slots_of_their_own():
    strings = random_strings(DNA, [20, 20])
    phi = WeightedDegreeShift(17, 1)
    assert phi.resolve(Shape.of(Strings.from_list(strings))).dim > 2**36
    wanted = kernel_matrix(naive.shifted_kernel, strings, naive.falling_weights(17), 1)
    assert np.allclose(gram(phi, strings), wanted)


def test_long_strings_are_the_kernel():
    """Longer than what is taken at a time."""
    strings = random_strings(DNA, [1100, 1030])
    wanted = kernel_matrix(naive.shifted_kernel, strings, naive.falling_weights(3), 2)
    assert np.allclose(gram(WeightedDegreeShift(3, 2), strings), wanted)


def test_kmers_with_a_foreign_letter_are_left_out():
    strings = ["ACGNNACGTTACN", "N", "NACGT", "ACGTACGT"]
    marked = [z.replace("N", c, 1).replace("N", "x") for z, c in zip(strings, "wxyz", strict=True)]
    kernel = gram(WeightedDegreeShift(3, 2, weights=[0, 0, 1]), strings)
    for i, a in enumerate(marked):
        for j, b in enumerate(marked):
            pairs = [(p, q) for p, u in naive.kmers(a, 3) for q, v in naive.kmers(b, 3) if u == v and u.isupper()]
            wanted = sum(1.0 if p == q else 1 / (2 * (abs(p - q) + 1)) for p, q in pairs if abs(p - q) <= 2)
            assert kernel[i, j] == pytest.approx(wanted)


def test_span_reads_what_the_slice_reads():
    for span in [(0, 5), (-4, None), (2, -2)]:
        cut = [z[slice(*span)] for z in STRINGS]
        assert np.allclose(gram(WeightedDegreeShift(3, 2, span=span), STRINGS), gram(WeightedDegreeShift(3, 2), cut))


@pytest.mark.parametrize(
    "phi", [WeightedDegreeShift(4, 2), WeightedDegreeShift(11, 3, span=(1, None)).hashed(6), WeightedDegreeShift(2, 0)]
)
def test_shifted_maps_keep_the_contract(phi):
    check_feature_map(phi, Strings.from_list(STRINGS))
    check_feature_map(0.5 * phi + phi.normalized(), Strings.from_list(STRINGS))
    check_feature_map(phi, Strings(np.frombuffer("".join(random_strings(DNA, [9] * 4)).encode(), np.uint8), width=9))


def test_what_does_not_fit_is_refused():
    phi = WeightedDegreeShift(3, 2, length=5)
    assert phi.dim == (5 + 2) * (4 + 16 + 64)
    assert phi.hashed(7).dim == (5 + 2) * 3 * 2**7
    bad = phi.check(Strings.from_list(["ACGT", "ACGTACGT"]))
    assert (bad.row, bad.message) == (1, "has 8 letters, and the model was made for 5")
    bad = phi.check(Strings.from_list(["ACGT", "ACNGT"]))
    assert (bad.row, bad.column) == (1, 3)
    matrix = materialize(phi, Strings.from_list(["ACGTACGTACGT"]))  # unchecked, and yet inside the tables
    assert matrix.indices.max() < phi.dim
    assert matrix.indptr[-1] <= phi.bound(Strings.from_list(["ACGTACGTACGT"]))[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightedDegreeShift(0, 1), "degree has to be"),
        (lambda: WeightedDegreeShift(3, -1), "shift has to be a whole number from 0"),
        (lambda: WeightedDegreeShift(3, 1.5), "shift has to be"),
        (lambda: WeightedDegreeShift(3, 1, weights=[1]), "weights has to be 3 numbers"),
        (lambda: WeightedDegreeShift(3, 1, length=-1), "length has to be"),
        (lambda: WeightedDegreeShift(3, 1).dim, "does not know the length"),
        (lambda: WeightedDegreeShift(32, 1, length=9).dim, r"use \.hashed\(bits\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
