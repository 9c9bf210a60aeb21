"""The tail of coordinate descent: the quadratic program is solved, and the optimum is found in fewer passes."""

import numpy as np
import pytest
from problems import certified, noisy, problem
from scipy.optimize import minimize

from dotadd import BagOfWords, LinearSVM
from dotadd.problem.row_products import gathered
from dotadd.solvers import dcd as dcd_module
from dotadd.solvers import tail
from dotadd.solvers.dcd import dcd
from dotadd.solvers.interior_qp import Full, interior_qp
from dotadd.solvers.low_rank import LowRank
from dotadd.solvers.result import Progress, Reason
from dotadd.solvers.run import Settings


def program(m, seed, rank=None, upper=1.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, rank or m))
    return A @ A.T, rng.normal(size=m) * 3.0, np.full(m, upper) if np.isscalar(upper) else upper


def start_of(upper, share):
    """So many of the variables at their upper bound, the others at 0."""
    return np.where(np.arange(len(upper)) < share * len(upper), upper, 0.0)


def gap_of(Q, r, upper, x):
    """By how much x may be above the minimum."""
    slope = Q @ x - r
    return slope[slope > 0] @ x[slope > 0] + slope[slope < 0] @ (x - upper)[slope < 0]


@pytest.mark.parametrize("m", [1, 2, 7, 60])
@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("upper", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_answer_is_within_the_gap_that_was_asked_for(m, rank, upper, share):
    Q, r, u = program(m, m, rank, upper)
    scale = float(np.abs(r) @ u)
    x = interior_qp(Full(Q), r, u, start_of(u, share), 1e-8 * scale)
    assert (x >= 0.0).all()
    assert (x <= u).all()
    assert gap_of(Q, r, u, x) <= 1e-6 * scale


@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_is_that_of_another_method(seed):
    Q, r, u = program(12, seed)
    x = interior_qp(Full(Q), r, u, np.zeros(12), 1e-10)

    def value(x):
        return 0.5 * x @ Q @ x - r @ x

    other = minimize(value, np.full(12, 0.5), jac=lambda x: Q @ x - r, bounds=[(0.0, 1.0)] * 12, tol=1e-12)
    assert value(x) == pytest.approx(other.fun, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("start", [np.zeros(30), np.arange(30.0)])
def test_without_an_upper_bound(start):
    Q, r, _ = program(30, 3)
    Q[np.diag_indices(30)] += 0.5
    x = interior_qp(Full(Q), r, np.full(30, np.inf), start, 1e-9)
    slope = Q @ x - r
    assert (x >= 0.0).all()
    assert slope.min() > -1e-5
    assert x @ np.abs(slope) < 1e-5


def test_rows_that_are_there_twice_do_no_harm():
    Q, r, u = program(20, 5, rank=4)
    twice = np.tile(Q, (2, 2)), np.tile(r, 2), np.tile(u, 2)
    x = interior_qp(Full(twice[0]), *twice[1:], np.zeros(40), 1e-9)
    assert gap_of(*twice, x) < 1e-5


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_few_features_of_many_rows_are_the_matrix_that_they_stand_for(share, constant):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 9)) * (rng.random((50, 9)) < share)
    X[3] = 0.0
    sign, ridge, diagonal = np.where(rng.random(50) < 0.5, 1.0, -1.0), rng.random(50), 0.01 + rng.random(50)
    block = gathered(problem(X, sign, dtype=np.float64).examples, np.arange(50, dtype=np.uint32))
    few = LowRank(block, sign, constant, ridge)
    whole = np.outer(sign, sign) * (X @ X.T + constant) + np.diag(ridge)
    x = rng.normal(size=50)
    np.testing.assert_allclose(few.times(x), whole @ x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(few.solver(diagonal)(x), np.linalg.solve(whole + np.diag(diagonal), x), rtol=1e-7)
    assert (few.dense is not None) == (share > 0.5), "both ways were gone"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_tall_data_with_any_C_end_within_the_usual_passes(loss):
    """Far more rows are active than a Gram matrix could hold."""
    X, y = noisy(n=6000, d=12)
    for C in (10.0, 1e3, 1e5):
        p = problem(X, y, cost=C, loss=loss)
        (result,) = dcd(p, Settings(tol=1e-3))
        assert result.converged
        assert proved(p, result) <= 1e-3


def proved(p, result):
    """The gap of this answer, from scratch."""
    return certified(p, [result.w], [result.intercept], [result.alpha])[0].gap


def trace(gaps, active=100):
    return [Progress(k + 1, 0.0, 1.0, 1.0 - gap, gap, active, 1000) for k, gap in enumerate(gaps)]


def test_a_tail_pays_where_the_gap_creeps_and_not_where_it_falls():
    creeps, falls = [0.1 * 0.999**k for k in range(30)], [0.1 * 0.2**k for k in range(30)]
    assert tail.pays(trace(creeps), 1000.0, 1e9, 1e-3, 1000)
    assert not tail.pays(trace(falls[:10]), 1000.0, 1e9, 1e-9, 1000)
    assert not tail.pays(trace(creeps[:5]), 1000.0, 1e9, 1e-3, 1000)
    assert not tail.pays(trace(creeps, active=tail.MOST + 1), 1000.0, 1e9, 1e-3, 1000)


def hard(n=120, d=200, seed=0):
    """Nearly as many dimensions as rows that matter, and a large C: coordinate descent creeps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0
    return X, np.where(rng.random(n) < 0.5, 1, -1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_a_tail_far_fewer_passes_find_the_same_optimum(monkeypatch, loss, intercept, dtype):
    X, y = hard()
    p = problem(X, y, cost=1.0, loss=loss, intercept=intercept, dtype=dtype)
    settings = Settings(tol=1e-4, max_passes=20_000)
    (short,) = dcd(p, settings)
    monkeypatch.setattr(dcd_module, "has_tail", lambda problem: False)
    (long,) = dcd(p, settings)
    assert short.reason is Reason.CONVERGED
    assert short.passes < 0.5 * long.passes
    assert short.primal == pytest.approx(long.primal, rel=3e-4)
    assert short.gap == pytest.approx(proved(p, short), rel=1e-6, abs=1e-12)


def test_several_problems_have_tails_of_their_own():
    X, y = hard()
    ys = np.stack([y, np.where(np.arange(len(y)) % 3, 1, -1)])
    together = dcd(problem(X, ys), Settings(tol=1e-4, max_passes=5000))
    for result in together:
        assert result.reason is Reason.CONVERGED
        assert result.gap <= 1e-4


def test_texts_of_unequal_length_converge_within_the_usual_passes():
    """Counts of words with C = 10: a thousand passes of coordinate descent do not suffice."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(400)]
    share = 1.0 / np.arange(1, 401)
    lines = [" ".join(rng.choice(words, rng.integers(1, 120), p=share / share.sum())) for _ in range(300)]
    y = np.where([line.count("w3 ") + rng.normal() > 1.5 for line in lines], 1, -1)
    svm = LinearSVM(BagOfWords(), C=10.0, solver="dcd", n_jobs=1, random_state=0).fit(lines, y)
    assert svm.result_.converged
    assert svm.result_.passes < 500


@pytest.mark.parametrize("seed", range(3))
def test_noisy_data_end_at_the_certified_optimum(seed):
    X, y = noisy(n=200, d=30, seed=seed)
    p = problem(X, y, cost=30.0)
    (result,) = dcd(p, Settings(tol=1e-6, max_passes=5000))
    assert result.converged
    assert proved(p, result) <= 1e-6


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float64_leave_alpha_as_it_was():
    X, y = hard(n=30)
    p = problem(1e160 * X, y, cost=1e300)
    start = np.linspace(0.0, 1.0, 30)
    best = tail.solved_together(p, 0, np.arange(30, dtype=np.uint32), start, np.zeros(30), 1.0)
    assert best.tolist() == start.tolist()


def test_no_more_passes_are_foreseen_than_some_times_those_made():
    """A gap that rises for a moment does not mean a million passes, however many are allowed."""
    flat = [max(0.1 * 0.5**k, 2e-3) * (1.0 + 0.1 * (k % 3)) for k in range(30)]
    assert not tail.pays(trace(flat, active=3000), 14.0, 1e9, 1e-3, 10**6)
    assert tail.pays(trace(flat, active=3000), 14.0, 123, 1e-3, 60), "but it would not end in time"
    assert not tail.pays(trace(flat, active=3000), 14.0, 1e9, 1e-3, 60), "but ten seconds are long for sixty passes"


def test_a_time_limit_ends_the_quadratic_program():
    Q, r, u = program(60, 0)
    steps = []

    def check(share):
        steps.append(1)
        if len(steps) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        interior_qp(Full(Q), r, u, np.zeros(60), 0.0, check)
    assert len(steps) == 3


def test_the_share_that_is_done_rises_to_the_end():
    Q, r, u = program(60, 0)
    shares = []
    interior_qp(Full(Q), r, u, np.zeros(60), 1e-9, shares.append)
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert 0.5 < shares[-1] < 1.0


def test_a_tail_is_told_of_while_it_goes_on():
    X, y = hard()
    told = []
    settings = Settings(tol=1e-3, on_progress=lambda progress, k: told.append(progress))
    (result,) = dcd(problem(X, y, cost=100.0), settings)
    assert result.seconds["tail"] > 0.0
    tails = [progress.tail for progress in told if progress.tail is not None]
    assert len(tails) > 3
    assert [progress for progress in told if progress.tail is None] == result.trace
