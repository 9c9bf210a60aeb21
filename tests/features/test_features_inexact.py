"""GappySpectrum, MismatchSpectrum and folded strands against their twins and against their kernels' definitions."""

from __future__ import annotations

import itertools

import naive_features as naive
import numpy as np
import pytest
from test_features_strings import DNA, PROTEIN, STRINGS, assert_rows, gram, random_strings

from dotadd.data.batches import Strings
from dotadd.errors import FeatureError
from dotadd.features import GappySpectrum, MismatchSpectrum, Shape, Spectrum, WeightedSpectrum
from dotadd.features.checks import check_feature_map, materialize

FOREIGN = ["ACGNNACGTTACN", "N", "NACGT", "ACNGTACGGTA", "ACGTTTGCA"]


@pytest.mark.parametrize(("k", "gaps", "decay"), [(1, 2, 1.0), (2, 3, 0.5), (3, 0, 1.0), (3, 2, 1.0), (4, 2, 0.8)])
def test_gappy_features_are_the_subsequences_of_bounded_span(k, gaps, decay):
    strings = [*STRINGS, *FOREIGN]
    wanted = [naive.gappy(z, k, gaps, decay, DNA) for z in strings]
    assert_rows(GappySpectrum(k, gaps, decay=decay), strings, [naive.numbered(phi, DNA) for phi in wanted])
    assert np.allclose(gram(GappySpectrum(k, gaps, decay=decay).hashed(28), strings), naive.gram(wanted))


def test_gappy_kernel_counts_pairs_of_equal_occurrences():
    k, gaps, decay = 3, 2, 0.7

    def occurrences(z):
        for at in itertools.combinations(range(len(z)), k):
            if at[-1] - at[0] < k + gaps:
                yield "".join(z[i] for i in at), decay ** (at[-1] - at[0] + 1 - k)

    def kernel(z, other):
        return sum(a * b for u, a in occurrences(z) for v, b in occurrences(other) if u == v)

    strings = STRINGS[:6]
    wanted = [[kernel(a, b) for b in strings] for a in strings]
    assert np.allclose(gram(GappySpectrum(k, gaps, decay=decay), strings), wanted)


@pytest.mark.parametrize(("k", "mismatches"), [(1, 1), (2, 0), (3, 1), (4, 2), (3, 3)])
def test_mismatch_features_are_the_neighbourhoods_of_the_kmers(k, mismatches):
    strings = [*STRINGS, *FOREIGN]
    wanted = [naive.mismatch(z, k, mismatches, DNA) for z in strings]
    assert_rows(MismatchSpectrum(k, mismatches), strings, [naive.numbered(phi, DNA) for phi in wanted])
    assert np.allclose(gram(MismatchSpectrum(k, mismatches).hashed(28), strings), naive.gram(wanted))


def test_other_alphabets():
    strings = ["", "A", *random_strings("ACDEF", [9, 14, 14])]
    wanted = [naive.numbered(naive.gappy(z, 2, 2, 1.0, PROTEIN), PROTEIN) for z in strings]
    assert_rows(GappySpectrum(2, 2, alphabet="protein"), strings, wanted)
    wanted = [naive.numbered(naive.mismatch(z, 2, 1, PROTEIN), PROTEIN) for z in strings]
    assert_rows(MismatchSpectrum(2, 1, alphabet="protein"), strings, wanted)
    wanted = [naive.numbered(naive.mismatch(z, 4, 2, "xyz"), "xyz") for z in ["xyzzyxy", "zzz"]]
    assert_rows(MismatchSpectrum(4, 2, alphabet="xyz"), ["xyzzyxy", "zzz"], wanted)


def test_without_gaps_and_mismatches_they_are_the_spectrum():
    for phi in (GappySpectrum(5, 0), MismatchSpectrum(5, 0)):
        assert (
            materialize(phi, Strings.from_list(STRINGS)) != materialize(Spectrum(5), Strings.from_list(STRINGS))
        ).nnz == 0


FOLDED = [
    (Spectrum(3, strands="both"), lambda z: naive.gappy(z, 3, 0, 1.0, DNA)),
    (Spectrum(4, strands="both"), lambda z: naive.gappy(z, 4, 0, 1.0, DNA)),
    (GappySpectrum(3, 2, decay=0.5, strands="both"), lambda z: naive.gappy(z, 3, 2, 0.5, DNA)),
    (MismatchSpectrum(4, 1, strands="both"), lambda z: naive.mismatch(z, 4, 1, DNA)),
    (MismatchSpectrum(3, 2, strands="both"), lambda z: naive.mismatch(z, 3, 2, DNA)),
]


