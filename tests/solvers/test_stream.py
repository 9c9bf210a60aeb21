"""StreamSVM: the optimum with a tenth of the data in memory, a store that keeps its budget, and the same bits again."""

import os
import signal
import threading
from dataclasses import replace
from functools import cache
from itertools import pairwise

import naive
import numpy as np
import pytest
from problems import INTERCEPTS, LOSSES, certified, flow_of, noisy, problem, sparse

from dotadd.data.batches import DenseRows, SparseRows, Strings
from dotadd.errors import DataError, DotaddError
from dotadd.features.linear import Linear
from dotadd.features.spectrum import Spectrum
from dotadd.features.weighted_degree import WeightedDegree
from dotadd.features.words import BagOfWords
from dotadd.problem.packed import Packed
from dotadd.solvers import store as storing
from dotadd.solvers import stream as module
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.solvers.standing import Standing
from dotadd.solvers.store import Store
from dotadd.solvers.stream import stream

TIGHT = Settings(tol=1e-5, max_passes=5000)


FEW = 4000  # bytes for some tens of rows, with what lies beside them


def windows(n=300, width=12, seed=0):
    """Random DNA; the class is whether a motif stands in the middle, with some noise."""
    rng = np.random.default_rng(seed)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), (n, width))
    y = np.where(rng.random(n) < 0.4, 1, -1)
    letters[np.ix_(y > 0, [4, 5, 6])] = np.frombuffer(b"AGT", np.uint8)
    letters[rng.random((n, width)) < 0.1] = ord("C")
    return Strings(letters.reshape(-1), width=width), y


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_reaches_the_optimum_of_an_independent_solver(loss, intercept):
    X, y = noisy(n=80, seed=4)
    cost = np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    cost[7] = 0.0
    best, w, _ = naive.solve(X, y, cost, loss, intercept)
    flow = flow_of(sparse(X, np.float64), Linear(), y, cost, memory=FEW, loss=loss, intercept=intercept)
    result = stream(flow, TIGHT)[0]
    assert result.reason is Reason.CONVERGED
    assert result.primal == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(result.w, w, atol=1e-2 * np.abs(w).max())


COSTS = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3]


# C and the form of rows have nothing to do with each other: every other C for each, and the two ends for both.
@pytest.mark.unchecked
@pytest.mark.parametrize(("C", "dense"), [*zip(COSTS, [True, False] * 4, strict=True), (1e-4, False), (1e3, True)])
def test_a_tenth_of_the_data_in_memory_gives_the_same_optimum_for_every_C(C, dense):
    X, y = noisy(n=120, d=75, seed=5)  # wide, or coordinate descent would creep with a large C
    in_memory = dcd(problem(X, y, cost=C), Settings(tol=1e-4, max_passes=20000))[0]
    assert in_memory.reason is Reason.CONVERGED
    batch = DenseRows(X) if dense else sparse(X, np.float64)
    flow = flow_of(batch, Linear(), y, C)
    assert flow.examples.memory <= int(batch.row_bytes().sum()) / 10
    result = stream(flow, Settings(tol=1e-3, max_passes=5000))[0]
    assert result.gap <= 1e-3
    assert result.primal == pytest.approx(in_memory.primal, rel=1e-3)


