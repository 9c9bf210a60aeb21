"""Linadd against kernel rows: Spec and LinSpec of the lecture on large scale learning with strings (2008).

Chunking needs the outputs of all strings after each working set. By kernel rows that takes the kernel between each
string whose alpha has changed and all others; by linadd the changed strings are added to one w, and each string looks
it up (Sonnenburg, Rätsch and Rieck 2007). Both are dotadd's `chunking`, to the same violation of 0.001, and differ in
nothing else but the size of the working set, each with its own default. They end at the same dual objective.

The peer is a fair one: a row is computed by products of sparse phi, 32 rows at a time side by side, or for weighted
degree from the bits of 64 letters at a time, and kept in a cache of 500 MB, so that nearly every row is computed once.
Linadd needs kernel values, too: those within a working set. double is KernelSVM's own choice, `double_chunking`, whose
outputs are computed by linadd. SVC is scikit-learn's on the whole kernel matrix, with the time to compute that, for up
to 5,000 strings. One core (`--threads`), seconds of the fit alone, the best of `--repeat` runs of up to 3 seconds; a
run that takes longer than `--max-time` is ended. auROC is on held-out strings.

- enron: mails of Enron, spam against ham; their first 5,000 letters, lower case, and a space for what is no letter.
  There are 33,715, of which 3,000 are held out. The spectrum is of order 4 as in the lecture. C = 1.
- splice: windows of 141 letters around AG on human chromosome 19, a tenth of them acceptor sites. C = 1.
- degree: the same windows with the weighted degree kernel. C = 1.

In the lecture linadd is 2.3 times as fast as kernel rows for 70,000 web pages, and takes longer for the four smallest
of its seven sizes.

    python -m benchmarks.paper.linadd [--only enron,splice] [--rows N] [--threads N] [--repeat N] [--max-time S]
        [--write docs/results.md] [--tiny]

--rows is the largest number of strings.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks import datasets
from benchmarks.limited import Limited, asked
from benchmarks.paper.coffin import Table, tell, with_section
from dotadd._util.threads import thread_count
from dotadd.data.batches import Strings
from dotadd.features.expression import parse
from dotadd.genome import simulate
from dotadd.genome.windows import Windows
from dotadd.kernel_svm.chunking import chunking
from dotadd.kernel_svm.double_chunking import double_chunking
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.kernels import FeatureKernel
from dotadd.kernel_svm.problem import KernelProblem, KernelSettings
from dotadd.model import evaluation

SIZES = (1000, 5000, 10_000, 20_000, 30_000)
HELD_OUT = 3000
LETTERS = " abcdefghijklmnopqrstuvwxyz"
LONGEST = 5000  # letters of a mail
TRUE = 0.1  # share of true sites
DECOYS = 0.01  # of the chromosome that are enough
WHOLE = 5000  # strings whose kernel matrix is computed
WARM = 1500  # strings to compile with
PATIENCE = 3.0  # seconds of a run that is repeated
MAX_TIME = 300.0
TOL = 1e-3
PROGRAMS = ("rows", "linadd", "double", "SVC")
COLUMNS = ["data", "strings", "rows, s", "linadd, s", "rows / linadd", "double, s", "SVC, s", "support vectors"]
COLUMNS += ["dual by rows", "dual by linadd", "auROC"]

Labelled = tuple[Strings, np.ndarray]  # +1 and -1


class Found(NamedTuple):
    """What a run took and found."""

    seconds: float
    dual: float
    support: int
    auroc: float


@dataclass(frozen=True)
class Case:
    """A problem."""

    data: str
    strings: int
    tiny: bool = False


def mails(held_out: bool) -> Labelled:
    """Mails in an order drawn at random; the last ones are held out."""
    with lzma.open(datasets.existing(datasets.FOLDER / "enron_spam" / "enron_spam.jsonl.xz"), "rt") as file:
        all_mails = [json.loads(line) for line in file]
    order = np.random.default_rng(0).permutation(len(all_mails))
    some = [all_mails[k] for k in (order[-HELD_OUT:] if held_out else order[:-HELD_OUT])]
    texts = [re.sub("[^a-z]+", " ", mail["text"].lower())[:LONGEST] for mail in some]
    return Strings.from_list(texts), np.array([1 if mail["label"] == "spam" else -1 for mail in some], np.int8)


def windows(held_out: bool) -> Labelled:
    """Windows of the chromosome, in random order. A fifth of it, in whole stretches, is held out."""
    files = (datasets.existing(datasets.FOLDER / "human_chr19" / name) for name in ("chr19.fa.xz", "chr19.gff3.xz"))
    source = Windows(*files, signal="acceptor", part="train", holdout=0.2, seed=0)
    rng = np.random.default_rng(0)
    kept: list[list[bytes]] = [[], []]
    for chunk in (source.held_out() if held_out else source).chunks():
        assert chunk.y is not None
        for row in np.flatnonzero((chunk.y > 0) | (rng.random(len(chunk)) < DECOYS)):
            kept[int(chunk.y[row] > 0)].append(chunk.batch[row])  # type: ignore[index]
    most = HELD_OUT if held_out else max(SIZES)
    strings, y = list[bytes](), list[int]()
    for true, some in enumerate(kept):
        share = round(most * (TRUE if true else 1 - TRUE))
        strings += [some[k] for k in rng.permutation(len(some))[:share]]
        y += [1 if true else -1] * (len(strings) - len(y))
    order = rng.permutation(len(y))
    return Strings.from_list([strings[k] for k in order]), np.array(y, np.int8)[order]


class Task(NamedTuple):
    """Strings, a kernel and C."""

    read: Callable[[bool], Labelled]
    phi: str
    C: float


TASKS = {
    "enron": Task(mails, f'Spectrum(4, alphabet="{LETTERS}").normalized()', 1.0),
    "splice": Task(windows, "Spectrum(5).normalized()", 1.0),
    "degree": Task(windows, "WeightedDegree(8).normalized()", 1.0),
}


@cache
def _strings(read: Callable[[bool], Labelled], tiny: bool) -> tuple[Labelled, Labelled]:
    """To train on, and held out; tiny stands for simulated windows."""
    if not tiny:
        return read(False), read(True)
    parts = []
    for seed in (0, 1):
        windows, labels = simulate.splice_windows(400, positives=TRUE, seed=seed)
        strings = windows if isinstance(windows, Strings) else Strings.from_list(list(windows))
        parts.append((strings, np.where(np.asarray(labels) > 0, 1, -1).astype(np.int8)))
    return parts[0], parts[1]


def solve(case: Case, program: str) -> Found:
    """Have a program solve a problem."""
    _warm(case.data, program, case.tiny)
    return _solve(case, program)


@cache
def _warm(data: str, program: str, tiny: bool) -> None:
    """Have everything imported and compiled."""
    _solve(Case(data, WARM, tiny), program)


def _solve(case: Case, program: str) -> Found:
    task = TASKS[case.data]
    phi = "Spectrum(4).normalized()" if case.tiny and case.data == "enron" else task.phi
    (strings, y), (test, truth) = _strings(task.read, case.tiny)
    strings, y = strings.slice(0, min(case.strings, len(strings))), y[: case.strings]
    threads = thread_count(None)
    began = perf_counter()
    kernel = FeatureKernel(parse(phi)).resolve(strings)
    gram = kernel.gram(strings, threads=threads)
    alpha = RUNS[program](gram, y, task.C, threads)
    seconds = perf_counter() - began
    support = np.flatnonzero(alpha)
    signed = alpha[support] * y[support]
    dual = float(alpha.sum() - 0.5 * signed @ gram.times(support, signed, support))
    outputs = kernel.gram(strings.take(support), test).times(np.arange(len(support)), signed)
    return Found(seconds, dual, len(support), evaluation.auroc(truth > 0, outputs))


def _chunked(gram: Gram, y: np.ndarray, C: float, threads: int, *, linadd: bool | None) -> np.ndarray:
    problem, settings = KernelProblem(gram, y, np.full(len(y), C)), KernelSettings(tol=TOL, threads=threads)
    if linadd is None:
        return double_chunking(problem, settings).alpha
    return chunking(problem, settings, linadd=linadd).alpha


def _whole(gram: Gram, y: np.ndarray, C: float, threads: int) -> np.ndarray:
    """scikit-learn's SVC on the kernel matrix."""
    from sklearn.svm import SVC

    everyone = np.arange(len(y))
    machine = SVC(kernel="precomputed", C=C, tol=TOL, cache_size=500).fit(gram.block(everyone), y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return alpha


RUNS: dict[str, Callable[[Gram, np.ndarray, float, int], np.ndarray]] = {
    "rows": partial(_chunked, linadd=False),
    "linadd": partial(_chunked, linadd=True),
    "double": partial(_chunked, linadd=None),
    "SVC": _whole,
}


def measure(case: Case, run: Callable[[Case, str], Found | None], repeat: int) -> dict[str, Found | None]:
    """The fastest run of each program, in turns; None where time was up."""
    best: dict[str, Found | None] = {}
    programs = [name for name in PROGRAMS if name != "SVC" or case.strings <= WHOLE]
    for _ in range(repeat):
        for program in programs:
            last = best.get(program)
            if program in best and (last is None or last.seconds > PATIENCE):
                continue
            found = run(case, program)
            best[program] = found if last is None or found is None else min(last, found)
    return best


def cells_of(case: Case, found: dict[str, Found | None], max_time: float) -> list[str]:
    """A line of the table."""

    def seconds(program: str) -> str:
        one = found.get(program)
        return f"{one.seconds:.2f}" if one else f"> {max_time:g}" if program in found else "-"

    rows, linadd = found["rows"], found["linadd"]
    times = "-"
    if linadd:
        times = f"{rows.seconds / linadd.seconds:.1f}x" if rows else f"> {max_time / linadd.seconds:.1f}x"
    duals = [f"{one.dual:.4f}" if one else "-" for one in (rows, linadd)]
    rest = [f"{linadd.support:,}", *duals, f"{linadd.auroc:.4f}"] if linadd else ["-", *duals, "-"]
    return [case.data, f"{case.strings:,}", seconds("rows"), seconds("linadd"), times, seconds("double"),
            seconds("SVC"), *rest]  # fmt: skip


def section() -> str:
    """The section without its numbers."""
    assert __doc__ is not None
    heading, *rest = __doc__.split("\n\n")
    title, _, which = heading.partition(": ")
    kernels = "\n".join(f"    {name:8s}{task.phi}" for name, task in TASKS.items())
    call = "    python -m benchmarks.paper.linadd --write docs/results.md"
    text = [f"## {title}", which, call, *rest[:4], "The kernels are", kernels, "<!-- linadd -->\n<!-- /linadd -->"]
    return "\n\n".join(text) + "\n"


def cases(names: Sequence[str], rows: int | None, tiny: bool) -> Iterator[Case]:
    sizes = [size for size in SIZES if rows is None or size <= rows] or [rows or 0]
    return (Case(name, size, tiny) for name in names for size in sizes)


def main(
    names: Sequence[str] = tuple(TASKS),
    *,
    tiny: bool = False,
    rows: int | None = None,
    threads: int = 1,
    repeat: int = 2,
    max_time: float = MAX_TIME,
    page: Path | None = None,
) -> None:
    """The table, printed as it comes and kept in the page."""
    with_section(page, section())
    order = [(case.data, f"{case.strings:,}") for case in cases(tuple(TASKS), rows, tiny)]
    table = Table("linadd", COLUMNS, order, page)
    with Limited(solve, threads) as limited:
        for case in cases(names, rows, tiny):
            tell(f"{case.data}: {case.strings:,} strings")
            table.add(*cells_of(case, measure(case, partial(limited, limit=max_time), repeat), max_time))


if __name__ == "__main__":
    main(**asked(__doc__, TASKS, MAX_TIME))