@pytest.mark.parametrize(("phi", "twin"), FOLDED, ids=[repr(phi) for phi, _ in FOLDED])
def test_folded_features_are_those_of_kmers_and_reverse_complements_together(phi, twin):
    strings = [*STRINGS, *FOREIGN]
    wanted = [naive.fold(twin(z)) for z in strings]
    assert_rows(phi, strings, [naive.numbered(row, DNA) for row in wanted])
    assert np.allclose(gram(phi.hashed(28), strings), naive.gram(wanted))


def test_folded_weighted_spectrum_folds_each_order():
    strings = [*STRINGS, *FOREIGN]
    for betas in (naive.falling_weights(3), [0.0, 0.5, 2.0], [0.0, 0.0, 1.0]):
        wanted = []
        for z in strings:
            orders = [naive.fold(naive.gappy(z, d, 0, 1.0, DNA)) for d in (1, 2, 3)]
            scaled = {
                naive.table_start(d, 4) + naive.number(u, DNA): np.sqrt(beta) * count
                for d, beta, row in zip((1, 2, 3), betas, orders, strict=True)
                for u, count in row.items()
                if beta
            }
            wanted.append(scaled)
        phi = WeightedSpectrum(3, weights=betas, strands="both")
        assert_rows(phi, strings, wanted)
        assert np.allclose(gram(phi.hashed(28), strings), naive.gram(wanted))


@pytest.mark.parametrize(
    "phi",
    [
        *(phi for phi, _ in FOLDED),
        WeightedSpectrum(5, strands="both"),
        Spectrum(31, strands="both").hashed(20),
        Spectrum(32, strands="both").hashed(20),
        Spectrum(70, strands="both").hashed(20),
        WeightedSpectrum(40, strands="both").hashed(16),
        GappySpectrum(33, 1, strands="both").hashed(16),
        MismatchSpectrum(40, 1, strands="both").hashed(20),
    ],
    ids=repr,
)
def test_both_strands_have_the_same_features(phi):
    strings = [*STRINGS, *random_strings(DNA, [90, 600, 1100]), "ACGTNNACCGTA"]
    one = materialize(phi, Strings.from_list(strings))
    other = materialize(phi, Strings.from_list([naive.reverse_complement(z) for z in strings]))
    assert abs(one - other).max() < 1e-9
    assert one.nnz > 0


def test_rna_folds_as_dna():
    strings = STRINGS[3:]
    as_rna = Strings.from_list([z.replace("T", "U") for z in strings])
    rna = materialize(GappySpectrum(3, 1, alphabet="rna", strands="both"), as_rna)
    assert (rna != materialize(GappySpectrum(3, 1, strands="both"), Strings.from_list(strings))).nnz == 0


@pytest.mark.parametrize("k", [31, 32, 33, 64, 100])
def test_long_hashed_kmers_are_told_apart_by_every_letter(k):
    """Numbers have 64 bits, and yet the first letter and the last one count, whichever the length."""
    z = random_strings(DNA, [k])[0]
    changed = [z[:i] + ("A" if z[i] != "A" else "C") + z[i + 1 :] for i in range(k)]
    for phi in (Spectrum(k, strands="both"), GappySpectrum(k, 0), MismatchSpectrum(k, 0)):
        assert np.allclose(gram(phi.hashed(30), [z, *changed]), np.eye(k + 1))
    ends = [z, changed[0], changed[-1]]  # neighbours share themselves and the two other letters in their place
    wanted = [[1 + 3 * k, 4, 4], [4, 1 + 3 * k, 2], [4, 2, 1 + 3 * k]]
    assert gram(MismatchSpectrum(k, 1).hashed(32), ends).tolist() == wanted


@pytest.mark.parametrize(("letters", "alphabet", "k"), [(DNA, "dna", 31), (PROTEIN, "protein", 14), ("xyz", "xyz", 39)])
def test_numbers_of_up_to_63_bits_are_exact(letters, alphabet, k):
    z = random_strings(letters, [k])[0]
    for phi in (GappySpectrum(k, 0, alphabet=alphabet), MismatchSpectrum(k, 0, alphabet=alphabet)):
        assert_rows(phi, [z, letters[-1] * k], [naive.spectrum(z, k, letters), {len(letters) ** k - 1: 1.0}])


