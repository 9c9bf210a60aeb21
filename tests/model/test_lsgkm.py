"""Models of LS-GKM, written by the definition, score as their kernels say."""

from __future__ import annotations

import gzip
import itertools
import math

import naive_features as naive
import numpy as np
import pytest

import dotadd
from dotadd.cli import run
from dotadd.errors import DotaddError, ModelError
from dotadd.features import LmerCounts
from dotadd.features.gkm_weights import filter_weights, kernel_weights
from dotadd.kernel_svm.expression import parse
from dotadd.kernel_svm.gkm_kernel import GkmRBF
from dotadd.model.kernel import KernelModel

RNG = np.random.default_rng(3)


def sequences(lengths):
    return ["".join(RNG.choice(list("ACGT"), n)) for n in lengths]


VECTORS = sequences([20, 24, 17, 31, 9])
COEFFICIENTS = [0.5, 1.0, -0.25, -1.0, -0.25]
TESTED = sequences([30, 22, 40, 8, 21, 3])
FILTERS = {
    "gkm_cnt": "count", "gkm_estfull": "full", "gkm_esttrunc": "truncated", "gkmrbf": "truncated", "wgkm": "truncated",
    "wgkmrbf": "truncated", "gkm_cnt_rbf": "count",
}  # fmt: skip
HEADER = {"svm_type": "c_svc", "nr_class": 2, "total_sv": 5, "rho": 0.375, "label": "1 -1", "nr_sv": "2 3"}


