"""Spectrum, WeightedSpectrum and WeightedDegree against their twins and against their kernels' definitions."""

from __future__ import annotations

import naive_features as naive
import numpy as np
import pytest

from dotadd import LinearSVM
from dotadd.data.batches import Strings
from dotadd.errors import DataError, FeatureError
from dotadd.features import Shape, Spectrum, WeightedDegree, WeightedSpectrum
from dotadd.features.checks import check_feature_map, materialize
from dotadd.problem.examples import InMemory

DNA = "ACGT"
PROTEIN = "ACDEFGHIKLMNPQRSTVWY"


def random_strings(letters: str, lengths: list[int], seed: int = 0) -> list[str]:
    """Strings that share parts, so that kernels are not only their diagonals."""
    rng = np.random.default_rng(seed)
    common = "".join(rng.choice(list(letters), max(lengths)))
    return [
        "".join(c if rng.random() < 0.7 else rng.choice(list(letters)) for c in common[:length]) for length in lengths
    ]


def assert_rows(phi, strings: list[str], wanted: list[dict]) -> None:
    found = naive.rows_of(materialize(phi, Strings.from_list(strings)))
    for row, twin in zip(found, wanted, strict=True):
        assert row == pytest.approx(twin)


def gram(phi, strings: list[str]) -> np.ndarray:
    return naive.gram(naive.rows_of(materialize(phi, Strings.from_list(strings))))


def kernel_matrix(kernel, strings: list[str], *parameters) -> np.ndarray:
    return np.array([[kernel(a, b, *parameters) for b in strings] for a in strings])


STRINGS = ["", "A", "ACG", *random_strings(DNA, [17, 17, 12, 30])]


@pytest.mark.parametrize(("letters", "alphabet"), [(DNA, "dna"), (PROTEIN, "protein"), ("xyz", "xyz")])
def test_explicit_maps_equal_their_twins(letters, alphabet):
    strings = ["", letters[0], *random_strings(letters, [9, 14, 14])]
    betas = naive.falling_weights(3)
    assert_rows(Spectrum(3, alphabet=alphabet), strings, [naive.spectrum(z, 3, letters) for z in strings])
    assert_rows(
        WeightedSpectrum(3, alphabet=alphabet), strings, [naive.weighted_spectrum(z, betas, letters) for z in strings]
    )
    assert_rows(
        WeightedDegree(3, alphabet=alphabet), strings, [naive.weighted_degree(z, betas, letters) for z in strings]
    )


@pytest.mark.parametrize("hashed", [False, True])
def test_inner_products_are_the_kernels(hashed):
    def choose(phi):
        return phi.hashed(28) if hashed else phi

    betas = naive.falling_weights(4)
    assert np.allclose(gram(choose(Spectrum(4)), STRINGS), kernel_matrix(naive.spectrum_kernel, STRINGS, 4))
    wanted = kernel_matrix(naive.weighted_spectrum_kernel, STRINGS, betas)
    assert np.allclose(gram(choose(WeightedSpectrum(4)), STRINGS), wanted)
    wanted = kernel_matrix(naive.weighted_degree_kernel, STRINGS, betas)
    assert np.allclose(gram(choose(WeightedDegree(4)), STRINGS), wanted)


@pytest.mark.parametrize(
    ("letters", "alphabet", "degree", "bits"),
    [(DNA, "dna", 20, 22), (DNA, "dna", 9, 13), (PROTEIN, "protein", 7, 21), ("xyzabc", "xyzabc", 12, 22)],
)
def test_hashed_weighted_degree_without_collisions_is_the_kernel(letters, alphabet, degree, bits):
    strings = random_strings(letters, [30, 30, 25, 8])
    phi = WeightedDegree(degree, alphabet=alphabet).hashed(bits)
    wanted = kernel_matrix(naive.weighted_degree_kernel, strings, naive.falling_weights(degree))
    assert np.allclose(gram(phi, strings), wanted)


