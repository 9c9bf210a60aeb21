"""No certificate claims more than exact arithmetic grants, on hostile problems: of any scale, any C, with duplicates,
rows of zeros and classes of one row; and no answer with numbers that are none counts as one."""

import warnings

import exact
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, flow_of, problem, sparse, squared_distances

from dotadd import LinearSVM
from dotadd.core.losses import Loss
from dotadd.errors import DotaddError, NotConvergedWarning
from dotadd.features import Linear
from dotadd.problem.problem import Intercept
from dotadd.solvers.proof import Rounding, RowSums
from dotadd.solvers.result import Reason, Result, relative_gap
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)
STREAMING = that_need(Needs.PIECES)

SETTINGS = Settings(tol=1e-3, max_passes=60)


def proving(loss):
    """The solvers with dual variables; newton needs a smooth loss."""
    return [name for name in SOLVERS if name not in ("sgd", "pegasos") and (name != "newton" or loss != "hinge")]


def ordinary(rng):
    return rng.normal(size=(12, 3)), np.where(rng.random(12) < 0.5, 1, -1)


def epoch(rng):
    """Rates beside milliseconds since 1970."""
    X = np.column_stack([1.7e12 + 1e9 * rng.random(12), rng.normal(size=12)])
    return X, np.where(X[:, 1] + 0.3 * rng.normal(size=12) > 0, 1, -1)


def duplicates(rng):
    X = np.repeat(rng.normal(size=(4, 3)), 3, axis=0)
    return X, np.tile([1, -1, 1], 4)


def one_row_of_a_class(rng):
    X = rng.normal(size=(9, 2))
    X[3:5] = 0.0
    return X, np.array([1] + [-1] * 8)


def far_columns(rng):
    """Columns from 1e-8 to 1e8."""
    return rng.normal(size=(12, 5)) * 10.0 ** np.array([-8, -3, 0, 3, 8]), np.where(rng.random(12) < 0.4, 1, -1)


CASES = {
    "ordinary": (ordinary, 1.0, 1.0),
    "tiny C": (ordinary, 1.0, 1e-12),
    "huge C": (ordinary, 1.0, 1e12),
    "values of 1e-30": (ordinary, 1e-30, 1.0),
    "values of 1e8": (ordinary, 1e8, 1.0),
    "values of 1e15": (ordinary, 1e15, 1.0),
    "values of 1e30": (ordinary, 1e30, 1.0),
    "values of 1e8, tiny C": (ordinary, 1e8, 1e-12),
    "values of 1e-8, huge C": (ordinary, 1e-8, 1e12),
    "milliseconds": (epoch, 1.0, 1.0),
    "duplicates": (duplicates, 1.0, 10.0),
    "one row of a class": (one_row_of_a_class, 1.0, 1.0),
    "far columns": (far_columns, 1.0, 1.0),
}


def rows(name):
    make, scale, cost = CASES[name]
    X, y = make(np.random.default_rng(list(CASES).index(name)))
    return (scale * X).astype(np.float32), y, np.full(len(y), cost)


def require_truth(result, X, y, cost, loss, intercept):
    """What the result claims, exact arithmetic grants."""
    if result.reason is Reason.DIVERGED:
        assert result.gap is None or np.isnan(result.gap)
        return
    true = exact.primal(X, y, cost, loss, intercept, result.w, result.intercept)
    if result.gap is None:
        return
    best = exact.dual(X, y, cost, loss, intercept, result.alpha)
    assert float(result.dual) <= best or np.isclose(result.dual, float(best), rtol=1e-14, atol=0.0)
    assert abs(result.primal - float(true)) <= max(1e-9, result.gap) * float(true)
    assert float((true - best) / true) <= result.gap * (1.0 + 1e-9)
    assert result.reason is not Reason.CONVERGED or result.gap <= SETTINGS.tol


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", CASES)
def test_no_solver_claims_more_than_exact_arithmetic_grants(name, loss):
    """Each solver on each problem with each loss and each intercept. The type of w goes around, so that each of these
    pairs has both, and so do the streaming solvers, whose certificates are the same code with every intercept."""
    X, y, cost = rows(name)
    turn = list(CASES).index(name) + LOSSES.index(loss)
    for number, intercept in enumerate(INTERCEPTS):
        dtype = (np.float32, np.float64)[(turn + number) % 2]
        one = problem(X, y, cost=cost, loss=loss, intercept=intercept, dtype=dtype)
        for solver in proving(loss):
            (result,) = SOLVERS[solver](one, SETTINGS, None)
            require_truth(result, X, y, cost, loss, intercept)
        for solve in STREAMING.values() if number == turn % len(INTERCEPTS) else ():
            how = {"loss": loss, "intercept": intercept, "dtype": np.float32}
            (result,) = solve(flow_of(sparse(X), Linear(), y, cost, memory=1 << 20, **how), SETTINGS)
            require_truth(result, X, y, cost, loss, intercept)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_bound_of_the_rounding_holds_for_any_w_and_any_alpha(loss, intercept):
    rng = np.random.default_rng(5)
    for _ in range(40):
        scale, C = 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-6, 6)
        X = (scale * rng.normal(size=(20, 4)) * 10.0 ** rng.uniform(-3, 3, 4)).astype(np.float32)
        y, cost = np.where(rng.random(20) < 0.5, 1, -1), C * rng.uniform(0.5, 2.0, 20)
        one = problem(X, y, cost=cost, loss=loss, intercept=intercept, dtype=np.float64)
        alpha = cost * rng.random(20) * rng.integers(0, 2, 20)
        if intercept == "free":
            heavy = max((1, -1), key=lambda side: alpha[y == side].sum())
            alpha[y == heavy] *= alpha[y != heavy].sum() / max(alpha[y == heavy].sum(), 1e-300)
        w = (alpha * y) @ X.astype(np.float64) + rng.choice([0.0, 1e-9]) * rng.normal(size=4)
        b = {"none": 0.0, "regularized": float(alpha @ y), "free": rng.normal()}[intercept]
        (output,), norms, terms = one.examples.see([w])
        margins = one.margins(output, b, 0)
        sums = RowSums.of(one.loss, margins, alpha, one.columns.sign(0), cost, norms, Rounding.of(w, b, terms))
        (distance,) = squared_distances(one.examples, [alpha * y], [w])
        found = sums.certificate(w, one.intercept, b, distance)
        true, best = (
            exact.primal(X, y, cost, loss, intercept, w, b),
            exact.dual(X, y, cost, loss, intercept, alpha),
        )
        assert found.dual <= best
        assert found.gap * found.primal >= true - best
        if float((true - best) / true) > 1e-9:  # and it is no more than rounding
            assert found.gap == pytest.approx(float((true - best) / true), rel=1e-3)


