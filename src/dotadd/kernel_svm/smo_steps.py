"""SMO on a chunk whose kernel matrix is in memory.

Problem:  max D(alpha) over the alpha_i of a chunk, those of all other examples standing still (`problem.py`)
Given:    K (m, m) of the chunk in float32; sign, cost, alpha; f of the chunk, with the influence of all examples
Returned: alpha and f, in place, with a violation within the chunk of at most tol

Two alphas move at a time, chosen by the second-order rule (Fan, Chen and Lin 2005): i of the highest g in `up`, and the
j in `low` with which the dual rises most. Each step is two passes over the chunk: one along both rows of K moves g and
finds the next i, one along row i finds its j. These are the inner loops of all kernel solvers, so

- they compare numbers as the integers that order alike, which vectorises where floats (that may be NaN) do not;
- only blocks of examples are compared, and the best block is then searched;
- membership in `up` and `low` is a number to add, 0 or infinite;
- examples that cannot move for now are left out, and the rows of K of those that remain are copied together
  (shrinking, Joachims 1999): fewer and shorter rows, which stay in the cache.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.kernel_svm.working_set import may_fall, may_rise

BLOCK = 64
TAU = 1e-12  # curvature along a pair where the kernel has none, or less than none
ROUNDING = 4.0 * np.finfo(np.float64).eps  # of g, relative to the largest change of it
SHRINK_AFTER = 1000  # steps
FEWER = 0.7  # examples that remain for each before, at most, to make copying worth while
SLACK = 2.0**-22  # by how much, relatively, numbers that differ may look the same in float32
LOWEST = -(2**31)  # of the integers that floats are compared as


@kernel
def solve_chunk(K, sign, cost, alpha, f, tol, max_steps):
    """Improve alpha until no pair within the chunk violates the conditions by more than tol, or for max_steps.

    Returns the number of steps; fewer than max_steps mean that the end was reached, as far as rounding allows.
    """
    m = len(f)
    g, diagonal = sign - f, np.empty(m, np.float32)
    for i in range(m):
        diagonal[i] = K[i, i]
    everyone = np.arange(m)
    active, steps = everyone, 0
    while steps < max_steps:
        taken, done = _solve_active(K, diagonal, sign, cost, alpha, g, active, tol, max_steps - steps)
        steps += taken
        if done and len(active) == m:
            break
        if not done:
            rise, fall = membership(sign, cost, alpha)
            active = worth_keeping(g, rise, fall)
        if done or len(active) > FEWER * m:
            active = everyone
    for i in range(m):  # one by one: assignments to slices and index arrays take Numba seconds to compile
        f[i] = sign[i] - g[i]
    return steps


@inner
def _solve_active(K, diagonal, sign, cost, alpha, g, active, tol, max_steps):
    """The same among the active examples, until that is done or far fewer would do; g of all is brought up to date.

    Returns the number of steps and whether it is done.
    """
    part = K if len(active) == len(g) else _part(K, active)
    lengths, signs, costs, alphas, gs = diagonal[active], sign[active], cost[active], alpha[active], g[active]
    rise, fall = membership(signs, costs, alphas)
    steps, done = 0, False
    while steps < max_steps and not done:
        room = min(SHRINK_AFTER, max_steps - steps)
        taken = _descend(part, lengths, signs, costs, alphas, gs, rise, fall, tol, room)
        steps += taken
        done = taken < room
        if len(worth_keeping(gs, rise, fall)) <= FEWER * len(active):
            break
    for a in range(len(active)):
        i = active[a]
        change = signs[a] * (alphas[a] - alpha[i])
        alpha[i] = alphas[a]
        if change != 0.0 and len(active) < len(g):
            row = K[i]
            for k in range(np.uint64(len(g))):
                g[k] -= change * row[k]
    for a in range(len(active)):
        g[active[a]] = gs[a]
    return steps, done


@inner
def _part(K, active):
    """The rows and columns of the active examples."""
    part = np.empty((len(active), len(active)), np.float32)
    for a in range(len(active)):
        row = K[active[a]]
        for b in range(len(active)):
            part[a, b] = row[active[b]]
    return part


@inner
def _descend(K, diagonal, sign, cost, alpha, g, rise, fall, tol, max_steps):
    """Steps of SMO; returns their number, below max_steps where the conditions hold or rounding ends it."""
    step, coarsest = 0, 0.0
    i, exact = highest(g, rise), True
    while step < max_steps and i >= 0:
        j, widest = partner(K[i], diagonal, g, fall, i)
        enough = max(tol, ROUNDING * coarsest)
        if not exact and widest <= enough + SLACK * abs(g[i]):
            i, exact = highest(g, rise), True
            continue
        if widest <= enough:
            break
        to_i, to_j = move(sign, cost, alpha, diagonal, g, rise, fall, i, j, K[i, j])
        if to_i == 0.0 or to_j == 0.0:
            break
        coarsest = max(coarsest, to_i * diagonal[i], -to_j * diagonal[j])
        i, exact = update(g, K[i], K[j], to_i, to_j, rise), False
        step += 1
    return step


@inner
def membership(sign, cost, alpha):
    """0 for members of `up`, -inf for others; 0 for members of `low`, inf for others."""
    rise, fall = np.empty(len(sign), np.float32), np.empty(len(sign), np.float32)
    for i in range(len(sign)):
        rise[i] = 0.0 if may_rise(sign[i], cost[i], alpha[i]) else -np.inf
        fall[i] = 0.0 if may_fall(sign[i], cost[i], alpha[i]) else np.inf
    return rise, fall


@inner
def worth_keeping(g, rise, fall):
    """The examples that are free, or violate the conditions together with some other one."""
    up_max, low_min = -np.inf, np.inf
    for i in range(len(g)):
        up_max, low_min = max(up_max, g[i] + rise[i]), min(low_min, g[i] + fall[i])
    keep, count = np.empty(len(g), np.int64), 0
    for i in range(len(g)):
        rises, falls = rise[i] == 0.0, fall[i] == 0.0
        if (rises and falls) or (rises and g[i] >= low_min) or (falls and g[i] <= up_max):
            keep[count] = i
            count += 1
    return keep[:count]


@inner
def highest(g, rise):
    """The member of `up` with the highest g, -1 if there is none."""
    best, at = -np.inf, -1
    for k in range(len(g)):
        if g[k] + rise[k] > best:
            best, at = g[k] + rise[k], k
    return at


@inner
def _bits(x):
    """The bits of a float32 as an integer, by which those that are not negative order alike."""
    return np.float32(x).view(np.int32)


@inner
def update(g, row_i, row_j, to_i, to_j, rise):
    """Move g by to_i and to_j along two rows of K; returns the member of `up` with the highest g, but for SLACK."""
    best, block, m = np.int32(LOWEST), 0, len(g)
    for first in range(0, m, BLOCK):
        top = np.int32(LOWEST)
        for k in range(np.uint64(first), np.uint64(min(first + BLOCK, m))):
            value = g[k] - to_i * row_i[k] - to_j * row_j[k]
            g[k] = value
            bits = _bits(np.float32(value) + rise[k])
            top = max(top, np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2**31 - 1))))  # negative ones reversed
        if top > best:
            best, block = top, first
    stop = min(block + BLOCK, m)
    at = highest(g[block:stop], rise[block:stop])
    return block + at if at >= 0 else -1


@inner
def _gain(row, diagonal, length, g, highest_g, fall, k):
    """How far g of k lies below that of i, 0 if it does not or k is not in `low`; and its square over the curvature."""
    below = np.float32(highest_g - g[k]) - fall[k]
    below = below if below > np.float32(0.0) else np.float32(0.0)
    curvature = length + diagonal[k] - np.float32(2.0) * row[k]
    curvature = curvature if curvature > np.float32(TAU) else np.float32(TAU)
    return below, np.float32(below * below) / curvature


@inner
def partner(row, diagonal, g, fall, i):
    """The j of `low` with which i, whose row of K is given, gains most; and the widest violation with i, 0 for none."""
    best, block, widest, m = np.int32(0), 0, np.int32(0), len(g)
    length, highest_g = diagonal[i], g[i]
    for first in range(0, m, BLOCK):
        top = np.int32(0)
        for k in range(np.uint64(first), np.uint64(min(first + BLOCK, m))):
            below, gain = _gain(row, diagonal, length, g, highest_g, fall, k)
            widest = max(widest, _bits(below))
            top = max(top, _bits(gain))
        if top > best:
            best, block = top, first
    most, at = np.float32(0.0), np.int64(-1)
    for k in range(np.uint64(block), np.uint64(min(block + BLOCK, m))):
        below, gain = _gain(row, diagonal, length, g, highest_g, fall, k)
        if gain > most:
            most, at = gain, np.int64(k)
    return at, np.float64(np.int32(widest).view(np.float32))


@inner
def move(sign, cost, alpha, diagonal, g, rise, fall, i, j, k_ij):
    """The best step of alpha_i y_i up and alpha_j y_j down, as far as both stay within their bounds.

    Returns by how much alpha_i y_i and alpha_j y_j changed, which rounding may make differ.
    """
    curvature = max(np.float64(diagonal[i]) + np.float64(diagonal[j]) - 2.0 * np.float64(k_ij), TAU)
    room_i = cost[i] - alpha[i] if sign[i] > 0 else alpha[i]
    room_j = alpha[j] if sign[j] > 0 else cost[j] - alpha[j]
    step = min((g[i] - g[j]) / curvature, room_i, room_j)
    old_i, old_j = alpha[i], alpha[j]
    if sign[i] > 0:
        alpha[i] = cost[i] if step >= room_i else min(old_i + step, cost[i])
    else:
        alpha[i] = 0.0 if step >= room_i else max(old_i - step, 0.0)
    if sign[j] > 0:
        alpha[j] = 0.0 if step >= room_j else max(old_j - step, 0.0)
    else:
        alpha[j] = cost[j] if step >= room_j else min(old_j + step, cost[j])
    for k in (i, j):
        rise[k] = 0.0 if may_rise(sign[k], cost[k], alpha[k]) else -np.inf
        fall[k] = 0.0 if may_fall(sign[k], cost[k], alpha[k]) else np.inf
    return sign[i] * (alpha[i] - old_i), sign[j] * (alpha[j] - old_j)