def test_hashed_weighted_degree_keeps_each_position_and_order_in_its_own_tables():
    """Counted orders have one table each; the hashed ones share theirs, four, then two, then one of them."""
    degree, bits, length = 9, 4, 12
    matrix = materialize(
        WeightedDegree(degree, weights=[4.0**d for d in range(degree)]).hashed(bits),
        Strings.from_list(random_strings(DNA, [length] * 40)),
    )
    order = np.rint(np.log2(matrix.data)).astype(int) + 1
    position, table = np.divmod(matrix.indices >> bits, degree)
    assert set(zip(position, order, strict=True)) == {(p, d) for d in range(1, 10) for p in range(length - d + 1)}
    counted = order <= 2  # 4**2 <= 2**4
    assert (table[counted] == order[counted] - 1).all()
    group = np.array([0, 0, 0, 3, 3, 3, 3, 7, 7, 9])  # the shortest order that shares tables with each
    table_of = np.array([group[d] for d in range(1, 10)])
    assert (table_of[table[~counted]] == group[order[~counted]]).all()


@pytest.mark.parametrize("phi", [Spectrum(12).hashed(16), WeightedSpectrum(12, weights=[0] * 11 + [1]).hashed(16)])
def test_hash_spreads_kmers_as_evenly_as_chance(phi):
    rng = np.random.default_rng(1)
    n = 2**16
    strings = Strings(np.frombuffer(DNA.encode(), np.uint8)[rng.integers(0, 4, n * 12)], width=12)
    slots = materialize(phi, strings).indices
    used = len(np.unique(slots)) / 2**16
    assert used == pytest.approx(1 - np.exp(-1), abs=0.01)  # what throwing n balls into n bins leaves


@pytest.mark.parametrize("order", [7, 8, 9, 10, 11])
def test_hash_tables_spread_each_order_as_evenly_as_chance(order):
    """The four orders of a group, and the last one, which is alone."""
    bits, n = 12, 2**12
    letters = np.random.default_rng(2).integers(0, 4, (n, order))
    strings = Strings(np.frombuffer(DNA.encode(), np.uint8)[letters.ravel()], width=order)
    phi = WeightedDegree(11, weights=[float(d == order) for d in range(1, 12)]).hashed(bits)
    slots = materialize(phi, strings).indices
    different = len(np.unique(letters, axis=0))
    assert len(np.unique(slots)) / 2**bits == pytest.approx(1 - np.exp(-different / 2**bits), abs=0.02)


