"""Averaging: each part solves a problem of its own, and the mean of their w is the answer (Zinkevich et al. 2010).

Problem:  as for dcd; the examples lie in parts
Given:    an Engine whose parts have agreed on a Task
Returned: the mean of the parts' w and b, and its relative duality gap, for each of the binary problems

Part k has a share p_k of the rows, and solves

    P_k(w, b) = 1/2 |(w, b)|^2 + 1/p_k sum_{i in part k} C_i loss(m_i),

its rows standing for all of them. Then P = sum_k p_k P_k, and w = sum_k p_k w_k is the mean that belongs to it: with
dual variables a_i of P_k, which lie within C_i / p_k, alpha_i = p_k a_i is a dual point of P itself, within C_i, and

    sum_i alpha_i y_i phi(z_i) = sum_k p_k w_k.

So the mean has a dual point of its own, w = w_alpha, and one more round proves the gap between the two. The method is
the first round of CoCoA+ with sigma' = 1 / p_k in part k, solved to the end, and its gap tells how much further rounds
can gain.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from dotadd.cluster.engine import Engine, PartsLostError
from dotadd.cluster.requests import DualVariables, Solve, certify_parts
from dotadd.cluster.shard import Order, Task
from dotadd.problem.examples import aligned_zeros
from dotadd.solvers.result import Progress, Reason, Result
from dotadd.solvers.run import Run, Settings


def average(
    engine: Engine, task: Task, settings: Settings, *, prove: bool = True, gather: bool = False
) -> list[Result]:
    """The mean of what the parts find; each solves its own problem to `settings.tol` with dcd, or stream.

    Without the proof the primal objective is computed alone, and dual and gap are None.
    """
    while True:
        try:
            return _averaged(engine, task, settings, prove, gather)
        except PartsLostError:  # those that stand in for them solve their problems, too; the others know their answers
            continue


def _averaged(engine: Engine, task: Task, settings: Settings, prove: bool, gather: bool) -> list[Result]:
    began = perf_counter()
    local = replace(settings, on_progress=None, checkpoint=None, resume=False)
    replies = engine.round(Solve(local))
    solved = perf_counter()
    ws, orders = [], []
    for k, total in enumerate(replies.vectors):
        ws.append(aligned_zeros(task.phi, task.dtype))
        total.add_to(ws[k])
        orders.append(Order(k, sum(told[k].balance for told in replies.told), total, fresh=True))
    found = certify_parts(engine, task.intercept, ws, orders, exact=prove)
    seconds = {"solve": solved - began, "certify": perf_counter() - solved}
    results = []
    for k, (w, certificate) in enumerate(zip(ws, found, strict=True)):
        primal, dual, gap, b, _ = certificate
        run = Run(k, w)
        run.passes, run.certificate = max(told[k].passes for told in replies.told), certificate
        run.trace.append(Progress(1, perf_counter() - began, primal, dual, gap, task.rows, task.rows))
        if settings.on_progress is not None:
            settings.on_progress(run.trace[0], k)
        if gather:
            run.alpha = np.concatenate(engine.round(DualVariables(k)).told)
        run.reason = Reason.CONVERGED if prove and gap <= settings.tol else Reason.AVERAGED
        if any(told[k].interrupted for told in replies.told):
            run.reason = Reason.INTERRUPTED
        if not prove:
            run.primal_alone(primal, b)
        results.append(run.result(seconds))
    return results
