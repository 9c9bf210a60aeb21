"""Small problems that the solver tests share."""

import numpy as np

from dotadd.batch import DenseRows, SparseRows
from dotadd.expand import Expansion
from dotadd.features.base import Shape
from dotadd.features.linear import Linear
from dotadd.losses import Loss
from dotadd.solvers.flow import Flow, Piece
from dotadd.solvers.problem import Intercept, Problem

LOSSES = ["hinge", "squared_hinge", "logistic"]
INTERCEPTS = ["none", "regularized", "free"]


def noisy(n=60, d=8, seed=0, shift=0.7):
    """Two overlapping classes, unbalanced and away from the origin, with empty rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = np.where(X @ rng.normal(size=d) + 0.8 * rng.normal(size=n) + shift > 0, 1, -1)
    X[:2] = 0.0
    y[:2] = [1, -1]
    return X, y


def sparse(X, dtype=np.float32):
    """Dense numbers as sparse rows."""
    rows, columns = np.nonzero(X)
    offsets = np.searchsorted(rows, np.arange(len(X) + 1))
    return SparseRows(offsets, columns.astype(np.int32), X[rows, columns].astype(dtype), X.shape[1])


def problem(X, ys, *, cost=1.0, loss="hinge", intercept="regularized", dtype=np.float64, dense=False):
    batch = DenseRows(X.astype(dtype)) if dense else sparse(X, dtype)
    examples = Expansion(Linear().resolve(Shape.of(batch)), batch, dtype=dtype)
    signs = [np.asarray(y, np.int8) for y in np.atleast_2d(ys)]
    costs = np.broadcast_to(np.asarray(cost, np.float64), len(X)).copy()
    return Problem(examples, signs, costs, Loss.named(loss), Intercept(intercept))


def flow_of(
    batch, phi, signs, cost=1.0, memory=None, *, dtype=np.float64, threads=1, loss="hinge", intercept="regularized"
):
    """The same examples as a flow; the memory is a tenth of theirs by default."""
    signs = [np.asarray(y, np.int8) for y in np.atleast_2d(signs)]
    cost = np.broadcast_to(np.asarray(cost, np.float64), len(batch)).copy()
    ends = np.cumsum(batch.row_bytes())

    def read(nbytes):
        first = 0
        while first < len(batch):
            before = ends[first - 1] if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + nbytes, side="right")))
            yield Piece(batch.slice(first, stop), first, [sign[first:stop] for sign in signs], cost[first:stop])
            first = stop

    return Flow(
        phi=phi.resolve(Shape.of(batch)),
        read=read,
        rows=len(batch),
        problems=len(signs),
        memory=int(ends[-1]) // 10 if memory is None else memory,
        loss=Loss.named(loss),
        intercept=Intercept(intercept),
        dtype=dtype,
        threads=threads,
    )