@pytest.mark.parametrize("phi", [Spectrum(3), WeightedDegree(4), Spectrum(2).normalized(), Spectrum(3).hashed(8)])
def test_maps_that_expand_reach_the_optimum(phi):
    batch, y = windows()
    flow = flow_of(batch, phi, y, 0.3, memory=FEW)
    from dotadd.problem.examples import InMemory

    X = np.zeros((len(batch), flow.examples.phi.dim))
    rows = np.arange(len(batch))
    for block, at, some in InMemory(flow.examples.phi, batch, dtype=np.float64).blocks(rows):
        X[some] = naive.matrix(block, flow.examples.phi.dim)[at]
    best = naive.solve(X, y, np.full(len(y), 0.3), "hinge", "regularized")[0]
    result = stream(flow, Settings(tol=1e-4, max_passes=3000))[0]
    assert result.primal == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_proof_that_fails_at_the_last_pass_is_that_of_the_answer(monkeypatch, intercept):
    """It is made again only where dual variables are scaled for the answer."""
    X, y = noisy(150, 6)
    flow, proofs, certify = flow_of(DenseRows(X), Linear(), y, 1.0, FEW, intercept=intercept), [], module.certify
    monkeypatch.setattr(Standing, "calls_for_proof", True)
    monkeypatch.setattr(module, "certify", lambda *given, **options: proofs.append(1) or certify(*given, **options))
    result = stream(flow, Settings(tol=1e-9, max_passes=2))[0]
    assert result.reason is Reason.MAX_PASSES
    assert len(proofs) == 2 + (intercept == "free")
    again = certified(flow, [result.w], [result.intercept], [result.alpha])[0]
    assert (result.primal, result.gap) == pytest.approx((again.primal, again.gap), rel=1e-9)


@pytest.mark.parametrize("factor", [0.2, 5.0])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_from_the_answer_at_another_c_it_comes_to_the_same_optimum(loss, intercept, factor):
    X, y = noisy(150, 6)
    batch, phi = DenseRows(X), Linear()
    options = {"loss": loss, "intercept": intercept}
    settings = Settings(tol=1e-4, max_passes=5000)
    first = stream(flow_of(batch, phi, y, 1.0, FEW, **options), settings)
    (warm,) = stream(flow_of(batch, phi, y, factor, FEW, **options), settings, first)
    best, _, _ = naive.solve(X, y, np.full(len(y), factor), loss, intercept)
    assert warm.reason is Reason.CONVERGED
    assert warm.gap <= 1e-4
    assert best * (1.0 - 1e-9) <= warm.primal <= best * (1.0 + 2e-4)
    if intercept != "free":  # whose alpha is made one that has a bound
        assert warm.trace[-1].dual == pytest.approx(warm.dual, rel=1e-6)  # the numbers that ran along
    (again,) = stream(flow_of(batch, phi, y, factor, FEW, **options), settings, [warm])
    assert again.passes <= max(2, warm.passes)


def test_a_problem_that_is_proved_stands_still_while_others_go_on(monkeypatch):
    X, y = noisy(200, 8)
    rng = np.random.default_rng(0)
    signs = [np.where(rng.random(200) < share, -y, y) for share in (0.0, 0.02, 0.1, 0.3)]
    proofs, prove = [], module._Trainer._prove

    def noted(trainer, check, tol=np.inf, **last):
        certificates = prove(trainer, check, tol, **last)
        proofs.append(([w.copy() for w in trainer.ws], [alpha.copy() for alpha in trainer.alphas], certificates))
        return certificates

    monkeypatch.setattr(module._Trainer, "_prove", noted)
    settings = Settings(tol=1e-4, max_passes=5000)
    results = stream(flow_of(DenseRows(X), Linear(), signs, 3.0, FEW), settings)
    assert all(result.gap <= 1e-4 for result in results)
    stood = 0
    for (ws, alphas, certificates), (later, afterwards, _) in pairwise(proofs):
        for k, certificate in enumerate(certificates):
            if certificate.gap <= 1e-4:
                stood += 1
                np.testing.assert_array_equal(later[k], ws[k])
                np.testing.assert_array_equal(afterwards[k], alphas[k])
    assert stood > 0


def test_what_an_earlier_version_wrote_is_read_with_nothing_proved():
    record = Standing.at_the_start(3, 0.1).record()
    del record["proved"]
    assert Standing.of_record(record, 0.1).proved == [False] * 3


