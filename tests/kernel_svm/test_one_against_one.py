"""Several classes: every pair has the answer that it has alone, whatever memory and threads there are."""

import os
import signal
import threading
import time
from itertools import combinations

import numpy as np
import pytest
from kernel_problems import MatrixGram, assert_feasible, best_dual, dual, rbf, violation

from dotadd import KernelSVM
from dotadd.errors import NotConvergedWarning
from dotadd.kernel_svm import one_against_one, shared_rows
from dotadd.kernel_svm.double_chunking import double_chunking
from dotadd.kernel_svm.one_against_one import OneAgainstOne, PairShares, in_turns, pairs, tournament
from dotadd.kernel_svm.problem import SOLVERS, KernelProblem, KernelSettings
from dotadd.solvers.result import Reason

SIZES = [40, 9, 31, 25, 17]
WAYS = {
    "matrix": {},
    "whole blocks": {"TINY": 0},
    "rows": {"WHOLE": 0},
}
ROOM = {"matrix": 10**6, "whole blocks": 10**6, "rows": 4 * 60 * 120}


def clouds(sizes=SIZES, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), 3)) + rng.normal(size=(len(sizes), 3))[y], y


def games(way, monkeypatch, *, threads=1, memory=None, solve=double_chunking, **settings):
    for name, value in WAYS[way].items():
        monkeypatch.setattr(one_against_one, name, value)
    X, _ = clouds()
    gram, first = MatrixGram(rbf(X, 0.5)), np.concatenate([[0], np.cumsum(SIZES)])
    cost = np.random.default_rng(1).uniform(0.5, 3.0, len(X))
    settings = KernelSettings(memory=ROOM[way] if memory is None else memory, threads=threads, tol=1e-4, **settings)
    return OneAgainstOne(gram, first, cost, solve, settings)


@pytest.mark.parametrize("classes", range(2, 14))
def test_every_pair_meets_once_and_no_class_twice_in_a_round(classes):
    order = tournament(classes)
    assert sorted(order) == list(pairs(classes)) == list(combinations(range(classes), 2))
    step = classes // 2
    for first in range(0, len(order), step):
        playing = [one for pair in order[first : first + step] for one in pair]
        assert len(playing) == len(set(playing)) == 2 * step


def test_pairs_of_a_class_are_taken_in_order_and_never_together():
    order, lock, busy, done = tournament(7), threading.Lock(), set(), []

    def work(pair):
        with lock:
            assert busy.isdisjoint(pair)
            busy.update(pair)
        time.sleep(0.001 * (sum(pair) % 3))
        with lock:
            busy.difference_update(pair)
            done.append(pair)

    in_turns(order, work, 3)
    for one in range(7):
        assert [pair for pair in done if one in pair] == [pair for pair in order if one in pair]


def test_an_error_in_one_thread_ends_all():
    def work(pair):
        if pair == (1, 3):
            raise ZeroDivisionError
        time.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        in_turns(tournament(8), work, 3)


@pytest.mark.parametrize("memory", [10**3, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("seed", range(5))
def test_shares_stay_within_the_memory_and_do_not_depend_on_threads(memory, seed):
    sizes = np.random.default_rng(seed).integers(1, 3000, 2 + 3 * seed).tolist()
    alone = PairShares.of(sizes, memory, 1)
    for threads in (1, 2, 5, 64):
        shares = PairShares.of(sizes, memory, threads)
        assert shares[:4] == alone[:4]
        everyone = 4 * sum(sizes) ** 2 if shares.full else 0
        assert everyone + shares.within + shares.at_once * shares.pair <= memory
        assert 1 <= shares.at_once <= threads


@pytest.mark.parametrize("way", WAYS)
def test_every_pair_reaches_the_optimum_of_a_qp_solver(way, monkeypatch):
    mine = games(way, monkeypatch)
    assert (mine.shares.full, mine.shares.whole) == (way == "matrix", way != "rows")
    first = np.concatenate([[0], np.cumsum(SIZES)])
    for (i, j), result in zip(pairs(5), mine.solved(), strict=True):
        rows = np.concatenate([np.arange(first[k], first[k + 1]) for k in (i, j)])
        sign = np.repeat([1, -1], [SIZES[i], SIZES[j]]).astype(np.int8)
        alone = KernelProblem(MatrixGram(mine.gram.matrix[np.ix_(rows, rows)]), sign, mine.cost[rows])
        assert result.converged
        assert_feasible(alone, result.alpha)
        assert dual(alone, result.alpha) == pytest.approx(best_dual(alone), rel=1e-4)
        assert result.dual == pytest.approx(dual(alone, result.alpha), rel=1e-5)
        assert result.violation == pytest.approx(violation(alone, result.alpha), abs=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("way", WAYS)
def test_the_number_of_threads_does_not_change_a_bit(way, solver, monkeypatch):
    for name, value in WAYS[way].items():
        monkeypatch.setattr(one_against_one, name, value)
    rng = np.random.default_rng(5)
    y = rng.integers(0, 6, 500)
    X = rng.normal(size=(500, 30)) + rng.normal(size=(6, 30))[y]
    memory = 600_000 if way == "rows" else 10**8
    one, *others = (
        KernelSVM(C=2.0, solver=solver, memory=memory, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3)
    )
    for other in others:
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        assert [result.violation for result in one.result_] == [result.violation for result in other.result_]


def test_where_all_fit_each_value_is_made_once(monkeypatch):
    for way in ("matrix", "whole blocks"):
        monkeypatch.setattr(shared_rows, "STRIP", 1)
        monkeypatch.setattr(shared_rows, "FEWEST", 1)
        mine = games(way, monkeypatch)
        mine.solved()
        n = sum(SIZES)
        assert sum(a * b for a, b in mine.gram.blocks) == n * (n + 1) / 2


def test_rows_within_a_class_are_made_once_for_all_pairs(monkeypatch):
    """With room for all of them; a row is made again where there is none."""
    made = {}
    for memory in (4 * 2000, 10**7):
        mine = games("rows", monkeypatch, memory=memory)
        mine.solved()
        made[memory] = sum(a * b for a, b in mine.gram.blocks)
        kept = [one.values.nbytes for one in mine.within]
        assert sum(kept) <= memory / 2
    assert made[10**7] < made[4 * 2000]


def test_ctrl_c_ends_all_pairs_and_keeps_the_model():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 800)
    X, told = rng.normal(size=(800, 5)), []

    def press(progress, k, n):
        told.append(k)
        if len(told) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    svm = KernelSVM(C=100.0, gamma=1.0, random_state=0, n_jobs=2)
    with pytest.warns(NotConvergedWarning), pytest.raises(KeyboardInterrupt):
        svm.fit(X, y, on_progress=press)
    reasons = [result.reason for result in svm.result_]
    assert len(reasons) == 6
    assert reasons.count(Reason.INTERRUPTED) >= 2
    assert svm.predict(X).shape == (800,)


def test_one_who_listens_may_end_it_by_ctrl_c_from_any_thread():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 600)

    def enough(progress, k, n):
        raise KeyboardInterrupt

    svm = KernelSVM(C=100.0, gamma=1.0, random_state=0, n_jobs=2)
    with pytest.warns(NotConvergedWarning), pytest.raises(KeyboardInterrupt):
        svm.fit(rng.normal(size=(600, 5)), y, on_progress=enough)
    assert len(svm.result_) == 15
    assert Reason.INTERRUPTED in {result.reason for result in svm.result_}