def written(folder, name="x.model.txt", vectors=VECTORS, **changes):
    """A model file, with these lines of the header changed or left out."""
    lines = {"svm_type": "", "kernel_type": "gkm_esttrunc", "L": 5, "k": 3, "d": 2} | HEADER | changes
    text = "".join(f"{key} {value}\n" for key, value in lines.items() if value is not None) + "SV\n"
    text += "".join(f"{a:.16g} {z}\n" for a, z in zip(COEFFICIENTS, vectors, strict=True))
    (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder / name


def place(at, count, middle):
    most, half = middle
    return min(most, math.floor(most * math.exp(-math.log(2) * abs(count // 2 - at) / half) + 1))


def kernel(z, other, length, h, middle, both):
    total = 0.0
    for (i, u), (j, v) in itertools.product(naive.kmers(z, length), naive.kmers(other, length)):
        weight = 1.0
        if middle is not None:
            weight = place(i, len(z) - length + 1, middle) * place(j, len(other) - length + 1, middle)
        for w in (v, naive.reverse_complement(v)) if both else (v,):
            m = naive.distance(u, w)
            total += weight * (h[m] if m < len(h) else 0.0)
    return total


def score(z, kind, length, k, d, *, gamma=None, middle=None, both=True, vectors=VECTORS):
    h = kernel_weights(filter_weights(length, k, FILTERS[kind]), length)[: d + 1]
    lengths = [math.sqrt(max(0.0, kernel(v, v, length, h, middle, both))) for v in (z, *vectors)]
    values = [
        kernel(v, z, length, h, middle, both) / (lengths[0] * n) if lengths[0] * n > 0 else 0.0
        for v, n in zip(vectors, lengths[1:], strict=True)
    ]
    if gamma is not None:
        values = [math.exp(gamma * (value - 1)) for value in values]
    return sum(a * value for a, value in zip(COEFFICIENTS, values, strict=True)) - HEADER["rho"]


KERNELS = [
    ({"kernel_type": "gkm_esttrunc", "L": 5, "k": 3, "d": 2}, {}),
    ({"kernel_type": "gkm_esttrunc", "L": 5, "k": 3, "d": 1}, {}),
    ({"kernel_type": "gkm_esttrunc", "L": 4, "k": 2, "d": 3}, {}),
    ({"kernel_type": "gkm_esttrunc", "L": 5, "k": 3, "d": 2, "norc": 1}, {"both": False}),
    ({"kernel_type": "gkm_esttrunc", "L": 4, "k": 3, "d": 2, "norc": 0}, {}),
    ({"kernel_type": "gkm_estfull", "L": 5, "k": 3, "d": 4}, {}),
    ({"kernel_type": "gkm_cnt", "L": 6, "k": 3, "d": 3}, {}),
    ({"kernel_type": "wgkm", "L": 5, "k": 4, "d": 3, "M": 9, "H": 4.5}, {"middle": (9, 4.5)}),
    ({"kernel_type": "gkmrbf", "L": 5, "k": 3, "d": 2, "gamma": 2}, {"gamma": 2.0}),
    ({"kernel_type": "gkm_cnt_rbf", "L": 4, "k": 2, "d": 2, "gamma": 0.5}, {"gamma": 0.5}),
    (
        {"kernel_type": "wgkmrbf", "L": 5, "k": 3, "d": 3, "gamma": 2, "M": 50, "H": 50},
        {"gamma": 2.0, "middle": (50, 50.0)},
    ),
]


@pytest.mark.parametrize(("header", "more"), KERNELS, ids=[f"{one['kernel_type']}-{one['d']}" for one, _ in KERNELS])
@pytest.mark.parametrize("name", ["x.model.txt", "x.model.txt.gz"])
def test_scores_are_those_of_the_kernel(header, more, name, tmp_path):
    model = dotadd.load(written(tmp_path, name, **header))
    asked = [header[key] for key in ("kernel_type", "L", "k", "d")]
    wanted = [score(z, *asked, **more) for z in TESTED]
    np.testing.assert_allclose(model.decision_function(TESTED), wanted, rtol=1e-5, atol=1e-6)
    assert model.predict(TESTED).tolist() == [1 if one > 0 else -1 for one in wanted]
    model.save(tmp_path / "again.dotadd")
    again = dotadd.load(tmp_path / "again.dotadd")
    np.testing.assert_allclose(again.decision_function(TESTED), wanted, rtol=1e-5, atol=1e-6)


def test_positive_means_the_label_that_comes_first(tmp_path):
    model = dotadd.load(written(tmp_path, label="-1 1"))
    scores = model.decision_function(TESTED)
    assert model.predict(TESTED).tolist() == [-1 if one > 0 else 1 for one in scores]


def test_letters_other_than_acgt_of_support_vectors_are_read_as_a(tmp_path):
    odd = [VECTORS[0][:4] + "N" + VECTORS[0][5:], *VECTORS[1:]]
    plain = [VECTORS[0][:4] + "A" + VECTORS[0][5:], *VECTORS[1:]]
    found = [dotadd.load(written(tmp_path, vectors=some)).decision_function(TESTED) for some in (odd, plain)]
    np.testing.assert_array_equal(*found)


def test_a_kernel_machine_learns_with_its_kernel():
    X = ["ACGTGCA" * 3, "TTGACAT" * 3, "ACGTGAA" * 3, "TTGACCT" * 3]
    svm = dotadd.KernelSVM("GkmRBF(LmerCounts(5, 3, 4), gamma=2.0)").fit(X, [1, 0, 1, 0])
    assert svm.predict(X).tolist() == [1, 0, 1, 0]
    assert isinstance(svm.model_, KernelModel)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel_type": "rbf"}, r"x.model.txt:\d+: kernel_type 'rbf' is none of LS-GKM's"),
        ({"kernel_type": None}, "kernel_type '' is none"),
        ({"svm_type": "epsilon_svr"}, "only machines for two classes"),
        ({"L": "five"}, r"x.model.txt:\d+: L five is not 1 numbers"),
        ({"L": None}, "the header has no line L"),
        ({"L": 13}, "l has to be a whole number from 1 to 12"),
        ({"rho": "nan"}, "rho nan is not 1 numbers"),
        ({"total_sv": 6}, "5 support vectors, and the header tells of 6"),
        ({"colour": "red"}, r"x.model.txt:\d+: 'colour' is nothing that a model of LS-GKM has"),
        ({"kernel_type": "gkmrbf", "gamma": 1, "nr_sv": "2 2"}, "nr_sv 2 2 are not all of 5"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(changes, message, tmp_path):
    with pytest.raises(ModelError, match=message) as caught:
        dotadd.load(written(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_files_that_are_cut_off_are_refused(tmp_path):
    whole = written(tmp_path, "x.model.txt.gz")
    whole.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(ModelError, match="cut off"):
        dotadd.load(whole)
    plain = written(tmp_path)
    plain.write_text(plain.read_text().partition("SV\n")[0])
    with pytest.raises(ModelError, match="cut off"):
        dotadd.load(plain)
    plain.write_text("svm_type c_svc\nSV\n0.5 ACGT more\n")
    with pytest.raises(ModelError, match="kernel_type"):
        dotadd.load(plain)


def test_coefficients_that_are_no_numbers_are_refused(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text().replace("-0.25 ", "nan "))
    with pytest.raises(ModelError, match="the model was never trained"):
        dotadd.load(path)


@pytest.mark.parametrize(
    ("header", "strands"),
    [({}, "both"), ({"L": 4, "d": 3}, "both"), ({"norc": 1}, "one"), ({"kernel_type": "gkmrbf", "gamma": 1}, "both")],
)
def test_kmers_writes_the_score_of_each_lmer_once(header, strands, tmp_path):
    path, output = written(tmp_path, **header), tmp_path / "weights.tsv"
    assert run(["kmers", str(path), "-o", str(output)]) == 0
    length = header.get("L", 5)
    every = ["".join(word) for word in itertools.product("ACGT", repeat=length)]
    wanted = every if strands == "one" else [u for u in every if u <= naive.reverse_complement(u)]
    lines = [line.split("\t") for line in output.read_text().splitlines()]
    assert [word for word, _ in lines] == wanted
    scores = dotadd.load(path).decision_function(wanted)
    np.testing.assert_allclose([float(score) for _, score in lines], scores, rtol=1e-5, atol=1e-6)


def test_kmers_of_a_model_that_was_trained_here(tmp_path):
    X = ["ACGTGCA" * 3, "TTGACAT" * 3, "ACGTGAA" * 3, "TTGACCT" * 3]
    dotadd.LinearSVM("2.0 * Gkm(4, 3).normalized()").fit(X, [1, 0, 1, 0]).model_.save(tmp_path / "m.dotadd")
    assert run(["kmers", str(tmp_path / "m.dotadd"), "-o", str(tmp_path / "w.tsv.gz")]) == 0
    assert len(gzip.decompress((tmp_path / "w.tsv.gz").read_bytes()).splitlines()) == (4**4 + 4**2) // 2


def test_kmers_refuses_other_models(tmp_path, capsys):
    dotadd.LinearSVM("Spectrum(2)").fit(["ACGT", "TTTT"], [1, 0]).model_.save(tmp_path / "m.dotadd")
    assert run(["kmers", str(tmp_path / "m.dotadd"), "-o", str(tmp_path / "w.tsv")]) == 2
    assert "the model does not count gapped k-mers" in capsys.readouterr().err
    assert not (tmp_path / "w.tsv").exists()


def test_a_kernel_that_is_cut_off_is_in_doubt():
    assert GkmRBF(LmerCounts(11, 7, 3)).doubtful
    assert not GkmRBF(LmerCounts(11, 7, 4)).doubtful
    assert not GkmRBF(LmerCounts(11, 7, 4, filter="count")).doubtful
    assert GkmRBF(LmerCounts(11, 7, 10, filter="full")).doubtful


def test_the_expression_makes_the_kernel_again():
    kernel = GkmRBF(LmerCounts(5, 3, 2, middle=(9, 2.0)), gamma=2)
    assert parse(repr(kernel)) == kernel
    for bad in ("GkmRBF(Spectrum(3))", "GkmRBF(LmerCounts(5, 3, 2), gamma=0)"):
        with pytest.raises(DotaddError, match="GkmRBF"):
            parse(bad)


@pytest.mark.parametrize("kind", ["gkm_cnt", "gkm_estfull", "gkm_esttrunc", "wgkm"])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("length", [5, 4])
def test_letters_are_split_as_gkmexplain_does(tmp_path, kind, both, length):
    """Each pair of l-mers, of a sequence and a support vector, over the letters that they have in common."""
    more = {"M": 7, "H": 6.0} if kind == "wgkm" else {}
    changes = {"kernel_type": kind, "L": length, "d": 2, "norc": None if both else 1} | more
    model = dotadd.load(written(tmp_path, **changes))
    h = kernel_weights(filter_weights(length, 3, FILTERS[kind]), length)[:3]
    middle = (7, 6.0) if kind == "wgkm" else None
    found = model.explain(TESTED)
    assert found.method == "matching"
    sizes = [math.sqrt(kernel(z, z, length, h, middle, both)) for z in VECTORS]
    for text, row, score in zip(TESTED, found, model.decision_function(TESTED), strict=True):
        wanted = np.zeros(len(text))
        for a, z, size in zip(COEFFICIENTS, VECTORS, sizes, strict=True):
            for (i, v), (j, u) in itertools.product(naive.kmers(text, length), naive.kmers(z, length)):
                weight = a / size
                if middle is not None:
                    weight *= place(i, len(text) - length + 1, middle) * place(j, len(z) - length + 1, middle)
                for w in (u, naive.reverse_complement(u)) if both else (u,):
                    agree = [p for p in range(length) if w[p] == v[p]]
                    if length - len(agree) <= 2:
                        for p in agree:
                            wanted[i + p] += weight * h[length - len(agree)] / len(agree)
        own = kernel(text, text, length, h, middle, both) if len(text) >= length else 0.0
        wanted /= math.sqrt(own) if own > 0 else 1.0
        np.testing.assert_allclose(row.letters, wanted, atol=1e-6)
        assert row.letters.sum() + row.intercept == pytest.approx(score, abs=1e-6)
