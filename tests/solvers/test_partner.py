"""Two threads at one problem whose rows are long: the answer of one, to the bit, whoever of them does what."""

import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from dotadd import NGrams
from dotadd._util.memory import Budget
from dotadd._util.threads import beside
from dotadd.core import kept
from dotadd.core.losses import Loss
from dotadd.data.batches import Strings
from dotadd.features import filling
from dotadd.features.base import Shape
from dotadd.problem.columns import Columns
from dotadd.problem.examples import InMemory
from dotadd.problem.problem import Intercept, Problem
from dotadd.solvers import partner, sweep
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.clock import StoppedError
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings

LOSSES = ["hinge", "squared_hinge", "logistic"]
INTERCEPTS = ["none", "regularized", "free"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Rows of a few hundred non-zeros count as long ones."""
    monkeypatch.setattr(kept, "LONG_ROWS", 10)
    monkeypatch.setattr(partner, "LEAST_MEAN", 1.0)


def lines(count=300, seed=0):
    """Texts of any length, also empty ones, in which letters and so n-grams come again and again."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.5, 1, -1)
    length = rng.integers(0, 700, count)
    length[::17] = 0
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ", np.uint8)
    odds = np.ones((2, 27))
    odds[1, :3] += 1.0
    odds /= odds.sum(1)[:, None]
    return ["".join(map(chr, rng.choice(letters, n, p=odds[(k + 1) // 2]))) for n, k in zip(length, y, strict=True)], y


def problem(threads, loss="hinge", intercept="regularized", dtype=np.float32, bits=16, cost=1.0):
    texts, y = lines()
    batch = Strings.from_list(texts)
    phi = NGrams((2, 3), bits=bits).normalized().resolve(Shape.of(batch))
    examples = InMemory(phi, batch, dtype=dtype, threads=threads, budget=Budget(1 << 28))
    columns = Columns.of([y.astype(np.int8)], np.full(len(y), cost))
    return Problem(examples, columns, Loss.named(loss), Intercept(intercept))


@pytest.fixture
def said(monkeypatch):
    """The talk of each sweep that had a partner, who is there before the sweep begins."""
    talks = []
    real = partner.partner

    @contextmanager
    def noted(block, order, active, w, talk):
        talks.append(talk)
        with real(block, order, active, w, talk):
            until = time.monotonic() + 60
            while talk.view(np.int64)[partner.STATE] != partner.HERE and time.monotonic() < until:
                time.sleep(1e-4)
            yield

    monkeypatch.setattr(sweep, "partner", noted)
    return talks


def trusting(monkeypatch, spins=partner.MOST_SPINS):
    """Leader and partner go on together at once, and part when one has to wait for so long."""
    real = partner.new_talk

    def new_talk():
        talk = real()
        talk[partner.NEED], talk[partner.SPINS] = 0.0, spins
        return talk

    monkeypatch.setattr(sweep, "new_talk", new_talk)


def same(one, two):
    assert one.w.tobytes() == two.w.tobytes()
    assert one.alpha.tobytes() == two.alpha.tobytes()
    assert (one.gap, one.passes, one.reason) == (two.gap, two.passes, two.reason)


def solved(threads, *args, **settings):
    return dcd(problem(threads, *args), Settings(**{"tol": 1e-3} | settings))[0]


def alone(*args, **settings):
    """The same without a partner; other threads still add up rows of a proof, which depends on how many there are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sweep, "worth_it", lambda *_: False)
        return solved(2, *args, **settings)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_two_threads_have_the_bits_of_one(loss, intercept, said, monkeypatch):
    trusting(monkeypatch)
    two, again = solved(2, loss, intercept), solved(2, loss, intercept)
    assert max(talk[partner.FIRST] for talk in said) >= 0.0, "they were never together"
    same(two, again)
    same(two, alone(loss, intercept))
    assert two.gap <= 1e-3
    one = solved(1, loss, intercept)
    assert abs(one.primal - two.primal) <= 1e-3 * one.primal
    if intercept != "free":  # for which changes of all rows are added up on threads
        same(two, one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cost", [1.0, 100.0])
def test_the_bits_are_the_same_however_often_they_part(dtype, cost, said, monkeypatch):
    monkeypatch.setattr(filling, "CALL_NONZEROS", 2000)  # a few rows for each call
    expected = alone("hinge", "regularized", dtype, 16, cost)
    trusting(monkeypatch, spins=0.0)
    began = set()
    real = sweep._visit

    def visit(picked, norms, step, loss, shrink, moved):
        real(picked, norms, step, loss, shrink, moved)
        began.add(moved[0].talk[partner.FIRST])

    monkeypatch.setattr(sweep, "_visit", visit)
    same(solved(2, "hinge", "regularized", dtype, 16, cost), expected)
    assert len(began) > 2, "they never parted to come together again"


@pytest.mark.parametrize("error", [KeyboardInterrupt, StoppedError])
def test_a_sweep_that_is_cut_short_goes_on_with_the_same_bits(error, said, monkeypatch):
    monkeypatch.setattr(filling, "CALL_NONZEROS", 2000)
    trusting(monkeypatch)

    def swept(threads, cuts):
        made = problem(threads)
        n = len(made.examples)
        descent = sweep.Descent(made.zeros(), made.intercept)
        variables = sweep.Variables(made.columns[0], np.zeros(n), np.ones(n, np.uint8))
        norms = made.examples.squared_norms() + 1.0
        left = list(cuts)

        def check():
            if left and descent.visited >= left[0]:
                left.pop(0)
                raise StoppedError(Reason.MAX_TIME) if error is StoppedError else error

        order = np.random.default_rng(2).permutation(n).astype(np.uint32)
        for _ in range(2):
            descent.begin_sweep()
            rest = order
            while len(rest):
                descent.visited = 0
                with suppress(error):
                    sweep.sweep(made.examples, rest, [(descent, variables)], norms, 1.0, Loss.HINGE, check=check)
                rest = rest[descent.visited :]
        assert not left
        return descent.w, variables.alpha

    one, two = swept(1, []), swept(2, [40, 100, 30])
    assert max(talk[partner.FIRST] for talk in said) >= 0.0
    assert [part.tobytes() for part in one] == [part.tobytes() for part in two]


def test_a_run_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path, said, monkeypatch):
    trusting(monkeypatch)
    heard = []

    def stop(progress, k):
        heard.append(k)
        if len(heard) == 4:
            raise KeyboardInterrupt

    where = Checkpoint(str(tmp_path / "c"), 1e9)
    before = solved(2, tol=1e-4, on_progress=stop, checkpoint=where)
    assert before.reason is Reason.INTERRUPTED
    same(solved(2, tol=1e-4, checkpoint=where), solved(2, tol=1e-4))


def test_time_that_is_over_ends_both(said, monkeypatch):
    trusting(monkeypatch)
    result = solved(2, tol=1e-12, max_time=0.05, max_passes=10**9)
    assert result.reason is Reason.MAX_TIME
    assert solved(2).gap <= 1e-3


def test_a_partner_that_fails_is_heard_of(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("here")

    def begun(work):
        """Before the leader is done, however busy the machine is."""
        helping = beside(work)
        while not (helping.running() or helping.done()):
            time.sleep(1e-3)
        return helping

    monkeypatch.setattr(partner, "follow", fails)
    monkeypatch.setattr(partner, "beside", begun)
    with pytest.raises(ZeroDivisionError, match="here"):
        solved(2)


def test_a_partner_whom_nobody_calls_leaves(monkeypatch):
    made = problem(1)
    made.examples.squared_norms()
    block, order = made.examples.view, np.arange(len(made.examples), dtype=np.uint32)
    partner.follow(
        block.start, block.mid, block.end, block.indices, block.values, order, np.ones(len(order), np.uint8),
        made.zeros(), partner.new_talk(),
    )  # fmt: skip


def test_several_problems_and_short_rows_have_no_partner(monkeypatch):
    called = []
    monkeypatch.setattr(partner, "follow", lambda *_: called.append(1))
    _, y = lines()
    columns = Columns.of([y.astype(np.int8), np.roll(y, 3).astype(np.int8)], np.ones(len(y)))
    dcd(Problem(problem(2).examples, columns, Loss.HINGE, Intercept.NONE), Settings(tol=1e-9, max_passes=2))
    monkeypatch.setattr(partner, "LEAST_MEAN", 1e9)
    solved(2)
    assert not called
