"""Iterated weighted least squares for a small chunk.

Problem:  max D(alpha) over the alpha_i of a chunk, those of all other examples standing still (`problem.py`)
Given:    K (m, m) of the chunk in float32, m up to 100 or so; sign, cost, alpha; f of the chunk, with the influence of
          all examples
Returned: alpha and f, in place, with a violation within the chunk of at most tol; the dual objective has not fallen

Pérez-Cruz et al. (2000): the hinge loss C_i e_i of an example with error e_i = 1 - y_i (f_i + b) > 0 is replaced by
a_i e_i^2 / 2 with a_i = C_i / e_i, whose minimum is a linear system; errors and weights follow from its solution, and
so on. Examples are in one of three sets: those with alpha_i = 0, those with alpha_i = C_i, and those between, for which
the system is solved:

    [ H + 1 / a   y ] [ alpha ]   [ 1 - y (f of the others) ]
    [ y'          0 ] [   b   ] = [ what the others lack for sum_i alpha_i y_i to stay ],   H_ij = y_i y_j k(z_i, z_j).

An alpha_i that comes out beyond a bound stays at that bound, and the system is solved again without it. Then examples
at a bound that violate the conditions take part again, those that begin to be support vectors weighted by their errors.
An example between the bounds has no error at the solution, so its 1 / a is 0. Where the dual objective does not grow,
this would go round in circles: SMO goes on from the best alpha. So it does where rounding spoils the system.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.kernel_svm.smo_steps import solve_chunk
from dotadd.kernel_svm.working_set import intercept, violation

ROUNDS = 50
RIDGE = 1e-10  # of the diagonal, where a kernel matrix is singular: an example may occur twice
BALANCED = 1e-11  # by how much sum_i alpha_i y_i may change, relative to the sum of alpha
TINY = 1e-30  # a pivot where there is nothing at all
MAX_STEPS = 10_000_000  # of SMO, whose usual number is some hundred

ZERO, BETWEEN, BOUND = 0, 1, 2


@kernel
def solve_small(K, sign, cost, alpha, f, tol):
    """Improve alpha until no pair within the chunk violates the conditions by more than tol.

    Returns how many systems were solved, and steps of SMO taken.
    """
    m, solved = len(f), 0
    first_alpha, first_f = alpha.copy(), f.copy()
    trial, outputs = alpha.copy(), f.copy()
    group, softness = np.empty(m, np.int8), np.zeros(m)
    b, best = intercept(f, sign, cost, alpha), 0.0
    for _ in range(ROUNDS):
        up_max, low_min, _, _ = violation(outputs, sign, cost, trial)
        if up_max - low_min <= tol:
            break
        _divide(sign, cost, trial, outputs, b, tol, group, softness)
        b, systems = _solve_between(K, sign, cost, first_alpha, first_f, group, softness, trial)
        solved += systems
        if systems == 0:
            break
        outputs = first_f.copy()
        balance, total = 0.0, 0.0
        for i in range(m):
            change = sign[i] * (trial[i] - first_alpha[i])
            balance += change
            total += trial[i]
            if change != 0.0:
                for k in range(m):
                    outputs[k] += change * K[i, k]
        gain = 0.0
        for i in range(m):
            gain += (trial[i] - first_alpha[i]) * (1.0 - 0.5 * sign[i] * (first_f[i] + outputs[i]))
        if not gain > best or abs(balance) > BALANCED * total:
            break
        best = gain
        for i in range(m):
            alpha[i], f[i] = trial[i], outputs[i]
    return solved + solve_chunk(K, sign, cost, alpha, f, tol, MAX_STEPS)


@inner
def _divide(sign, cost, alpha, f, b, tol, group, softness):
    """Put each example into its set; softness is 1 / a of those that begin to be support vectors, 0 for others."""
    for i in range(len(f)):
        error = 1.0 - sign[i] * (f[i] + b)
        softness[i] = 0.0
        group[i] = BETWEEN
        if alpha[i] >= cost[i]:
            if cost[i] == 0.0 or error >= -0.5 * tol:
                group[i] = BOUND
        elif alpha[i] <= 0.0:
            if error > 0.5 * tol:
                softness[i] = error / cost[i]
            else:
                group[i] = ZERO


@inner
def _solve_between(K, sign, cost, first_alpha, first_f, group, softness, alpha):
    """Solve the system, without those whose alpha comes out beyond a bound, until none does. Writes alpha.

    Returns b and how many systems it took, 0 if nobody was left in the end.
    """
    m, systems = len(group), 0
    while True:
        between, count, lack = np.empty(m, np.int64), 0, 0.0
        for i in range(m):
            lack += sign[i] * first_alpha[i]
            if group[i] == BETWEEN:
                between[count] = i
                count += 1
            else:
                alpha[i] = 0.0 if group[i] == ZERO else cost[i]
                lack -= sign[i] * alpha[i]
        if count == 0:
            return 0.0, 0
        between, target = between[:count], np.empty(count)
        for a in range(len(between)):
            i = between[a]
            output = first_f[i]
            for k in range(m):
                moved = (alpha[k] if group[k] != BETWEEN else 0.0) - first_alpha[k]
                output += sign[k] * moved * K[i, k]
            target[a] = 1.0 - sign[i] * output
        solution, b = _solve_bordered(K, sign, softness, between, target, lack)
        systems += 1
        outside = False
        for a in range(len(between)):
            i = between[a]
            if solution[a] < 0.0:
                group[i], outside = ZERO, True
            elif solution[a] > cost[i]:
                group[i], outside = BOUND, True
            else:
                alpha[i] = solution[a]
        if not outside:
            return b, systems


@inner
def _solve_bordered(K, sign, softness, rows, target, lack):
    """alpha of these examples and b, by a Cholesky factorization of H + 1 / a, with a ridge where it is singular."""
    n = len(rows)
    L, one, two = np.empty((n, n)), np.empty(n), np.empty(n)
    for a in range(n):
        i = rows[a]
        for c in range(a + 1):
            total = sign[i] * sign[rows[c]] * np.float64(K[i, rows[c]])
            for k in range(c):
                total -= L[a, k] * L[c, k]
            if c < a:
                L[a, c] = total / L[c, c]
            else:
                L[a, a] = np.sqrt(max(total + softness[i], RIDGE * abs(K[i, i]), TINY))
        one[a], two[a] = target[a], sign[i]
        for k in range(a):
            one[a] -= L[a, k] * one[k]
            two[a] -= L[a, k] * two[k]
        one[a] /= L[a, a]
        two[a] /= L[a, a]
    for a in range(n - 1, -1, -1):
        for k in range(a + 1, n):
            one[a] -= L[k, a] * one[k]
            two[a] -= L[k, a] * two[k]
        one[a] /= L[a, a]
        two[a] /= L[a, a]
    above, below = -lack, 0.0
    for a in range(n):
        above += sign[rows[a]] * one[a]
        below += sign[rows[a]] * two[a]
    b = above / below
    return one - b * two, b