def test_a_kmer_and_its_continuations_lie_on_one_cache_line():
    """7-mers and what comes of them up to 10-mers share a line of 16 slots; the four 8-mers of a 7-mer never a slot."""
    strings = [prefix + a + b + c for prefix in random_strings(DNA, [7] * 20) for a in DNA for b in "AC" for c in "GT"]
    phi = WeightedDegree(10, weights=[0] * 6 + [1, 4, 16, 64]).hashed(12)
    matrix = materialize(phi, Strings.from_list(strings)).tocsr()[:, : 10 << 12]  # what begins at the first letter
    order = np.rint(np.log2(matrix.data)).astype(int) + 7
    slots = {k: matrix.indices[order == k].reshape(20, 4, 4) for k in (7, 8, 9, 10)}
    assert all((some // 16 == slots[7][:, :1, :1] // 16).all() for some in slots.values())
    assert (slots[7] == slots[7][:, :1, :1]).all()
    assert all(len(set(eights[:, 0])) == 4 for eights in slots[8])


def test_dimensions_are_those_of_the_paper():
    splice = Shape("strings", length=141)
    spectra = WeightedSpectrum(8, span=(0, 59)) + WeightedSpectrum(8, span=(61, 141))
    assert WeightedSpectrum(8).dim == 87_380
    assert (spectra + WeightedDegree(8)).resolve(splice).dim == 12_495_340
    assert (spectra + WeightedDegree(20).hashed(12)).resolve(splice).dim == 11_725_480
    assert (spectra + WeightedDegree(20).hashed(16)).resolve(splice).dim == 184_986_280


def test_splice_windows_have_2630_nonzeros_of_degree_20():
    strings = Strings.from_list(random_strings(DNA, [141, 141]))
    phi = WeightedDegree(20).hashed(12).resolve(Shape.of(strings))
    assert phi.bound(strings).tolist() == [2630, 2630]
    assert np.diff(materialize(phi, strings).indptr).tolist() == [2630, 2630]


def test_bound_is_one_number_for_strings_of_one_width():
    strings = Strings(np.frombuffer(b"ACGTACGTAC", np.uint8), width=5)
    assert Spectrum(3).bound(strings) == 3
    assert isinstance(WeightedSpectrum(3, span=(1, None)).bound(strings), int)
    assert WeightedSpectrum(3, span=(1, None)).bound(strings) == 4 + 3 + 2


@pytest.mark.parametrize("span", [(0, 5), (2, 9), (-4, None), (None, -3), (2, -2), (-6, -1), (3, 100), (None, None)])
def test_span_reads_what_the_slice_reads(span):
    for make in (Spectrum, WeightedSpectrum, WeightedDegree):
        cut = [z[slice(*span)] for z in STRINGS]
        assert np.allclose(gram(make(3, span=span), STRINGS), gram(make(3), cut))


def test_weights_of_the_orders_are_used():
    betas = [0.5, 0.0, 3.0]
    strings = random_strings(DNA, [10, 12])
    wanted = kernel_matrix(naive.weighted_spectrum_kernel, strings, betas)
    assert np.allclose(gram(WeightedSpectrum(3, weights=betas), strings), wanted)
    for phi in (WeightedDegree(3, weights=betas), WeightedDegree(3, weights=betas).hashed(3)):
        assert materialize(phi, Strings.from_list(strings)).nnz == 10 + 8 + 12 + 10
    wanted = kernel_matrix(naive.weighted_degree_kernel, strings, [1.0] * 3)
    assert np.allclose(gram(WeightedDegree(3, weights="uniform"), strings), wanted)


def test_kmers_with_a_foreign_letter_are_left_out():
    strings = ["ACGNNACGTTACN", "N", "NACGT", "ACGTACGT"]
    betas = naive.falling_weights(3)
    assert_rows(WeightedSpectrum(3), strings, [naive.weighted_spectrum(z, betas, DNA) for z in strings])
    assert_rows(WeightedDegree(3), strings, [naive.weighted_degree(z, betas, DNA) for z in strings])
    ends = [z[5:] for z in ["ACGTANACGTTGCAT", "CCGTCNACGTTGCAT"]]
    hashed = gram(WeightedDegree(9, span=(5, None)).hashed(16), ["ACGTANACGTTGCAT", "CCGTCNACGTTGCAT"])
    wanted = sum(beta * (len(ends[0]) - d) for d, beta in enumerate(naive.falling_weights(9), 1))
    assert np.allclose(hashed, wanted)  # 9 letters after the N: 9 - d + 1 d-mers


def test_lower_case_is_the_same_letter_in_named_alphabets_alone():
    assert_rows(Spectrum(2), ["acGT"], [naive.spectrum("ACGT", 2, DNA)])
    assert_rows(Spectrum(2, alphabet="ACGT"), ["acGT"], [naive.spectrum("acGT", 2, DNA)])
    assert Spectrum(2, alphabet="ACGT").check(Strings.from_list(["acGT"])).column == 1


def test_every_byte_is_a_letter_of_bytes():
    strings = Strings.from_list([bytes(range(256)), b"\xff\xff\xff"])
    phi = Spectrum(2, alphabet="bytes")
    assert phi.check(strings) is None
    assert phi.dim == 2**16
    assert naive.rows_of(materialize(phi, strings))[1] == {0xFFFF: 2.0}


def test_check_names_row_column_and_letter():
    strings = Strings.from_list(["ACGT", "ACGNT", "N"])
    for phi in (Spectrum(3), WeightedDegree(3, length=10)):
        bad = phi.check(strings)
        assert (bad.row, bad.column) == (1, 4)
        assert bad.message == "letter 'N' is not in the alphabet dna (ACGT)"
    assert Spectrum(3, span=(0, 3)).check(strings).row == 2  # what is not read is not looked at
    assert Spectrum(3, span=(2, 5)).check(strings).column == 4
    assert "0xc3" in Spectrum(3).check(Strings.from_list(["Ä"])).message


def test_strings_longer_than_the_model_are_refused():
    strings = Strings.from_list(["ACGT", "ACGTA" * 30, "ACGTN"])
    bad = WeightedDegree(3, length=141).check(strings)
    assert (bad.row, bad.message) == (1, "has 150 letters, and the model was made for 141")
    assert WeightedDegree(3, span=(0, 4)).resolve(Shape.of(strings)).check(strings) is None


def test_unchecked_strings_that_are_too_long_stay_inside_the_tables():
    phi = WeightedDegree(3, length=4)
    matrix = materialize(phi, Strings.from_list(["ACGTACGTACGT", "AC"]))
    assert np.diff(matrix.indptr).tolist() == [4 + 3 + 2, 2 + 1]


@pytest.mark.parametrize(
    "phi",
    [
        Spectrum(3),
        Spectrum(3).hashed(5),
        WeightedSpectrum(4, span=(-9, None)),
        WeightedSpectrum(4).hashed(4),
        WeightedDegree(4),
        WeightedDegree(11).hashed(6),
        WeightedDegree(4, alphabet="protein").hashed(2),
    ],
)
def test_string_maps_keep_the_contract(phi):
    check_feature_map(phi, Strings.from_list(STRINGS))
    check_feature_map(phi, Strings(np.frombuffer("".join(random_strings(DNA, [9] * 4)).encode(), np.uint8), width=9))


def test_spaces_too_large_for_numbers_are_refused_before_any_work():
    strings = Strings.from_list(["ACGT"])
    for phi in (Spectrum(32), WeightedSpectrum(32), WeightedDegree(31, length=4)):
        with pytest.raises(FeatureError, match=r"use \.hashed\(bits\)"):
            phi.resolve(Shape.of(strings))
        with pytest.raises(FeatureError, match=r"use \.hashed\(bits\)"):
            phi.bound(strings)


def test_spaces_that_fit_no_memory_are_refused_with_advice():
    strings = Strings.from_list(["ACGT"])
    for phi in (Spectrum(21), WeightedSpectrum(21), WeightedDegree(20, length=4), Spectrum(7, alphabet="bytes")):
        with pytest.raises(FeatureError, match=r'use \.hashed\(bits\), or \.indexed\("hash_table"\)'):
            InMemory(phi.resolve(Shape.of(strings)), strings)
        assert phi.hashed(12).resolve(Shape.of(strings)).dim <= 2**20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spectrum(0), "k has to be a whole number from 1"),
        (lambda: Spectrum(2.5), "k has to be a whole number"),
        (lambda: Spectrum(True), "k has to be a whole number"),
        (lambda: Spectrum(3).hashed(33), "bits has to be a whole number from 1 to 32"),
        (lambda: WeightedDegree(0), "degree has to be"),
        (lambda: WeightedDegree(3, length=-1), "length has to be"),
        (lambda: WeightedDegree(3, weights=[1, 2]), "weights has to be 3 numbers"),
        (lambda: WeightedSpectrum(2, weights=[1, -2]), "weights has to be 2 numbers"),
        (lambda: WeightedSpectrum(2, weights="linear"), "weights has to be 2 numbers"),
        (lambda: WeightedSpectrum(2, weights=3), "weights has to be 2 numbers"),
        (lambda: Spectrum(3, alphabet="dnaa"), "'dnaa' is no alphabet"),
        (lambda: Spectrum(3, alphabet=4), "4 is no alphabet"),
        (lambda: Spectrum(3, span=5), "span has to be"),
        (lambda: Spectrum(3, span=(1.0, 5)), "span has to be"),
        (lambda: Spectrum(3, span=(5, 5)), "holds no position"),
        (lambda: WeightedDegree(3).dim, "does not know the length"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_kmers_with_letters_that_stand_for_several_amino_acids_are_left_out_of_proteins():
    strings = ["MKXLV", "mkulv", "MKBLV", "MK*LV"]
    for phi in (Spectrum(2, alphabet="protein"), WeightedDegree(1, alphabet="protein")):
        assert phi.check(Strings.from_list(strings)) is None
    spectrum = gram(Spectrum(2, alphabet="protein"), [*strings, "MK", "LV"])
    assert spectrum[:4].tolist() == [[2.0, 2.0, 2.0, 2.0, 1.0, 1.0]] * 4  # MK and LV, once each
    assert (gram(WeightedDegree(1, alphabet="protein"), strings) == 4.0).all()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("MKTLLV", 'for proteins, give alphabet="protein"'),
        ("MKXLLU", 'for proteins, give alphabet="protein"'),
        ("ACGU", 'for RNA, give alphabet="rna"'),
    ],
)
def test_foreign_letters_name_the_alphabet_that_has_them(text, hint):
    with pytest.raises(DataError, match=hint):
        LinearSVM(Spectrum(2)).fit([text, "ACGT"], [0, 1])


def test_an_unknown_nucleotide_is_not_taken_for_a_protein():
    with pytest.raises(DataError, match=r"letter 'N' is not in the alphabet dna \(ACGT\)$"):
        LinearSVM(Spectrum(2)).fit(["ACGN", "ACGT"], [0, 1])
