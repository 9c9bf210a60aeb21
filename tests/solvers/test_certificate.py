"""The certificate of an answer on examples that pass by is what the definitions say, for any w and any alpha."""

import naive
import numpy as np
import pytest
from naive import by_definition
from problems import INTERCEPTS, LOSSES, certified, flow_of, noisy, sparse

from dotadd.data.batches import Strings
from dotadd.errors import DataError
from dotadd.features import Linear, NGrams, WeightedDegree
from dotadd.problem import on_disk
from dotadd.problem.examples import InMemory
from dotadd.solvers import certify as certificate


def nothing():
    """No deadline and no Ctrl-C."""


def strings(n=120, width=9, seed=0):
    letters = np.random.default_rng(seed).integers(0, 4, (n, width))
    return Strings(np.frombuffer(b"ACGT", np.uint8)[letters].ravel(), width=width)


CASES = {
    "sparse": (Linear(), sparse(noisy(n=120)[0], np.float64), np.float64),
    "text": (NGrams(3, bits=9), strings(), np.float32),
    "weighted degree": (WeightedDegree(6).hashed(4).normalized(), strings(), np.float32),
}


@pytest.fixture(autouse=True)
def several_pieces(monkeypatch):
    monkeypatch.setattr(on_disk, "SMALLEST", 100)


def answers(n, dim, problems, cost, loss="hinge", dtype=np.float64):
    """Any w, and any alpha within its bounds."""
    rng = np.random.default_rng(0)
    ws = [(0.1 * rng.normal(size=dim)).astype(dtype) for _ in range(problems)]
    most = 2.0 if loss == "squared_hinge" else 1.0
    alphas = [cost * most * rng.random(n) * (rng.random(n) < 0.7) for _ in range(problems)]
    return ws, list(rng.normal(size=problems)), alphas


def balanced(alpha, y):
    """The heavier side scaled down."""
    positive, negative = alpha[y > 0].sum(), alpha[y < 0].sum()
    least = min(positive, negative)
    return alpha * np.where(y > 0, least / positive, least / negative)


def made(name="sparse", *, loss="hinge", intercept="regularized", problems=2, **options):
    phi, batch, dtype = CASES[name]
    n, rng = len(batch), np.random.default_rng(1)
    cost = rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.9)
    ys = np.where(rng.random((problems, n)) < 0.4, 1, -1)
    streamed = flow_of(batch, phi, ys, cost, loss=loss, intercept=intercept, dtype=dtype, **options)
    (block, _, _) = next(InMemory(streamed.examples.phi, batch, dtype=dtype).blocks())
    return streamed, naive.matrix(block, streamed.examples.phi.dim), ys, cost