def test_the_longest_kmers_are_read():
    z = random_strings(DNA, [1003])[0]
    assert gram(GappySpectrum(1000, 0).hashed(20), [z, z[1:], z[:-1] + "A"])[0].tolist() == [4, 3, 3 + (z[-1] == "A")]
    assert gram(MismatchSpectrum(1000, 1).hashed(30), [z[:1000]]).tolist() == [[3001]]


def test_orders_of_long_hashed_kmers_are_told_apart():
    phi = WeightedSpectrum(40, weights="uniform", strands="both").hashed(30)
    assert materialize(phi, Strings.from_list(["A" * 40])).nnz == 40


@pytest.mark.parametrize("length", [511, 512, 513, 514, 515, 1024, 1300])
def test_strings_longer_than_what_is_taken_at_a_time(length):
    z = list(random_strings(DNA, [length])[0])
    for broken in (False, True):
        if broken:
            for at in (0, 255, 505, 510, length - 2):
                z[at] = "N"
        strings = ["".join(z)]
        wanted = [naive.numbered(naive.gappy(strings[0], 3, 1, 1.0, DNA), DNA)]
        assert_rows(GappySpectrum(3, 1), strings, wanted)
        wanted = [naive.numbered(naive.mismatch(strings[0], 3, 1, DNA), DNA)]
        assert_rows(MismatchSpectrum(3, 1), strings, wanted)
        wanted = [naive.numbered(naive.fold(naive.gappy(strings[0], 4, 0, 1.0, DNA)), DNA)]
        assert_rows(Spectrum(4, strands="both"), strings, wanted)


@pytest.mark.parametrize("span", [(0, 5), (2, 9), (-4, None), (2, -2)])
def test_span_reads_what_the_slice_reads(span):
    cut = [z[slice(*span)] for z in STRINGS]
    for make in (
        lambda span: GappySpectrum(2, 1, span=span),
        lambda span: MismatchSpectrum(2, 1, span=span),
        lambda span: Spectrum(2, span=span, strands="both"),
    ):
        assert np.allclose(gram(make(span), STRINGS), gram(make(None), cut))


def test_bounds_are_what_full_strings_have():
    strings = Strings.from_list(["", "ACG", "ACGTACGTAC"])
    assert MismatchSpectrum(4, 2).neighbours == 1 + 4 * 3 + 6 * 9
    assert MismatchSpectrum(4, 2).bound(strings).tolist() == [0, 0, 7 * 67]
    assert GappySpectrum(3, 1).bound(strings).tolist() == [0, 1, 8 + 2 * 7]
    assert WeightedSpectrum(3, strands="both").bound(strings).tolist() == [0, 3 + 2 + 1, 10 + 9 + 8]
    assert MismatchSpectrum(4, 1).bound(Strings(np.frombuffer(b"ACGTACGTAC", np.uint8), width=5)) == 2 * 13


def test_hash_spreads_kmers_as_evenly_as_chance():
    letters = np.random.default_rng(1).integers(0, 4, 2**14 * 40)
    strings = Strings(np.frombuffer(DNA.encode(), np.uint8)[letters], width=40)
    for phi in (Spectrum(40, strands="both"), MismatchSpectrum(40, 0)):
        used = len(np.unique(materialize(phi.hashed(14), strings).indices)) / 2**14
        assert used == pytest.approx(1 - np.exp(-1), abs=0.02)


def test_slots_of_explicit_maps_are_called_by_their_kmers():
    for phi in (Spectrum(3, strands="both"), GappySpectrum(3, 2), MismatchSpectrum(3, 1)):
        names = phi.invert(np.array([naive.number(u, DNA) for u in ("AAC", "GTA")]))
        assert names.text.tolist() == [b"AAC", b"GTA"]


