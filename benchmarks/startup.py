"""How long a person waits before anything happens; each line in new processes, compiling apart.

python -m benchmarks.startup [--tiny] [--repeat N] [--compiling]
"""

from __future__ import annotations

import argparse
import os
import resource
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
# First fits: each in a process for which nothing is compiled, and what that prints is the seconds of its `fit`.
DATA = (
    "import numpy as np; rng = np.random.default_rng(0); X = rng.normal(size=(200, 5)); y = (X[:, 0] > 0).astype(int); "
    "words = 'cheap pills buy now lunch at noon'.split(); texts = [' '.join(rng.choice(words, 8)) for _ in y]; "
    "dna = [''.join(rng.choice(list('ACGT'), 141)) for _ in y]; "
)
STACK = (
    "WeightedDegree(20).hashed(12).normalized() + WeightedSpectrum(6).normalized() + WeightedSpectrum(8).normalized()"
)
NGRAMS = "NGrams((2, 3)).normalized()"
FIRST_FITS = {
    "`LinearSVM().fit(X, y)`, X of 200 x 5": "dotadd.LinearSVM().fit(X, y)",
    f'`LinearSVM("{NGRAMS}")`, 200 short texts': f"dotadd.LinearSVM({NGRAMS!r}).fit(texts, y)",
    f'`LinearSVM("{STACK}")`, 200 windows of 141 letters': f"dotadd.LinearSVM({STACK!r}).fit(dna, y)",
}
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


def inside(arguments: list[str], folder: str, shows: type = float, **variables: str) -> list[float]:
    """The numbers that a new Python process prints."""
    environment = {**os.environ, "DOTADD_CACHE_DIR": folder, **variables}
    out = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    return [shows(number) for number in out.stdout.split()]


def command(*arguments: str) -> float:
    """Seconds of a whole command."""
    began = perf_counter()
    subprocess.run([sys.executable, "-m", "dotadd", *arguments], capture_output=True, check=True)
    return perf_counter() - began


def processor() -> float:
    """Seconds of all processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compiling(*, tiny: bool = False, repeat: int = 3) -> str:
    """How long one waits for the compiler, in one process and in those of all cores, in turn; the best of a few."""
    lines = [
        "| nothing compiled | alone: seconds of `fit` | of the processor, imports among them "
        "| all cores: seconds of `fit` |",
        "|---|---|---|---|",
    ]
    for what, fit in list(FIRST_FITS.items())[: 1 if tiny else None]:
        code = IMPORT + DATA + f"c = t(); {fit}; print(t() - c)"
        alone, together = [], []
        for _ in range(1 if tiny else repeat):
            with tempfile.TemporaryDirectory() as folder:
                before = processor()
                alone.append((*inside(["-c", code], folder, DOTADD_COMPILERS="1"), processor() - before))
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # where somebody may still write
                together += inside(["-c", code], folder, DOTADD_COMPILERS=str(min(4, os.cpu_count() or 1)))
        columns = [*zip(*alone, strict=True), together]
        cells = (f"{min(column):.1f}" for column in columns)
        lines.append(f"| {what} | {' | '.join(cells)} |")
    if not tiny:
        before, began = processor(), perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            inside(["-m", "dotadd", "warmup"], folder, shows=str)
        took = f"{processor() - before:.0f} | {perf_counter() - began:.0f} in all"
        lines.append(f"| `dotadd warmup`, a process a core | | {took} |")
    return "\n".join(lines) + "\n"


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
    parser.add_argument("--compiling", action="store_true", help="how long one waits for the compiler, and no more")
    arguments = parser.parse_args()
    if arguments.compiling:
        print(compiling(tiny=arguments.tiny, repeat=min(arguments.repeat, 3)))
    else:
        print(report(tiny=arguments.tiny, repeat=arguments.repeat))