def test_several_binary_problems_share_the_pieces():
    X, _ = noisy(n=150, seed=6)
    codes = np.random.default_rng(2).integers(0, 3, len(X))
    X[:, :3] += 1.5 * np.eye(3)[codes]
    ys = np.where(codes == np.arange(3)[:, None], 1, -1)
    results = stream(flow_of(DenseRows(X), Linear(), ys, memory=FEW), Settings(tol=1e-4, max_passes=5000))
    for y, result in zip(ys, results, strict=True):
        best = naive.solve(X, y, np.ones(len(y)), "hinge", "regularized")[0]
        assert result.primal == pytest.approx(best, rel=1e-4)


def test_two_threads_reach_the_same_optimum():
    X, y = noisy(n=300, seed=7)
    best = naive.solve(X, y, np.ones(len(y)), "hinge", "regularized")[0]
    result = stream(flow_of(DenseRows(X), Linear(), y, threads=2), TIGHT)[0]
    assert result.primal == pytest.approx(best, rel=1e-5)


def test_one_thread_gives_the_same_bits_again():
    X, y = noisy(n=300, seed=8)
    one, other = (stream(flow_of(sparse(X), Linear(), y), Settings(seed=3))[0] for _ in range(2))
    assert one.w.tobytes() == other.w.tobytes()
    assert stream(flow_of(sparse(X), Linear(), y), Settings(seed=4))[0].w.tobytes() != one.w.tobytes()


def mails(n=300, seed=0):
    """Long words that are repeated, so that their counts take less memory than they do."""
    rng = np.random.default_rng(seed)
    words = np.array([f"{'abcdefghij'[k % 10] * 16}{k}" for k in range(40)])
    y = np.where(rng.random(n) < 0.5, 1, -1)
    of = [rng.integers(0, 30 if sign > 0 else 34, 25) for sign in y]
    return Strings.from_list([" ".join(words[some]) for some in of]), y


@pytest.mark.parametrize("kind", ["dense", "sparse", "strings", "features"])
def test_the_store_keeps_its_budget_and_its_rows(kind, monkeypatch):
    """Rows, costs, signs and dual variables belong together whatever comes and goes, and gaps stay below a quarter."""
    X, y = noisy(n=400, d=6, seed=9)
    strings = windows(n=400)[0]
    if kind == "features":
        strings, y = mails(400)
    batch = {"dense": DenseRows(X), "sparse": sparse(X, np.float64)}.get(kind, strings)
    phi = {"strings": Spectrum(2), "features": BagOfWords(bits=10)}.get(kind, Linear())
    cost = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    cost *= 0.05 if kind == "features" else 1.0  # long rows, whose way to the optimum would be long
    flow = flow_of(batch, phi, y, cost, memory=9000)
    added = Store.add

    def checked(self, *arguments):
        added(self, *arguments)
        places = self.places()
        assert self.pool.nbytes <= self.capacity <= flow.examples.memory
        rows = self.rows[places]
        assert len(np.unique(rows)) == len(rows)
        assert np.array_equal(np.flatnonzero(self.kept), np.sort(rows))
        column = self.variables(0).column
        np.testing.assert_array_equal(column.cost()[places], cost[rows])
        np.testing.assert_array_equal(column.signs[column.codes[places]], y[rows])
        norms = flow.examples.phi.squared_norms(batch, rows) + 1.0
        np.testing.assert_allclose(self.norms[places], norms, rtol=1e-6)
        assert self.expanded == (kind == "features")
        phi_of_mine = Packed(1 << 10, np.float64) if self.expanded else flow.examples.phi
        np.testing.assert_allclose(phi_of_mine.squared_norms(self.pool.batch, places) + 1.0, norms, rtol=1e-6)
        for row, place in zip(rows[:5], places[:5], strict=True):
            w = np.random.default_rng(row).normal(size=flow.examples.dim)
            mine, theirs = np.zeros(1), np.zeros(1)
            phi_of_mine.dot(self.pool.batch, np.array([place], np.uint32), w, mine)
            flow.examples.phi.dot(batch, np.array([row], np.uint32), w, theirs)
            assert mine[0] == pytest.approx(theirs[0])

    monkeypatch.setattr(Store, "add", checked)
    begun = Store.begin_round

    def tidy(self, rng):
        count = begun(self, rng)
        assert self.pool.loose <= storing.LOOSE
        return count

    monkeypatch.setattr(Store, "begin_round", tidy)
    result = stream(flow, Settings(tol=1e-3, max_passes=500))[0]
    assert result.gap <= 1e-3


