"""Training from a CSR matrix: how much the peak of the process grows while it fits.

w, the dual variables and other numbers for each row have to be there; a copy of the matrix must not. LIBLINEAR through
scikit-learn stands beside it. Each program runs in a process of its own.

    python -m benchmarks.memory [--tiny]
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks import datasets


def grow(program: str, tiny: bool) -> tuple[int, int, int]:
    """Bytes of the matrix, bytes by which the peak of this process grows in fit, rows."""
    X, y = datasets.load("synthetic", tiny)
    fit(program, *datasets.synthetic(100, 2**20, 5))  # compile and import before the clock starts
    before = peak()
    fit(program, X, y)
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, peak() - before, X.shape[0]


def fit(program: str, X, y: np.ndarray) -> None:
    if program == "dotadd":
        from dotadd import LinearSVM

        LinearSVM(tol=0.1).fit(X, y)
    else:
        from sklearn.svm import LinearSVC

        LinearSVC(loss="hinge", tol=1.0).fit(X, y)


def peak() -> int:
    """The most memory that this process has held at a time, in bytes.

    Linux hands ru_maxrss down from the parent process, so it is read from /proc where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.findall(r"VmHWM:\s*(\d+)", status.read_text())[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def report(*, tiny: bool = False) -> str:
    """The table, in Markdown."""
    lines = [
        "| program | matrix | peak grows by | of the matrix | bytes a row |",
        "|---|---|---|---|---|",
    ]
    for program in ("dotadd", "scikit-learn"):
        options = ["--tiny"] if tiny else []
        run = [sys.executable, "-m", "benchmarks.memory", "--run", program, *options]
        matrix, grown, rows = map(int, subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())
        cells = [f"{matrix / 1e6:,.1f} MB", f"{grown / 1e6:,.1f} MB", f"{grown / matrix:.2f}x", f"{grown / rows:,.0f}"]
        lines.append(f"| {program} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--run", choices=["dotadd", "scikit-learn"])
    arguments = parser.parse_args()
    if arguments.run:
        print(*grow(arguments.run, arguments.tiny))
    else:
        print(report(tiny=arguments.tiny))
