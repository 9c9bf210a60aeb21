"""Counts that are changed, and numbers for slots that are learned: against scikit-learn, on the same counts."""

from __future__ import annotations

import pickle
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

from dotadd import FeatureMap, LinearSVM, load
from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.errors import FeatureError
from dotadd.features import BagOfWords, Linear, NGrams, Shape, Spectrum, WordNGrams, parse
from dotadd.features.checks import check_feature_map, materialize
from dotadd.features.learning import learned_on

RNG = np.random.default_rng(0)
WORDS = np.array(["the", "cat", "dog", "über", "straße", "кот", "犬", "a_b", "x9", "the"])
TEXTS = ["", "the cat", *(" ".join(RNG.choice(WORDS, n)) for n in RNG.integers(1, 60, 80))]
BATCH = Strings.from_list(TEXTS)
CUTS = ([82], [1, 81], [0, 5, 0, 77], [1] * 82)


@cache
def counts():
    """Made when it is first asked for: each worker imports this file, and would compile what it takes."""
    return BagOfWords(bits=12).transform(TEXTS)


def numbers(rows=301):
    """Columns of very different kinds: scales, a constant, times of day since 1970, few values, a lone outlier."""
    X = RNG.normal(size=(rows, 7)) * [1, 1e3, 1e-3, 0, 1e3, 1, 1] + [0, 0, 5, 3, 1.6e9, 0, -7]
    X[:, 5] = RNG.integers(0, 3, rows)
    X[7, 6] = 1e15
    return X


DENSE = numbers()
SPARSE = sp.random_array((400, 9), density=0.6, rng=RNG, format="csr", data_sampler=lambda size: RNG.normal(size=size))
SCALERS = {
    "std": lambda dense: StandardScaler(with_mean=dense),
    "max": lambda dense: MaxAbsScaler(),
    "robust": lambda dense: RobustScaler(with_centering=dense),
}
LEARNING = [
    "BagOfWords(bits=12).tfidf()", "BagOfWords(bits=12).tfidf(smooth=False)", "BagOfWords(bits=12).log().tfidf()",
    "BagOfWords(bits=12).idf()", "BagOfWords(bits=12).frequent(min_df=3, max_df=0.9)",
    "BagOfWords(bits=12).frequent(min_df=3).tfidf()", "NGrams(3, bits=12).indexed('hash_table').tfidf()",
    "NGrams(3, bits=12).tfidf().indexed('sorted_array')", "BagOfWords(bits=8).frequent(min_df=9).indexed('trie')",
    "(2.0 * BagOfWords(bits=9).indexed('hash_table').idf() + NGrams(2, bits=6).sqrt()).tfidf()",
    "0.5 * NGrams(2, bits=8).scaled('std') + BagOfWords(bits=7).scaled('robust').hashed(5)",
]  # fmt: skip
CHANGED = [
    "BagOfWords(bits=9).binary()",
    "NGrams((1, 3), bits=7).log()",
    "(Spectrum(2, alphabet='bytes') * 3.0).sqrt()",
]


def in_chunks(phi: FeatureMap, batch, cuts) -> FeatureMap:
    """What is learned of rows that come in chunks of these lengths."""
    learner, bounds = phi.resolve(Shape.of(batch)).learner(), np.cumsum([0, *cuts])
    more = True
    while more:
        for first, stop in pairwise(bounds):
            learner.see(batch.slice(int(first), int(stop)))
        more = learner.again()
    return learner.done()


def in_parts(phi: FeatureMap, batch, parts) -> FeatureMap:
    """What is learned where rows lie in parts: each sees its own with a copy, which has been to another process."""
    learner = phi.resolve(Shape.of(batch)).learner()
    assert learner.sums
    more = True
    while more:
        copies = [pickle.loads(pickle.dumps(learner)) for _ in range(parts)]
        for part, mine in enumerate(copies):
            theirs = batch.take(np.arange(part, len(batch), parts))
            for first in range(0, len(theirs), 50):
                mine.see(theirs.slice(first, min(first + 50, len(theirs))))
        learner, *others = copies
        for other in others:
            learner.join(other)
        more = learner.again()
    return learner.done()