def test_rows_of_another_form_are_welcome_later():
    X, y = noisy(n=200, seed=10)
    X = (X != 0).astype(np.float64)
    X[100:] *= 0.5
    whole = sparse(X, np.float64)
    flow = flow_of(whole, Linear(), y, memory=FEW)
    read = flow.examples.read

    def mixed(nbytes):
        first = 0
        for batch, columns in read(nbytes):
            stop = first + len(batch)
            if stop <= 100:  # binary rows have no values, and these are narrow numbers
                batch = SparseRows(batch.offsets, batch.indices, None, batch.n_features)
            elif first % 2:
                batch = SparseRows(batch.offsets, batch.indices.astype(np.int64), batch.values, batch.n_features)
            yield batch, columns
            first = stop

    flow.examples.read = mixed
    result = stream(flow, Settings(tol=1e-5, max_passes=3000))[0]
    assert result.primal == pytest.approx(naive.solve(X, y, np.ones(len(y)), "hinge", "regularized")[0], rel=1e-5)


def test_dual_variables_of_many_rows_lie_in_a_file():
    X, y = noisy(n=200, seed=11)
    flow = flow_of(DenseRows(X[:, :1].copy()), Linear(), y, memory=400)
    alpha = flow.dual_variables()
    assert isinstance(alpha.base, np.memmap)
    assert not alpha.any()
    assert stream(flow, Settings(tol=1e-4, max_passes=3000))[0].gap <= 1e-4


def test_max_passes_and_max_time_end_with_a_proved_gap():
    X, y = noisy(n=300, seed=12)
    flow = flow_of(DenseRows(X), Linear(), y, 100.0)
    short = stream(flow, Settings(tol=1e-9, max_passes=2))[0]
    assert short.reason is Reason.MAX_PASSES
    assert short.passes == 2
    assert 0 < short.gap < 1
    assert short.primal == pytest.approx(
        naive.primal(X, y, np.full(len(y), 100.0), "hinge", short.w, short.intercept, "regularized")
    )
    assert stream(flow, Settings(tol=1e-12, max_time=0.05, max_passes=10**6))[0].reason is Reason.MAX_TIME


def interrupting(flow, at):
    """Press Ctrl-C when so many pieces were read."""
    read, count = flow.examples.read, [0]

    def pieces(nbytes):
        for piece in read(nbytes):
            count[0] += 1
            if count[0] == at:
                os.kill(os.getpid(), signal.SIGINT)
            yield piece

    flow.examples.read = pieces
    return flow


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_ctrl_c_keeps_what_there_is_with_its_gap():
    X, y = noisy(n=300, seed=13)
    result = stream(interrupting(flow_of(DenseRows(X), Linear(), y), 40), Settings(tol=1e-12))[0]
    assert result.reason is Reason.INTERRUPTED
    assert result.primal == pytest.approx(
        naive.primal(X, y, np.ones(len(y)), "hinge", result.w, result.intercept, "regularized")
    )
    assert result.gap == pytest.approx((result.primal - result.dual) / result.primal)
    assert 0 < result.gap < 1


class Killed(BaseException):
    """As sudden as a signal that cannot be caught: nothing of ours handles it."""


def mixed(flow, change):
    """The same flow with every other piece in another form."""
    read = flow.examples.read

    def pieces(nbytes):
        for number, (batch, columns) in enumerate(read(nbytes)):
            yield change(batch) if number % 2 else batch, columns

    flow.examples.read = pieces
    return flow


def with_ones(batch):
    """Binary rows with their values written down."""
    return SparseRows(batch.offsets, batch.indices, np.ones(len(batch.indices)), batch.n_features)


