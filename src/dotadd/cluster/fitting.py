"""Training on parts from beginning to end: open them, agree on the problem, solve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from dotadd.cluster.engine import Engine
from dotadd.cluster.link import Link, tried
from dotadd.cluster.partitions import Partitions
from dotadd.cluster.task import Task, agree
from dotadd.errors import DotaddError
from dotadd.solvers.checkpoint import Checkpoint
from dotadd.solvers.result import Result
from dotadd.solvers.settings import Settings
from dotadd.solvers.table import Needs, that_need

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["agree", "forget_checkpoint", "method_for", "note_skipped", "opened", "solve"]


def method_for(solver: str) -> tuple[str, str]:
    """The method by the name of the solver, and why it is this one."""
    if solver == "auto":
        return "cocoa", "the examples lie in parts, and cocoa finds the optimum of all of them"
    known = that_need(Needs.PARTS)
    if solver not in known:
        names = " or ".join(f'"{name}"' for name in known)
        raise DotaddError(f"solver={solver!r} works on one machine: with engine= use {names}")
    return solver, "asked for"


@contextmanager
def opened(
    engine: Engine | Client,
    data: Partitions | None,
    memory: int | None,
    threads: int | None,
    resumed: Checkpoint | None,
    announce: Callable[[str], None],
) -> Iterator[Engine]:
    """The parts: those that an engine has, or those of the data on a Dask client. A run that is resumed has the same
    parts as it had, however many workers there are now."""
    if hasattr(engine, "round"):
        yield cast(Engine, engine)
        return
    from dotadd.cluster.connection import require_client
    from dotadd.cluster.dask_engine import DaskEngine

    require_client(engine)
    assert data is not None
    groups = None if resumed is None else resumed.problem_on_disk().get("parts")
    with DaskEngine(engine, data, memory=memory, threads=threads, groups=groups, announce=announce) as parts:
        yield parts


def solve(engine: Engine, task: Task, method: str, settings: Settings) -> list[Result]:
    """The results of all binary problems of the task."""
    if method == "average":
        from dotadd.cluster.average import average

        if settings.resume:
            raise DotaddError('solver="average" is done in one round, and there is nothing to resume')
        return average(engine, task, replace(settings, checkpoint=None))
    from dotadd.cluster.cocoa import cocoa

    checkpoint = settings.checkpoint
    if checkpoint is not None:
        checkpoint.problem = {
            "parts": getattr(engine, "groups", engine.parts), "rows": task.rows, "features": repr(task.phi),
            "loss": task.loss.name.lower(), "intercept": task.intercept.value,
            "cost": task.targets.cost_of_class.tolist(), "dtype": task.dtype.__name__,
        }  # fmt: skip
    elif settings.resume:
        raise DotaddError("resume needs a checkpoint to go on from")
    return cocoa(engine, task, settings)


def note_skipped(engine: Engine, data: Any) -> None:
    """Tell the data how many rows were left out in all of its parts."""
    from dotadd.cluster.engine import PartsLostError

    if not isinstance(data, Partitions):
        return
    data.skipped.clear()
    try:
        for skipped in engine.round("skipped").numbers:
            data.skipped.merge(skipped)
    except PartsLostError:  # at the very end: it is not worth another pass over the data
        return


def forget_checkpoint(engine: Engine | Client, path: str) -> None:
    """Remove the files that parts have written beside a checkpoint, on all workers."""
    if hasattr(engine, "round"):  # parts in this process
        _remove(path)
        return
    link = Link(engine)
    link.run(tried, _remove, path, workers=link.alive())


def _remove(path: str) -> None:
    import glob
    import os
    from contextlib import suppress

    for file in glob.glob(f"{glob.escape(path)}.part*"):
        with suppress(OSError):
            os.remove(file)