def readings(streamed):
    """The same streamed, and how often it was read, whole or in part."""
    count = []

    def read(nbytes, plain=streamed.examples.read):
        count.append(nbytes)
        return plain(nbytes)

    streamed.examples.read = read
    return count


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_primal_dual_and_gap_are_what_their_definitions_say(loss, intercept):
    streamed, X, ys, cost = made(loss=loss, intercept=intercept)
    count = readings(streamed)
    ws, bs, alphas = answers(*X.shape, 2, cost, loss)
    if intercept == "none":
        bs = [0.0, 0.0]
    given = [alpha.copy() for alpha in alphas]
    for k, found in enumerate(certified(streamed, ws, bs, alphas, nothing)):
        if intercept == "free":
            np.testing.assert_allclose(alphas[k], balanced(given[k], ys[k]), rtol=1e-12)
            grid = [naive.primal(X, ys[k], cost, loss, ws[k], b, intercept) for b in np.linspace(-5.0, 5.0, 2001)]
            assert found.primal <= min(grid) * (1.0 + 1e-9)
        else:
            assert found.intercept == bs[k]
            np.testing.assert_array_equal(alphas[k], given[k])
        primal, dual = by_definition(X, ys[k], cost, loss, intercept, ws[k], found.intercept, alphas[k])
        assert found.primal == pytest.approx(primal)
        assert found.dual == pytest.approx(dual)
        assert found.gap == pytest.approx((primal - dual) / primal)
        drift = ws[k] - (given[k] * ys[k]) @ X
        drift_b = bs[k] - given[k] @ ys[k] if intercept == "regularized" else 0.0
        assert found.drift == pytest.approx(0.5 * (drift @ drift + drift_b**2) / primal)
    assert len(count) == 1, "one reading tells it all"


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_stretches_and_threads_do_not_change_it(name, threads, intercept, monkeypatch):
    streamed, X, _, cost = made(name, intercept=intercept, memory=100)
    ws, bs, alphas = answers(*X.shape, 2, cost, dtype=streamed.examples.dtype)
    whole = certified(streamed, ws, bs, [alpha.copy() for alpha in alphas], nothing)
    streamed, *_ = made(name, intercept=intercept, memory=100, threads=threads)
    sums = 4 if intercept == "free" else 2
    monkeypatch.setattr(certificate, "SUM_BYTES", 8 * sums * (-(-X.shape[1] // 3)))
    count = readings(streamed)
    in_stretches = certified(streamed, ws, bs, alphas, nothing)
    assert len(count) >= 4, "a look at the first piece, and a reading for each stretch"
    np.testing.assert_allclose(in_stretches, whole, rtol=1e-6)
    monkeypatch.setattr(certificate, "SUM_BYTES", 8 * sums * X.shape[1])  # enough for the sums, not for two threads
    np.testing.assert_allclose(certified(streamed, ws, bs, alphas, nothing)[0][:3], whole[0][:3], rtol=1e-6)


def test_problems_can_be_asked_for_by_number():
    streamed, X, _, cost = made(problems=3)
    ws, bs, alphas = answers(*X.shape, 3, cost)
    every = certified(streamed, ws, bs, alphas, nothing)
    some = certified(streamed, [ws[2], ws[0]], [bs[2], bs[0]], [alphas[2], alphas[0]], nothing, which=[2, 0])
    np.testing.assert_allclose(some, [every[2], every[0]], rtol=1e-12)


def test_an_answer_beyond_the_tolerance_keeps_its_dual_variables():
    streamed, X, ys, cost = made(intercept="free", problems=1)
    ws, bs, alphas = answers(*X.shape, 1, cost)
    given = alphas[0].copy()
    (found,) = certified(streamed, ws, bs, alphas, nothing, tol=1e-3)
    assert found.gap > 1e-3
    np.testing.assert_array_equal(alphas[0], given)
    (again,) = certified(streamed, ws, bs, alphas, nothing, tol=found.gap)
    assert again == found
    np.testing.assert_allclose(alphas[0], balanced(given, ys[0]), rtol=1e-12)


def test_dual_variables_may_lie_on_a_memory_map(tmp_path):
    streamed, X, _, cost = made(intercept="free", problems=1)
    ws, bs, alphas = answers(*X.shape, 1, cost)
    mapped = np.memmap(tmp_path / "alpha", np.float64, "w+", shape=len(X))
    mapped[:] = alphas[0]
    assert certified(streamed, ws, bs, [mapped], nothing) == certified(streamed, ws, bs, alphas, nothing)
    np.testing.assert_array_equal(mapped, alphas[0])


@pytest.mark.parametrize(("more", "complaint"), [(-1, "had 119 rows.*brings more"), (1, "had 121 rows.*only 120")])
def test_a_flow_of_another_length_is_refused(more, complaint):
    streamed, X, _, cost = made()
    ws, bs, alphas = answers(len(X) + 1, X.shape[1], 2, np.append(cost, 1.0))
    streamed.examples._rows = len(streamed.examples) + more
    with pytest.raises(DataError, match=complaint):
        certified(streamed, ws, bs, alphas, nothing)


@pytest.mark.parametrize("threads", [1, 2])
def test_check_is_called_after_each_piece_and_what_it_raises_ends_the_reading(threads):
    streamed, X, _, cost = made(threads=threads)
    ws, bs, alphas = answers(*X.shape, 2, cost)
    pieces = sum(1 for _ in streamed.examples.read(streamed.examples.piece_bytes))
    calls, ended = [], []
    certified(streamed, ws, bs, alphas, lambda: calls.append(1))
    assert len(calls) == pieces > 3

    def read(nbytes, plain=streamed.examples.read):
        try:
            yield from plain(nbytes)
        finally:
            ended.append(1)

    def interrupt():
        raise KeyboardInterrupt

    streamed.examples.read = read
    with pytest.raises(KeyboardInterrupt):
        certified(streamed, ws, bs, alphas, interrupt)
    assert ended == [1]


def test_an_answer_that_goes_on_together_with_a_bad_one_keeps_its_alpha():
    streamed, X, _, cost = made(intercept="free")
    ws, bs, alphas = answers(*X.shape, 2, cost)
    given = [alpha.copy() for alpha in alphas]
    gaps = sorted(found.gap for found in certified(streamed, ws, bs, alphas, nothing, tol=0.0))
    between = float(np.mean(gaps))
    assert gaps[0] < between < gaps[1]
    certified(streamed, ws, bs, alphas, nothing, tol=between)
    assert all(np.array_equal(alpha, before) for alpha, before in zip(alphas, given, strict=True))
    certified(streamed, ws, bs, alphas, nothing, tol=between, together=False)
    assert sum(np.array_equal(alpha, before) for alpha, before in zip(alphas, given, strict=True)) == 1