def flow_of_kind(kind):
    X, y = noisy(n=300, seed=14)
    if kind == "dense":
        return flow_of(DenseRows(X), Linear(), y, 3.0)
    if kind == "sparse":
        return flow_of(sparse(X), Linear(), y, 3.0)
    if kind == "binary, then with values":
        rows = sparse(X > 0)
        return mixed(
            flow_of(SparseRows(rows.offsets, rows.indices, None, rows.n_features), Linear(), y, 3.0), with_ones
        )
    if kind == "features":
        batch, y = mails()
        return flow_of(batch, BagOfWords(bits=10), y, 0.1, FEW)
    if kind == "double, then single":
        return mixed(flow_of(DenseRows(X), Linear(), y, 3.0), lambda batch: DenseRows(batch.values.astype(np.float32)))
    letters = np.frombuffer(b"ACGT", np.uint8)[np.digitize(X, [-0.7, 0.0, 0.7])]
    strings = Strings(letters.ravel(), width=X.shape[1])
    return mixed(flow_of(strings, WeightedDegree(2).normalized(), y, 3.0, FEW // 4), lambda batch: batch.with_offsets())


RESUMED = Settings(tol=1e-4, seed=5, max_passes=25)


@cache
def unbroken_run(kind):
    return stream(flow_of_kind(kind), RESUMED)[0]


@pytest.mark.parametrize("at", [3, 40, 150])
@pytest.mark.parametrize(
    "kind", ["dense", "sparse", "binary, then with values", "double, then single", "one length, then any", "features"]
)
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, at, kind):
    settings, unbroken = RESUMED, unbroken_run(kind)
    flow = flow_of_kind(kind)
    read, count = flow.examples.read, [0]

    def until(nbytes):
        for piece in read(nbytes):
            count[0] += 1
            if count[0] > at:
                raise Killed
            yield piece

    flow.examples.read = until
    kept = Checkpoint(str(tmp_path / "c"), every=0.0)
    with pytest.raises(Killed):
        stream(flow, replace(settings, checkpoint=kept))
    again = replace(settings, checkpoint=Checkpoint(str(tmp_path / "c"), 1e9), resume=True)
    resumed = stream(flow_of_kind(kind), again)[0]
    assert resumed.w.tobytes() == unbroken.w.tobytes()
    assert resumed.alpha.tobytes() == unbroken.alpha.tobytes()
    assert resumed.passes == unbroken.passes
    assert [row.dual for row in resumed.trace] == [row.dual for row in unbroken.trace]


@pytest.mark.parametrize("kind", ["dense", "sparse", "binary, then with values", "one length, then any", "features"])
@pytest.mark.parametrize("factor", [0.5, 1.7])
def test_a_run_goes_on_with_less_or_more_memory_than_it_had(tmp_path, kind, factor):
    settings = Settings(tol=1e-6, seed=5, max_passes=4)
    file = Checkpoint(str(tmp_path / "c"))
    before = stream(flow_of_kind(kind), replace(settings, checkpoint=file))[0]
    flow = flow_of_kind(kind)
    assert file.memory_on_disk() == flow.examples.memory
    flow.examples.memory = int(factor * flow.examples.memory)
    after = stream(flow, replace(settings, max_passes=8, checkpoint=file, resume=True))[0]
    assert (before.passes, after.passes) == (4, 8)
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(row.dual for row in after.trace))
    assert before.dual < after.dual <= after.primal


