"""Plain twins of the kernels: one pair of rows at a time, by their definitions, in float64."""

from __future__ import annotations

import math

import numpy as np


def linear(x, y) -> float:
    return float(np.dot(x, y))


def polynomial(x, y, degree: int, gamma: float, coef0: float) -> float:
    return (gamma * float(np.dot(x, y)) + coef0) ** degree


def rbf(x, y, gamma: float) -> float:
    return math.exp(-gamma * float(((x - y) ** 2).sum()))


def sigmoid(x, y, gamma: float, coef0: float) -> float:
    return math.tanh(gamma * float(np.dot(x, y)) + coef0)


def gram(kernel, a, b, **parameters) -> np.ndarray:
    """The matrix of a kernel between all rows."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.array([[kernel(x, y, **parameters) for y in b] for x in a]).reshape(len(a), len(b))
