"""Rows that are read again for each request give what rows in memory give, however the stream is cut."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from problems import dna, noisy, sparse, squared_distances, streamed_of, words

from dotadd.errors import DataError
from dotadd.features import Linear, NGrams, Shape, WeightedDegree
from dotadd.problem.examples import InMemory
from dotadd.solvers import certify

CASES = {
    "sparse": (Linear(), sparse(noisy(400)[0])),
    "text": (NGrams(3, bits=9), words()),
    "weighted degree": (WeightedDegree(6).hashed(4).normalized(), dna()),
}
CUTS = [0, 1, 1, 130, 131, 350]  # an empty chunk among them


class Stream:
    """Slices of a batch, the same each time; counts how often it is read and how many readers are still open."""

    def __init__(self, batch, *, fail_at=None):
        self.batch, self.fail_at, self.readings, self.open = batch, fail_at, 0, 0

    def __call__(self):
        self.readings += 1
        return self.read()

    def read(self):
        self.open += 1
        try:
            for first, stop in zip(CUTS, [*CUTS[1:], len(self.batch)], strict=True):
                if first == self.fail_at:
                    raise OSError("the disk is gone")
                yield self.batch.slice(first, stop)
        finally:
            self.open -= 1


def made(name, threads=1, **options):
    phi, batch = CASES[name]
    phi = phi.resolve(Shape.of(batch))
    stream = Stream(batch, **options)
    return streamed_of(phi, stream, len(batch), threads=threads), InMemory(phi, batch, threads=threads), stream


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_stream_gives_what_memory_gives(name, threads):
    streamed, whole, stream = made(name, threads)
    rng = np.random.default_rng(0)
    assert (len(streamed), streamed.dim, streamed.bulk) == (len(whole), whole.dim, whole.bulk)
    assert not streamed.in_memory
    ws = [rng.normal(size=whole.dim).astype(np.float32) for _ in range(2)]
    scales = [rng.normal(size=len(whole)) * (rng.random(len(whole)) < 0.7) for _ in ws]
    np.testing.assert_allclose(streamed.dot(ws), whole.dot(ws), atol=1e-6)
    rows = rng.permutation(len(whole))[:100]
    np.testing.assert_allclose(streamed.dot(ws, rows), whole.dot(ws, rows), atol=1e-6)
    np.testing.assert_allclose(streamed.squared_norms(), whole.squared_norms(), atol=1e-6)
    for operation in ("add", "dot_add"):
        found, wanted = ([np.ones(whole.dim) for _ in ws] for _ in range(2))
        vectors = [ws] if operation == "dot_add" else []
        getattr(streamed, operation)(scales, *vectors, found)
        getattr(whole, operation)(scales, *vectors, wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    distances = squared_distances(whole, scales, ws)
    np.testing.assert_allclose(squared_distances(streamed, scales, ws), distances, rtol=1e-6)
    assert stream.readings == 6, "one reading for several w"
    if whole.dim <= 512 and not whole.bulk:
        found, wanted = ([np.ones(whole.dim**2) for _ in ws] for _ in range(2))
        streamed.add_products(scales, found)
        whole.add_products(scales, wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert stream.open == 0


def test_sums_beyond_the_budget_take_readings_of_their_own(monkeypatch):
    streamed, whole, stream = made("sparse")
    monkeypatch.setattr(certify, "SUM_BYTES", 8 * whole.dim * 2)
    rng = np.random.default_rng(1)
    ws = [rng.normal(size=whole.dim).astype(np.float32) for _ in range(5)]
    coefficients = [rng.normal(size=len(whole)) for _ in ws]
    wanted = squared_distances(whole, coefficients, ws)
    np.testing.assert_allclose(squared_distances(streamed, coefficients, ws), wanted, rtol=1e-6)
    assert stream.readings == 3


@pytest.mark.parametrize(("told", "complaint"), [(399, "had 399 rows.*brings more"), (401, "had 401.*only 400")])
def test_a_stream_of_another_length_is_refused(told, complaint):
    streamed, _, stream = made("sparse")
    short = streamed_of(streamed.phi, stream, told)
    with pytest.raises(DataError, match=complaint):
        short.squared_norms()
    assert stream.open == 0


def test_no_rows_are_no_trouble():
    streamed = streamed_of(Linear(n_features=3), lambda: iter(()), 0)
    assert [len(out) for out in streamed.dot([np.zeros(3)])] == [0]
    assert squared_distances(streamed, [np.zeros(0)], [np.array([3.0, 4.0, 0.0])]) == [25.0]


@pytest.mark.parametrize("fail_at", [0, 131])
def test_an_error_of_the_reader_arrives(fail_at):
    streamed, _, stream = made("sparse", fail_at=fail_at)
    with pytest.raises(OSError, match="the disk is gone"):
        streamed.squared_norms()
    assert stream.open == 0


def test_the_next_chunk_is_read_meanwhile_and_no_more():
    phi, batch = CASES["sparse"]
    read = []

    def chunks():
        for first, stop in zip(CUTS, [*CUTS[1:], len(batch)], strict=True):
            read.append(first)
            yield batch.slice(first, stop)

    def work(mine, examples):
        later = [place for place, first in enumerate(CUTS) if first >= mine.stop and first not in CUTS[place + 1 :]]
        ahead = later[0] + 1 if later else len(CUTS)  # chunks without rows are no pieces
        deadline = time.monotonic() + 10
        while len(read) < ahead and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.01)
        assert len(read) == ahead

    streamed_of(phi.resolve(Shape.of(batch)), chunks, len(batch), threads=2)._read(work)
    assert len(read) == len(CUTS)


def test_one_thread_is_one_thread():
    streamed, _, stream = made("sparse", threads=1)
    seen = set()

    def chunks():
        for batch in stream():
            seen.add(threading.current_thread())
            yield batch

    streamed = streamed_of(streamed.phi, chunks, len(streamed))
    streamed.squared_norms()
    assert seen == {threading.current_thread()}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_ends_the_reading():
    streamed, _, stream = made("sparse")

    def work(mine, examples):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        streamed._read(work)
    assert stream.open == 0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dotadd-reader")]