def test_a_store_with_less_room_takes_what_fits_of_what_there_was(tmp_path):
    X, y = noisy(n=300, seed=14)
    flow = flow_of(DenseRows(X), Linear(), y)
    alphas = [np.random.default_rng(0).random(300)]
    full = Store(flow, alphas, 20_000, 0)
    rows = np.arange(0, 300, 2)
    ones = np.ones(len(rows))
    whole = problem(X, y, dense=True)
    full.add(whole, rows, ones, [alphas[0][rows]], [np.ones(len(rows), np.uint8)])
    assert len(full) == len(rows)
    small = Store(flow, alphas, 5000, 0)
    small.restore({name: array for name, array in full.state().items() if name != "packed"})
    assert len(small) == 0  # which an earlier version wrote
    small.restore(full.state())
    assert 0.5 * 5000 < small.pool.nbytes <= 5000
    places = small.places()
    kept = small.rows[places]
    assert set(kept.tolist()) <= set(rows.tolist())
    assert np.array_equal(np.flatnonzero(small.kept), np.sort(kept))
    np.testing.assert_array_equal(small.pool.batch.values[places], X[kept])
    np.testing.assert_array_equal(small.alphas[0][places], alphas[0][kept])


@pytest.mark.parametrize("after", [0, 1, 7, 299, 300])
def test_a_pass_goes_on_at_the_row_where_it_was_however_pieces_are_cut(after):
    X, y = noisy(n=300, seed=14)
    flow = flow_of(DenseRows(X), Linear(), y)
    rows = [(row, value) for piece in flow.pieces(5 * X[0].nbytes, after=after) for row, value in enumerate_rows(piece)]
    assert [row for row, _ in rows] == list(range(after, 300))
    np.testing.assert_array_equal([value for _, value in rows], X[after:, 0])


def enumerate_rows(piece):
    assert len(piece.columns.sign(0)) == len(piece.columns.cost(0)) == len(piece.examples)
    return enumerate(piece.examples.batch.values[:, 0], piece.rows.start)


@pytest.mark.parametrize("problems", [1, 3])
def test_with_a_free_intercept_the_returned_alpha_proves_the_returned_gap(problems):
    X, _ = noisy(n=200, seed=21)
    ys = np.where(np.random.default_rng(1).random((problems, 200)) < 0.4, 1, -1)
    for tol in (1e-2, 1e-17):  # the second cannot be reached in float32
        settings = Settings(tol=tol, max_passes=40)
        found = stream(flow_of(DenseRows(X), Linear(), ys, 0.1, FEW, intercept="free", dtype=np.float32), settings)
        for y, result in zip(ys, found, strict=True):
            assert result.reason in (Reason.CONVERGED, Reason.PRECISION, Reason.MAX_PASSES)
            assert (result.reason is Reason.CONVERGED) == (tol == 1e-2)
            assert result.alpha @ y == pytest.approx(0.0, abs=1e-9)
            w = (result.alpha * y) @ X
            assert result.dual <= result.alpha.sum() - 0.5 * w @ w + 1e-6 * result.primal


def test_what_goes_wrong_while_resuming_leaves_the_checkpoint_alone(tmp_path):
    X, y = noisy(n=300, seed=16)
    path = tmp_path / "c"
    stream(flow_of(DenseRows(X), Linear(), y), Settings(max_passes=2, checkpoint=Checkpoint(str(path))))
    before = path.read_bytes()
    flow = flow_of(DenseRows(X), Linear(), y)

    def failing(nbytes):
        raise DataError("cannot be read", "x.arrow")
        yield

    flow.examples.read = failing
    with pytest.raises(DataError, match=r"x\.arrow: cannot be read"):
        stream(flow, Settings(checkpoint=Checkpoint(str(path)), resume=True))
    assert path.read_bytes() == before


def test_a_reader_and_a_disk_that_fail_are_both_told(tmp_path, monkeypatch):
    X, y = noisy(n=300, seed=16)
    flow = flow_of(DenseRows(X), Linear(), y)

    def failing(nbytes):
        raise DataError("cannot be read", "x.arrow")
        yield

    def full(file, **arrays):
        raise OSError(28, "No space left on device")

    flow.examples.read = failing
    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(DotaddError, match=r"x\.arrow: cannot be read; and .*No space left on device"):
        stream(flow, Settings(checkpoint=Checkpoint(str(tmp_path / "c"))))