def same_state(one: FeatureMap, other: FeatureMap) -> None:
    mine, theirs = one.state(), other.state()
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name].dtype == theirs[name].dtype
        if name.endswith("center"):  # in float64; what is made of it is float32
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-15)
        else:
            np.testing.assert_array_equal(mine[name], theirs[name])


# counts


@pytest.mark.parametrize(
    ("how", "f"), [("binary", lambda v: v / v), ("log", lambda v: 1.0 + np.log(v)), ("sqrt", np.sqrt)]
)
def test_counts_are_those_of_equal_indices_together(how, f):
    changed = getattr(BagOfWords(bits=12), how)().transform(TEXTS)
    assert np.allclose(changed.data, f(counts().data))
    assert np.array_equal(changed.indices, counts().indices)
    negative = getattr(-1.0 * BagOfWords(bits=12), how)().transform(TEXTS)
    assert np.allclose(negative.toarray(), -changed.toarray()), "signs are kept"


def test_words_with_a_flag_and_a_method_of_the_same_name_agree():
    flag = BagOfWords(bits=12, binary=True)
    assert flag.get_params()["binary"] is True
    assert abs(flag.transform(TEXTS) - BagOfWords(bits=12).binary().transform(TEXTS)).max() == 0


@pytest.mark.parametrize("text", [*CHANGED, *LEARNING])
def test_maps_keep_the_contract_and_are_their_expressions(text):
    phi = parse(text)
    assert parse(repr(phi)) == phi
    if text in LEARNING:
        assert repr(phi) == text
    ready = phi.resolve(Shape.of(BATCH)).learn(BATCH)
    check_feature_map(ready, BATCH)
    assert repr(phi.with_params({})) == repr(phi)
    assert repr(clone(phi)) == repr(phi)


def test_other_parameters_make_other_expressions():
    made = [
        "tfidf()", "tfidf(smooth=False)", "idf()", "idf(smooth=False)", "frequent()", "frequent(min_df=2)",
        "frequent(min_df=0.5)", "frequent(max_df=1)", "frequent(max_df=0.5)", "scaled('std')", "scaled('max')",
        "scaled('std', center=True)", "scaled('std', center=False)", "binary()", "log()", "sqrt()",
    ]  # fmt: skip
    maps = [parse(f"BagOfWords().{text}") for text in made]
    assert len(set(map(repr, maps))) == len(maps)
    assert all(repr(phi) == f"BagOfWords().{text}" for phi, text in zip(maps, made, strict=True))
    assert parse("BagOfWords().frequent(max_df=1)") != parse("BagOfWords().frequent(max_df=1.0)")


# idf


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize("norm", ["l2", None])
def test_idf_is_that_of_scikit_learn_on_the_same_counts(smooth, sublinear, norm):
    oracle = TfidfTransformer(smooth_idf=smooth, sublinear_tf=sublinear, norm=norm)
    with np.errstate(divide="ignore"):
        wanted = oracle.fit_transform(counts())
    phi = BagOfWords(bits=12).log() if sublinear else BagOfWords(bits=12)
    phi = phi.idf(smooth) if norm is None else phi.tfidf(smooth)
    assert abs(phi.fit_transform(TEXTS) - wanted).max() < 1e-6
    new = ["the dog the dog unseen", "", "犬 犬"]
    smoothed = oracle.transform(BagOfWords(bits=12).transform(new)) if smooth else phi.transform(new)
    assert abs(phi.transform(new) - smoothed).max() < 1e-6


