"""The two points of a bundle method: the best w so far, u, and the lowest point above the planes, v.

What is asked of them is <w, phi(z_i)> of all rows and the penalty on the way from u to v. So there are two ways to hold
them, and the planes' a_t:

    ByVectors   as vectors of all slots
    ByRows      as coefficients c and outputs o of the rows, a = sum_i c_i phi(z_i) and o_i = <a, phi(z_i)>, where rows
                in memory are few and w is large. Inner products are <a, a'> = sum_i c_i o'_i, for u and v as for planes

ByRows asks for the outputs of the new plane instead of those of v, so there are as many passes over the rows, and none
over vectors but to make that plane, which some maps do without: sums over planes of 10^7 slots took more than half of
the time of OCAS on 10^5 windows, and each took 47 MB. w itself is made at the end, by one ADD.

Where w is drawn to a centre w0, planes and points are over w - w0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dotadd._jit import kernel
from dotadd.core.block import inner_product, squared_length
from dotadd.problem.examples import InMemory, squared_distance
from dotadd.problem.problem import half_length, half_square
from dotadd.solvers.planes import Planes, Shares
from dotadd.solvers.saving import Saved, State
from dotadd.solvers.serving import Add, AddDot, Asking, Asks, Dot


class Lowest(NamedTuple):
    """The lowest point above the planes, and the way to it from the best w."""

    output: np.ndarray
    """<w, phi(z_i)> of all rows."""
    intercept: float
    """Over that of the centre."""
    linear: float
    quadratic: float
    """1/2 |u + t (v - u)|^2 = 1/2 |u|^2 + linear t + quadratic t^2 / 2."""


class ByVectors:
    """Points and planes as vectors of all slots; u is the w of the run."""

    def __init__(self, run: Asking, planes: Planes) -> None:
        self.run, self.planes = run, planes
        self._there, self._plane = run.problem.zeros(), np.zeros(len(run.w))

    @staticmethod
    def of_a_plane(run: Asking) -> tuple[int, np.dtype]:
        """How many numbers a plane is, and of what kind."""
        return len(run.w), run.w.dtype

    def begin(self) -> Asks[np.ndarray]:
        """Outputs of the w to begin with."""
        return (yield from self.run.first_outputs())

    def cut(self, coefficients: np.ndarray, slope: float, offset: float, shares: Shares) -> Asks[None]:
        """Take in the plane of these coefficients, whose offset is given for w0 = 0."""
        self._plane[:] = 0.0
        yield Add(coefficients, self._plane)
        with self.run.phase("w"):
            if self.run.centre is not None:
                offset -= float(self._plane @ self.run.centre.w)
            self.planes.append(self._plane, slope, offset, shares)

    def lowest(self) -> Asks[Lowest]:
        """v, and the way to it from u."""
        there, w, centre = self._there, self.run.w, self.run.centre
        with self.run.phase("w"):
            intercept = self.planes.lowest(there)
            if centre is not None:
                there += centre.w
            linear, quadratic = _penalty_towards(there, w)
            if centre is not None:
                linear -= inner_product(centre.w, there) - inner_product(centre.w, w)
        return Lowest((yield Dot(there)), intercept, linear, quadratic)

    def move(self, t: float) -> None:
        """u += t (v - u)."""
        with self.run.phase("w"):
            _move_towards(self._there, t, self.run.w)

    def penalty(self, b: float) -> float:
        """What u and this intercept cost beside the losses."""
        return half_length(self.run.w, b, self.run.problem.intercept, self.run.centre)

    def state(self) -> State:
        """What `restore` needs, beside the w of the run. It holds until the next plane comes."""
        return self.planes.state()

    def restore(self, saved: Saved) -> bool:
        """Go on from there; False if that is not possible, and nothing has changed."""
        return saved.get("mean") is None and self.planes.restore(saved)

    def leave(self) -> None:
        """It has ended, and w is where it should be."""


class ByRows:
    """Points and planes as coefficients and outputs of all rows. The w of the run stays where it began:
    u = share (w - w0) + sum_i mean_i phi(z_i)."""

    def __init__(self, run: Asking, planes: Planes) -> None:
        self.run, self.planes = run, planes
        self._room: list[np.ndarray] = []
        self._share, self._length = 1.0, 0.0  # and |w - w0|^2
        self._mean, self._here, self._began, self._home = (np.zeros(planes.dim) for _ in range(4))
        """Coefficients of u, and outputs of u, w - w0 and w0."""
        self._coefficients, self._there = np.zeros(planes.dim), np.zeros(planes.dim)
        """Of v."""
        run.lacks = self._mean

    @staticmethod
    def of_a_plane(run: Asking) -> tuple[int, np.dtype]:
        """How many numbers a plane is, and of what kind."""
        return len(run.sign), np.dtype(np.float64)

    def begin(self) -> Asks[np.ndarray]:
        """Outputs of the w to begin with."""
        output, centre = (yield from self.run.first_outputs()), self.run.centre
        self._measure()
        if centre is not None:
            self._home[:] = (yield Dot(centre.w)) if self._length else output
        self._began[:] = output - self._home
        self._here[:] = self._began
        return output

    def _measure(self) -> None:
        w, centre = self.run.w, self.run.centre
        self._length = squared_length(w) if centre is None else squared_distance(w, centre.w)

    def cut(self, coefficients: np.ndarray, slope: float, offset: float, shares: Shares) -> Asks[None]:
        """Take in the plane of these coefficients, whose offset is given for w0 = 0."""
        output = yield AddDot(coefficients, self._room)
        with self.run.phase("w"):
            offset -= inner_product(coefficients, self._home)
            self.planes.append(output, slope, offset, shares, by=coefficients)

    def lowest(self) -> Asks[Lowest]:
        """v, and the way to it from u."""
        yield from ()  # nothing is asked for
        with self.run.phase("w"):
            intercept = self.planes.lowest(self._there)
            self._coefficients = self.planes.alpha(self.run.cost) * self.run.sign
            here, there = self._square(), inner_product(self._coefficients, self._there)
            across = inner_product(self._mean, self._there)
            across += self._share * inner_product(self._coefficients, self._began)
            quadratic = max(0.0, here - 2.0 * across + there)
            return Lowest(self._there + self._home, intercept, across - here, quadratic)

    def _square(self) -> float:
        """|u|^2."""
        beginning = self._share * (inner_product(self._mean, self._began) + self._share * self._length)
        return inner_product(self._mean, self._here) + beginning

    def move(self, t: float) -> None:
        """u += t (v - u)."""
        with self.run.phase("w"):
            self._share *= 1.0 - t
            _move_towards(self._coefficients, t, self._mean)
            _move_towards(self._there, t, self._here)

    def penalty(self, b: float) -> float:
        """What u and this intercept cost beside the losses."""
        return half_square(self._square(), b, self.run.problem.intercept, self.run.centre)

    def state(self) -> State:
        """What `restore` needs, beside the w of the run. It holds until the next plane comes."""
        numbers = {"mean": self._mean.copy(), "here": self._here.copy(), "share": self._share}
        return self.planes.state() | numbers | {"began": self._began, "home": self._home}

    def restore(self, saved: Saved) -> bool:
        """Go on from there; False if that is not possible, and nothing has changed."""
        if saved.get("mean") is None or not self.planes.restore(saved):
            return False
        self._share = saved["share"]
        self._measure()
        for name, numbers in (("mean", self._mean), ("here", self._here), ("began", self._began), ("home", self._home)):
            saved.into(name, numbers)
        return True

    def leave(self) -> None:
        """It has ended: w lacks the ADD of `mean` alone."""
        self._room.clear()  # before that ADD takes room
        if self._share < 1.0:
            w, centre, kind = self.run.w, self.run.centre, self.run.w.dtype.type
            w *= kind(self._share)
            if centre is not None:
                w += kind(1.0 - self._share) * centre.w


def kind_of_points(run: Asking) -> type[ByVectors | ByRows]:
    """The one whose planes are smaller."""
    by_rows = isinstance(run.problem.examples, InMemory) and 8 * len(run.sign) <= run.w.nbytes
    return ByRows if by_rows else ByVectors


@kernel
def _penalty_towards(there, w):
    """<w, d> and |d|^2 for d = there - w: what the penalty on w + t d is made of."""
    linear = quadratic = 0.0
    for k in range(np.uint64(len(w))):
        here = np.float64(w[k])
        d = np.float64(there[k]) - here
        linear += here * d
        quadratic += d * d
    return linear, quadratic


@kernel
def _move_towards(there, t, w):
    """w += t (there - w)."""
    for k in range(np.uint64(len(w))):
        w[k] += t * (np.float64(there[k]) - np.float64(w[k]))