def test_a_run_that_ends_with_its_proof_writes_no_last_checkpoint(tmp_path):
    X, y = noisy(n=300, seed=16)
    for passes, there in ((1, True), (1000, False)):
        path = tmp_path / str(passes)
        stream(flow_of(DenseRows(X), Linear(), y), Settings(max_passes=passes, checkpoint=Checkpoint(str(path))))
        assert path.exists() == there


def test_a_checkpoint_that_cannot_be_written_ends_training_and_leaves_the_last_one(tmp_path, monkeypatch):
    X, y = noisy(n=300, seed=15)
    path = tmp_path / "c"
    stream(flow_of(DenseRows(X), Linear(), y), Settings(max_passes=1, checkpoint=Checkpoint(str(path))))
    before = path.read_bytes()

    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(DotaddError, match="cannot be written: No space left on device; the one before it is as it was"):
        stream(flow_of(DenseRows(X), Linear(), y), Settings(checkpoint=Checkpoint(str(path), every=0.0)))
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["c"]


def test_a_reader_that_fails_ends_training_with_a_message_and_a_checkpoint(tmp_path):
    X, y = noisy(n=300, seed=16)
    flow = flow_of(DenseRows(X), Linear(), y)
    read, count = flow.examples.read, [0]

    def failing(nbytes):
        for piece in read(nbytes):
            count[0] += 1
            if count[0] == 60:
                raise DataError("cannot be read", "x.arrow")
            yield piece

    flow.examples.read = failing
    path = tmp_path / "c"
    with pytest.raises(DotaddError, match=r"x\.arrow: cannot be read; training stopped in pass \d+, and resume"):
        stream(flow, Settings(tol=1e-5, checkpoint=Checkpoint(str(path))))
    settings = Settings(tol=1e-5, checkpoint=Checkpoint(str(path)), resume=True)
    assert stream(flow_of(DenseRows(X), Linear(), y), settings)[0].gap <= 1e-5


def test_a_flow_of_another_length_is_refused():
    X, y = noisy(n=100, seed=17)
    for change in (slice(0, 90), slice(0, 100)):
        flow = flow_of(DenseRows(X), Linear(), y)
        flow.examples.read = flow_of(DenseRows(X[change]), Linear(), y[change]).examples.read
        flow.examples._rows = 95
        with pytest.raises(DataError, match=r"the data had 95 rows, and now brings (only 90|more)"):
            stream(flow, Settings())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY"])
def test_what_is_no_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(DotaddError, match="is no checkpoint of dotadd, or damaged"):
        Checkpoint(str(path)).load()


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    path = str(tmp_path / "c")
    Checkpoint(path, problem={"C": 1.0, "loss": "hinge"}).save({}, {})
    with pytest.raises(DotaddError, match=r"another problem: C was 1\.0, and is 2\.0"):
        Checkpoint(path, problem={"C": 2.0, "loss": "hinge"}).load()
    with pytest.raises(DotaddError, match="there is no checkpoint to resume from"):
        Checkpoint(str(tmp_path / "none")).load()


def test_progress_is_told_within_a_pass_and_once_at_its_end(monkeypatch):
    from dotadd.solvers import stream as module

    monkeypatch.setattr(module, "TELL_EVERY", 0.0)
    X, y = noisy(n=200, seed=18)
    told = []
    stream(flow_of(DenseRows(X), Linear(), y), Settings(tol=1e-4, on_progress=lambda p, k: told.append(p)))
    ends = [p for p in told if p.read == 1.0]
    assert [p.passes for p in ends] == list(range(1, len(ends) + 1))
    inside = [p for p in told if p.read < 1.0]
    assert len(inside) > len(ends)
    assert all(0 < p.read < 1 and 0 <= p.cached <= p.rows for p in inside)
    duals = [p.dual for p in told]
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(duals))


