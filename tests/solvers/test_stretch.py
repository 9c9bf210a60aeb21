"""The best multiple of an answer on its way: none nearby is better, and what is returned is proved as it is."""

import numpy as np
import pytest
from problems import certified, noisy, problem

from dotadd.core.losses import total_loss
from dotadd.solvers import dcd as dcd_module
from dotadd.solvers.certify import Judge
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.stretch import LONGEST, ROUNDED, SHORTEST, stretch


def on_the_way(loss, intercept, seed):
    """A problem, the answer after a few passes, what its rows tell, and its margins."""
    X, y = noisy(n=80, d=60, seed=seed)
    p = problem(X, y, cost=30.0, loss=loss, intercept=intercept)
    (result,) = dcd(p, Settings(tol=1e-9, max_passes=4))
    judge = Judge(p, 0, result.w, result.alpha, result.intercept)
    (output,) = p.outputs([result.w])
    margins = judge.see(p, slice(None), output, p.examples.squared_norms(), p.examples.longest)
    return p, result, judge, margins


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("seed", range(3))
def test_no_other_multiple_is_better_and_its_gap_is_what_a_proof_finds(loss, intercept, seed):
    p, result, judge, margins = on_the_way(loss, intercept, seed)
    t, gap = stretch(p, 0, margins, result.primal, judge.rows)
    cost = p.columns.cost(0)

    def primal(t):
        half = 0.5 * t * t * (result.w @ result.w + result.intercept**2)
        return half + total_loss(p.loss, t * margins, cost)

    lowest = min(primal(other) for other in np.linspace(SHORTEST, LONGEST, 200))
    assert gap <= min(result.gap, ROUNDED * (1.0 - result.dual / lowest)) * (1.0 + 1e-4)
    proof = certified(p, [t * result.w], [t * result.intercept], [result.alpha])[0]
    assert proof.primal == pytest.approx(primal(t), rel=1e-9)
    assert proof.gap == pytest.approx(gap / (ROUNDED if t != 1.0 else 1.0), rel=1e-6)


@pytest.mark.parametrize(("loss", "intercept"), [("logistic", "none"), ("hinge", "free")])
def test_where_it_would_prove_nothing_the_answer_stays(loss, intercept):
    p, result, judge, margins = on_the_way(loss, intercept, 0)
    t, gap = stretch(p, 0, margins, result.primal, judge.rows)
    assert t == 1.0
    assert gap == pytest.approx(judge.rows.gaps / result.primal)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_what_is_returned_is_proved_as_it_is_and_some_of_it_is_stretched(monkeypatch, dtype, loss, intercept):
    monkeypatch.setattr(dcd_module, "has_tail", lambda problem: False)
    X, y = noisy(n=80, d=60, seed=1)
    p = problem(X, y, cost=30.0, loss=loss, intercept=intercept, dtype=dtype)
    stretched = 0
    for tol in (0.3, 0.1, 0.05, 0.03, 0.02, 0.01):
        (result,) = dcd(p, Settings(tol=tol))
        assert result.reason is Reason.CONVERGED
        assert result.gap <= tol
        proof = certified(p, [result.w], [result.intercept], [result.alpha])[0]
        assert result.gap == pytest.approx(proof.gap, rel=1e-6)
        assert result.primal == pytest.approx(proof.primal, rel=1e-9)
        stretched += not np.allclose(result.w, X.T @ (result.alpha * y), rtol=1e-3, atol=1e-3)
    assert stretched > 0 or loss == "squared_hinge"  # whose margins lie lower at the optimum, too