def test_sums_of_pieces_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    margins, alpha, norms = rng.normal(size=30), rng.random(30), rng.random(30)
    sign, cost, rounding = np.where(rng.random(30) < 0.5, 1, -1), np.ones(30), Rounding(5, 2.0, 1.0)

    def of(some):
        return RowSums.of(Loss.HINGE, margins[some], alpha[some], sign[some], cost[some], norms[some], rounding)

    joined, whole = of(slice(0, 11)) + of(slice(11, 30)), of(slice(0, 30))
    for name, value in whole.__dict__.items():
        assert getattr(joined, name) == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize("loss", LOSSES)
def test_dual_variables_of_rows_that_cost_nothing_prove_nothing(loss):
    """As they are left by an answer to a problem in which these rows did count."""
    margins, sign, norms = np.array([0.5, 2.0]), np.ones(2), np.ones(2)
    for alpha, proves in ((0.0, True), (0.3, False)):
        one = Loss.named(loss), margins, np.array([0.2, alpha]), sign, np.array([1.0, 0.0]), norms
        sums = RowSums.of(*one, Rounding(1, 1.0, 0.0))
        certificate = sums.certificate(np.ones(1), Intercept.NONE, 0.0, 0.0)
        assert bool(certificate.gap < 1.0) == proves


def test_a_gap_of_what_is_not_a_number_is_none():
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(2.0, -1e-17) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0
    for primal, gap in [(np.nan, 0.0), (1.0, np.nan), (np.inf, 0.0), (-47.0, 0.0), (1.0, np.inf)]:
        assert np.isnan(relative_gap(primal, gap))


@pytest.mark.parametrize("wrong", ["w", "intercept", "primal", "gap"])
def test_an_answer_with_a_number_that_is_none_has_diverged_whatever_its_solver_says(wrong):
    numbers = {"w": np.ones(2), "intercept": 0.0, "primal": 1.0, "gap": 0.0} | {wrong: np.nan}
    numbers["w"] = np.ones(2) * numbers["w"]
    result = Result(duals=None, dual=1.0, reason=Reason.CONVERGED, passes=1, seconds={}, **numbers)
    assert result.reason is Reason.DIVERGED
    assert not result.converged
    assert np.isnan(result.gap)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_training_ends_soon_when_numbers_are_no_longer_finite(loss, intercept):
    """No thousand passes over NaN, and no claim."""
    X, y = ordinary(np.random.default_rng(0))
    X[3, 1] = np.inf
    settings = Settings(max_passes=1000)
    for solver in [*proving(loss), "sgd"]:
        one = problem(X, y, loss=loss, intercept=intercept)
        with np.errstate(all="ignore"):
            (result,) = SOLVERS[solver](one, settings, None)
        assert result.reason is Reason.DIVERGED, solver
        assert result.passes < 50, solver
    for name, solve in STREAMING.items():
        (result,) = solve(flow_of(sparse(X, np.float64), Linear(), y, loss=loss, intercept=intercept), settings)
        assert result.reason is Reason.DIVERGED, name
        assert result.passes < 50, name


@pytest.mark.parametrize("solver", ["dcd", "newton", "stream", "block_minimization"])
def test_fit_raises_what_to_do_where_no_weights_come_out(solver, monkeypatch):
    """Whatever gets past the door: a model of NaN is none."""
    monkeypatch.setattr(Result, "usable", property(lambda self: False))
    X, y = ordinary(np.random.default_rng(0))
    svm = LinearSVM(loss="logistic", intercept="free", solver=solver)
    with pytest.raises(DotaddError, match=r"training diverged: with C = 1 .* scale the features"):
        svm.fit(X, y)
    assert not hasattr(svm, "model_")


def test_an_objective_that_stalls_above_the_tolerance_is_warned_about():
    """lbfgs on values of 1e8 once stalled at a gap of 0.998 and counted as converged."""
    X, y = ordinary(np.random.default_rng(0))
    settings = {"solver": "lbfgs", "tol": 1e-6, "max_passes": 2000}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svm = LinearSVM(loss="squared_hinge", C=1e6, **settings).fit(1e8 * X, y)
    assert svm.result_.gap <= 1e-6 or any(issubclass(one.category, NotConvergedWarning) for one in caught)


@pytest.mark.parametrize("gap", [0.5, None])
def test_stalled_is_converged_only_where_no_gap_is_known(gap):
    dual = None if gap is None else 0.5
    result = Result(np.ones(2), 0.0, None, 1.0, dual, gap, Reason.STALLED, 3, {})
    assert result.converged == (gap is None)