def test_words_weigh_what_tfidf_vectorizer_gives_them():
    """Without a hash: the columns of both, sorted by what they hold, are the same."""
    phi = WordNGrams((1, 2), bits=24).indexed().tfidf()
    ours = phi.fit_transform(TEXTS).toarray()
    theirs = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+").fit_transform(TEXTS).toarray()
    assert ours.shape == theirs.shape
    assert np.allclose(np.array(sorted(ours.T.tolist())), np.array(sorted(theirs.T.tolist())), atol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(1, 1.0), (2, 1.0), (0.2, 0.6), (30, 40), (1, 0.0), (82, 82)])
def test_frequent_leaves_out_the_columns_that_scikit_learn_would(low, high):
    df = np.asarray((counts() != 0).sum(axis=0)).ravel()
    n = counts().shape[0]
    keep = (df >= (low if isinstance(low, int) else low * n)) & (df <= (high if isinstance(high, int) else high * n))
    phi = BagOfWords(bits=12).frequent(low, high)
    if (low, high) == (1, 0.0):
        with pytest.raises(FeatureError, match="max_df allows 0 and min_df asks for 1"):
            phi.fit(TEXTS)
        return
    assert abs(phi.fit_transform(TEXTS) - counts() @ sp.diags_array(keep.astype(float))).max() == 0


# scales of numbers


@pytest.mark.parametrize("how", SCALERS)
@pytest.mark.parametrize("center", [None, True, False])
def test_scales_are_those_of_scikit_learn(how, center):
    if how == "max" and center:
        with pytest.raises(FeatureError, match="no center"):
            Linear().scaled(how, center)
        return
    for X, dense in ((DENSE, True), (SPARSE, False), (DENSE[:1], True), (DENSE[:2], True)):
        phi = Linear().scaled(how, center)
        Z = phi.fit_transform(X).toarray()
        centred = dense if center is None else center
        oracle = SCALERS[how](centred)
        wanted = oracle.fit_transform(X if dense or not centred else X.toarray())
        wanted = wanted if isinstance(wanted, np.ndarray) else wanted.toarray()
        assert np.allclose(Z, wanted, rtol=1e-6, atol=1e-6)
        assert (
            repr(phi._fitted) == f"Linear(n_features={X.shape[1]}).scaled({how!r}, center={centred and how != 'max'})"
        )


def test_what_does_not_vary_keeps_its_scale():
    X = np.tile([3.0, 0.0, 1e9 + 1 / 3, 1.0], (1000, 1))
    X[0, 3] = 2.0
    for how in ("std", "robust"):
        factors = Linear().scaled(how).fit(X)._fitted.state()["factor"]
        assert factors[:3].tolist() == [1, 1, 1]
    assert Linear().scaled("std").fit_transform(X)[:, [2]].toarray().max() < 1e-6


def test_times_lose_no_digits_in_float32_rows():
    """Seconds since 1970 that differ by hundredths: float32 would not tell days apart."""
    X = 1.6e9 + np.arange(100)[:, None] / 100.0
    batch = DenseRows(X)
    phi = Linear().scaled("std").resolve(Shape.of(batch)).learn(batch)
    wanted = StandardScaler().fit_transform(X - X[0])
    assert np.allclose(materialize(phi, batch, dtype=np.float32).toarray(), wanted, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 100, 1001])
def test_quartiles_are_exact_for_any_number_of_rows(n):
    X = np.concatenate([RNG.normal(size=(n, 2)), RNG.integers(-2, 3, (n, 2)), np.exp(RNG.normal(size=(n, 1)) * 99)], 1)
    X[:, -1] = np.minimum(X[:, -1], 1e15)
    low, middle, high = np.percentile(X, (25, 50, 75), axis=0)
    batch = DenseRows(X)
    phi = Linear().scaled("robust").resolve(Shape.of(batch)).learn(batch)
    assert np.array_equal(phi.state()["center"], middle)
    spread = np.where(high > low, high - low, 1.0)
    np.testing.assert_allclose(phi.state()["factor"], np.float32(1.0 / spread), rtol=1e-7)


