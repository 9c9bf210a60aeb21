"""Gkm against the definition of gapped k-mers, and its tables against its rows."""

from __future__ import annotations

import itertools
import math

import naive_features as naive
import numpy as np
import pytest
from test_features_strings import DNA, gram, random_strings

import dotadd
from dotadd import LinearSVM
from dotadd.core.block import Block
from dotadd.data.batches import Strings
from dotadd.errors import FeatureError, StreamingWarning
from dotadd.features import Gkm, LmerCounts, Shape, parse
from dotadd.features.checks import check_feature_map, materialize
from dotadd.features.gkm_weights import filter_weights, kernel_weights
from dotadd.problem.examples import InMemory

STRINGS = ["", "ACG", *random_strings(DNA, [7, 12, 30, 61, 40, 41]), "ACGNNACGTTACNAACCGGTTAC", "acgtTTgcaNN", "A" * 25]


def words(length):
    return ["".join(word) for word in itertools.product(DNA, repeat=length)]


def counting(length, k):
    """The matrix that counts the gapped k-mers of l-mers."""
    rows = {
        (where, letters): n
        for n, (where, letters) in enumerate(
            itertools.product(itertools.combinations(range(length), k), itertools.product(DNA, repeat=k))
        )
    }
    matrix = np.zeros((len(rows), len(DNA) ** length))
    for column, word in enumerate(words(length)):
        for where in itertools.combinations(range(length), k):
            matrix[rows[where, tuple(word[i] for i in where)], column] = 1.0
    return matrix


@pytest.mark.parametrize(("length", "k"), [(1, 1), (3, 2), (4, 2), (5, 3), (5, 1), (4, 4)])
def test_the_full_filter_is_the_best_estimate_of_lmers_from_gapped_kmers(length, k):
    counts = counting(length, k)
    estimate = np.linalg.pinv(counts, rcond=1e-9) @ counts
    weights = [*filter_weights(length, k, "full"), *([0.0] * length)]
    wanted = [weights[naive.distance("A" * length, word)] for word in words(length)]
    np.testing.assert_allclose(estimate[0] / estimate[0, 0], wanted, atol=1e-9)


def test_the_truncated_filter_of_ls_gkm():
    np.testing.assert_allclose(filter_weights(11, 7, "truncated"), [1, 0.2182475, 0.01454983], rtol=1e-6)
    for length, k in ((6, 4), (10, 6), (12, 1)):
        full, cut = (filter_weights(length, k, kind) for kind in ("full", "truncated"))
        assert full[: len(cut)] == cut
        assert min(cut) > 0
        assert len(full) == len(cut) or full[len(cut)] <= 0


def test_the_kernel_of_counts_is_that_of_gapped_kmers():
    for length, k in ((5, 2), (11, 7)):
        shared = [math.comb(length - m, k) for m in range(length + 1)]
        np.testing.assert_allclose(kernel_weights(filter_weights(length, k, "count"), length), shared, atol=1e-9)


def lmers(z, length):
    return [(i, u) for i, u in naive.kmers(z.upper(), length) if set(u) <= set(DNA)]


