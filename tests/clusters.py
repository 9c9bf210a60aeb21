"""Dask clusters of real processes on this machine, and data in files for them."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
from problems import noisy

from dotadd.cluster.dask_engine import DaskEngine
from dotadd.cluster.requests import Descend


def write_parts(folder, X, y, rows, name="part-{}.svm"):
    """A LIBSVM file for each share of the rows; returns the pattern."""
    for number, mine in enumerate(rows):
        lines = [f"{y[i]} " + " ".join(f"{j + 1}:{X[i, j]:.9g}" for j in np.flatnonzero(X[i])) for i in mine]
        (folder / name.format(number)).write_text("".join(f"{line}\n" for line in lines))
    return str(folder / name.format("*"))


def even(n, parts):
    return np.array_split(np.arange(n), parts)


def data(n=240, d=12):
    X, y = noisy(n=n, d=d)
    return X.astype(np.float32), y


@contextmanager
def workers_forked():
    """Workers of one's own come from a process that has imported what they need; a second of the processor for each."""
    import dask
    from distributed.utils import get_mp_context

    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "dotadd.cluster.dask_engine", "dotadd.cluster.shard"])
        yield


def pids(client):
    return client.run(os.getpid, on_error="ignore")


class Struck(DaskEngine):
    """An engine to which something happens in the `at`-th round of a kind: strike(engine, the worker of part 0).

    `when` is when the round begins, when the request is on the workers, when all calls are sent, or when all parts have
    answered and nothing is fetched yet; or else "seated", when parts are given their workers.
    """

    def __init__(self, *given, strike, at=4, kind=Descend, when="sent", **options):
        self.strike, self.left, self.kind, self.when, self.asked = strike, at, kind, when, None
        super().__init__(*given, **options)

    def _ask(self, parts, request):
        self.asked = request
        self.left -= isinstance(request, self.kind)
        self._perhaps("begins")
        return super()._ask(parts, request)

    def _broadcast(self, request, workers, sent):
        down = super()._broadcast(request, workers, sent)
        self._perhaps("vectors")
        return down

    def _wait(self, root, calls, request):
        self._perhaps("sent")
        if self.when == "answered":
            from distributed import wait

            with self.client.as_current():
                wait([root])
            self._perhaps("answered")
        return super()._wait(root, calls, request)

    def _wait_for_seats(self, parts):
        if self.when == "seated":
            self._strike()
        super()._wait_for_seats(parts)

    def _perhaps(self, when):
        if when == self.when and isinstance(self.asked, self.kind) and self.left == 0:
            self._strike()

    def _strike(self):
        if self.strike is not None:
            strike, self.strike = self.strike, None
            strike(self, self._seats[0].worker)


def killed(engine, worker):
    os.kill(pids(engine.client)[worker], signal.SIGKILL)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextmanager
def started(*arguments):
    """A program of Dask in a process of its own."""
    command = [sys.executable, "-m", "dask", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def written_certificate(folder):
    """A certificate that is its own authority, as the options --tls-cert, --tls-key and --tls-ca of Dask's programs."""
    from distributed import Security

    made = Security.temporary()
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_text(made.tls_client_cert)
    key.write_text(made.tls_client_key)
    return ["--tls-ca-file", str(cert), "--tls-cert", str(cert), "--tls-key", str(key)]


@contextmanager
def scheduler(port, tls=()):
    kind = ["--protocol", "tls", *tls] if tls else []
    with started("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", *kind) as process:
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process


def worker(port, folder, tls=()):
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "0"]
    options += ["--death-timeout", "180"]  # so that none outlives its test by much
    address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{port}"
    return started("worker", address, *options, *tls, "--local-directory", str(folder))
