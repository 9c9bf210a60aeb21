"""The RBF kernel of the features of a map: values by the definition, machines, files."""

import pickle

import numpy as np
import pytest

import dotadd
from dotadd import DotaddError, Gkm, KernelSVM, KernelSVMCV, NGrams, Spectrum, WordNGrams
from dotadd.cli import run
from dotadd.data.batches import Strings
from dotadd.features.filling import Filling
from dotadd.kernel_svm.expression import named, parse
from dotadd.kernel_svm.feature_rbf import FeatureRBF
from dotadd.kernel_svm.gkm_kernel import GkmRBF
from dotadd.model import kernel as kernel_models


def strings(n=60, length=30, seed=0):
    rng = np.random.default_rng(seed)
    found = ["".join(rng.choice(list("ACGT"), rng.integers(length // 2, length))) for _ in range(n)]
    return found, np.array([("ACG" in one) != ("TTA" in one) for one in found])


def by_definition(phi, gamma, a, b):
    a, b = (phi.transform(some).toarray().astype(np.float64) for some in (a, b))
    return np.exp(-gamma * ((a[:, None] - b[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("gamma", [1e-3, 0.7, 40.0])
@pytest.mark.parametrize("phi", [Spectrum(2), Spectrum(3).normalized(), NGrams((1, 2), bits=12) + Spectrum(1)])
def test_values_are_those_of_the_definition(phi, gamma):
    a, _ = strings()
    b, _ = strings(20, seed=1)
    kernel = FeatureRBF(phi, gamma).resolve(Strings.from_list(a))
    phi = phi.fit(a)
    own, others = (kernel.gram(Strings.from_list(a), some) for some in (None, Strings.from_list(b)))
    np.testing.assert_allclose(own.block(np.arange(len(a))), by_definition(phi, gamma, a, a), atol=1e-5)
    np.testing.assert_allclose(others.block(np.arange(len(a))), by_definition(phi, gamma, a, b), atol=1e-5)
    np.testing.assert_array_equal(own.diagonal(), 1.0)


def test_a_model_expands_its_support_vectors_once_and_then_only_what_it_is_asked_about(monkeypatch):
    X, y = strings(120)
    others, _ = strings(20, seed=1)
    model = KernelSVM("rbf", of="NGrams(3, bits=10).normalized()", gamma=2.0, C=3.0, random_state=0).fit(X, y).model_
    phi, signed = NGrams(3, bits=10).normalized().fit(X), model.coefficients[0]
    expected = signed @ by_definition(phi, 2.0, [X[i] for i in model.support], others) + model.intercept[0]
    np.testing.assert_allclose(model.decision_function(others), expected, atol=1e-4)
    made, filled = [], Filling._filled
    monkeypatch.setattr(
        Filling, "_filled", lambda self, rows, spare: (made.append(len(rows)), filled(self, rows, spare))[1]
    )
    np.testing.assert_allclose(model.decision_function(others[:1]), expected[:1], atol=1e-4)
    assert max(made) == 1
    monkeypatch.setattr(kernel_models, "KEPT_BYTES", 0)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.decision_function(others), expected, atol=1e-4)
    assert again._expanded is None


def test_the_scale_of_gamma_is_that_of_lengths():
    a, _ = strings()
    batch = Strings.from_list(a)
    assert FeatureRBF(Spectrum(2).normalized()).resolve(batch).gamma == pytest.approx(1.0)
    squares = Spectrum(2).transform(a).power(2).sum(axis=1).mean()
    assert FeatureRBF(Spectrum(2)).resolve(batch).gamma == pytest.approx(1.0 / squares)


@pytest.mark.parametrize("filter", ["truncated", "full", "count"])
def test_gapped_kmers_go_through_pairs_of_lmers(filter):
    a, _ = strings(12)
    kernel = named("rbf", 0.6, of=Gkm(4, 3, filter=filter).normalized())
    assert isinstance(kernel, GkmRBF)
    found = kernel.gram(Strings.from_list(a)).block(np.arange(len(a)))
    phi = Gkm(4, 3, filter=filter).normalized().fit(a)
    np.testing.assert_allclose(found, by_definition(phi, 0.6, a, a), atol=1e-5)


def test_a_machine_is_that_of_the_matrix_and_comes_back_from_its_file(tmp_path):
    X, y = strings(120)
    svm = KernelSVM("rbf", of="Spectrum(3).normalized()", gamma=2.0, C=3.0, tol=1e-6, random_state=0).fit(X, y)
    phi = Spectrum(3).normalized().fit(X)
    given = KernelSVM("precomputed", C=3.0, tol=1e-6, random_state=0).fit(by_definition(phi, 2.0, X, X), y)
    others, _ = strings(40, seed=3)
    expected = given.decision_function(by_definition(phi, 2.0, others, X))
    np.testing.assert_allclose(svm.decision_function(others), expected, atol=1e-3)
    svm.save(tmp_path / "m.dotadd")
    again = dotadd.load(tmp_path / "m.dotadd")
    np.testing.assert_array_equal(again.decision_function(others), svm.decision_function(others))
    assert parse(repr(svm.model_.kernel)) == svm.model_.kernel


def test_what_a_map_has_learned_is_in_the_file(tmp_path):
    texts = ["buy now", "see you", "buy it now", "see you there"] * 6
    svm = KernelSVM("rbf", of=WordNGrams(1).indexed("hash_table").tfidf(), random_state=0).fit(texts, [1, 0, 1, 0] * 6)
    svm.save(tmp_path / "m.dotadd")
    again = dotadd.load(tmp_path / "m.dotadd")
    np.testing.assert_array_equal(again.decision_function(["buy", "you"]), svm.decision_function(["buy", "you"]))


def test_c_is_chosen_and_the_command_line_takes_it(tmp_path, monkeypatch, capsys):
    X, y = strings(90)
    svm = KernelSVMCV("rbf", of=Spectrum(3).normalized(), Cs=[1, 10], cv=3, random_state=0).fit(X, y)
    assert svm.score(X, y) > 0.9
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("label,text\n" + "".join(f"{int(b)},{a}\n" for a, b in zip(X, y, strict=True)))
    how = ["--column", "text", "--kernel", "rbf", "--of", "Spectrum(3).normalized()", "--gamma", "1", "-C", "10"]
    assert run(["train", "x.csv", "-o", "m.dotadd", *how]) == 0
    assert "FeatureRBF(Spectrum(3).normalized(), gamma=1.0)" in capsys.readouterr().out
    how[3] = "linear"
    assert run(["train", "x.csv", "-o", "m.dotadd", *how]) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kernel": "poly", "of": "Spectrum(3)"}, "of="),
        ({"kernel": "rbf", "of": "Spectrum(3)", "gamma": -1.0}, "gamma"),
        ({"kernel": "rbf", "of": "Spectrum(3)", "gamma": "auto"}, "gamma"),
        ({"kernel": "rbf", "of": "Spectre(3)"}, "Spectre"),
    ],
)
def test_what_cannot_be_is_one_line(given, told):
    with pytest.raises(DotaddError, match=told) as error:
        KernelSVM(**given).fit(*strings(10))
    assert "\n" not in str(error.value)
