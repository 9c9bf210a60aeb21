"""L-BFGS, with subgradients for the hinge (Yu, Vishwanathan, Guenter and Schraudolph, ICML 2008, JMLR 2010).

Problem:  min_x P(x), x = (w, b), with subgradients g = x - sum_i alpha_i v_i, v_i = y_i (phi(z_i), 1), where
          alpha_i = -C_i loss'(m_i), or anything in [0, C_i] where the margin m_i is on the kink of the hinge
Given:    DOT of all examples for what a direction does to the margins, ADD of some of them for a subgradient;
          the rows of a few of them
Returned: w, b; alpha, which follows from them for the smooth losses

Each iteration goes along p = -H g, where H stands for the inverse of the Hessian and is known by the last 10 steps s
and the changes y of the gradient along them. The search along p is exact and needs no further pass (line_search.py).

For the smooth losses the gap is |g|^2 / 2, as in newton.py.

After an exact search the hinge sits on a kink, and -H g for a g picked there may lead uphill. So the direction is the
minimum of a model that keeps the hinges of some examples K as they are, those on their kinks and a few that are next,

    min_p  p' H^-1 p / 2 + (x - sum_{i not in K} alpha_i v_i)' p + sum_{i in K} C_i max(0, 1 - m_i - v_i' p).

It has the slopes of P in all directions, so p leads downhill unless 0 is a subgradient. Its dual is a quadratic program
in the alpha_i of K, in the box [0, C_i], and p = -H g with the g of these alpha. The paper, whose K are the examples on
their kinks, approaches that g by averages of two subgradients at a time; cut short, these lose the kinks again, and
often stall above the optimum. Solved exactly, an example whose alpha_i lies inside its box stays on its
kink, and K becomes the support vectors on the margin. As K has its exact model, y leaves it out, and H is for the rest.

alpha stays within its bounds, so it proves a gap. What one alpha has too much another has too little; the proof is the
best mean of the last one and the mean before.

The intercept is one more number at the end of each vector, with a penalty or without.
"""

from __future__ import annotations

import numpy as np

from dotadd.core.block import inner_product, squared_length
from dotadd.core.losses import Loss, dual_at
from dotadd.problem.problem import Intercept
from dotadd.solvers.box_qp import box_qp
from dotadd.solvers.free_intercept import best_intercept
from dotadd.solvers.line_search import minimum_along
from dotadd.solvers.saving import Saved, State
from dotadd.solvers.serving import Add, Asking, Asks, Dot, Steps, Write

PAIRS = 10  # steps that H remembers
NEAR = 1e-9  # to 1: a margin on the kink, but for rounding
NEXT = 10  # examples, closest to their kinks, that another step as long as the last would take there: they join K
MAX_KINKS = 1000  # examples in K; they are kept as dense rows, as far as the budget has room
FIRST_REACH = 1e-3  # in place of the last step; counts if w comes from an earlier fit
PATIENCE = 50  # iterations: if together they gain less than ...
STALL = 1e-2  # ... this share of the tolerance, it has stalled


