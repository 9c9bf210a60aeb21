"""How long a person waits before anything happens; each line in new processes, compiling apart.

python -m benchmarks.startup [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

IMPORT = "from time import perf_counter as t; a = t(); import dotadd; b = t(); "
FIT = (
    "import numpy as np; X = np.random.default_rng(0).normal(size=(100, 5)); y = (X[:, 0] > 0).astype(int); "
    "c = t(); dotadd.LinearSVM().fit(X, y); d = t(); print(b - a, d - c)"
)
# What Numba itself takes before a first kernel has run, were there nothing else.
NUMBA_ALONE = """
from time import perf_counter as t
import numpy
a = t()
import numba

@numba.njit(cache=True)
def plus_one(x):
    return x + 1

plus_one(1)
print(t() - a)
"""


def inside(arguments: list[str], folder: str) -> list[float]:
    """The numbers that a new Python process prints."""
    environment = {**os.environ, "DOTADD_CACHE_DIR": folder}
    out = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in out.stdout.split()]


def command(*arguments: str) -> float:
    """Seconds of a whole command."""
    began = perf_counter()
    subprocess.run([sys.executable, "-m", "dotadd", *arguments], capture_output=True, check=True)
    return perf_counter() - began


def report(*, tiny: bool = False, repeat: int = 15) -> str:
    """The table, in Markdown."""
    repeat = 1 if tiny else repeat
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "numba_alone.py"
        script.write_text(NUMBA_ALONE)
        compiled = inside(["-c", IMPORT + FIT], folder)[1]
        inside([str(script)], folder)
        runs, alone = [], []
        for _ in range(repeat):  # in turn
            runs.append(inside(["-c", IMPORT + FIT], folder))
            alone.append(inside([str(script)], folder)[0])
    rows = {
        "`import dotadd`": min(run[0] for run in runs),
        "`dotadd --help`, the whole process": min(command("--help") for _ in range(repeat)),
        "first `fit` on a 100 x 5 array, machine code from the cache": min(run[1] for run in runs),
        "for comparison: `import numba` and one kernel that adds 1, from its cache": min(alone),
        "the first `fit` where everything has to be compiled, once a machine": compiled,
    }
    lines = ["| what | seconds |", "|---|---|", *(f"| {what} | {seconds:.2f} |" for what, seconds in rows.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=15)
    arguments = parser.parse_args()
    print(report(tiny=arguments.tiny, repeat=arguments.repeat))
