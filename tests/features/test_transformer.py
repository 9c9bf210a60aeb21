"""A map as scikit-learn sees it: `transform` to CSR, parameters by name, names of features, clones."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC
from test_map_identity import IMAGES, MAPS, WORDS, made, variants

from dotadd import FeatureMap, LinearSVM
from dotadd.data.batches import DenseRows, Strings
from dotadd.errors import DataError, FeatureError
from dotadd.features import (
    LBP,
    BagOfWords,
    Hashed,
    Linear,
    NGrams,
    Polynomial,
    Rational,
    Shape,
    Spectrum,
    Stack,
    WeightedDegree,
    WeightedDegreeShift,
    WeightedSpectrum,
    parse,
)
from dotadd.features.checks import materialize
from dotadd.features.expression import KNOWN

TEXTS = ["ACGTACGT", "AACCGTTT", "TTTTTTTT", "GATTACAA"]
KMERS = ["".join(letters) for letters in itertools.product("ACGT", repeat=2)]


def counts(text):
    return [sum(text[i : i + 2] == kmer for i in range(len(text) - 1)) for kmer in KMERS]


class Pairs(FeatureMap):
    takes, dim = (Strings,), 256

    def __init__(self, reach):
        self.reach = reach

    def bound(self, batch):
        return batch.lengths()

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            block.append(j, np.frombuffer(batch[row], np.uint8)[:: self.reach], 1.0)


# transform


def test_transform_counts_kmers_and_merges_equal_ones():
    matrix = Spectrum(2).transform(TEXTS)
    assert matrix.format == "csr"
    assert matrix.has_canonical_format
    assert np.array_equal(matrix.toarray(), [counts(text) for text in TEXTS])
    assert matrix.nnz == np.count_nonzero([counts(text) for text in TEXTS])


@pytest.mark.parametrize("name", KNOWN)
def test_transform_of_every_map_is_the_matrix_of_its_features(name):
    batch = MAPS[name][0]
    phi = next(variants(name))
    for around in (phi, 0.5 * phi.normalized() + phi.hashed(6)):
        found = around.fit_transform(batch)
        assert np.allclose(around.transform(batch).toarray(), found.toarray())
        learned = around.resolve(Shape.of(batch)).learn(batch)
        assert np.allclose(found.toarray(), materialize(learned, batch).toarray(), rtol=1e-5, atol=1e-6)


def test_transform_takes_rows_as_the_estimators_do(tmp_path):
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    (tmp_path / "rows.svm").write_text("1 1:1 3:2\n0 2:3\n")
    for given in (rows, rows.tolist(), csr_matrix(rows), csr_array(rows), DenseRows(rows), tmp_path / "rows.svm"):
        found = Linear(n_features=3).transform(given)
        assert issparse(found)
        assert found.nnz == 3, "zeros are not stored"
        assert np.array_equal(found.toarray(), rows)


def test_blocks_and_chunks_do_not_show_in_the_matrix(monkeypatch):
    from dotadd.features import filling

    texts = ["".join(row) for row in np.random.default_rng(1).choice(list("ACGT"), (300, 30))]
    whole = Spectrum(3).normalized().transform(texts)
    monkeypatch.setattr(filling, "SCRATCH_BYTES", 2000)
    assert abs(Spectrum(3).normalized().transform(texts) - whole).max() < 1e-6


@pytest.mark.parametrize("phi", [Linear(), Polynomial(2), Linear() + Polynomial(2)])
def test_a_map_of_vectors_that_has_not_seen_data_says_what_to_do(phi):
    with pytest.raises(FeatureError, match=r"fit\(X\)"):
        phi.transform(np.eye(3))


@pytest.mark.parametrize(
    "phi",
    [WeightedDegree(2), Spectrum(2).indexed(), Spectrum(1) + Spectrum(2).indexed(), parse("Rational(mismatch(2, 1))")],
)
def test_a_map_of_strings_that_has_not_seen_data_says_what_to_do(phi):
    with pytest.raises(FeatureError, match=r"fit\(X\)"):
        phi.transform(TEXTS)
    assert phi.fit_transform(TEXTS).shape[0] == len(TEXTS)
    assert phi.transform(TEXTS).shape[0] == len(TEXTS)


def test_fit_changes_neither_the_description_nor_what_is_made_of_it():
    phi = WeightedDegree(2)
    before = repr(phi)
    assert phi.fit(TEXTS) is phi
    assert repr(phi) == before
    assert phi == WeightedDegree(2)
    with pytest.raises(FeatureError, match="length"):
        phi.hashed(4).transform(TEXTS)
    phi.set_params(degree=3)
    with pytest.raises(FeatureError, match="length"):
        phi.transform(TEXTS)


def test_what_was_never_seen_is_left_out_by_an_indexed_map():
    phi = Spectrum(2).indexed().fit(["ACAC"])
    assert phi.transform(["ACGT"]).toarray().sum() == 1.0


def test_a_bad_row_is_refused_with_its_number():
    with pytest.raises(DataError, match="row 1, column 3: letter 'x'"):
        Spectrum(2).transform(["ACGT", "ACxG"])
    with pytest.raises(DataError, match="row 0"):
        Linear(n_features=2).transform(np.eye(3))
    with pytest.raises(FeatureError, match="reads strings"):
        Spectrum(2).transform(np.eye(3))


def test_ids_without_end_are_refused_before_anything_is_made():
    with pytest.raises(FeatureError, match=r"\.indexed"):
        parse("Rational(ngram(2), bits=None)").transform(TEXTS)


def test_maps_are_steps_of_pipelines_and_can_be_searched():
    y = [0, 0, 1, 1]
    for phi in (Spectrum(2), WeightedDegree(2), Spectrum(2).indexed(), NGrams(2, bits=8).normalized()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pipeline = make_pipeline(phi, LinearSVC()).fit(TEXTS, y)
        assert pipeline.predict(TEXTS).tolist() == y
    search = GridSearchCV(make_pipeline(Spectrum(1), LinearSVC()), {"spectrum__k": [1, 2]}, cv=2)
    search.fit(TEXTS * 2, y * 2)
    assert len(search.cv_results_["params"]) == 2
    assert search.best_estimator_[0].get_params()["k"] == search.best_params_["spectrum__k"]


# parameters


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_make_the_map_again_and_each_can_be_set(name):
    values = MAPS[name][1]
    for phi in variants(name):
        own = {key: value for key, value in phi.get_params(deep=False).items() if key in values}
        assert set(own) == set(values)
        assert repr(made(name, **own)) == repr(phi)
    for parameter, some in values.items():
        for other in some[1:]:
            first = {key: several[0] for key, several in values.items()}
            changed = made(name, **first).set_params(**{parameter: other})
            assert repr(changed) == repr(made(name, **first | {parameter: other}))


@pytest.mark.parametrize("name", KNOWN)
def test_a_clone_is_equal_and_changes_alone(name):
    phi = next(variants(name))
    for around in (phi, 2.0 * phi, phi.normalized(), phi.hashed(6), phi.indexed(), phi + phi):
        twin = clone(around)
        assert twin is not around
        assert twin == around
        names = [key for key in MAPS[name][1] if key != "bits"]  # which may be those of the map around
        parameter = next(iter(names if name != "Hashed" else ["bits"]))
        key = f"{around.titles[0]}__{parameter}" if isinstance(around, Stack) else parameter
        before = repr(around)
        twin.set_params(**{key: MAPS[name][1][parameter][1]})
        assert repr(twin) != before
        assert repr(around) == before


def test_parameters_inside_of_other_maps_have_plain_names():
    phi = 0.5 * Spectrum(2).normalized() + WeightedDegree(3).hashed(4) + Spectrum(3).indexed("trie")
    known = phi.get_params()
    assert known["spectrum-1__k"] == 2
    assert known["spectrum-1__scale"] == 0.5
    assert known["weighteddegree__bits"] == 4
    assert known["spectrum-2__form"] == "trie"
    phi.set_params(
        **{"spectrum-1__scale": 2, "spectrum-2__form": "dense", "spectrum-2__k": 1, "weighteddegree__bits": 5}
    )
    assert phi == 2 * Spectrum(2).normalized() + WeightedDegree(3).hashed(5) + Spectrum(1).indexed("dense")
    assert WeightedDegree(3).hashed(4).set_params(bits=None) == WeightedDegree(3)
    assert Spectrum(3).set_params(bits=4) == Spectrum(3).hashed(4)


def test_a_parameter_that_is_not_there_is_refused_with_those_that_are():
    for phi in (Spectrum(2), 2 * Spectrum(2), Spectrum(2) + Spectrum(3), Pairs(1)):
        with pytest.raises(FeatureError, match=r"no parameter 'nonsense'.*(k|reach)"):
            phi.set_params(nonsense=1)
    with pytest.raises(FeatureError, match="k has to be"):
        Spectrum(2).set_params(k=-1)


@pytest.mark.parametrize("phi", [WeightedDegree(1), "WeightedDegree(1)", 0.5 * WeightedDegree(1).normalized()])
def test_grid_search_sets_parameters_of_the_map(phi):
    svm = LinearSVM(phi, random_state=0)
    search = GridSearchCV(svm, {"phi__degree": [1, 2], "C": [0.1, 1.0]}, cv=2)
    search.fit(TEXTS * 2, [0, 0, 1, 1] * 2)
    assert len(search.cv_results_["params"]) == 4
    degree = search.best_params_["phi__degree"]
    assert f"WeightedDegree({degree}" in repr(search.best_estimator_.model_.phi)
    assert repr(svm.phi) == repr(phi), "the estimator that was searched keeps its own map"


def test_an_estimator_tells_the_parameters_of_its_map():
    svm = LinearSVM(Spectrum(3).hashed(4))
    assert svm.get_params()["phi__k"] == 3
    assert "phi__k" not in svm.get_params(deep=False)
    given = svm.phi
    svm.set_params(phi__k=4, C=2.0)
    assert svm.phi == Spectrum(4).hashed(4)
    assert given == Spectrum(3).hashed(4), "a map that others may hold is not changed"
    with pytest.raises(ValueError, match="no parameter 'nonsense'"):
        svm.set_params(phi__nonsense=1)
    with pytest.raises(ValueError, match="C__k"):
        svm.set_params(C__k=1)


def test_a_map_of_ones_own_has_parameters():
    assert Pairs(2).get_params() == {"reach": 2}
    assert (Pairs(2) + Spectrum(1)).get_params()["pairs__reach"] == 2
    assert clone(LinearSVM(Pairs(2))).set_params(phi__reach=3).phi == Pairs(3)


# names


def test_names_of_kmers_are_the_kmers_in_the_order_of_their_slots():
    assert Spectrum(2).get_feature_names_out().tolist() == KMERS
    assert WeightedSpectrum(2).get_feature_names_out().tolist() == [*"ACGT", *KMERS]
    assert WeightedSpectrum(2, weights=[0.0, 1.0]).get_feature_names_out().tolist() == [*"ACGT", *KMERS]


def test_the_name_of_a_column_is_true_of_the_rows_that_have_it():
    phi = WeightedDegree(2).fit(TEXTS)
    matrix, names = phi.transform(TEXTS).toarray(), phi.get_feature_names_out()
    for text, row in zip(TEXTS, matrix, strict=True):
        there = {f"{text[i : i + d]}@{i}" for d in (1, 2) for i in range(len(text) - d + 1)}
        assert set(names[row != 0]) == there


def test_names_of_columns_are_those_of_the_table():
    assert Linear(n_features=2).get_feature_names_out().tolist() == ["x0", "x1"]
    assert Linear(n_features=2).get_feature_names_out(["age", "size"]).tolist() == ["age", "size"]
    with pytest.raises(FeatureError, match="3 names, and 2 columns"):
        Linear(n_features=2).get_feature_names_out(["a", "b", "c"])


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_names_of_monomials_are_those_of_the_products(degree, coef0):
    rows = np.random.default_rng(0).normal(size=(5, 4))
    phi = Polynomial(degree, coef0=coef0).fit(rows)
    theirs = PolynomialFeatures((0 if coef0 else degree, degree), include_bias=coef0 > 0).fit(rows)
    names = phi.get_feature_names_out().tolist()
    assert sorted(names) == sorted(theirs.get_feature_names_out())
    products = dict(zip(theirs.get_feature_names_out(), theirs.transform(rows).T, strict=True))
    ratio = phi.transform(rows).toarray() / np.array([products[name] for name in names]).T
    assert np.allclose(ratio, ratio[0]), "each column is the product that it is called by, times a number"
    assert "b c" in phi.get_feature_names_out(["a", "b", "c", "d"])[-8:] or degree == 3


def test_names_of_an_indexed_map_are_what_it_has_learned():
    for form in ("hash_table", "sorted_array", "trie"):
        phi = Spectrum(2).indexed(form).fit(["ACGA", "GAG"])
        matrix, names = phi.transform(["ACGA", "GAG"]).toarray(), phi.get_feature_names_out()
        assert set(names) == {"AC", "CG", "GA", "AG"}
        assert set(names[matrix[1] != 0]) == {"GA", "AG"}


def test_parts_of_a_stack_are_told_apart():
    names = (Spectrum(1) + 0.5 * Spectrum(1).normalized() + WeightedDegree(1, length=1)).get_feature_names_out()
    assert len(set(names)) == 12
    assert names[0] == "spectrum-1__A"
    assert names[4] == "spectrum-2__A"
    assert names[8] == "weighteddegree__A@0"


def test_names_of_patterns_of_images():
    names = LBP(levels=1).fit(IMAGES).get_feature_names_out()
    assert len(names) == 14 * 14 * 256
    assert names[0] == "level 0, row 1, column 1, pattern 0b00000000"


@pytest.mark.parametrize(
    "phi",
    [
        NGrams(2, bits=4), BagOfWords(bits=4), Spectrum(2).hashed(3), Spectrum(2).normalized().hashed(4), Pairs(1),
        Spectrum(1) + Spectrum(2).hashed(3), WeightedDegree(2, length=5).hashed(2), WeightedDegreeShift(2, 1, length=5),
    ],
    ids=repr,
)  # fmt: skip
def test_where_a_number_does_not_tell_what_it_is_names_are_refused_with_what_to_do(phi):
    with pytest.raises(FeatureError, match=r"no names.*\.indexed\(\)|no names.*invert"):
        phi.get_feature_names_out()


def test_more_names_than_anyone_reads_are_refused():
    with pytest.raises(FeatureError, match="too many to be named"):
        Spectrum(20).get_feature_names_out()


# expressions


@pytest.mark.parametrize(
    "phi",
    [
        Hashed(4),
        Hashed(9, Spectrum(3)),
        Hashed(9, Polynomial(2)),
        Hashed(4, Spectrum(3).hashed(9)),
        2 * (3 * Spectrum(2)),
        (2 * Spectrum(2)).normalized().normalized(),
        -1 * (2 * Spectrum(2).hashed(4)).indexed().normalized().hashed(5),
        Stack(Stack(Spectrum(1), Spectrum(2)), Spectrum(3)),
        2 * Hashed(9, WeightedDegree(2)).normalized() + Spectrum(1),
    ],
    ids=repr,
)
def test_constructors_and_methods_write_what_they_make(phi):
    assert parse(repr(phi)) == phi
    assert parse(repr(phi)) == parse(repr(parse(repr(phi))))


def test_a_hash_of_numbers_and_a_hash_of_letters_differ_in_their_expressions():
    one, other = Hashed(9, Spectrum(3)), Spectrum(3).hashed(9)
    assert (one.transform(TEXTS) != other.transform(TEXTS)).nnz > 0
    assert repr(one) != repr(other)
    assert np.array_equal(parse(repr(one)).transform(TEXTS).toarray(), one.transform(TEXTS).toarray())


def test_an_indexed_map_is_normalized_before_what_was_never_seen_is_left_out():
    phi = Spectrum(2).indexed().normalized().fit(["ACAC"])
    assert phi == Spectrum(2).normalized().indexed()
    assert np.isclose(phi.transform(["ACG"]).sum(), np.sqrt(0.5))
    assert (2 * Spectrum(2).indexed()).normalized().fit(["ACAC"]).transform(["ACG"]).sum() == 1.0


def test_words_are_counted_as_they_are_written():
    assert BagOfWords(bits=12).transform(WORDS).sum(axis=1).tolist() == [5, 2, 3, 5]
    assert Rational(parse("Rational(ngram(2))").transducer).transform(["abab"]).toarray().max() == 2.0
