"""A process of its own that answers one call after the other, on so many cores, and is ended where one takes too long.

Programs that know no limit of time can be given one, and what was loaded and compiled for one call is there for the
next.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

ENDED = 5.0  # seconds for an idle process to end by itself


class Limited:
    """function(*args) in another process. It is started when it is first needed, and anew after it was ended."""

    def __init__(self, function: Callable[..., Any], threads: int) -> None:
        self.function, self.threads = function, threads
        self._process: Any = None
        self._ours: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __call__(self, *args: Any, limit: float) -> Any:
        """What the function returns; None if that takes longer than `limit` seconds."""
        if self._process is None:
            spawn = multiprocessing.get_context("spawn")
            self._ours, theirs = spawn.Pipe()
            self._process = spawn.Process(target=_serve, args=(theirs, self.function, self.threads), daemon=True)
            self._process.start()
            theirs.close()
            self._ours.recv()  # it is there: starting does not count
        self._ours.send(args)
        if not self._ours.poll(limit):
            self._process.kill()
            self.end()
            return None
        try:
            return self._ours.recv()
        except EOFError:
            raise SystemExit(f"{self.function.__name__}{args} failed; the reason stands above") from None

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._ours.close()
            self._process.join(ENDED)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            self._process = self._ours = None


def _serve(calls: Connection, function: Callable[..., Any], threads: int) -> None:
    from threadpoolctl import threadpool_limits

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    with threadpool_limits(threads):
        calls.send(None)
        while True:
            try:
                args = calls.recv()
            except EOFError:
                return
            calls.send(function(*args))


def asked(description: str | None, choices: Iterable[str], max_time: float) -> dict[str, Any]:
    """What the command line asks of an experiment that runs programs within a limit, as arguments of its `main`."""
    names = list(choices)
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", dest="names", default=",".join(names), help="some of %(default)s")
    parser.add_argument("--rows", type=int, help="examples to train on, at most")
    parser.add_argument("--threads", type=int, default=1, help="cores for each program; %(default)s")
    parser.add_argument("--repeat", type=int, default=2, help="runs, the fastest of which counts; %(default)s")
    parser.add_argument("--max-time", type=float, default=max_time, help="seconds for a run; %(default)g")
    parser.add_argument("--write", dest="page", type=Path, help="a page for the tables, to be kept up to date")
    parser.add_argument("--tiny", action="store_true", help="a few hundred made-up examples")
    given = vars(parser.parse_args())
    given["names"] = given["names"].split(",")
    if unknown := sorted(set(given["names"]) - set(names)):
        parser.error(f"there is no {unknown[0]}; choose among {', '.join(names)}")
    return given
