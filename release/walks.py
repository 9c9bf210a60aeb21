"""src/dotadd/_jit/walks.txt: which kernels first fits of several kinds need, in turn, and all that warmup compiles.

    python release/walks.py

To be run where kernels were added, were removed, or take other arguments; a test says so. What a fit asks the cache for
is noted in a process that finds it there, so each program runs twice, and kernels that kernels call do not count.
"""

from __future__ import annotations

import subprocess
import sys

from dotadd._jit.beforehand import EVERYTHING, WALKS

ABOUT = """# Kernels that first fits need, in turn, and the types of their arguments; at last those of `dotadd warmup`.
# Made by `python release/walks.py`, and read by beforehand.py.
"""
NOTED = """
import sys, warnings
from dotadd._jit import KernelCache, NOTICE
from dotadd._jit.beforehand import written
load = KernelCache.load_overload
asked = {}
def noted(cache, signature, context):
    line = written(cache.function, signature)
    if line is not None and NOTICE.depth == 0 and cache.function.__module__.startswith("dotadd."):
        asked.setdefault(line)
    return load(cache, signature, context)
KernelCache.load_overload = noted
warnings.simplefilter("ignore")
exec(sys.argv[1])
print(*asked, sep="\\n", end="")
"""
DATA = """
import numpy as np, scipy.sparse
from dotadd import KernelSVM, LinearSVM
SEED = 0  # so that the same steps come each time
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
y = (X[:, 0] > 0).astype(int)
texts = [" ".join(rng.choice("cheap pills buy now lunch at noon tomorrow".split(), 8)) for _ in y]
dna = ["".join(rng.choice(list("ACGT"), 141)) for _ in y]
"""
COMMAND = """
from dotadd.cli.warmup import _commands
from contextlib import redirect_stdout
_commands("train|{}|-q")()
"""
STACK = (
    "WeightedDegree(20).hashed(12).normalized() + WeightedSpectrum(6).normalized() + WeightedSpectrum(8).normalized()"
)
FITS = {
    "array": "LinearSVM(random_state=SEED).fit(X, y)",
    "array of float32": "LinearSVM(random_state=SEED).fit(X.astype(np.float32), y)",
    "sparse rows": "LinearSVM(random_state=SEED).fit(scipy.sparse.csr_matrix(X), y)",
    "sparse rows of float32": "LinearSVM(random_state=SEED).fit(scipy.sparse.csr_matrix(X.astype(np.float32)), y)",
    "letters of texts": "LinearSVM('NGrams((2, 3)).normalized()', random_state=SEED).fit(texts, y)",
    "words": "LinearSVM('WordNGrams((1, 2)).tfidf()', random_state=SEED).fit(texts, y)",
    "bag of words": "LinearSVM('BagOfWords()', random_state=SEED).fit(texts, y)",
    "windows": f"LinearSVM({STACK!r}, random_state=SEED).fit(dna, y)",
    "k-mers": "LinearSVM('Spectrum(6)', random_state=SEED).fit(dna, y)",
    "gapped k-mers": "LinearSVM('Gkm(3, 2)', random_state=SEED).fit(dna, y)",
    "kernel machine": "KernelSVM('rbf').fit(X, y)",
}
COMMANDS = {
    "demo": "import sys; from dotadd.cli import run; run(['demo'])",
    "file of rows": COMMAND.format("@rows.svm|-o|@rows"),
    "table": COMMAND.format("@mails.csv|-o|@table"),
}
WARMUP = "from dotadd.cli.warmup import JOBS, _do\nfor name in JOBS: _do(name)"


def asked(program: str) -> list[str]:
    """What this program asks the cache for."""
    for _ in range(2):
        quiet = "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()):\n"
        inside = quiet + "".join(f"    {line}\n" for line in program.splitlines())
        done = subprocess.run([sys.executable, "-c", NOTED, inside], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    lines = [ABOUT]
    programs = {name: DATA + fit for name, fit in FITS.items()} | COMMANDS | {EVERYTHING: WARMUP}
    for name, program in programs.items():
        found = asked(program)
        print(f"{name}: {len(found)} kernels")
        lines += [f"[{name}]", *found, ""]
    WALKS.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
