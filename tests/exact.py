"""Primal and dual objective in exact arithmetic: fractions, and 60 digits where there are logarithms."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

DIGITS = 60


def fractions(numbers):
    return [Fraction(float(number)) for number in np.ravel(numbers)]


def _decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def loss(name, m):
    """loss(m) of a Fraction, as a Fraction."""
    if name != "logistic":
        slack = max(Fraction(0), 1 - m)
        return slack if name == "hinge" else slack * slack
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = DIGITS, -(10**15), 10**15
        m = _decimal(m)
        if abs(m) > 200:  # log(1 + exp(-|m|)) is below 1e-86
            return Fraction(max(Decimal(0), -m))
        return Fraction((1 + (-m).exp()).ln())


def dual_term(name, alpha, cost):
    if name == "hinge":
        return alpha
    if name == "squared_hinge":
        return alpha - alpha * alpha / (4 * cost)
    if alpha <= 0 or alpha >= cost:
        return Fraction(0)
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = DIGITS, -(10**15), 10**15
        share = _decimal(alpha / cost)
        return cost * Fraction(-(share * share.ln()) - (1 - share) * (1 - share).ln())


def primal(X, y, cost, name, intercept, w, b):
    """P(w, b)."""
    w, b = fractions(w), Fraction(float(b))
    total = sum(one * one for one in w) / 2 + (b * b / 2 if intercept == "regularized" else 0)
    for row, sign, c in zip(X, y, fractions(cost), strict=True):
        if c > 0:
            output = sum(v * u for v, u in zip(fractions(row), w, strict=True)) + b
            total += c * loss(name, int(sign) * output)
    return total


def dual(X, y, cost, name, intercept, alpha):
    """D(alpha) of the nearest alpha that is feasible: within its bounds, and balanced where the intercept is free."""
    alpha, cost = fractions(alpha), fractions(cost)
    for a, c in zip(alpha, cost, strict=True):
        assert a >= 0
        assert name == "squared_hinge" or a <= c
    if intercept == "free":
        sides = {side: sum(a for a, sign in zip(alpha, y, strict=True) if sign == side) for side in (1, -1)}
        least = min(sides.values())
        alpha = [a * (least / sides[int(s)] if sides[int(s)] else 0) for a, s in zip(alpha, y, strict=True)]
    total = sum((dual_term(name, a, c) for a, c in zip(alpha, cost, strict=True) if c > 0), Fraction(0))
    for column in np.transpose(X):
        total -= sum(a * int(s) * v for a, s, v in zip(alpha, y, fractions(column), strict=True)) ** 2 / 2
    if intercept == "regularized":
        total -= sum(a * int(s) for a, s in zip(alpha, y, strict=True)) ** 2 / 2
    return total
