"""Every solver finds the optimum that an independent solver finds, on a dozen small problems of different kinds."""

from functools import cache

import naive
import numpy as np
import pytest
from problems import LOSSES, noisy, sparse

from dotadd import LinearSVM
from dotadd.core.block import Block
from dotadd.core.losses import Loss
from dotadd.data.batches import DenseRows, Strings
from dotadd.features import Linear, NGrams, Polynomial, Shape, WeightedDegree, WeightedSpectrum
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)

BATCH = ["ocas", "bmrm", "svmperf", "newton", "lbfgs"]
STOCHASTIC = ["sgd", "pegasos"]  # tol says when they stop, not how near they are
SLOW = {(solver, "hinge", f"{size} C") for solver in STOCHASTIC for size in ("large", "small")}  # 2e-3 to 5e-3 is left


def windows(n=50, width=12, seed=4):
    """DNA in which a G in the middle and the number of A tell the class, mostly."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(0, 4, (n, width))
    y = np.where((letters[:, width // 2] == 2) ^ ((letters == 0).sum(axis=1) > 4) ^ (rng.random(n) < 0.1), 1, -1)
    return Strings(np.frombuffer(b"ACGT", np.uint8)[letters].ravel(), width=width), y


def texts(n=40, seed=5):
    rng = np.random.default_rng(seed)
    words = ["prize", "noon", "free", "call", "lunch", "now"]
    chosen = [rng.choice(words, rng.integers(1, 5)) for _ in range(n)]
    y = np.array([1 if ("prize" in some) ^ (rng.random() < 0.15) else -1 for some in chosen])
    return Strings.from_list([" ".join(some).encode() for some in chosen]), y


def numbers(dense=False, **how):
    X, y = noisy(**how)
    return (DenseRows(X) if dense else sparse(X, np.float64)), y


def weights(n, low=0.2, high=3.0):
    return np.random.default_rng(6).uniform(low, high, n)


# name: phi, (batch, y), cost of each example or of all, intercept
PROBLEMS = {
    "dense": (Linear(), numbers(dense=True), 1.0, "regularized"),
    "sparse": (Linear(), numbers(), 1.0, "regularized"),
    "no intercept": (Linear(), numbers(seed=1), 1.0, "none"),
    "free intercept": (Linear(), numbers(seed=2, shift=2.0), 1.0, "free"),
    "imbalanced": (Linear(), numbers(n=80, seed=3, shift=4.0), 0.5, "regularized"),
    "imbalanced, free intercept": (Linear(), numbers(n=80, seed=3, shift=4.0), 0.5, "free"),
    "sample weights": (Linear(), numbers(seed=4), weights(60), "regularized"),
    "sample weights, some zero, free intercept": (Linear(), numbers(seed=4), np.maximum(weights(60) - 1.0, 0), "free"),
    "more features than rows": (Linear(), numbers(n=30, d=50, seed=5), 0.1, "regularized"),
    "large C": (Linear(), numbers(seed=6), 10.0, "regularized"),
    "small C": (Linear(), numbers(seed=7), 1e-3, "free"),
    "every row twice": (Linear(), (sparse(np.repeat(noisy()[0], 2, axis=0), np.float64), np.repeat(noisy()[1], 2)),
                        0.5, "free"),
    "polynomial": (Polynomial(2), numbers(n=40, d=5, seed=8), 0.1, "regularized"),
    "weighted degree": (WeightedDegree(3), windows(), 0.3, "regularized"),
    "hashed, normalized, stacked": (
        WeightedDegree(6).hashed(4).normalized() + WeightedSpectrum(2).normalized(), windows(), 1.0, "free"
    ),
    "text": (NGrams((2, 3)).hashed(7).normalized(), texts(), 1.0, "regularized"),
}  # fmt: skip


@cache
def case(name, loss, threads=1):
    """The problem, and its minimum by the independent solver."""
    phi, (batch, y), cost, intercept = PROBLEMS[name]
    phi = phi.resolve(Shape.of(batch))
    cost = np.broadcast_to(np.asarray(cost, np.float64), len(y)).copy()
    bound = phi.bound(batch)
    block = Block.scratch(np.broadcast_to(bound, len(y)), phi.dim, dtype=np.float64)
    phi.fill(batch, np.arange(len(y)), block)
    best, _, _ = naive.solve(naive.matrix(block, phi.dim), y, cost, loss, intercept)
    examples = InMemory(phi, batch, dtype=np.float64, threads=threads)
    return Problem(examples, Columns.of([y.astype(np.int8)], cost), Loss.named(loss), Intercept(intercept)), best


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum_of_an_independent_solver(solver, loss, name):
    if solver == "newton" and loss == "hinge":
        pytest.skip("newton needs a smooth loss, and says so")
    problem, best = case(name, loss)
    within = 1e-6 if solver in BATCH else 5e-3 if (solver, loss, name) in SLOW else 1e-3
    settings = Settings(tol=1e-5 if solver in STOCHASTIC else within / 2, max_passes=30_000)
    (result,) = SOLVERS[solver](problem, settings, None)
    assert best * (1 - 1e-7) <= result.primal <= best * (1 + within)
    if result.gap is not None:
        assert result.gap <= within
        assert result.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_on_two_threads_have_the_bits_of_one(loss):
    X, _ = noisy(n=300, d=20, seed=5)
    labels = np.random.default_rng(5).integers(0, 7, 300)
    fits = [LinearSVM(solver="dcd", loss=loss, tol=1e-4, n_jobs=jobs, random_state=0).fit(X, labels) for jobs in (1, 2)]
    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
    assert [result.passes for result in fits[0].result_] == [result.passes for result in fits[1].result_]