def test_pieces_may_be_empty():
    X, y = noisy(n=100, seed=19)
    flow = flow_of(DenseRows(X), Linear(), y)
    read = flow.examples.read

    def with_empty(nbytes):
        for batch, columns in read(nbytes):
            yield batch.slice(0, 0), columns.take(slice(0, 0))
            yield batch, columns

    flow.examples.read = with_empty
    assert stream(flow, Settings())[0].gap <= 1e-3


def test_a_store_of_features_has_the_optimum_of_one_of_raw_rows():
    batch, y = mails(seed=3)
    optimum = dcd(problem(densely(BagOfWords(bits=10), batch), y, cost=0.05), TIGHT)[0].primal
    flow = flow_of(batch, BagOfWords(bits=10), y, 0.05)
    kept = stream(flow, Settings(tol=1e-4, max_passes=1000))[0]
    flow.examples.keep = False
    raw = stream(flow, Settings(tol=1e-4, max_passes=1000))[0]
    assert kept.kept_rows > raw.kept_rows == raw.kept_bytes == 0
    assert 0 < kept.kept_bytes <= flow.examples.memory
    assert [kept.primal, raw.primal] == pytest.approx([optimum] * 2, rel=1e-4)


def densely(phi, batch):
    """phi of all rows written out."""
    out = np.zeros((len(batch), phi.dim))
    for row, sums in enumerate(out):
        phi.add(batch, np.array([row], np.uint32), np.ones(1), sums)
    return out


@pytest.mark.parametrize("before", [True, False])
def test_a_run_goes_on_with_and_without_features_that_are_kept(tmp_path, before):
    file = Checkpoint(str(tmp_path / "c"))
    flow = flow_of_kind("features")
    flow.examples.keep = before
    first = stream(flow, Settings(tol=1e-4, max_passes=3, checkpoint=file))[0]
    assert (first.kept_rows > 0) == before
    flow.examples.keep = not before
    last = stream(flow, Settings(tol=1e-4, max_passes=300, checkpoint=file, resume=True))[0]
    assert last.kept_rows == 0  # what lies raw in memory stays so
    assert last.reason is Reason.CONVERGED


def test_features_are_made_twice_when_rows_arrive_and_once_for_the_proof():
    """Once to see which would move; of those, lengths, visit and store share what is made, as all that a proof asks."""
    batch, y = mails(n=60, seed=5)
    made = []

    class Counted(BagOfWords):
        def fill(self, batch, rows, block):
            made.extend(batch[int(row)] for row in rows)
            super().fill(batch, rows, block)

    flow = flow_of(batch, Counted(bits=10), y, 10.0, memory=1 << 20)
    for keep in (True, False):
        made.clear()
        flow.examples.keep = keep
        stream(flow, Settings(tol=1e-9, max_passes=1))
        counts = [made.count(batch[row]) for row in range(len(batch))]
        assert max(counts) == 3 if keep else min(counts) > 3


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_the_best_multiple_of_w_is_returned_and_the_w_of_alpha_is_known(intercept):
    """What is proved is proved of the w that is returned; its `stretch` leads back to the one that alpha has."""
    X, y = noisy(n=150, d=400, seed=30)  # wide, with a large C: on its way w is too short
    stretched = 0
    for C in (1.0, 30.0, 1000.0):
        costs = np.full(len(y), C)
        result = stream(flow_of(DenseRows(X), Linear(), y, C, 40_000, intercept=intercept), Settings(tol=3e-2))[0]
        primal = naive.primal(X, y, costs, "hinge", result.w, result.intercept, intercept)
        assert result.primal == pytest.approx(primal)
        w, b = X.T @ (result.alpha * y), (result.alpha @ y) * (intercept == "regularized")
        np.testing.assert_allclose(result.w, result.stretch * w, rtol=1e-6, atol=1e-9)
        assert result.intercept == pytest.approx(result.stretch * b)
        dual = result.alpha.sum() - 0.5 * (w @ w + b * b)
        assert result.dual == pytest.approx(dual)
        stretched += result.stretch > 1.0
    assert stretched > 0
