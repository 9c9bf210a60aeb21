"""The proof of how good an answer is, over all parts: primal, dual and gap from scratch, by one more round.

The arithmetic is that of solvers/proof.py. Each part sums up its rows at the shared w, and builds its share of
w_alpha = sum_i alpha_i y_i phi(z_i) in float64; their sum tells how far rounding has carried w away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dotadd.distributed.engine import Engine
from dotadd.distributed.part import Order
from dotadd.distributed.transport import Message
from dotadd.expand import squared_distance
from dotadd.solvers.certificate import SUM_BYTES
from dotadd.solvers.problem import Intercept
from dotadd.solvers.proof import Certificate, RowSums


def certify(
    engine: Engine,
    intercept: Intercept,
    ws: Sequence[np.ndarray],
    orders: Sequence[Order],
    messages: Sequence[Message],
    *,
    exact: bool = True,
) -> list[Certificate]:
    """The certificate of each (w, b): `orders` name the binary problems, `messages` bring the parts' copies up to date.

    If not `exact`, no vector is summed, and the gap leaves out what w differs from w_alpha.
    """
    found: list[Certificate] = []
    together = max(1, SUM_BYTES // (8 * max(1, len(ws[0])))) if len(ws) and exact else len(ws)
    for first in range(0, len(ws), max(1, together)):
        some = slice(first, first + together)
        replies = engine.round("measure", messages[some], orders=list(orders[some]), sums=exact)
        for j, (w, order) in enumerate(zip(ws[some], orders[some], strict=True)):
            rows = sum((numbers[j] for numbers in replies.numbers), RowSums())
            distance = squared_distance(w, replies.vectors[j].vector()) if exact else 0.0
            found.append(rows.certificate(w, intercept, order.b, distance))
    return found
