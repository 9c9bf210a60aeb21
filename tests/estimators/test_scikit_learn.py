"""LinearSVM, KernelSVM and feature maps inside of scikit-learn: routing of weights, data frames in and out."""

import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dotadd import DataError, DotaddError, FeatureMap, KernelSVM, LinearSVM, parse
from dotadd import open as open_source
from dotadd.errors import FeatureError
from dotadd.features import Category, Column, Linear, NGrams, Number, Spectrum, transformer

RNG = np.random.default_rng(3)
ROWS = 90
X = RNG.normal(size=(ROWS, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=ROWS) > 0, "yes", "no")
WEIGHT = RNG.integers(0, 4, ROWS).astype(float)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(ROWS)[::-1] * 2).assign(
    job=np.where(Y == "yes", "nurse", "cook"),
    seq=["".join(RNG.choice(list("ACGT"), n)) for n in RNG.integers(5, 20, ROWS)],
)
FRAME.loc[FRAME.index[::7], "a"] = np.nan
PHI = "Number('a', 'b').scaled('std') + Category('job').indexed()"
MACHINES = [LinearSVM(C=0.1, tol=1e-6, random_state=0, n_jobs=1), KernelSVM("linear", C=0.1, tol=1e-6, random_state=0)]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# routing of weights


@pytest.mark.parametrize("machine", MACHINES)
def test_a_pipeline_hands_weights_on_to_fit_and_score(machine, routing):
    svm = clone(machine).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, svm).fit(X, Y, sample_weight=WEIGHT)
    Z = StandardScaler().fit_transform(X)
    alone = clone(machine).fit(Z, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(pipeline.decision_function(X), alone.decision_function(Z), atol=1e-4)
    assert pipeline.score(X, Y, sample_weight=WEIGHT) == np.average(alone.predict(Z) == Y, weights=WEIGHT)


@pytest.mark.parametrize("machine", MACHINES)
def test_searches_and_cross_validation_hand_weights_on(machine, routing):
    svm = clone(machine).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    expected = []
    for train, test in KFold(3).split(X):
        there = clone(machine).fit(X[train], Y[train], sample_weight=WEIGHT[train])
        expected.append(np.average(there.predict(X[test]) == Y[test], weights=WEIGHT[test]))
    found = cross_validate(svm, X, Y, cv=KFold(3), params={"sample_weight": WEIGHT})["test_score"]
    np.testing.assert_allclose(found, expected)
    search = GridSearchCV(svm, {"C": [0.1]}, cv=KFold(3)).fit(X, Y, sample_weight=WEIGHT)
    assert search.best_score_ == pytest.approx(np.mean(expected))
    alone = clone(machine).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(search.best_estimator_.decision_function(X), alone.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("machine", MACHINES)
def test_weights_of_which_nothing_was_said_are_refused(machine, routing):
    with pytest.raises(UnsetMetadataPassedError, match=f"{type(machine).__name__}.*set_fit_request"):
        make_pipeline(machine).fit(X, Y, sample_weight=WEIGHT)
    with pytest.raises(TypeError, match="fit has no argument 'weight' beside the data; it has sample_weight"):
        machine.set_fit_request(weight=True)


def test_requests_may_give_another_name_and_can_be_taken_back(routing):
    svm = LinearSVM(C=0.1, random_state=0).set_fit_request(sample_weight="importance")
    routed = make_pipeline(svm).fit(X, Y, importance=WEIGHT)
    alone = LinearSVM(C=0.1, random_state=0).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(routed[-1].coef_, alone.coef_)
    scaler, plain = (
        StandardScaler().set_fit_request(sample_weight=True),
        clone(svm).set_fit_request(sample_weight=False),
    )
    routed = make_pipeline(scaler, plain).fit(X, Y, sample_weight=WEIGHT)
    Z = StandardScaler().fit(X, sample_weight=WEIGHT).transform(X)
    np.testing.assert_array_equal(routed[-1].coef_, LinearSVM(C=0.1, random_state=0).fit(Z, Y).coef_)


def test_requests_need_routing_to_be_on():
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        LinearSVM().set_fit_request(sample_weight=True)


def test_maps_stand_in_pipelines_that_route(routing):
    """They take no weights, and say nothing of them."""
    svm = LinearSVM(C=0.1, random_state=0).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(parse(PHI), svm).fit(FRAME, Y, sample_weight=WEIGHT)
    alone = LinearSVM(C=0.1, random_state=0).fit(parse(PHI).fit_transform(FRAME), Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(pipeline[-1].coef_, alone.coef_)


# scores by weight


@pytest.mark.parametrize("machine", MACHINES)
def test_a_source_is_scored_by_its_weights_whoever_gives_the_labels(machine, tmp_path):
    svm = clone(machine).fit(X, Y)
    wanted = np.average(svm.predict(X) == Y, weights=WEIGHT)
    assert wanted != np.mean(svm.predict(X) == Y)
    source = open_source(X, Y, WEIGHT)
    for found in (svm.score(source), svm.score(source, Y), svm.score(X, Y, WEIGHT), svm.model_.score(source, Y)):
        assert found == pytest.approx(wanted)
    assert svm.score(source, Y, np.ones(ROWS)) == np.mean(svm.predict(X) == Y), "weights that are given go before"
    with pytest.raises(DotaddError, match="89 labels and 90 predictions do not pair up"):
        svm.score(X, Y[1:])


def test_a_score_looks_at_the_names_of_columns():
    svm = LinearSVM(random_state=0).fit(FRAME[["b", "c"]], Y)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        svm.score(FRAME[["c", "b"]], Y)
    assert svm.score(FRAME[["b", "c"]].assign(label=Y)) == svm.score(FRAME[["b", "c"]], Y)


# data frames in


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_data_frames_are_cut_into_folds_and_searched(kind):
    frame = pl.from_pandas(FRAME) if kind == "polars" else FRAME
    frame = FRAME.convert_dtypes(dtype_backend="pyarrow") if kind == "arrow" else frame
    svm = LinearSVM(parse(PHI), random_state=0, n_jobs=1)
    expected = []
    for train, test in KFold(3).split(X):
        there = clone(svm).fit(FRAME.iloc[train], Y[train])
        expected.append(np.mean(there.predict(FRAME.iloc[test]) == Y[test]))
    np.testing.assert_array_equal(cross_val_score(svm, frame, Y, cv=KFold(3)), expected)
    grid = {"phi__number__how": ["std", "max"], "phi__category__form": ["hash_table", "sorted_array"], "C": [0.1, 1.0]}
    search = GridSearchCV(svm, grid, cv=KFold(3)).fit(frame, Y)
    assert len(search.cv_results_["params"]) == 8
    chosen = search.best_estimator_
    same = LinearSVM(svm.phi, random_state=0, n_jobs=1).set_params(**search.best_params_).fit(FRAME, Y)
    np.testing.assert_array_equal(chosen.coef_, same.coef_)
    assert repr(svm.phi) == repr(parse(PHI)), "a search changes copies"


def test_an_expression_is_searched_like_the_map_it_makes():
    grid = {"phi__number__how": ["std", "robust"]}
    found = [
        GridSearchCV(LinearSVM(phi, random_state=0, n_jobs=1), grid, cv=KFold(3)).fit(FRAME, Y).cv_results_
        for phi in (PHI, parse(PHI))
    ]
    np.testing.assert_array_equal(found[0]["mean_test_score"], found[1]["mean_test_score"])


def test_kernel_machines_say_that_they_read_no_columns():
    with pytest.raises(DotaddError, match=r"read whole examples, and Number\('a'\) columns of them: use LinearSVM"):
        KernelSVM(Number("a")).fit(FRAME, Y)


def test_columns_of_dna_are_spectra():
    """Column("seq", Spectrum(3)) against counting by hand."""
    matrix = Column("seq", Spectrum(3)).fit_transform(FRAME).toarray()
    kmers = ["".join(letters) for letters in product("ACGT", repeat=3)]
    counts = [[sum(s[i : i + 3] == kmer for i in range(len(s) - 2)) for kmer in kmers] for s in FRAME["seq"]]
    assert np.array_equal(matrix, counts)
    svm = LinearSVM("Column('seq', Spectrum(3)) + Number('b')", tol=1e-7, random_state=0).fit(FRAME, Y)
    inside = make_column_transformer((Spectrum(3), "seq"), (Number("b"), ["b"])).fit_transform(FRAME)
    np.testing.assert_allclose(svm.coef_, LinearSVM(tol=1e-7, random_state=0).fit(inside, Y).coef_, atol=1e-4)
    with pytest.raises(DataError, match=r"column 'seq'.*'Z'"):
        svm.predict(FRAME.assign(seq="ACZ"))


def test_it_takes_what_a_column_transformer_makes():
    sparse = ColumnTransformer(
        [("n", StandardScaler(), ["b", "c"]), ("j", OneHotEncoder(), ["job"])], sparse_threshold=1
    )
    pipeline = make_pipeline(sparse, LinearSVM(random_state=0)).fit(FRAME, Y)
    made = sparse.fit_transform(FRAME)
    assert sp.issparse(made)
    np.testing.assert_array_equal(pipeline[-1].coef_, LinearSVM(random_state=0).fit(made, Y).coef_)
    frames = make_column_transformer(
        (StandardScaler(), ["b", "c"]), (OneHotEncoder(sparse_output=False), ["job"])
    ).set_output(transform="pandas")
    named = make_pipeline(frames, LinearSVM(random_state=0)).fit(FRAME, Y)
    assert named[-1].feature_names_in_.tolist()[0] == "standardscaler__b"
    np.testing.assert_allclose(named.decision_function(FRAME), pipeline.decision_function(FRAME), atol=0.05)


# data frames out


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(
    "text", [PHI, "Number('a', 'b', 'c')", "Column('seq', Spectrum(2))", "Category('job', bits=3)"]
)
def test_transform_gives_the_data_frame_that_was_asked_for(kind, text):
    phi: FeatureMap = parse(text)
    matrix = phi.fit_transform(FRAME)
    assert sp.issparse(matrix)
    for frame in (
        phi.set_output(transform=kind).fit_transform(FRAME),
        phi.transform(FRAME),
        clone(phi).fit(FRAME).transform(FRAME),
    ):
        assert isinstance(frame, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind])
        assert np.array_equal(frame.to_numpy(), matrix.toarray())
        assert len(set(frame.columns)) == matrix.shape[1]
        if kind == "pandas":
            assert frame.index.equals(FRAME.index)
    assert phi == parse(text)
    assert sp.issparse(phi.set_output(transform="default").transform(FRAME))
    assert sp.issparse(phi.set_output().transform(FRAME)), "None leaves it as it is"


def test_columns_of_the_frame_have_the_names_of_features():
    names = Number("a", "b").set_output(transform="pandas").fit_transform(FRAME).columns.tolist()
    assert names == ["a", "b", "a=missing", "b=missing"]
    hashed = (Number("a") + Category("job", bits=2)).set_output(transform="polars").fit_transform(FRAME)
    assert hashed.columns == ["number__a", "number__a=missing", "x2", "x3", "x4", "x5"]
    both = FeatureUnion([("n", Number("a")), ("c", Category("job", bits=1))]).set_output(transform="pandas")
    assert both.fit_transform(FRAME).columns.tolist() == ["n__a", "n__a=missing", "c__x0", "c__x1"]
    plain = Linear().set_output(transform="pandas").fit_transform(FRAME[["b", "c"]])
    pd.testing.assert_frame_equal(plain, FRAME[["b", "c"]])


def test_the_configuration_of_scikit_learn_is_obeyed_and_pipelines_set_it():
    with sklearn.config_context(transform_output="polars"):
        assert isinstance(Number("b").fit_transform(FRAME), pl.DataFrame)
        assert sp.issparse(Number("b").set_output(transform="default").fit_transform(FRAME))
    both = make_column_transformer((Number("b"), ["b"]), (StandardScaler(), ["c"])).set_output(transform="pandas")
    assert both.fit_transform(FRAME).columns.tolist() == ["number__b", "number__b=missing", "standardscaler__c"]
    pipeline = make_pipeline(Number("a", "b"), StandardScaler()).set_output(transform="pandas").fit(FRAME)
    assert pipeline.get_feature_names_out().tolist() == ["a", "b", "a=missing", "b=missing"]


def test_a_search_keeps_what_was_said_of_the_output():
    phi = NGrams(3, bits=4).set_output(transform="pandas").set_params(n=2)
    assert isinstance(phi.fit_transform(["abc", "cab"]), pd.DataFrame)
    assert phi == NGrams(2, bits=4)


def test_frames_that_do_not_fit_and_kinds_that_are_not_there_are_refused(monkeypatch):
    with pytest.raises(FeatureError, match="one of default, pandas, polars"):
        NGrams(3).set_output(transform="numpy")
    monkeypatch.setattr(transformer, "available", lambda: 10_000)
    with pytest.raises(FeatureError, match=r"takes .*, and 10 kB are free: set_output\(transform=.default.\)"):
        NGrams(3).set_output(transform="pandas").fit_transform(["abc", "cab"])


def test_scikit_learn_is_not_imported_for_it():
    code = "import sys, dotadd; dotadd.NGrams(2, bits=4).transform(['abc']); print('sklearn' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