class History:
    """H, the L-BFGS inverse of the Hessian, in its compact form (Byrd, Nocedal and Schnabel 1994).

    With rows S and Y of steps and changes of the gradient, scaled so that s'y = 1, R the upper triangle of S Y' and
    gamma = s'y / y'y of the last pair,

        H = gamma I + [S' gamma Y'] M [S; gamma Y],   M = [[R^-T (I + gamma Y Y') R^-1, -R^-T], [-R^-1, 0]].
    """

    def __init__(self, dim: int, dtype: np.dtype, pairs: int = PAIRS) -> None:
        self._room = np.zeros((2, pairs, dim), dtype)
        self._inner = np.zeros((2, pairs, pairs))  # S Y' and Y Y'
        self._order: list[int] = []  # rows from the oldest pair to the last
        self.gamma = 1.0

    def append(self, s: np.ndarray, y: np.ndarray) -> None:
        """Take in a step and the change of the gradient along it; the oldest pair leaves if there is no room."""
        curvature, length = inner_product(s, y), squared_length(y)
        if not curvature > 0.0:
            return
        full = len(self._order) == self._room.shape[1]
        k = self._order.pop(0) if full else len(self._order)
        self._order.append(k)
        S, Y = self.pairs
        np.multiply(s, curvature**-0.5, out=S[k], casting="same_kind")
        np.multiply(y, curvature**-0.5, out=Y[k], casting="same_kind")
        for i in self._order:
            self._inner[0, i, k] = inner_product(S[i], Y[k])
            self._inner[1, i, k] = self._inner[1, k, i] = inner_product(Y[i], Y[k])
        self.gamma = curvature / length

    def state(self) -> State:
        """What `restore` needs. It holds until the next pair comes."""
        return {"pairs": self._room, "inner": self._inner, "order": self._order, "gamma": self.gamma}

    def restore(self, saved: Saved) -> None:
        saved.into("pairs", self._room)
        self._inner, self._order, self.gamma = saved["inner"], saved["order"], saved["gamma"]

    @property
    def pairs(self) -> np.ndarray:
        """S and Y, in no order."""
        return self._room[:, : len(self._order)]

    def _middle(self, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M [u; gamma v] for u = S q and v = Y q, q one vector or many side by side."""
        order = self._order
        SY, YY = (inner[np.ix_(order, order)] for inner in self._inner)
        R = np.triu(SY)
        a = np.linalg.solve(R, u[order])
        b = np.linalg.solve(R.T, a + self.gamma * (YY @ a - v[order]))
        back = np.argsort(order)
        return b[back], -a[back]

    def times(self, q: np.ndarray) -> np.ndarray:
        """H q."""
        out = self.gamma * q
        if self._order:
            S, Y = self.pairs
            a, b = self._middle(_products(S, q), _products(Y, q))
            for k in self._order:
                out += S.dtype.type(a[k]) * S[k]
                out += Y.dtype.type(self.gamma * b[k]) * Y[k]
        return out

    def between(self, rows: np.ndarray, gram: np.ndarray) -> np.ndarray:
        """V H V' for rows V with gram = V V'."""
        out = self.gamma * gram
        if self._order:
            u, v = ((pairs @ rows.T).astype(np.float64) for pairs in self.pairs)
            a, b = self._middle(u, v)
            out += u.T @ a + self.gamma * (v.T @ b)
        return out


def _products(rows: np.ndarray, q: np.ndarray) -> np.ndarray:
    """<row, q> of each row, in float64 without a float64 copy of the rows."""
    return np.array([inner_product(row, q) for row in rows], np.float64)


class Kinks:
    """K, the examples near the kink of the hinge: their numbers, the rows v_i, and the products of these."""

    def __init__(self, dim: int, dtype: np.dtype, nbytes: int) -> None:
        most = self.most_bytes(dim, dtype)
        self.room = max(1, MAX_KINKS * min(nbytes, most) // most)
        self.members = np.empty(0, np.int64)
        self.rows = np.empty((0, dim), dtype)
        self.gram = np.empty((0, 0))

    @staticmethod
    def most_bytes(dim: int, dtype: np.dtype) -> int:
        """Bytes of as many as there may be; they are copied when members come and go."""
        return MAX_KINKS * 2 * dim * dtype.itemsize

    def keep(self, which: np.ndarray) -> None:
        if not which.all():
            self.members, self.rows, self.gram = self.members[which], self.rows[which], self.gram[np.ix_(which, which)]

    def append(self, members: np.ndarray, rows: np.ndarray) -> None:
        self.members, self.rows = np.append(self.members, members), np.concatenate([self.rows, rows])
        products = (self.rows @ rows.T).astype(np.float64)
        old = len(self.gram)
        self.gram = np.pad(self.gram, (0, len(rows)))
        self.gram[:, old:] = products
        self.gram[old:] = products.T


class Proof:
    """The best mean of dual variables for the hinge, D(alpha) = sum_i alpha_i - |x_alpha|^2 / 2; where x is drawn to a
    centre, x_alpha begins there, and D is more by half its square."""

    def __init__(self, centre: np.ndarray, n: int) -> None:
        self.alpha, self.x = np.zeros(n), centre.copy()
        self.began = 0.5 * squared_length(centre)

    @property
    def dual(self) -> float:
        return float(self.alpha.sum()) - 0.5 * squared_length(self.x) + self.began

    def offer(self, alpha: np.ndarray, x: np.ndarray) -> None:
        """Go from the mean towards these dual variables and their x_alpha, as far as D rises."""
        towards, along = alpha - self.alpha, x - self.x
        length = squared_length(along)
        gain = float(towards.sum()) - inner_product(self.x, along)
        if gain > 0.0:
            t = 1.0 if gain >= length else gain / length
            self.alpha += t * towards
            self.x += t * along


def lbfgs(run: Asking) -> Steps:
    """Minimise the objective of one binary problem, from run.w."""
    return _with_kinks(run) if run.problem.loss is Loss.HINGE else _smooth(run)


def _smooth(run: Asking) -> Steps:
    history = History(run.problem.examples.dim + 1, run.w.dtype)
    if (saved := run.resumed) is not None:
        x, margins, g = saved["x"], saved["margins"], saved["g"]
        history.restore(saved)
    else:
        x = np.append(run.w, np.float64(run.intercept))
        margins = run.margins((yield from run.first_outputs()), x[-1])
        g = yield from _gradient(run, x, np.zeros_like(x), margins)
        if not _goes_on(run, x, margins, g):
            return
    while True:
        run.rest(history.state, x=x, margins=margins, g=g)
        p, last = -history.times(g), g
        if not (yield from _search(run, x, p, margins)):
            return
        g = yield from _gradient(run, x, p, margins)
        if not _goes_on(run, x, margins, g):
            return
        history.append(p, g - last)


def _gradient(run: Asking, x: np.ndarray, p: np.ndarray, margins: np.ndarray) -> Asks[np.ndarray]:
    """The gradient at x, to which the step p led; a free intercept is moved to its best value before."""
    if run.problem.intercept is Intercept.FREE:
        shift = best_intercept(run.problem.loss, margins * run.sign, run.problem.columns.sign(run.k), run.cost)
        margins += shift * run.sign
        x[-1] += shift
        p[-1] += shift
    g = _slope(run, x)
    yield from _subtract(run, dual_at(int(run.problem.loss), margins, run.cost), g)
    return g


def _goes_on(run: Asking, x: np.ndarray, margins: np.ndarray, g: np.ndarray) -> bool:
    primal = _keep(run, x, margins)
    return run.goes_on(primal, primal - 0.5 * squared_length(g))


def _with_kinks(run: Asking) -> Steps:
    with run.room(Kinks.most_bytes(run.problem.examples.dim + 1, run.w.dtype)) as nbytes:
        yield from _descend_kinks(run, nbytes)


def _descend_kinks(run: Asking, nbytes: int) -> Steps:
    cost, dim = run.cost, run.problem.examples.dim + 1
    history, kinks = History(dim, run.w.dtype), Kinks(dim, run.w.dtype, nbytes)
    proof = Proof(_centre(run), len(cost))
    run.alpha = proof.alpha
    if (saved := run.resumed) is not None:
        x, margins, alpha, g, reach = (saved[name] for name in ("x", "margins", "multipliers", "g", "reach"))
        proof.alpha[:], proof.x[:], primals = saved["proof_alpha"], saved["proof_x"], saved["primals"]
        history.restore(saved)
        kinks.members, kinks.rows, kinks.gram = saved["members"], saved["rows"], saved["gram"]
    else:
        x = np.append(run.w, np.float64(run.intercept))
        margins = run.margins((yield from run.first_outputs()), x[-1])
        alpha = dual_at(int(Loss.HINGE), margins, cost)
        g = _slope(run, x)
        yield from _subtract(run, alpha, g)
        reach, primals = np.full(len(alpha), FIRST_REACH), []

    def collected() -> State:
        return history.state() | {"members": kinks.members, "rows": kinks.rows, "gram": kinks.gram}

    while True:
        run.rest(
            collected, x=x, margins=margins, multipliers=alpha, g=g, reach=reach, primals=primals[-PATIENCE:],
            proof_alpha=proof.alpha, proof_x=proof.x,
        )  # fmt: skip
        yield from _gather(run, kinks, margins, reach, alpha, g)
        with run.phase("qp"):
            K, rows = kinks.members, kinks.rows
            product = history.between(rows, kinks.gram)
            linear = _products(rows, history.times(g)) + product @ alpha[K] + 1.0 - margins[K]
            _move(kinks, box_qp(product, linear, cost[K], alpha[K]), alpha, g)
        primals.append(_keep(run, x, margins))
        _prove(run, proof, kinks, x, alpha, g)
        if not run.goes_on(primals[-1], proof.dual):
            return
        if len(primals) > PATIENCE and primals[-PATIENCE] - primals[-1] <= STALL * run.settings.tol * primals[-1]:
            return
        p = -history.times(g)
        reach = margins.copy()
        if not (yield from _search(run, x, p, margins)):
            return
        reach -= margins
        new = dual_at(int(Loss.HINGE), margins, cost)
        on_kink = np.abs(1.0 - margins) <= NEAR
        on_kink[K] = True
        new[on_kink] = alpha[on_kink]
        change = _penalty(run, p)
        yield from _subtract(run, new - alpha, change)
        history.append(p, change)
        g += change
        alpha = new


def _penalty(run: Asking, x: np.ndarray) -> np.ndarray:
    """The gradient of the penalty on w and b, which is linear in them, but for the centre that they are drawn to."""
    out = x.copy()
    if run.problem.intercept is not Intercept.REGULARIZED:
        out[-1] = 0.0
    return out


def _centre(run: Asking) -> np.ndarray:
    """What x is drawn to."""
    if run.centre is None:
        return np.zeros(run.problem.examples.dim + 1)
    return _penalty(run, np.append(run.centre.w, np.float64(run.centre.b)))


def _slope(run: Asking, x: np.ndarray) -> np.ndarray:
    """The gradient of the penalty at x."""
    out = _penalty(run, x)
    if run.centre is not None:
        out -= _centre(run)
    return out


def _subtract(run: Asking, alpha: np.ndarray, g: np.ndarray) -> Steps:
    """g -= sum_i alpha_i v_i."""
    yield Add(-alpha * run.sign, g[:-1])
    if run.problem.intercept is not Intercept.NONE:
        g[-1] -= inner_product(alpha, run.sign)


def _keep(run: Asking, x: np.ndarray, margins: np.ndarray) -> float:
    """Make this the answer so far; returns its objective."""
    run.w[:], run.intercept = x[:-1], float(x[-1])
    return run.problem.primal(x[:-1], run.intercept, margins, run.k)


def _search(run: Asking, x: np.ndarray, p: np.ndarray, margins: np.ndarray) -> Asks[bool]:
    """Move x and its margins to the minimum along p, and make p the step; returns whether there was one.

    x is in float64 and p as exact as the vector that met the examples, so the margins stay those of x for good.
    """
    step = p[:-1].astype(run.w.dtype)
    p[:-1] = step
    slopes = run.margins((yield Dot(step)), p[-1])
    weighted = _penalty(run, p)
    drawn = 0.0 if run.centre is None else inner_product(_centre(run), weighted)
    t = minimum_along(
        int(run.problem.loss), margins, slopes, run.cost, inner_product(x, weighted) - drawn, inner_product(p, weighted)
    )
    p *= t
    x += p
    margins += t * slopes
    return t > 0.0


def _gather(
    run: Asking, kinks: Kinks, margins: np.ndarray, reach: np.ndarray, alpha: np.ndarray, g: np.ndarray
) -> Steps:
    """Let K be the examples on their kinks, the next ones, and those of K whose alpha says that they belong there."""
    cost, K = run.cost, kinks.members
    distance = np.abs(1.0 - margins)
    stay = (distance[K] <= NEAR) | ((alpha[K] > 0.0) & (alpha[K] < cost[K]))
    _move(kinks, np.where(stay, alpha[K], np.where(margins[K] < 1.0, cost[K], 0.0)), alpha, g)
    kinks.keep(stay)
    found = (distance <= np.maximum(np.abs(reach), NEAR)) & (cost > 0.0)
    found[kinks.members] = False
    new = np.flatnonzero(found)
    new = new[np.argsort(distance[new], kind="stable")]
    on_kink = np.count_nonzero(distance[new] <= NEAR)
    new = new[: min(on_kink + NEXT, kinks.room - len(kinks.members))]
    rows = np.zeros((len(new), len(g)), kinks.rows.dtype)
    if len(new):
        yield Write(new, rows)
        rows[:, -1] = run.problem.intercept is not Intercept.NONE
        rows *= run.sign[new, None].astype(rows.dtype)
        kinks.append(new, rows)


def _move(kinks: Kinks, to: np.ndarray, alpha: np.ndarray, g: np.ndarray) -> None:
    """Set the alpha of K."""
    change = to - alpha[kinks.members]
    for k in np.flatnonzero(change):
        g -= change[k] * kinks.rows[k]
    alpha[kinks.members] = to


def _prove(run: Asking, proof: Proof, kinks: Kinks, x: np.ndarray, alpha: np.ndarray, g: np.ndarray) -> None:
    """Offer alpha as a proof. A free intercept wants sum_i alpha_i y_i = 0: K takes what is missing, if it has room."""
    if run.problem.intercept is Intercept.FREE:
        K, missing = kinks.members, g[-1]
        up = run.sign[K] * missing > 0.0
        room = np.where(up, run.cost[K] - alpha[K], alpha[K])
        if room.sum() < abs(missing):
            return
        if missing != 0.0:
            share = room * (abs(missing) / room.sum())
            alpha, g = alpha.copy(), g.copy()
            _move(kinks, alpha[K] + np.where(up, share, -share), alpha, g)
    proof.offer(alpha, _penalty(run, x) - g)