def test_equal_indices_of_a_row_are_one_number():
    once = SparseRows(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([3.0, 5.0, 1.0]), 2)
    twice = SparseRows(np.array([0, 3, 4]), np.array([1, 0, 1, 1]), np.array([2.0, 3.0, 3.0, 1.0]), 2, distinct=False)
    for how in SCALERS:
        maps = [Linear().scaled(how).resolve(Shape.of(batch)).learn(batch) for batch in (once, twice)]
        same_state(*maps)
        assert np.allclose(*(materialize(phi, batch).toarray() for phi, batch in zip(maps, (once, twice), strict=True)))


# learning


@pytest.mark.parametrize("text", LEARNING)
@pytest.mark.parametrize("cuts", CUTS[1:])
def test_what_is_learned_does_not_depend_on_chunks(text, cuts):
    same_state(in_chunks(parse(text), BATCH, cuts), in_chunks(parse(text), BATCH, CUTS[0]))


@pytest.mark.parametrize("how", SCALERS)
def test_scales_do_not_depend_on_chunks_or_parts(how):
    hard = DenseRows(np.concatenate([DENSE, -1e10 * DENSE[::-1]], 1))
    for batch in (hard, SparseRows(SPARSE.indptr, SPARSE.indices, SPARSE.data, 9)):
        n = len(batch)
        whole = in_chunks(Linear().scaled(how), batch, [n])
        for cuts in ([1, n - 1], [3] * (n // 3) + [n % 3]):
            same_state(in_chunks(Linear().scaled(how), batch, cuts), whole)
        for parts in (1, 2, 5):
            same_state(in_parts(Linear().scaled(how), batch, parts), whole)


def test_the_map_inside_learns_first():
    phi = BagOfWords(bits=12).indexed("sorted_array").tfidf()
    ready = in_chunks(phi, BATCH, [1] * 82)
    assert ready.phi.phi.phi == BagOfWords(bits=12)
    wanted = TfidfTransformer().fit_transform(counts())
    found = materialize(ready, BATCH)
    ours, theirs = (np.sort(matrix.toarray(), axis=1)[:, -ready.dim :] for matrix in (found, wanted))
    assert np.allclose(ours, theirs, atol=1e-6)
    assert not phi.learner().sums, "an index numbers features as they come"


def test_it_learns_before_it_is_used():
    phi = BagOfWords(bits=12).tfidf()
    for use in (lambda: phi.transform(TEXTS), phi.state, lambda: materialize(phi, BATCH)):
        with pytest.raises(FeatureError, match="has not seen the training data yet"):
            use()
    assert not phi.__sklearn_is_fitted__()
    assert phi.fit(TEXTS).__sklearn_is_fitted__()


def test_more_slots_than_memory_holds_are_refused():
    with pytest.raises(FeatureError, match=r"\.hashed\(bits\) or \.indexed\(\) first"):
        Spectrum(24).tfidf().fit(["ACGT" * 10])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("BagOfWords().frequent(0)", "min_df"), ("BagOfWords().frequent(1, 2.0)", "max_df"),
        ("BagOfWords().frequent(True)", "min_df"), ("Linear().scaled('mean')", "std, max, robust"),
        ("BagOfWords().tfidf(2)", "smooth"), ("Linear().scaled('std', center=1)", "center"),
    ],
)  # fmt: skip
def test_parameters_that_cannot_act_are_refused(text, match):
    with pytest.raises(FeatureError, match=match):
        parse(text)


def test_parameters_by_name_are_those_of_all_maps_inside():
    phi = NGrams(3).frequent(2).tfidf()
    phi.set_params(n=4, min_df=3, smooth=False)
    assert repr(phi) == "NGrams(4).frequent(min_df=3).tfidf(smooth=False)"


# models


