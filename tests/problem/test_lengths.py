"""Rows of very different lengths: told where they are, before training and after it, and nowhere else."""

import warnings

import numpy as np
import pytest

from dotadd import LinearSVM, NGrams, Spectrum, WeightedDegree
from dotadd.cli import run
from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.errors import NotConvergedWarning
from dotadd.features.base import Shape
from dotadd.features.expression import parse
from dotadd.features.linear import Linear
from dotadd.genome.simulate import splice_windows
from dotadd.problem.lengths import FAR_APART, MUCH, ROWS, Lengths, length_advice, scale_advice, spread_of_columns


def spread_of(phi, batch):
    return Lengths().measure(phi.resolve(Shape.of(batch)), batch)


def mails(count=200, seed=0):
    """Texts of 10 to 20,000 letters, as mails are."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abcdefgh"), rng.integers(2, 8))) for _ in range(300)]
    lengths = np.exp(rng.uniform(1, 8, count)).astype(int)
    return [" ".join(rng.choice(words, n)) for n in lengths], np.arange(count) % 2


@pytest.mark.parametrize("factor", [1.0, 3.0, 1000.0])
@pytest.mark.parametrize("rows", [2, 100, 20 * ROWS])
def test_the_spread_is_the_factor_between_long_and_short_rows(factor, rows):
    """Half of the rows are longer than the others by this factor, in whatever order."""
    X = np.zeros((rows, 3), np.float32)
    X[:, 1] = np.where(np.random.default_rng(0).permutation(rows) % 2, 0.5 * factor, 0.5)
    expected = np.quantile(np.abs(X[:, 1]), 0.95) / np.quantile(np.abs(X[:, 1]), 0.05)
    assert spread_of(Linear(), DenseRows(X)) == pytest.approx(expected, rel=1e-6)


def test_a_few_outliers_and_empty_rows_do_not_count():
    X = np.ones((1000, 2), np.float32)
    X[::50] *= 1e6
    X[1::50] *= 0
    assert spread_of(Linear(), DenseRows(X)) == pytest.approx(1.0)
    assert spread_of(Linear(), DenseRows(np.zeros((5, 2), np.float32))) == 1.0
    assert spread_of(Linear(), DenseRows(np.zeros((0, 2), np.float32))) == 1.0


def test_raw_counts_of_mails_differ_and_normalised_maps_and_windows_of_dna_do_not():
    texts = Strings.from_list(mails()[0])
    assert spread_of(NGrams((3, 5)), texts) > MUCH
    assert spread_of(NGrams((3, 5)).normalized(), texts) == pytest.approx(1.0, abs=1e-3)
    windows, _ = splice_windows(300, seed=0)
    for phi in (Spectrum(8), WeightedDegree(6), parse("WeightedSpectrum(3, span=(0, 59)) + WeightedDegree(4)")):
        assert spread_of(phi, windows) < 2


def test_advice_is_given_beyond_tenfold_and_names_the_cure():
    assert length_advice(None) is None
    assert length_advice(MUCH) is None
    assert length_advice(float("nan")) is None
    assert ".normalized()" in length_advice(MUCH + 0.1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, y = mails()
    (tmp_path / "mails.tsv").write_text("y\ttext\n" + "".join(f"{k}\t{t}\n" for k, t in zip(y, texts, strict=True)))
    return tmp_path


@pytest.mark.parametrize("memory", [[], ["--memory", "60kB"]])
def test_train_says_so_before_it_begins_and_in_its_summary(folder, capsys, memory):
    command = ["train", "mails.tsv", "--column", "text", "--label", "y", "-o", "m", "--max-passes", "3", *memory]
    assert run([*command, "--features", "NGrams(3, bits=12)"]) == 0
    out, err = capsys.readouterr()
    assert "-fold" in err
    assert ".normalized()" in err
    assert "lengths" in out
    (folder / "m.checkpoint").unlink(missing_ok=True)  # of a run that ended before it was done
    assert run([*command, "--features", "NGrams(3, bits=12).normalized()"]) == 0
    out, err = capsys.readouterr()
    assert "-fold" not in out + err
    (folder / "m.checkpoint").unlink(missing_ok=True)
    assert run([*command, "--features", "NGrams(3, bits=12)", "-q"]) == 0
    assert "-fold" not in "".join(capsys.readouterr())


def test_python_is_told_where_training_did_not_get_there(recwarn):
    texts, y = mails(60)
    with pytest.warns(NotConvergedWarning, match=r"-fold.*\.normalized\(\)"):
        LinearSVM(NGrams(3, bits=12), max_passes=1, tol=1e-9, random_state=0).fit(texts, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        LinearSVM(NGrams(3, bits=12).normalized(), max_passes=1, tol=1e-9, random_state=0).fit(texts, y)
    assert not [one for one in told if "-fold" in str(one.message)]


# scales of columns


def test_columns_are_as_far_apart_as_their_root_mean_squares_of_what_is_not_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1.0, 2e5, 30.0, 0.0] * (rng.random((300, 4)) < 0.5)
    X[:2, 3] = 1e9  # too few to tell
    rms = [np.sqrt(np.mean(column[column != 0] ** 2)) for column in X.T[:3]]
    rows, columns = np.nonzero(X)
    sparse = SparseRows(np.searchsorted(rows, np.arange(301)), columns, X[rows, columns], 4)
    for batch in (DenseRows(X), sparse):
        assert spread_of_columns(batch) == pytest.approx(max(rms) / min(rms))
    assert spread_of_columns(DenseRows(np.zeros((0, 3)))) == spread_of_columns(DenseRows(np.zeros((9, 3)))) == 1.0
    assert spread_of_columns(SparseRows(sparse.offsets, sparse.indices, None, 4)) == 1.0


def test_advice_about_columns_is_given_beyond_a_thousandfold():
    assert scale_advice(None) is None
    assert scale_advice(FAR_APART) is None
    assert '.scaled("std")' in scale_advice(1.01 * FAR_APART)


@pytest.mark.parametrize("memory", [[], ["--memory", "60kB"]])
def test_train_says_before_it_begins_that_columns_are_far_apart(tmp_path, monkeypatch, capsys, memory):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)) * [1.0, 1e5], rng.integers(0, 2, 3000)
    (tmp_path / "x.svm").write_text("".join(f"{k} 1:{a:.4g} 2:{b:.4g}\n" for k, (a, b) in zip(y, X, strict=True)))
    command = ["train", "x.svm", "-o", "m", "--max-passes", "3", *memory]
    for features, told in (([], True), (["--features", "Linear().scaled('std')"], False)):
        assert run([*command, *features]) == 0
        out, err = capsys.readouterr()
        assert (".scaled(" in err) is told
        assert ("-fold" in out) is told
        (tmp_path / "m.checkpoint").unlink(missing_ok=True)


def test_python_is_told_of_columns_where_training_did_not_get_there():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)) * [1.0, 1e5], np.arange(200) % 2
    with pytest.warns(NotConvergedWarning, match=r"scales of columns.*\.scaled\("):
        LinearSVM(max_passes=1, tol=1e-9, random_state=0).fit(X, y)