@pytest.mark.parametrize(
    "phi",
    [
        GappySpectrum(3, 2, decay=0.5),
        GappySpectrum(2, 1, alphabet="protein", span=(-9, None)).hashed(5),
        GappySpectrum(3, 1, strands="both").hashed(6),
        MismatchSpectrum(3, 1),
        MismatchSpectrum(4, 2, strands="both", alphabet="rna").hashed(4),
        Spectrum(3, strands="both"),
        WeightedSpectrum(3, strands="both", weights="uniform"),
        WeightedSpectrum(3, strands="both").hashed(5),
    ],
    ids=repr,
)
def test_maps_keep_the_contract(phi):
    strings = [z.replace("T", "U") for z in STRINGS] if phi.alphabet.name == "rna" else STRINGS
    if phi.alphabet.name == "protein":
        strings = ["", "A", "ACD", *random_strings(PROTEIN, [17, 12])]
    check_feature_map(phi, Strings.from_list(strings))
    check_feature_map(0.5 * phi + phi.normalized(), Strings.from_list(strings))
    check_feature_map(phi, Strings(np.frombuffer("".join([z * 9 for z in "ACGC"]).encode(), np.uint8), width=9))


def test_check_names_row_column_and_letter():
    for phi in (GappySpectrum(3, 1), MismatchSpectrum(3, 1), Spectrum(3, strands="both")):
        bad = phi.check(Strings.from_list(["ACGT", "ACGNT", "N"]))
        assert (bad.row, bad.column) == (1, 4)
        assert bad.message == "letter 'N' is not in the alphabet dna (ACGT)"


def test_spaces_too_large_for_numbers_are_refused_with_advice():
    strings = Strings.from_list(["ACGT"])
    for phi in (GappySpectrum(32, 1), MismatchSpectrum(32, 1), Spectrum(32, strands="both")):
        for refused in (lambda phi=phi: phi.resolve(Shape.of(strings)), lambda phi=phi: phi.bound(strings)):
            with pytest.raises(FeatureError, match=r"use \.hashed\(bits\)"):
                refused()
        assert phi.hashed(12).resolve(Shape.of(strings)).dim == 2**12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GappySpectrum(0, 1), "k has to be"),
        (lambda: GappySpectrum(3, -1), "gaps has to be a whole number from 0"),
        (lambda: GappySpectrum(3, 1, decay=0), "decay has to be a number above 0 and at most 1"),
        (lambda: GappySpectrum(3, 1, decay=True), "decay has to be"),
        (lambda: GappySpectrum(3, 1, decay="1"), "decay has to be"),
        (lambda: GappySpectrum(20, 20), "allow fewer gaps"),
        (lambda: MismatchSpectrum(3, 4), "mismatches has to be a whole number from 0 to 3"),
        (lambda: MismatchSpectrum(20, 6), "allow fewer mismatches"),
        (lambda: Spectrum(3, strands=2), 'strands has to be "one" or "both", and not 2'),
        (lambda: Spectrum(3, strands="both", alphabet="protein"), 'strands="both" needs alphabet="dna" or "rna"'),
        (lambda: MismatchSpectrum(3, 1, strands="both", alphabet="ACGT"), "'ACGT' has no complements"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("strands", ["one", "both"])
@pytest.mark.parametrize(("k", "weights"), [(3, (1.0, 0.5)), (4, (0.5, 0.0, -2.0)), (3, (0.0, 0.0, 0.0, 1.0))])
def test_mismatches_count_what_their_weights_say(k, weights, strands):
    strings = [*STRINGS, *FOREIGN]
    exact = [[naive.mismatch(z, k, m, DNA) for m in range(-1, len(weights))] for z in strings]
    wanted = []
    for within in exact:  # k-mers with exactly m mismatches are those with at most m, but for those with at most m - 1
        row = {}
        for m, weight in enumerate(weights):
            for u, count in within[m + 1].items():
                row[u] = row.get(u, 0.0) + weight * (count - within[m].get(u, 0.0))
        row = naive.fold(row) if strands == "both" else row
        wanted.append(naive.numbered({u: value for u, value in row.items() if value}, DNA))
    phi = MismatchSpectrum(k, len(weights) - 1, weights=weights, strands=strands)
    found = materialize(phi, Strings.from_list(strings)).toarray()
    for row, features in zip(found, wanted, strict=True):
        assert {i: row[i] for i in np.flatnonzero(abs(row) > 1e-9)} == pytest.approx(features)
    check_feature_map(phi, Strings.from_list(STRINGS * 3))
    check_feature_map(phi.hashed(4), Strings.from_list(STRINGS))


@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.0), "ab", 3, (1.0, np.inf)])
def test_weights_of_mismatches_are_one_for_each_number_of_them(weights):
    with pytest.raises(FeatureError, match="weight"):
        MismatchSpectrum(3, 1, weights=weights)
