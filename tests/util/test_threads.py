"""Work shared among threads: all of it is done once, failures arrive, and sums do not depend on who was faster."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import naive
import numpy as np
import pytest
from problems import dna, sparse, words

from dotadd._util import threads
from dotadd._util.threads import for_each, row_pieces
from dotadd.core.block import Block
from dotadd.data.batches import DenseRows, SparseRows
from dotadd.features import Linear, NGrams, Shape, WeightedDegree, WeightedSpectrum
from dotadd.problem import examples as expand
from dotadd.problem.examples import InMemory


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("items", [0, 1, 2, 37])
def test_each_item_is_worked_on_once(items, count):
    done = []
    for_each(range(items), done.append, count)
    assert sorted(done) == list(range(items))


def test_threads_work_at_the_same_time():
    both = threading.Barrier(2, timeout=10)
    for_each(range(2), lambda _: both.wait(), 2)


def test_the_pool_is_kept_and_no_larger_than_asked_for(monkeypatch):
    monkeypatch.setattr(threads, "_pool", None)  # another test may have asked for more
    monkeypatch.setattr(threads, "_size", 0)
    before = set(threading.enumerate())
    for _ in range(30):
        for_each(range(6), lambda _: time.sleep(0.0005), 3)
    started = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("dotadd")]
    assert 1 <= len(started) <= 2, "and the thread that asks is the third"
    for_each(range(6), lambda _: time.sleep(0.005), 5)
    assert threads._size == 4


def test_work_within_work_stays_in_its_thread():
    where = {}

    def outer(k):
        where[k] = (threading.get_ident(), set())
        for_each(range(4), lambda _: where[k][1].add(threading.get_ident()), 4)

    for_each(range(3), outer, 3)
    assert all(inside == {mine} for mine, inside in where.values())
    after = threading.Barrier(2, timeout=10)
    for_each(range(2), lambda _: after.wait(), 2)  # and it is over when the work is


def test_several_callers_share_the_pool():
    def sums(k):
        found = []
        for_each(range(50), lambda i: found.append(i * k), 3)
        return sum(found)

    with ThreadPoolExecutor(4) as callers:
        assert list(callers.map(sums, range(20))) == [1225 * k for k in range(20)]


@pytest.mark.parametrize("fails", ["caller", "other"])
def test_a_failure_arrives_after_what_runs_has_ended_and_the_rest_is_dropped(fails):
    main, both = threading.get_ident(), threading.Barrier(2, timeout=10)
    begun, ended = [], []

    def work(k):
        begun.append(k)
        if k < 2:
            both.wait()  # both threads have an item
        if (threading.get_ident() == main) == (fails == "caller"):
            raise ValueError("broken")
        time.sleep(0.05)
        ended.append(k)

    with pytest.raises(ValueError, match="broken"):
        for_each(range(100), work, 2)
    assert len(begun) <= 3
    assert len(ended) == len(begun) - 1
    for_each(range(4), ended.append, 2)  # the pool is as good as before


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_waits_for_what_runs_and_drops_the_rest():
    begun, ended = [], []

    def work(k):
        begun.append(k)
        if len(begun) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        ended.append(k)

    with pytest.raises(KeyboardInterrupt):
        for_each(range(100), work, 2)
    until_then = len(ended)
    time.sleep(0.1)
    assert len(ended) == until_then, "nothing goes on"
    assert len(begun) < 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_a_pool_of_its_own():
    for_each(range(4), lambda _: None, 2)
    child = os.fork()
    if child == 0:
        found = []
        for_each(range(10), found.append, 2)
        os._exit(0 if sorted(found) == list(range(10)) else 1)
    deadline = time.monotonic() + 20
    while (finished := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child waits for threads that it does not have")
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(finished[1]) == 0


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 1000, 200_001])
@pytest.mark.parametrize("share", [1, 8])
def test_pieces_follow_each_other_and_are_of_use(rows, share):
    for count in (1, 2, 3):
        pieces = row_pieces(rows, count, share)
        assert pieces[0][0] == 0
        assert pieces[-1][1] == rows
        assert all(a[1] == b[0] for a, b in pairwise(pieces))
        sizes = [stop - first for first, stop in pieces]
        assert max(sizes) <= max(threads.PIECE, threads.FEWEST)
        assert len(pieces) == 1 or min(sizes[:-1]) >= threads.FEWEST
        if rows >= 1000 * count * share:
            assert len(pieces) % count == 0, "as many for each thread"


def uneven(n=700, d=90, seed=0):
    """Sparse rows, a few of which are much longer than the others, and some empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.0, 0.05, 0.9], (n, 1), p=[0.1, 0.8, 0.1]))
    X[: n // 10] = 0.0
    return sparse(X)


def binary():
    rows = uneven()
    return SparseRows(rows.offsets, rows.indices, None, rows.n_features)


CASES = {
    "sparse": (Linear(), uneven()),
    "binary": (Linear(), binary()),
    "dense": (Linear(), DenseRows(np.random.default_rng(1).normal(size=(500, 33)).astype(np.float32))),
    "filled sparse": (Linear().normalized(), uneven()),
    "text": (NGrams(3, bits=9), words()),
    "weighted degree": (WeightedDegree(6).hashed(4), dna()),
    "spectra": (WeightedSpectrum(4).normalized(), dna()),
    "stack": (WeightedDegree(5) + NGrams(2, bits=6), dna()),
    "no rows": (Linear(), uneven().slice(0, 0)),
}


@pytest.fixture
def small_pieces(monkeypatch):
    """Small data is shared out as if it were large."""
    monkeypatch.setattr(threads, "FEWEST", 16)
    monkeypatch.setattr(expand, "CALL_LEAST", 64)
    monkeypatch.setattr(expand, "PIECE", 50)
    monkeypatch.setattr(expand, "SLOTS_A_NONZERO", 1e9)


def matrix(phi, batch):
    block = Block.scratch(np.full(len(batch), np.max(phi.bound(batch), initial=0)), phi.dim)
    phi.fill(batch, np.arange(len(batch)), block)
    return naive.matrix(block, phi.dim)


@pytest.mark.parametrize("name", CASES)
def test_one_two_and_three_threads_give_what_the_matrix_gives(name, small_pieces):
    phi, batch = CASES[name]
    phi = phi.resolve(Shape.of(batch))
    X, rng = matrix(phi, batch), np.random.default_rng(4)
    vs = [rng.normal(size=phi.dim).astype(np.float32) for _ in range(2)]
    scales = [rng.normal(size=len(batch)) * (rng.random(len(batch)) < share) for share in (0.3, 1.0)]
    some = rng.permutation(len(batch))[: len(batch) // 2]
    start = rng.normal(size=phi.dim)
    dots = []
    for count in (1, 2, 3):
        examples = InMemory(phi, batch, threads=count)
        dots.append([*examples.dot(vs), *examples.dot(vs, some)])
        added, product = ([start.copy() for _ in vs] for _ in range(2))
        examples.add(scales, added)
        examples.dot_add(scales, vs, product)
        again = [start.copy() for _ in vs]
        examples.dot_add(scales, vs, again)
        for v, s, dot, part, a, p, q in zip(vs, scales, dots[-1][:2], dots[-1][2:], added, product, again, strict=True):
            np.testing.assert_allclose(dot, X @ v, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(part, (X @ v)[some], rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(a, start + X.T @ s, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(p, start + X.T @ (s * (X @ v)), rtol=1e-6, atol=1e-5)
            assert (p == q).all(), "the same threads, the same rounding"
    for several in dots[1:]:  # to the last bit, but for maps that sum up tables first, as far as there are rows for it
        np.testing.assert_allclose(np.concatenate(dots[0]), np.concatenate(several), rtol=1e-12 if phi.bulk else 0.0)


def test_rows_that_do_not_count_are_not_touched(small_pieces):
    batch = uneven()
    values = batch.values.copy()
    bad = 650
    values[batch.offsets[bad] : batch.offsets[bad + 1]] = np.nan
    assert batch.offsets[bad + 1] > batch.offsets[bad]
    batch = SparseRows(batch.offsets, batch.indices, values, batch.n_features)
    scales, w = np.ones(len(batch)), np.zeros(batch.n_features)
    scales[bad] = 0.0
    examples = InMemory(Linear().resolve(Shape.of(batch)), batch, threads=2)
    examples.dot_add([scales], [np.ones(batch.n_features, np.float32)], [w])
    examples.add([scales], [w])
    assert np.isfinite(w).all()


def test_a_long_w_and_few_rows_are_not_shared_out(monkeypatch):
    monkeypatch.setattr(expand, "CALL_LEAST", 1)
    batch = uneven()
    wide = SparseRows(batch.offsets, batch.indices, batch.values, 10**6)
    w = np.zeros(10**6)
    made = []
    zeros_like = np.zeros_like
    monkeypatch.setattr(np, "zeros_like", lambda *a, **b: made.append(1) or zeros_like(*a, **b))
    InMemory(Linear().resolve(Shape.of(wide)), wide, threads=2).add([np.ones(len(wide))], [w])
    assert not made
    np.testing.assert_allclose(w[:90].sum(), batch.values.sum(), rtol=1e-4)


def test_pieces_of_rows_in_memory_have_about_as_many_non_zeros():
    lengths = np.r_[np.full(1000, 400), np.full(100_000, 4)]
    offsets = np.r_[0, np.cumsum(lengths)]
    batch = SparseRows(offsets, np.zeros(offsets[-1], np.int32), None, 1)
    pieces = InMemory(Linear().resolve(Shape.of(batch)), batch, threads=2)._pieces()
    sizes = [offsets[stop] - offsets[first] for first, stop in pieces]
    assert len(sizes) > 2
    assert max(sizes) - min(sizes) <= 2 * 400


def test_a_short_w_and_many_rows_are_shared_out_whatever_the_map_knows_of_their_lengths(monkeypatch):
    joined = []
    add_up = expand.add_up
    monkeypatch.setattr(expand, "add_up", lambda sums, count: joined.extend(sums) or add_up(sums, count))
    dense = DenseRows(np.ones((600, 33), np.float32))  # as long a row each: one bound for all
    for phi, batch in ((Linear().normalized(), dense), (NGrams(3, bits=6), words())):
        examples = InMemory(phi.resolve(Shape.of(batch)), batch, threads=2)
        examples.add([np.ones(len(batch))], [np.zeros(examples.dim)])
    assert [one.parts for one in joined] == [2, 2]
