"""CoCoA+: parts that know of each other through w alone reach the optimum of all of the data, and prove it."""

import pickle
from dataclasses import replace

import naive
import numpy as np
import pytest
from naive import by_definition
from problems import LOSSES, noisy, problem, sparse

from dotadd.automata import Automaton
from dotadd.automata.files import write
from dotadd.cluster import requests
from dotadd.cluster.cocoa import cocoa
from dotadd.cluster.engine import LocalEngine, Message, PartsLostError
from dotadd.cluster.fitting import agree
from dotadd.cluster.requests import Begin, Descend, Recall
from dotadd.cluster.shard import Order, Shard
from dotadd.core.losses import Loss
from dotadd.data.batches import DenseRows, Strings
from dotadd.errors import DotaddError
from dotadd.features import Linear, Spectrum, parse
from dotadd.problem.on_disk import OnDisk
from dotadd.problem.problem import Intercept
from dotadd.solvers.checkpoint import Checkpoint, CheckpointError
from dotadd.solvers.dcd import dcd
from dotadd.solvers.result import Reason
from dotadd.solvers.run import Settings
from dotadd.sources import open as open_source
from dotadd.sources.base import Chunk
from dotadd.sources.memory import MemorySource

TOL = Settings(tol=1e-3, max_passes=2000)
ROOM = 1 << 30


def shares(n, parts):
    """Rows that belong to each part: any, in no order, the first parts having more."""
    rng = np.random.default_rng(parts)
    owner = rng.choice(parts, n, p=(w := np.arange(parts, 0, -1) ** 2.0) / w.sum())
    return [np.flatnonzero(owner == part) for part in range(parts)]


def engine_of(X, y, rows, weight=None, *, dtype=np.float64, threads=1):
    members = []
    for number, mine in enumerate(rows):
        chunk = Chunk(sparse(X[mine], dtype), y[mine], None if weight is None else weight[mine], 0)
        members.append(Shard(MemorySource(chunk), ROOM, number=number))
    return LocalEngine(members, threads=threads)


def engine_of_files(X, y, rows, folder):
    """The same from files that are larger than the parts' memory."""
    members = []
    for number, mine in enumerate(rows):
        path = folder / f"{number}.svm"
        lines = [f"{y[i]} " + " ".join(f"{j + 1}:{X[i, j]:.17g}" for j in np.flatnonzero(X[i])) for i in mine]
        path.write_text("\n".join(lines) + "\n")
        members.append(Shard(open_source(path, dtype=np.float64), 9_000, number=number))
    return LocalEngine(members)


def linear(chunk, shape):
    return Linear().resolve(shape)


def stated(engine, *, loss="hinge", intercept="regularized", dtype=np.float64, phi=linear, **options):
    return agree(engine, phi, loss=Loss.named(loss), intercept=Intercept(intercept), dtype=dtype, **options)


def solved(X, y, rows, settings=TOL, weight=None, *, solve=None, **options):
    engine = engine_of(X, y, rows, weight, dtype=options.get("dtype", np.float64))
    return cocoa(engine, stated(engine, **options), settings, gather=True, **(solve or {}))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parts", [1, 2, 4, 7])
