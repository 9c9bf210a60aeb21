"""Training on Dask workers that are killed at random times: `python tests/soak_cluster.py --trials 30 --seed 1`.

Each trial trains on files on three workers while one or two of them die by SIGKILL, and has to find the optimum, within
the tolerance, as if nothing had happened. Those that died are started anew by Dask for the next trial. What goes wrong
is told with the seed that shows it again, as far as time can be repeated.
"""

import argparse
import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

import naive
import numpy as np
from clusters import data, even, pids, write_parts

from dotadd import LinearSVM
from dotadd.cluster import dask_engine
from dotadd.cluster.connection import local_workers
from dotadd.errors import NotConvergedWarning

WORKERS = 3
SMALL = dask_engine.SMALL
C, TOL = 0.1, 1e-4
PATIENCE = 120.0  # seconds after which a trial hangs


class Killer(threading.Thread):
    """Kills workers at these times, in seconds from now, as long as another one is left."""

    def __init__(self, client, times, rng):
        super().__init__(daemon=True)
        self.processes, self.rng, self.killed = list(pids(client).values()), rng, 0
        self.times = times[: len(self.processes) - 1]

    def run(self):
        began = time.monotonic()
        for at in self.times:
            time.sleep(max(0.0, began + at - time.monotonic()))
            victim = self.processes.pop(self.rng.randrange(len(self.processes)))
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                self.killed += 1


def trial(client, pattern, best, rng, lasts, large):
    """A training under fire; returns how many workers died. Anything but the optimum is an error."""
    client.wait_for_workers(WORKERS - 1, timeout=PATIENCE)
    dask_engine.SMALL = 0 if large else SMALL  # large messages take another way than small ones
    times = sorted(rng.uniform(0.0, lasts) for _ in range(rng.choice([1, 1, 2])))
    killer = Killer(client, times, rng)
    solver = "cocoa" if rng.random() < 0.8 else "average"
    killer.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # of averages
        svm = LinearSVM(C=C, tol=TOL, solver=solver, max_passes=5000).fit(pattern, engine=client)
    killer.join()
    if solver == "cocoa":
        assert svm.result_.gap <= TOL, f"ended with a gap of {svm.result_.gap}: {svm.result_.reason}"
        assert svm.result_.primal <= best * (1.0 + 2.0 * TOL), f"{svm.result_.primal} is not the optimum, {best}"
    return killer.killed


def soak(trials, seed):
    """So many trials; returns how many of them failed."""
    rng, failed, deaths = random.Random(seed), 0, 0
    X, y = data(n=1200, d=30)
    best = naive.solve(X, y, np.full(len(y), C), "hinge", "regularized")[0]
    with tempfile.TemporaryDirectory() as folder, local_workers(WORKERS, WORKERS) as client:
        pattern = write_parts(Path(folder), X, y, even(len(y), WORKERS + 1))
        LinearSVM(C=C, tol=TOL, max_passes=5000).fit(pattern, engine=client)  # whatever is compiled, is
        began = time.monotonic()
        LinearSVM(C=C, tol=TOL, max_passes=5000).fit(pattern, engine=client)
        lasts = time.monotonic() - began
        for number in range(trials):
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            began = time.monotonic()
            try:
                killed = trial(client, pattern, best, rng, lasts, large=bool(number % 2))
                deaths += killed
                print(f"{number}: {killed} killed, {time.monotonic() - began:.1f} s", flush=True)
            except Exception:
                failed += 1
                print(f"{number} of seed {seed} failed:\n{traceback.format_exc()}", flush=True)
            faulthandler.cancel_dump_traceback_later()
    print(f"{trials} trials, {deaths} workers killed, {failed} failed")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.exit(bool(soak(given.trials, given.seed)))
