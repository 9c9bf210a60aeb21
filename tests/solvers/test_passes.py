"""A pass is a reading: what results tell is how often the source was read to its end, for every solver and loss."""

import numpy as np
import pytest
from problems import LOSSES, flow_of, noisy, problem, sparse, streamed_of

from dotadd.data.batches import DenseRows, Strings
from dotadd.features import NGrams, Shape
from dotadd.features.linear import Linear
from dotadd.problem.examples import InMemory
from dotadd.solvers import serving, stream
from dotadd.solvers.baselines import block_minimization
from dotadd.solvers.run import Settings
from dotadd.solvers.table import Needs, that_need

SOLVERS = that_need(Needs.ROWS, Needs.PASSES)
STREAMING = that_need(Needs.PIECES)

BATCH = ["ocas", "bmrm", "svmperf", "newton", "lbfgs"]
CASES = [(s, loss) for s in [*BATCH, *STREAMING] for loss in LOSSES if (s, loss) != ("newton", "hinge")]


class Readings:
    """Counts how often a flow is read to its end, proofs apart."""

    def __init__(self, flow, monkeypatch):
        self.count, self.proofs, read = 0, 0, flow.examples.read

        def counting(nbytes):
            yield from read(nbytes)
            self.count += 1

        flow.examples.read = counting
        for module, name in ((serving, "_prove"), (stream, "certify"), (block_minimization, "certify")):
            monkeypatch.setattr(module, name, self.apart(getattr(module, name)))

    def apart(self, prove):
        def proved(*given, **named):
            before = self.count
            found = prove(*given, **named)
            self.proofs += self.count - before
            self.count = before
            return found

        return proved


def solved(solver, flow, readings, settings):
    if solver in STREAMING:
        return STREAMING[solver](flow, settings)
    whole = flow.hold()
    readings.count = 0  # labels and costs come before training
    return SOLVERS[solver](whole, settings, None)


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize(("solver", "loss"), CASES)
def test_passes_are_readings(solver, loss, intercept, monkeypatch):
    X, y = noisy(n=120, seed=3)
    flow = flow_of(sparse(X), Linear(), y, 0.3, 4000, loss=loss, intercept=intercept)
    readings = Readings(flow, monkeypatch)
    # A pass of block minimization solves each piece well, and a dozen are as good as many.
    passes = 12 if solver.endswith("block_minimization") else 60
    (result,) = solved(solver, flow, readings, Settings(tol=1e-2, max_passes=passes))
    assert result.passes == readings.count > 0
    assert readings.proofs > 0
    assert result.trace[-1].passes <= result.passes


@pytest.mark.parametrize("solver", [*BATCH, *STREAMING])
def test_a_reading_serves_several_problems(solver, monkeypatch):
    X, _ = noisy(n=90, seed=6)
    codes = np.random.default_rng(2).integers(0, 3, len(X))
    ys = np.where(codes == np.arange(3)[:, None], 1, -1)
    flow = flow_of(DenseRows(X), Linear(), ys, 0.1, 4000, loss="squared_hinge")
    readings = Readings(flow, monkeypatch)
    passes = [result.passes for result in solved(solver, flow, readings, Settings(tol=1e-2, max_passes=60))]
    assert max(passes) <= readings.count < sum(passes)


def test_lbfgs_fetches_the_examples_near_their_kinks_in_one_reading(monkeypatch):
    """An iteration is a DOT, an ADD and the rows that have come to their kinks."""
    X, y = noisy(n=200, seed=1)
    flow = flow_of(sparse(X), Linear(), y, 0.3, 4000)
    readings = Readings(flow, monkeypatch)
    (result,) = solved("lbfgs", flow, readings, Settings(tol=1e-3))
    in_memory = SOLVERS["lbfgs"](problem(X, y, cost=0.3), Settings(tol=1e-3), None)[0]
    assert len(result.trace) == len(in_memory.trace)
    assert readings.count <= 3 * len(result.trace)
    assert in_memory.passes <= 2 * len(result.trace)
    assert result.primal == pytest.approx(in_memory.primal, rel=1e-6)


@pytest.mark.parametrize("streamed", [False, True])
def test_rows_written_out_are_those_of_phi(streamed):
    texts = ["aab abc", "", "bcbcbc", "aaaaaa", "c"]
    batch, phi = Strings.from_list(texts), NGrams(2, bits=4)
    phi = phi.resolve(Shape.of(batch))
    whole = InMemory(phi, batch)
    examples = streamed_of(phi, lambda: (batch.slice(k, k + 2) for k in (0, 2, 4)), 5) if streamed else whole
    rows, at = np.array([4, 0, 3]), np.array([1, 0, 2])
    out = np.zeros((3, phi.dim + 1), np.float32)
    examples.dense([(rows, at, out)])
    wanted = np.zeros((3, phi.dim + 1))
    for row, place in zip(rows, at, strict=True):
        one = np.zeros(5)
        one[row] = 1.0
        whole.add([one], [wanted[place, :-1]])
    np.testing.assert_array_equal(out, wanted)
    assert examples.passes == (1 if streamed else 3)
