"""The losses: value, slope, dual term and the exact step in one dual variable.

With margin m = y (<w, phi(z)> + b), an example adds C loss(m) to the primal objective and dual_term(alpha) to the dual
one, D(alpha) = sum_i dual_term(alpha_i) - |sum_i alpha_i y_i phi(z_i)|^2 / 2, where

    loss            loss(m)             dual_term(alpha)                            alpha lies in
    hinge           max(0, 1 - m)       alpha                                       [0, C]
    squared hinge   max(0, 1 - m)^2     alpha - alpha^2 / (4 C)                     [0, inf)
    logistic        log(1 + exp(-m))    C H(alpha / C), H the entropy in nats       [0, C]

Kernels take a loss as its number, since Numba does not cache functions that are passed as arguments.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from dotadd._jit import inner, kernel


class Loss(IntEnum):
    """The losses by number; `Loss.named("squared_hinge")` by name."""

    HINGE = 0
    SQUARED_HINGE = 1
    LOGISTIC = 2

    @classmethod
    def named(cls, name: str) -> Loss:
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(loss.name.lower() for loss in cls)
            raise ValueError(f"unknown loss {name!r}; choose from {known}") from None


HINGE, SQUARED_HINGE, LOGISTIC = int(Loss.HINGE), int(Loss.SQUARED_HINGE), int(Loss.LOGISTIC)


@inner
def value(loss, margin):
    """loss(m)."""
    if loss == LOGISTIC:
        return np.log1p(np.exp(-margin)) if margin > 0.0 else np.log1p(np.exp(margin)) - margin
    slack = 1.0 - margin
    if slack < 0.0:  # not by max(), which makes 0 of what is not a number
        slack = 0.0
    return slack if loss == HINGE else slack * slack


@inner
def slope(loss, margin):
    """d loss(m) / dm; where the hinge has a kink, the one-sided slope from the right, 0."""
    if loss == LOGISTIC:
        return -1.0 / (1.0 + np.exp(margin))
    if margin >= 1.0:
        return 0.0
    return -1.0 if loss == HINGE else 2.0 * (margin - 1.0)


@inner
def dual_term(loss, alpha, cost):
    """What one dual variable adds to the dual objective."""
    if loss == HINGE:
        return alpha
    if loss == SQUARED_HINGE:
        return alpha - 0.25 * alpha * alpha / cost
    share = alpha / cost
    entropy = 0.0
    if share > 0.0:
        entropy -= share * np.log(share)
    if share < 1.0:
        entropy -= (1.0 - share) * np.log1p(-share)
    return cost * entropy


@inner
def dual_step(loss, alpha, cost, margin, norm):
    """The best value of one dual variable, the others fixed; `margin` is at the present alpha, norm = |phi(z)|^2."""
    if loss == LOGISTIC:
        return _logistic_step(alpha, cost, margin, norm)
    gradient = margin - 1.0
    if loss == SQUARED_HINGE:
        return max(0.0, alpha - (gradient + 0.5 * alpha / cost) / (norm + 0.5 / cost))
    if norm > 0.0:
        return min(max(alpha - gradient / norm, 0.0), cost)
    return cost if gradient < 0.0 else 0.0


@inner
def _logistic_step(alpha, cost, margin, norm):
    """Solve t + m(t) = 0 for the log-odds t of alpha / cost, where m(t) = margin + norm (alpha(t) - alpha).

    The left side rises with a slope of at least 1, so a Newton step that leaves the bracket is replaced by bisection
    and a handful of steps reach full precision.
    """
    rest = margin - norm * alpha
    low, high = -rest - norm * cost, -rest
    t = min(max(-margin, low), high)
    share = 0.0
    for _ in range(50):
        share = 1.0 / (1.0 + np.exp(-t))
        excess = t + rest + norm * cost * share
        if excess > 0.0:
            high = t
        else:
            low = t
        step = excess / (1.0 + norm * cost * share * (1.0 - share))
        if abs(step) <= 1e-10 * (1.0 + abs(t)):
            break
        t = t - step if low < t - step < high else 0.5 * (low + high)
    return cost * share


@kernel
def total_loss(loss, margins, cost):
    """sum_i C_i loss(m_i)."""
    total = 0.0
    for i in range(len(margins)):
        total += cost[i] * value(loss, margins[i])
    return total


@kernel
def total_dual_term(loss, alpha, cost):
    """sum_i dual_term(alpha_i), over examples with a positive cost."""
    total = 0.0
    for i in range(len(alpha)):
        if cost[i] > 0.0:
            total += dual_term(loss, alpha[i], cost[i])
    return total


@kernel
def dual_at(loss, margins, cost):
    """alpha_i = -C_i loss'(m_i): the dual variables that fit these margins; 0 on the kink of the hinge."""
    alpha = np.empty(len(margins))
    for i in range(len(margins)):
        alpha[i] = -cost[i] * slope(loss, margins[i])
    return alpha
