"""Examples whose rows are kept are the same examples: same sums, same answers, and each row is made once."""

import numpy as np
import pytest
from problems import Counting, labels, texts

from dotadd import BagOfWords, LinearSVM, NGrams
from dotadd._util.memory import Budget
from dotadd.data.batches import Strings
from dotadd.features.base import Shape
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Problem
from dotadd.solvers.dcd import dcd
from dotadd.solvers.run import Settings

PHIS = [
    BagOfWords(bits=10),
    BagOfWords(bits=10).normalized(),
    NGrams((2, 3), bits=12).normalized(),
    2.0 * BagOfWords(bits=8) + NGrams(2, bits=9),
]


def examples(phi, lines, budget, threads=1):
    batch = Strings.from_list(lines)
    return InMemory(phi.resolve(Shape.of(batch)), batch, threads=threads, budget=budget)


@pytest.mark.parametrize("phi", PHIS, ids=repr)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.12, 2.0])
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_over_rows_are_the_same_whatever_is_kept(phi, share, threads):
    lines = texts(120)
    plain = examples(phi, lines, None)
    room = int(share * 8 * plain.phi.bound(plain.batch).sum())
    kept = examples(phi, lines, Budget(room), threads)
    rng = np.random.default_rng(1)
    w = rng.standard_normal(plain.dim).astype(np.float32)
    for _ in range(3):  # made, then read
        np.testing.assert_allclose(kept.squared_norms(), plain.squared_norms(), rtol=1e-5)
        rows = rng.permutation(120)[:70].astype(np.uint32)
        np.testing.assert_allclose(kept.dot([w], rows)[0], plain.dot([w], rows)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kept.squared_norms(rows), plain.squared_norms(rows), rtol=1e-5)
        coefficients = rng.standard_normal(120) * (rng.random(120) < 0.5)
        sums = [np.zeros(plain.dim), np.zeros(plain.dim)]
        plain.add([coefficients], sums[:1])
        kept.add([coefficients], sums[1:])
        np.testing.assert_allclose(sums[1], sums[0], rtol=1e-4, atol=1e-5)
        seen = [seen for _, _, seen in kept.blocks(rows, ahead=True, focus=True)]
        assert np.concatenate(seen).tolist() == rows.tolist()
    count, nbytes = kept.kept
    assert nbytes <= room
    assert (count > 0, count == 120) == (share > 0, share == 2.0)


def test_blocks_come_in_the_order_that_was_asked_for_where_some_rows_are_kept():
    lines = texts(200)
    kept = examples(BagOfWords(bits=10), lines, Budget(8_000))
    order = np.random.default_rng(0).permutation(200).astype(np.uint32)
    list(kept.blocks(order[:100]))
    assert 0 < kept.kept[0] < 200
    asked = np.concatenate([rows for _, _, rows in kept.blocks(order)])
    assert asked.tolist() == order.tolist()


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("solver", ["dcd", "sgd", "ocas", "lbfgs"])
def test_every_row_is_made_once_where_there_is_room(solver, normalized):
    lines = texts(60)
    made = np.zeros(60, int)
    phi = Counting(made).normalized() if normalized else Counting(made)
    svm = LinearSVM(phi, solver=solver, n_jobs=1, random_state=0).fit(lines, labels(lines))
    assert svm.result_.kept_rows == 60
    assert svm.result_.passes > 2
    looks = 2  # one to train, and one for the summary of lengths, which is apart from training
    assert made.max() <= looks
    again = np.zeros(60, int)
    LinearSVM(Counting(again), solver=solver, n_jobs=1, random_state=0, keep=False).fit(lines, labels(lines))
    assert again.min() > looks


@pytest.mark.parametrize("solver", ["dcd", "ocas", "newton"])
@pytest.mark.parametrize("phi", PHIS, ids=repr)
def test_the_optimum_is_the_same_with_and_without_keeping(phi, solver):
    lines = texts(150, seed=3)
    loss = "squared_hinge" if solver == "newton" else "hinge"
    svm = LinearSVM(phi, C=0.01, loss=loss, solver=solver, tol=1e-5, n_jobs=1, random_state=0)
    kept, made = (svm.set_params(keep=keep).fit(lines, labels(lines)).result_ for keep in (True, False))
    assert kept.converged
    assert (kept.kept_rows, made.kept_rows) == (150, 0)
    assert kept.primal == pytest.approx(made.primal, rel=2e-5)


def test_same_bits_with_and_without_keeping_where_no_word_comes_twice():
    lines = texts(150, seed=4, repeat=False)
    fits = [
        LinearSVM(BagOfWords(bits=16), solver="dcd", n_jobs=1, keep=keep, tol=0.01, random_state=0).fit(
            lines, labels(lines)
        )  # before favoured visits begin, which only rows in memory have
        for keep in (True, False)
    ]
    assert fits[0].result_.kept_rows == 150
    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()


def test_a_tight_budget_keeps_some_rows_and_stays_within_it():
    lines = texts(2000, seed=5, longest=200)
    nbytes = sum(map(len, lines))
    budget = nbytes + 200_000
    svm = LinearSVM(BagOfWords(bits=10), C=0.1, memory=budget, n_jobs=1, random_state=0).fit(lines, labels(lines))
    free = LinearSVM(BagOfWords(bits=10), C=0.1, n_jobs=1, random_state=0).fit(lines, labels(lines))
    assert 0 < svm.result_.kept_rows < 2000 == free.result_.kept_rows
    assert svm.result_.kept_bytes <= 200_000
    assert svm.result_.primal == pytest.approx(free.result_.primal, rel=2e-3)


def test_keep_is_true_or_false():
    with pytest.raises(ValueError, match="keep"):
        LinearSVM(BagOfWords(), keep="yes").fit(["a b", "c d"], [0, 1])


@pytest.mark.parametrize("phi", PHIS, ids=repr)
def test_narrowed_examples_have_the_same_machines_with_a_shorter_w(phi):
    lines = texts(120)
    y, budget = labels(lines), Budget(1 << 30)
    whole = examples(phi, lines, budget)
    columns = Columns.of([y.astype(np.int8)], np.full(len(y), 3.0))
    (wide,) = dcd(Problem(whole, columns), Settings(tol=1e-5))
    left = budget.left
    with whole.narrowed() as narrow:
        (found,) = dcd(Problem(narrow, columns), Settings(tol=1e-5))
        assert narrow.dim == len(found.w) < whole.dim
        assert found.gap <= 1e-5
        np.testing.assert_allclose(found.w, wide.w[wide.w != 0.0], atol=1e-4)
        np.testing.assert_allclose(narrow.dot([found.w])[0], whole.dot([wide.w])[0], atol=1e-4)
        np.testing.assert_array_equal(narrow.squared_norms(), whole.squared_norms())
    assert budget.left == left


def test_examples_without_kept_rows_are_not_narrowed():
    plain = examples(PHIS[0], texts(50), None)
    with plain.narrowed() as same:
        assert same is plain