@pytest.mark.parametrize("text", LEARNING[:8])
def test_a_model_keeps_what_was_learned(text, tmp_path):
    y = np.arange(len(TEXTS)) % 3
    svm = LinearSVM(text, random_state=0).fit(TEXTS, y)
    svm.model_.save(tmp_path / "m")
    model = load(tmp_path / "m")
    assert repr(model.phi) == repr(svm.model_.phi)
    same_state(model.phi, svm.model_.phi)
    assert np.array_equal(model.decision_function(TEXTS), svm.decision_function(TEXTS))
    matrix = parse(text).fit_transform(TEXTS)
    assert np.allclose(model.decision_function(TEXTS), matrix @ svm.coef_.T + svm.intercept_, atol=1e-4)


@pytest.mark.parametrize("how", SCALERS)
def test_a_model_of_numbers_is_that_of_scaled_numbers(how, tmp_path):
    X, y = DENSE[:, :6], (DENSE[:, 0] + RNG.normal(size=len(DENSE)) > 0).astype(int)
    svm = LinearSVM(Linear().scaled(how), random_state=0, tol=1e-6).fit(X, y)
    svm.model_.save(tmp_path / "m")
    same = LinearSVM(random_state=0, tol=1e-6).fit(SCALERS[how](True).fit_transform(X), y)
    assert svm.result_.primal == pytest.approx(same.result_.primal, rel=1e-5)
    assert np.array_equal(load(tmp_path / "m").predict(X), svm.predict(X))


def test_state_of_another_length_is_refused():
    phi = BagOfWords(bits=12).tfidf().resolve(Shape.of(BATCH)).learn(BATCH)
    with pytest.raises(ValueError, match="factor"):
        phi.with_state({"factor": np.ones(7, np.float32)})


def test_learned_slots_are_called_by_name(tmp_path):
    names = NGrams(1, bits=8).indexed().tfidf().fit(["ab", "b"]).get_feature_names_out
    with pytest.raises(FeatureError, match="no names"):
        names()
    assert Spectrum(1).tfidf().fit(["ACGT", "AC"]).get_feature_names_out().tolist() == ["A", "C", "G", "T"]
    columns = Linear().scaled("std").fit(DENSE).get_feature_names_out()
    assert columns.tolist() == [f"x{k}" for k in range(7)]


@pytest.mark.parametrize("text", ["WordNGrams((1, 2)).frequent(min_df=4)", "WordNGrams((1, 2)).log()"])
def test_origins_name_what_fill_writes(text):
    """The n-th non-zero of a row is called what the map without changes calls the first with this slot."""
    batch = Strings.from_list([line for line in TEXTS if line.isascii()] + ["the cat the cat", "cat the cat"] * 4)
    phi = parse(text).resolve(Shape.of(batch)).learn(batch)
    row = np.array([len(batch) - 1])
    found, beyond = [], -1
    while beyond < 0:
        names, (beyond,) = phi.origins(batch, row, np.array([len(found)]))
        found += [names.text[0]] if beyond < 0 else []
    assert sorted(found) == [b"cat", b"cat the", b"the", b"the cat"]
    assert len(found) == materialize(phi, batch)[row].nnz


@pytest.mark.parametrize("how", ["idf", "frequent", "std", "robust", "max"])
def test_threads_learn_what_one_learns(how):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1100, 7)) < 0.4, rng.normal(size=(1100, 7)), 0.0).astype(np.float32)
    batch = DenseRows(X)
    inner = Linear().resolve(Shape.of(batch))
    phi = {"idf": inner.idf, "frequent": lambda: inner.frequent(min_df=0.39)}.get(how, lambda: inner.scaled(how))()
    one, stack = phi.learn(batch), inner + phi
    for threads in (1, 2, 3):
        for found, expected in ((learned_on(threads, phi, batch), one), (learned_on(threads, stack, batch), None)):
            expected = stack.learn(batch) if expected is None else expected
            assert found == expected
            for name, array in expected.state().items():
                np.testing.assert_array_equal(found.state()[name], array)