def test_the_optimum_is_that_of_one_machine_however_many_parts_there_are(parts, loss):
    X, y = noisy(n=200)
    (result,) = solved(X, y, shares(200, parts), loss=loss)
    (alone,) = dcd(problem(X, y, loss=loss), Settings(tol=1e-6, max_passes=20000))
    assert result.reason is Reason.CONVERGED
    assert result.gap <= 1e-3
    assert alone.primal * (1 - 1e-6) <= result.primal <= alone.primal * (1 + 1e-3)
    assert result.dual <= alone.primal * (1 + 1e-9)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_primal_dual_and_gap_are_what_their_definitions_say(loss, intercept):
    X, y = noisy(n=120, seed=2)
    rows = shares(120, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    (result,) = solved(X, y, rows, Settings(tol=0.02), weight, loss=loss, intercept=intercept)
    order = np.concatenate(rows)
    X, y, cost = X[order], y[order], weight[order]
    alpha = result.alpha
    assert (alpha >= 0.0).all()
    assert loss == "squared_hinge" or (alpha <= cost).all()
    primal, dual = by_definition(X, y, cost, loss, intercept, result.w, result.intercept, alpha)
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-9)
    assert result.gap == pytest.approx((primal - dual) / primal, abs=1e-9)
    assert result.gap <= 0.02
    np.testing.assert_allclose(result.w, (alpha * y) @ X, atol=1e-9)
    assert result.intercept == pytest.approx(alpha @ y if intercept == "regularized" else 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_examples_and_classes_an_empty_part_and_a_class_in_one_part_only(loss):
    X, y = noisy(n=150)
    y = np.where(X[:, 0] > 0.9, 2, y)
    weight = np.random.default_rng(1).integers(0, 3, 150).astype(float)
    weight[np.flatnonzero(y == 2)[0]] = 1.0
    others = np.flatnonzero(y != 2)
    rows = [others[:100], np.empty(0, np.int64), np.flatnonzero(y == 2), others[100:]]
    results = solved(X, y, rows, weight=weight, loss=loss, C=0.5, class_weight={2: 3.0})
    cost = 0.5 * weight * np.where(y == 2, 3.0, 1.0)
    for label, result in zip([-1, 1, 2], results, strict=True):
        best, _, _ = naive.solve(X, np.where(y == label, 1, -1), cost, loss, "regularized")
        assert result.reason is Reason.CONVERGED
        assert best * (1 - 1e-6) <= result.primal <= best * (1 + 1e-3)


@pytest.mark.parametrize("solve", [{}, {"sigma": 4.0, "momentum": False}, {"sigma": 0.3}], ids=["", "paper", "bold"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_never_falls_even_where_sigma_is_too_small(loss, solve):
    X, y = noisy(n=200)
    (result,) = solved(X, y, shares(200, 4), Settings(tol=1e-6, max_passes=60), loss=loss, solve=solve)
    assert [progress.passes for progress in result.trace] == list(range(1, result.passes + 1))
    duals = np.array([progress.dual for progress in result.trace])
    assert (np.diff(duals) >= -1e-9 * abs(duals[-1])).all()
    assert result.trace[-1].gap == pytest.approx(result.gap, rel=1e-6)


def test_sigma_that_is_measured_needs_no_more_rounds_than_the_safe_one_and_momentum_fewer():
    X, y = noisy(n=200, d=30)
    rows = shares(200, 6)
    safe, momentum, both = (
        solved(X, y, rows, C=0.1, solve=solve)[0].passes
        for solve in ({"sigma": 6.0, "momentum": False}, {"sigma": 6.0}, {})
    )
    assert both <= momentum < safe


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_a_part_raises_the_model_of_the_dual_to_its_top(momentum):
    """The optimality conditions of T(alpha) - <u, v> - sigma/2 |v|^2, around u and around an extrapolated point."""
    X, y = noisy(n=60)
    X1, sigma = np.hstack([X, np.ones((60, 1))]), 2.5
    engine = engine_of(X, y, [np.arange(60)])
    stated(engine, loss="logistic")
    (part,) = engine.members
    first = Order(0, 0.0, Message.of(np.zeros(8)), sigma=sigma)
    (v,) = Descend([first], accuracy=1e-13, sweeps=5000).answer(part).vectors
    delta = part.alpha[0].copy()
    np.testing.assert_allclose(v.vector(), (delta * y) @ X, atol=1e-9)
    # other parts have added something, too, and all have gone 0.7 of the way
    theta, change, b_change = 0.7, np.random.default_rng(0).normal(size=8), 0.3
    order = Order(0, b_change, Message.of(change), theta, False, sigma, momentum, b_change)
    replies = Descend([order], accuracy=1e-13, sweeps=5000).answer(part)
    ((step,),), (v,) = replies.told, replies.vectors
    alpha, before, u = part.alpha[0], theta * delta, np.append(change, b_change)
    np.testing.assert_allclose(part.before[0], before, atol=1e-12)
    np.testing.assert_allclose(v.vector(), ((alpha - before) * y) @ X, atol=1e-9)
    away = ((alpha - before) * y) @ X1 - momentum * (before * y) @ X1
    margins = y * (X1 @ (u + momentum * u + sigma * away))
    np.testing.assert_allclose(alpha, 1.0 / (1.0 + np.exp(margins)), atol=1e-6)
    assert step.length == pytest.approx(away @ away)
    assert step.losses == pytest.approx(naive.loss_value("logistic", y * (X1 @ u)).sum())


def test_float32_weights_reach_the_default_tolerance():
    X, y = noisy(n=300, seed=9)
    (result,) = solved(X, y, shares(300, 4), dtype=np.float32)
    assert result.w.dtype == np.float32
    assert result.gap <= 1e-3
    assert result.primal <= naive.solve(X, y, np.ones(300), "hinge", "regularized")[0] * 1.0011


def test_a_w_that_has_drifted_a_little_is_made_up_for_and_one_that_has_drifted_far_is_told(monkeypatch):
    X, y = noisy(n=200)
    rows = shares(200, 3)
    (true,) = solved(X, y, rows)
    found = []
    for share in (0.4, 3.0):  # of the tolerance
        monkeypatch.setattr(
            requests, "squared_distance", lambda w, total, share=share: 2.0 * share * 1e-3 * true.primal
        )
        found += solved(X, y, rows)
    little, far = found
    assert little.reason is Reason.CONVERGED
    assert little.gap <= 1e-3
    assert little.passes > true.passes
    assert far.reason is Reason.PRECISION
    assert far.gap > 3e-3


def test_the_same_seed_gives_the_same_bits_whatever_the_threads_and_another_seed_another_path():
    X, y = noisy(n=200)
    found = []
    for threads, seed in ((1, 7), (2, 7), (1, 8)):
        engine = engine_of(X, y, shares(200, 4), threads=threads)
        found.append(cocoa(engine, stated(engine, seed=seed), Settings(tol=1e-2))[0])
    np.testing.assert_array_equal(found[0].w, found[1].w)
    assert not np.array_equal(found[0].w, found[2].w)
    assert found[0].alpha is None  # it stays with the parts


@pytest.mark.parametrize("loss", LOSSES)
def test_a_part_larger_than_its_memory_is_read_again_and_again(tmp_path, loss):
    X, y = noisy(n=300, d=20)
    engine = engine_of_files(X, y, shares(300, 2), tmp_path)
    members = engine.members
    task = stated(engine, loss=loss, C=0.1)
    assert all(isinstance(part.rows.problem.examples, OnDisk) for part in members)
    assert len(list(members[0].rows.pieces())) > 1
    (result,) = cocoa(engine, task, TOL)
    assert result.reason is Reason.CONVERGED
    assert result.primal <= naive.solve(X, y, np.full(300, 0.1), loss, "regularized")[0] * (1 + 1e-3)


def test_limits_end_with_a_true_gap():
    X, y = noisy(n=200)
    rows = shares(200, 4)

    def interrupt(progress, k):
        if progress.passes == 4:
            raise KeyboardInterrupt

    hard = Settings(tol=1e-12)
    few = solved(X, y, rows, replace(hard, max_passes=3))[0]
    late = solved(X, y, rows, replace(hard, max_time=1e-9))[0]
    cut = solved(X, y, rows, replace(hard, on_progress=interrupt))[0]
    assert [few.reason, late.reason, cut.reason] == [Reason.MAX_PASSES, Reason.MAX_TIME, Reason.INTERRUPTED]
    assert few.passes == 3
    order = np.concatenate(rows)
    for result in (few, late, cut):
        assert result.primal == pytest.approx(
            naive.primal(X, y, np.ones(200), "hinge", result.w, result.intercept, "regularized")
        )
        np.testing.assert_allclose(result.w, (result.alpha * y[order]) @ X[order], atol=1e-9)


class Failing(LocalEngine):
    """Loses one part in the middle of a round, once or more: some parts have answered by then."""

    def __init__(self, members, losses):
        super().__init__(members)
        self.losses = dict(losses)  # round: part

    def round(self, request):
        if isinstance(request, Begin):
            self.task = request.task
        lost = self.losses.pop(self.traffic.rounds, None)
        if lost is None:
            replies = super().round(request)
            if isinstance(request, Recall):
                self.recalled = [part.alpha[0].any() for part in self.members]
            return replies
        self.traffic.rounds += 1
        for part in self.members[:lost]:
            request.answer(part)
        old = self.members[lost]
        self.members[lost] = Shard(old.rows.source, ROOM, number=lost)
        self.members[lost].begin(self.task)
        raise PartsLostError([lost])


@pytest.mark.parametrize("loss", LOSSES)
def test_after_parts_were_lost_training_ends_at_the_same_objective(loss):
    X, y = noisy(n=200)
    rows = shares(200, 3)
    engine = Failing(engine_of(X, y, rows).members, {5: 1, 6: 2, 9: 0})
    (result,) = cocoa(engine, stated(engine, loss=loss), TOL, gather=True)
    assert not engine.losses
    assert result.reason is Reason.CONVERGED
    assert result.primal <= naive.solve(X, y, np.ones(200), loss, "regularized")[0] * (1 + 1e-3)
    order = np.concatenate(rows)
    np.testing.assert_allclose(result.w, (result.alpha * y[order]) @ X[order], atol=1e-9)


def test_a_part_that_stands_in_for_a_lost_one_goes_on_from_its_file(tmp_path):
    X, y = noisy(n=200)
    rows = shares(200, 3)
    engine = Failing(engine_of(X, y, rows).members, {20: 1})
    settings = Settings(tol=1e-6, max_passes=25, checkpoint=Checkpoint(str(tmp_path / "run"), 0.0))
    (result,) = cocoa(engine, stated(engine), settings, gather=True)
    assert not engine.losses
    assert all(engine.recalled)
    order = np.concatenate(rows)
    np.testing.assert_allclose(result.w, (result.alpha * y[order]) @ X[order], atol=1e-9)


@pytest.mark.parametrize("without", [None, 1], ids=["all files", "one file lost"])
def test_a_resumed_run_goes_on_from_the_files_of_driver_and_parts(tmp_path, without):
    X, y = noisy(n=200)
    rows, tol = shares(200, 3), 1e-5
    file = Checkpoint(str(tmp_path / "run"))
    whole = solved(X, y, rows, Settings(tol=tol, max_passes=1000))[0]
    first = solved(X, y, rows, Settings(tol=tol, max_passes=6, checkpoint=file))[0]
    assert first.reason is Reason.MAX_PASSES
    if without is not None:
        (tmp_path / f"run.part{without}").unlink()
    again = solved(X, y, rows, Settings(tol=tol, max_passes=1000, checkpoint=file, resume=True))[0]
    assert again.reason is Reason.CONVERGED
    assert again.primal == pytest.approx(whole.primal, rel=2 * tol)
    assert [progress.passes for progress in again.trace] == list(range(1, again.passes + 1))
    assert again.trace[:5] == first.trace[:5]
    order = np.concatenate(rows)
    np.testing.assert_allclose(again.w, (again.alpha * y[order]) @ X[order], atol=1e-9)
    if without is None:
        assert again.trace[5].dual == pytest.approx(first.dual)


def test_a_class_that_was_done_before_a_part_was_lost_goes_on_from_what_the_parts_have(tmp_path):
    """With a smaller tolerance: its w is of dual variables that went with the part."""
    X, y = noisy(n=200)
    y = np.where(X[:, 0] > 0.3, 3, y)
    X[y == 3, 1] += 9.0  # this class is soon told from the others
    rows, order = shares(200, 3), np.concatenate(shares(200, 3))
    file, ended = Checkpoint(str(tmp_path / "run")), []

    class LateLoss(Failing):
        """Loses a part when the first class is done, and has no file of it since then."""

        def round(self, request):
            if isinstance(request, Descend) and len(request.orders) < 3 and not ended:
                ended.append(self.traffic.rounds)
                (tmp_path / "run.part1").unlink()
                self.losses[self.traffic.rounds] = 1
            return super().round(request)

    engine = LateLoss(engine_of(X, y, rows).members, {})
    first = cocoa(engine, stated(engine), Settings(tol=1e-3, max_passes=60, checkpoint=file), gather=True)
    assert ended
    assert Reason.MAX_PASSES in {result.reason for result in first}, "or else there is nothing to go on with"
    assert Reason.CONVERGED in {result.reason for result in first}
    settings = Settings(tol=1e-6, max_passes=5000, checkpoint=file, resume=True)
    for label, result in zip((-1, 1, 3), solved(X, y, rows, settings), strict=True):
        sign = np.where(y == label, 1, -1)
        np.testing.assert_allclose(result.w, (result.alpha * sign[order]) @ X[order], atol=1e-9)
        assert result.reason is Reason.CONVERGED
        assert result.primal <= naive.solve(X, sign, np.ones(200), "hinge", "regularized")[0] * (1 + 2e-6)


def test_files_of_other_data_are_not_resumed(tmp_path):
    X, y = noisy(n=200)
    settings = Settings(tol=1e-9, max_passes=2, checkpoint=Checkpoint(str(tmp_path / "run")))
    solved(X, y, shares(200, 3), settings)
    with pytest.raises(CheckpointError, match="another problem: data"):
        solved(2.0 * X, y, shares(200, 3), replace(settings, resume=True))


def test_phi_is_made_for_the_widest_part_and_slots_mean_the_same_everywhere():
    X, y = noisy(n=100)
    X[:60, 5:] = 0.0  # the first part is narrower than the second
    members = [
        Shard(MemorySource(Chunk(sparse(X[:60, :5], np.float64), y[:60], None, 0)), ROOM),
        Shard(MemorySource(Chunk(sparse(X[60:], np.float64), y[60:], None, 0)), ROOM, number=1),
    ]
    engine = LocalEngine(members)
    task = stated(engine)
    assert task.shape.n_features == task.phi.dim == 8
    (result,) = cocoa(engine, task, TOL)
    assert result.primal <= naive.solve(X, y, np.ones(100), "hinge", "regularized")[0] * (1 + 1e-3)


def test_rows_that_phi_cannot_take_are_left_out_of_the_tally_too():
    texts, y = ["ACAC", "GTGT", "NNNN", "ACAA", "GTTT", "NNNC"], np.array([1, -1, 7, 1, -1, 7])
    members = []
    for number, mine in enumerate([slice(0, 3), slice(3, 5), slice(5, 6)]):
        source = MemorySource(Chunk(Strings.from_list(texts[mine]), y[mine], None, 0), on_bad_row="skip")
        members.append(Shard(source, ROOM, number=number))
    engine = LocalEngine(members)
    task = stated(engine, phi=lambda chunk, shape: Spectrum(2).resolve(shape), dtype=np.float32)
    assert task.targets.classes.tolist() == [-1, 1]
    assert (task.rows, task.parts) == (4, 2)
    assert cocoa(engine, task, TOL)[0].reason is Reason.CONVERGED


@pytest.mark.parametrize(
    "text", ["Spectrum(2).normalized()", "0.5 * Spectrum(2).hashed(8)", "Rational('t.fst', bits=8)"]
)
def test_maps_that_learn_nothing_are_taken_whatever_stands_around_them(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copying = Automaton.from_arcs([(0, 0, ord(letter), ord(letter), 0.5) for letter in "ACGT"], [0])
    write(copying, "t.fst")
    engine = LocalEngine([part(Strings.from_list(["ACAC", "GTGT"]), [1, 2]), part(Strings.from_list(["ACAA"]), [1], 1)])
    task = stated(engine, phi=lambda chunk, shape: parse(text).resolve(shape), dtype=np.float32)
    (tmp_path / "t.fst").unlink()  # the parts have what they need
    pickle.loads(pickle.dumps(task.phi)).check(Strings.from_list(["ACG"]))
    assert cocoa(engine, task, TOL)[0].reason is Reason.CONVERGED


class Learning(Spectrum):
    """A map that has room for what it has seen."""

    def learn(self, batch):
        return Learning(2)


def part(batch, y, number=0):
    return Shard(MemorySource(Chunk(batch, None if y is None else np.asarray(y), None, 0)), ROOM, number=number)


@pytest.mark.parametrize(
    ("members", "options", "complaint"),
    [
        ([part(DenseRows(np.ones((2, 3))), [1, 2]), part(DenseRows(np.ones((2, 4))), [1, 2])], {}, "rows of shape"),
        ([part(DenseRows(np.ones((2, 3))), [1, 2]), part(Strings.from_list(["A"]), [1])], {}, "holds strings"),
        ([part(DenseRows(np.ones((2, 3))), [1, 2]), part(DenseRows(np.ones((1, 3))), ["a"])], {}, "labels are text"),
        ([part(DenseRows(np.ones((2, 3))), None)], {}, "no labels"),
        ([part(DenseRows(np.ones((2, 3))), [1, 1]), part(DenseRows(np.ones((2, 3))), [1, 1])], {}, "one class only"),
        ([Shard(None, ROOM), Shard(None, ROOM)], {}, "no part has any examples"),
        ([part(DenseRows(np.ones((2, 3))), [1, 2])], {"intercept": "free"}, "free intercept"),
        (
            [part(Strings.from_list(["ACG", "ACC"]), [1, 2])],
            {"phi": lambda chunk, shape: Learning(2)},
            "numbers features as it meets them",
        ),
    ],
)
def test_parts_that_do_not_go_together_are_refused_in_one_line(members, options, complaint):
    with pytest.raises(DotaddError, match=complaint) as caught:
        stated(LocalEngine(members), **options)
    assert "\n" not in str(caught.value)


def test_traffic_is_two_vectors_a_round_and_part():
    X, y = noisy(n=200, d=12)
    X += 0.1  # so that no difference is sparse
    engine = engine_of(X, y, shares(200, 4))
    task = stated(engine)
    before = engine.traffic.rounds
    (result,) = cocoa(engine, task, Settings(tol=1e-12, max_passes=5))
    assert result.passes == 5
    assert engine.traffic.rounds - before == 6  # and one for the proof
    assert engine.traffic.up == engine.traffic.down + 4 * 8 * 12  # the proof's sums; w = 0 is not sent