def place(at, count, middle):
    if middle is None:
        return 1.0
    most, half = middle
    return min(most, math.floor(most * math.exp(-math.log(2) * abs(count // 2 - at) / half) + 1))


def kernel(z, other, phi):
    """h(mismatches) of all l-mers of one string and all of the other one, on both strands, as LS-GKM counts them."""
    weights = [*phi.weights, *([0.0] * phi.l)]
    h = np.array(
        [
            sum(weights[naive.distance(u, "A" * phi.l)] * weights[naive.distance(u, v)] for u in words(phi.l))
            for v in ("A" * (phi.l - m) + "C" * m for m in range(phi.l + 1))
        ]
    )
    total = 0.0
    for (i, u), (j, v) in itertools.product(lmers(z, phi.l), lmers(other, phi.l)):
        weight = place(i, len(z) - phi.l + 1, phi.middle) * place(j, len(other) - phi.l + 1, phi.middle)
        total += weight * h[naive.distance(u, v)]
        if phi.strands == "both":
            total += weight * h[naive.distance(u, naive.reverse_complement(v))]
    return total


MAPS = [
    Gkm(3, 2),
    Gkm(4, 2),
    Gkm(5, 3),
    Gkm(3, 2, strands="one"),
    Gkm(4, 3, filter="full"),
    Gkm(3, 2, filter="count"),
    Gkm(4, 2, filter="count", strands="one"),
    Gkm(3, 2, middle=(5, 3.0)),
    Gkm(4, 3, middle=(50, 7.5)),
]
DENSE = [Gkm(7, 3, filter="full"), Gkm(7, 5, filter="count", strands="one", middle=(3, 9.0))]


@pytest.mark.parametrize("phi", MAPS, ids=repr)
def test_the_kernel_is_the_sum_over_pairs_of_lmers(phi):
    strings = STRINGS[:5] + STRINGS[8:10]
    wanted = [[kernel(a, b, phi) for b in strings] for a in strings]
    np.testing.assert_allclose(gram(phi, strings), wanted, rtol=1e-5, atol=1e-5)


COUNTS = [LmerCounts(4, 3, 2), LmerCounts(5, 3, 1, middle=(9, 2.0)), LmerCounts(4, 2, 4, filter="full", strands="one")]


@pytest.mark.parametrize("phi", [*MAPS, *DENSE, *COUNTS, Gkm(6, 4), Gkm(5, 4, middle=(9, 2.0)).normalized()], ids=repr)
def test_the_map_keeps_the_contract(phi):
    check_feature_map(phi, Strings.from_list(STRINGS))
    check_feature_map(Gkm(3, 2) + 0.5 * phi.normalized(), Strings.from_list(STRINGS[2:5]))


def filled(phi, batch):
    block = Block.scratch(np.broadcast_to(phi.bound(batch), len(batch)).astype(np.int64), phi.dim, dtype=np.float64)
    phi.fill(batch, np.arange(len(batch)), block)
    return block


@pytest.mark.parametrize("phi", [Gkm(5, 3), Gkm(6, 4), Gkm(6, 4, strands="one"), Gkm(5, 4, middle=(9, 2.0))], ids=repr)
def test_tables_do_what_rows_do(phi):
    """So many rows that tables are made for them."""
    batch = Strings.from_list([*STRINGS, *random_strings(DNA, [200] * 60)])
    assert phi._nonzeros(batch, np.arange(len(batch))) > 4 * phi.dim
    rng = np.random.default_rng(1)
    w, coefficients, block = rng.normal(size=phi.dim), rng.normal(size=len(batch)), filled(phi, batch)
    added = np.zeros(phi.dim)
    block.add(coefficients, added)
    for threads in (1, 2, 3):
        examples = InMemory(phi, batch, dtype=np.float64, threads=threads)
        np.testing.assert_allclose(examples.dot([w])[0], block.dot(w), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(examples.squared_norms(), block.squared_norms(), rtol=1e-9)
        sums = np.zeros(phi.dim)
        examples.add([coefficients], [sums])
        np.testing.assert_allclose(sums, added, rtol=1e-9, atol=1e-9)
        products = examples.products([coefficients], [[]])[0]
        np.testing.assert_allclose(products, block.dot(added), rtol=1e-9, atol=1e-7)


def test_bits_are_the_same_for_any_number_of_threads():
    batch = Strings.from_list(random_strings(DNA, [150] * 40))
    phi = Gkm(7, 4).normalized()
    w, coefficients = np.random.default_rng(2).normal(size=phi.dim).astype(np.float32), np.linspace(-1, 1, len(batch))
    seen = []
    for threads in (1, 2, 5):
        examples, sums = InMemory(phi, batch, threads=threads), np.zeros(phi.dim, np.float32)
        examples.add([coefficients], [sums])
        found = examples.dot([w])[0], sums, examples.squared_norms(), examples.products([coefficients], [[]])[0]
        seen.append([one.tobytes() for one in found])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("phi", [Gkm(5, 3), Gkm(4, 3), Gkm(5, 3, filter="full"), Gkm(3, 2, middle=(9, 2.0))], ids=repr)
def test_both_strands_have_the_same_features(phi):
    strings = [z for z in STRINGS if (len(z) - phi.l) % 2 == 0]  # else the middle is not in the middle
    one, other = (materialize(phi, Strings.from_list(some)) for some in (strings, [*map(turned, strings)]))
    assert abs(one - other).max() < 1e-9
    assert one.nnz > 0


def turned(z):
    return naive.reverse_complement(z.upper().replace("N", "-")).replace("-", "N")


def test_lengths_of_long_strings_are_those_of_their_features(monkeypatch):
    batch = Strings.from_list(random_strings(DNA, [300, 130, 64, 63, 58]))
    for phi in (Gkm(3, 2), Gkm(8, 5), Gkm(6, 6, strands="one"), Gkm(12, 12), Gkm(9, 7, middle=(50, 50.0))):
        rows = np.arange(len(batch))
        near = phi.squared_norms(batch, rows)
        with monkeypatch.context() as patch:
            patch.setattr("dotadd.features.tabled.FAR", 100)
            np.testing.assert_allclose(phi.squared_norms(batch, rows), near, rtol=1e-9)
    for phi in (LmerCounts(5, 3, 2), LmerCounts(6, 3, 3, middle=(9, 20.0)), LmerCounts(4, 2, 4, strands="one")):
        near = phi.lengths(batch, rows)
        with monkeypatch.context() as patch:
            patch.setattr("dotadd.features.tabled.FAR", 100)
            np.testing.assert_allclose(phi.lengths(batch, rows), near, rtol=1e-6)


@pytest.mark.parametrize("tables", [False, True])
def test_a_linear_machine_is_the_machine_of_the_kernel(tables, monkeypatch):
    """By scikit-learn's SVC on the kernel's definition: the same objective, the same outputs."""
    from sklearn.svm import SVC

    if tables:  # for so few rows, too
        monkeypatch.setattr("dotadd.features.tabled.FEW", 0.0)
    rng = np.random.default_rng(4)
    strings, y = random_strings(DNA, rng.integers(12, 30, 40).tolist()), np.arange(40) % 2
    strings = [z[:5] + "ACGTT" + z[10:] if label else z for z, label in zip(strings, y, strict=True)]
    phi = Gkm(4, 3)
    values = np.array([[kernel(a, b, phi) for b in strings] for a in strings])
    lengths = np.sqrt(np.diagonal(values))
    values /= np.multiply.outer(lengths, lengths)
    svc = SVC(kernel="precomputed", tol=1e-6).fit(values, y)
    svm = LinearSVM(phi.normalized(), loss="hinge", intercept="free", solver="ocas", tol=1e-5, dtype="float64")
    svm.fit(strings, y)
    np.testing.assert_allclose(svm.decision_function(strings), svc.decision_function(values), atol=0.01)
    alpha, some = svc.dual_coef_[0], values[np.ix_(svc.support_, svc.support_)]
    assert svm.result_.primal == pytest.approx(np.abs(alpha).sum() - 0.5 * alpha @ some @ alpha, rel=1e-4)


def test_wide_rows_are_left_to_a_batch_solver_where_there_is_a_choice():
    X, y = random_strings(DNA, [60] * 6), [0, 1] * 3
    assert LinearSVM("Gkm(7, 3)", loss="hinge", tol=0.1).fit(X, y).result_.solver == "ocas"
    assert LinearSVM("Gkm(7, 3)", loss="squared_hinge", tol=0.1).fit(X, y).result_.solver == "newton"
    assert LinearSVM("Gkm(4, 4)", loss="hinge", tol=0.1).fit(X, y).result_.solver == "dcd"


def test_slots_are_called_by_their_lmers():
    z = "ACGTTGCA"
    for phi in (Gkm(5, 5), Gkm(4, 4), Gkm(3, 3, strands="one")):
        found = materialize(phi, Strings.from_list([z])).indices
        names = {name.decode() for name in phi.invert(found).text}
        wanted = {u for _, u in naive.kmers(z, phi.l)}
        if phi.strands == "both":
            assert {naive.folded(u) for u in names} == {naive.folded(u) for u in wanted}
        else:
            assert names == wanted


def test_letters_that_are_no_nucleotides_are_refused():
    bad = Gkm(3, 2).check(Strings.from_list(["ACGNRY", "ACGE"]))
    assert (bad.row, bad.column) == (1, 4)
    assert "'E' is no nucleotide" in bad.message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gkm(13, 7), "l has to be a whole number from 1 to 12"),
        (lambda: Gkm(5, 6), "k has to be a whole number from 1 to 5"),
        (lambda: Gkm(5, 3, filter="wide"), "filter has to be one of 'truncated', 'full', 'count'"),
        (lambda: Gkm(5, 3, strands=2), 'strands has to be "one" or "both"'),
        (lambda: Gkm(5, 3, middle=(0, 3.0)), r"middle has to be \(M, H\)"),
        (lambda: Gkm(5, 3, middle=5), r"middle has to be \(M, H\)"),
        (lambda: Gkm(5, 3, middle=(5, 0)), r"middle has to be \(M, H\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_the_expression_makes_the_map_again():
    phi = Gkm(middle=(50, 50)).normalized()
    assert repr(phi) == "Gkm(11, 7, middle=(50, 50.0)).normalized()"
    assert parse(repr(phi)) == phi
    assert phi.resolve(Shape("strings")).dim == 2**21


def test_auto_takes_a_batch_solver_from_disk_too(tmp_path):
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(60)]
    y = np.array([1 if "ACG" in string else -1 for string in strings])
    path = tmp_path / "strings.csv"
    path.write_text("label,z\n" + "".join(f"{label},{z}\n" for label, z in zip(y, strings, strict=True)))
    with pytest.warns(StreamingWarning):
        disk = LinearSVM("Gkm(6, 4)", memory=1000).fit(dotadd.open(path, column="z"))
    assert disk.result_.solver == "ocas"
    memory = LinearSVM("Gkm(6, 4)", solver="ocas").fit(strings, y)
    np.testing.assert_allclose(disk.result_.primal, memory.result_.primal, rtol=2e-3)
