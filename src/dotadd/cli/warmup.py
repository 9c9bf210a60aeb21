"""dotadd warmup: compile now what would otherwise compile in the middle of the first runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

from dotadd.cli.options import Whole


def warmup(*, jobs: Whole | None = None) -> None:
    """Compile now what later runs need, so that they begin at once.

    The machine code is kept in the user's cache folder, or in the one that
    DOTADD_CACHE_DIR names, as in:

        DOTADD_CACHE_DIR=/var/cache/dotadd dotadd warmup

    For containers, compile where the image is made, as root, and let others read it:

        ENV DOTADD_CACHE_DIR=/opt/dotadd
        RUN dotadd warmup && chmod -R a+rX /opt/dotadd

    Machine code is for the processor at hand; another one compiles again. With
    NUMBA_CPU_NAME=x86-64-v3 and NUMBA_CPU_FEATURES= (nothing), there and later, it
    serves all processors of that level.

    Parameters
    ----------
    jobs
        Processes that compile at the same time; one a core by default.
    """
    from dotadd._jit import STORE
    from dotadd._util.threads import thread_count

    started = time.perf_counter()
    tasks = [*_groups(), *JOBS]
    count = min(thread_count(jobs), len(tasks)) if STORE else 1  # what is not kept serves this process alone
    with _workers(count, tasks) as done:
        for number, (name, seconds) in enumerate(done, 1):
            sys.stdout.write(f"{number}/{len(tasks)} {name} {seconds:.1f} s\n")
            sys.stdout.flush()
    where = f"kept in {STORE.folder}" if STORE else "not kept: no cache folder can be written"
    sys.stdout.write(f"compiled in {time.perf_counter() - started:.1f} s, {where}\n")


@contextmanager
def _workers(count: int, tasks: list[str]) -> Iterator[Iterator[tuple[str, float]]]:
    """What `_do` tells of each task, as it is done, in so many processes: compiling holds the interpreter's lock."""
    if count == 1:
        yield map(_do, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(count, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield pool.imap_unordered(_do, tasks)


def _groups() -> dict[str, list[str]]:
    """Kernels that are known to be needed, those of a module together, which have functions in common, and large groups
    first. So processes share them evenly and none is compiled in two; jobs then find what is left."""
    from dotadd._jit.beforehand import walks

    modules: dict[str, list[str]] = {}
    for line in dict.fromkeys(line for walk in walks().values() for line in walk):
        modules.setdefault(line.split(" ")[0].rpartition(".")[0], []).append(line)
    return {
        f"{module}, {at + 1} to {min(at + GROUP, len(lines))} of {len(lines)}": lines[at : at + GROUP]
        for module, lines in sorted(modules.items(), key=lambda each: -len(each[1]))
        for at in range(0, len(lines), GROUP)
    }


def _do(name: str) -> tuple[str, float]:
    """A group of kernels or a job, and the seconds that it took."""
    from dotadd._jit import NOTICE, keeping
    from dotadd._jit.beforehand import compile_line
    from dotadd.errors import NotConvergedWarning

    NOTICE.quiet = True  # that it compiles is what was asked for
    keeping.INSTALLED = None  # and for this very processor
    keeping.KernelCache.beforehand = None  # and in so many processes
    at = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # nobody wants these answers
        if name in JOBS:
            JOBS[name]()
        else:
            for line in _groups()[name]:
                with suppress(Exception):  # a list that is out of date: jobs compile what is missing, or tell why not
                    compile_line(line)
    return name, time.perf_counter() - at


def _vectors() -> None:
    """Sparse and dense rows in the types that NumPy, SciPy and files bring, and each solver that people would run."""
    import numpy as np
    import scipy.sparse

    from dotadd.estimators.linear import LinearSVM
    from dotadd.solvers.table import Needs, that_need

    y = np.array([1, -1] * 4)
    for dtype in (np.float32, np.float64):
        dense = np.eye(8, 3, dtype=dtype)
        for data in (dense, scipy.sparse.csr_matrix(dense)):
            LinearSVM(random_state=0).fit(data, y).predict(data)
    wide = np.random.default_rng(0).normal(
        size=(200, 5)
    )  # so many rows are left in the end that they are solved together
    for data in (wide, scipy.sparse.csr_matrix(wide)):
        LinearSVM(solver="dcd", random_state=0).fit(data, np.where(wide[:, 0] > 0, 1, -1))
    for name, solver in that_need(Needs.ROWS, Needs.PASSES).items():
        for data in () if solver.ancestor else (dense, scipy.sparse.csr_matrix(dense)):
            LinearSVM(solver=name, loss=solver.losses[0].name.lower(), random_state=0).fit(data, y)


def _libsvm() -> None:
    from dotadd.estimators.linear import LinearSVM

    with tempfile.TemporaryDirectory() as folder:
        for name, lines in {"binary": "+1 1:1 2:1\n-1 2:1\n", "values": "+1 1:0.5 2:2\n-1 2:1.25\n"}.items():
            path = Path(folder, name)
            path.write_text(lines * 4)
            LinearSVM(random_state=0).fit(str(path))


def _expression(expression: str, strings: list[str]) -> Callable[[], None]:
    def job() -> None:
        from dotadd.estimators.linear import LinearSVM
        from dotadd.features.expression import parse

        LinearSVM(parse(expression), random_state=0).fit(strings, [1, -1]).predict(strings)

    return job


def _images() -> None:
    """Local binary patterns of images as they are, and of virtual ones."""
    import numpy as np

    from dotadd.estimators.linear import LinearSVM
    from dotadd.features.lbp import LBP
    from dotadd.sources.around import Virtual

    faces = np.random.default_rng(0).integers(0, 256, (8, 12, 12)).astype(np.uint8)
    y = np.array([1, -1] * 4)
    for solver in ("dcd", "ocas"):
        svm = LinearSVM(LBP(), solver=solver, random_state=0)
        svm.fit(Virtual(faces, "translate(1) * mirror() * rotate(3)"), y).predict(faces)
        svm.fit(faces, y)


def _kernels() -> None:
    """Kernel machines on vectors and on strings, with predictions."""
    import numpy as np

    from dotadd.estimators.kernel import KernelSVM

    y = np.array([1, -1] * 4)
    rows = np.random.default_rng(0).normal(size=(8, 3))
    KernelSVM("rbf", random_state=0).fit(rows, y).predict(rows)
    KernelSVM("rbf", solver="smo", random_state=0).fit(rows, y)
    strings = ["ACGTACGT", "TTGCAAGC"]
    KernelSVM("Spectrum(2)", random_state=0).fit(strings, [1, -1]).predict(strings)


def _lattices() -> None:
    """Rational kernels on strings, and on lattices from a file."""
    from dotadd.estimators.linear import LinearSVM

    strings = ["some words", "other words"]
    LinearSVM("Rational(ngram(3)) + Rational(gappy_ngram(2, 0.5))", random_state=0).fit(strings, [1, -1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lattices.txt")
        path.write_text("yes\ta\n0 1 some 0.1\n0 1 other 1\n1 2 words 0\n2\n\nno\tb\n0 1 words 0\n1 2 other 0\n2\n")
        LinearSVM("Rational(ngram(1) + gappy_ngram(2, 0.5)).normalized()", random_state=0).fit(str(path))


def _genome() -> None:
    """Windows, a model of them, a scan, and the names of its features; peaks."""
    from dotadd.estimators.linear import LinearSVM
    from dotadd.genome.peaks import Peaks
    from dotadd.genome.scan import scan
    from dotadd.genome.windows import Windows
    from dotadd.model.naming import strongest_features

    with tempfile.TemporaryDirectory() as folder:
        fasta, gff = Path(folder, "genome.fa"), Path(folder, "genes.gff3")
        fasta.write_text(">one\n" + "ACAGTCTTGACC" * 20 + "\n")
        exons = [f"one\t.\texon\t{first}\t{last}\t.\t+\t.\tParent=a" for first, last in ((1, 40), (53, 90))]
        gff.write_text("\n".join(exons) + "\n")
        windows = Windows(str(fasta), str(gff), signal="acceptor", length=12)
        svm = LinearSVM("WeightedDegree(9).hashed(4).normalized() + WeightedSpectrum(3).normalized()", random_state=0)
        svm.fit(windows)
        scan(svm.model_, str(fasta), str(Path(folder, "scores.bed")), signal="acceptor")
        strongest_features(svm.model_, windows)
        bed = Path(folder, "peaks.bed")
        bed.write_text("one\t90\t100\n")
        Peaks(str(fasta), str(bed), length=12).drawn()


def _commands(*lines: str) -> Callable[[], None]:
    """A job that runs commands, as people do, on small files; an argument that begins with @ is a file of these."""

    def job() -> None:
        from dotadd.cli import run

        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            for name, text in FILES.items():
                Path(folder, name).write_text(text)
            for line in lines:
                words = (os.path.join(folder, word[1:]) if word.startswith("@") else word for word in line.split("|"))
                if run(list(words)) > 128:  # a signal has ended it
                    raise KeyboardInterrupt

    return job


GROUP = 8  # kernels that are compiled one after the other in the same process
FILES = {
    "rows.svm": "".join(f"{k % 2} 1:{k % 7}.5 2:{k % 5}\n" for k in range(40)),
    "mails.csv": "text,label,size,kind\n"
    + "".join(f"{'cheap pills' if k % 2 else 'lunch at noon'} {k},{k % 2},{k % 7},{k % 3}\n" for k in range(20)),
    "dna.tsv": "".join(f"{'ACGT' * 3}{'AG' if k % 2 else 'CT'}ACGT\t{k % 2}\n" for k in range(20)),
    "genome.fa": ">one\n" + "ACAGTCTTGACC" * 40 + "\n",
    "genes.gff": "".join(f"one\t.\texon\t{a}\t{b}\t.\t+\t.\tParent=a\n" for a, b in ((1, 40), (53, 90), (120, 200))),
    "calls.vcf": "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\none\t121\t.\tA\tC\t.\t.\t.\n",
}
JOBS: dict[str, Callable[[], None]] = {
    "vectors": _vectors,
    "LIBSVM text": _libsvm,
    "k-mers": _expression(
        "WeightedSpectrum(3).normalized() + WeightedSpectrum(4).normalized() + WeightedDegree(4).hashed(6)",
        ["ACGTACGT" * 18, "TTGCAAGC" * 18],  # so long that lengths are counted in a table
    ),
    "gaps, mismatches, shifts": _expression(
        "GappySpectrum(3, 1) + MismatchSpectrum(3, 1) + WeightedDegreeShift(3, 1) + Gkm(3, 2).normalized()",
        ["ACGTACGT", "TTGCAAGC"],
    ),
    "forms of w": _expression('WeightedDegree(4).indexed("hash_table")', ["ACGTACGT", "TTGCAAGC"]),
    "genomes": _genome,
    "images": _images,
    "kernel machines": _kernels,
    "lattices": _lattices,
    "words and tables": _commands(
        "train|@mails.csv|-o|@words|-q|--column|text|--features|WordNGrams((1, 2)).tfidf()",
        "train|@mails.csv|-o|@table|-q",
        "predict|@words|@mails.csv|-o|@out.csv",
        "predict|@table|@mails.csv|-o|@out.csv",
        "explain|@words|@mails.csv|-o|@out.tsv",
        "inspect|@words|--data|@mails.csv|--column|text",
        "tune|@mails.csv|--column|text|-q|--Cs|2|--cv|2|--features|WordNGrams(1).tfidf()",
    ),
    "losses and kernels from files": _commands(
        "train|@rows.svm|-o|@logistic|-q|--loss|logistic",
        "train|@rows.svm|-o|@rbf|-q|--kernel|rbf",
        "predict|@rbf|@rows.svm|-o|@out.csv",
        "train|@rows.svm|-o|@auto|-q|-C|auto|--Cs|2|--cv|2",
        "compare|@rows.svm|-q|-o|@out.json",
    ),
    "variants": _commands(
        "train|@dna.tsv|-o|@gkm|-q|--column|0|--label|1|--features|Gkm(3, 2)",
        "windows|--fasta|@genome.fa|--gff|@genes.gff|--signal|acceptor|--length|12|--before|4|-o|@sites.arrow",
        "train|@sites.arrow|-o|@sites|-q|--max-passes|9|--features|WeightedDegree(3).hashed(6) + WeightedSpectrum(3)",
        "variants|@calls.vcf|--fasta|@genome.fa|--model|@gkm|--random|10|-o|@out.vcf",
        "variants|@calls.vcf|--fasta|@genome.fa|--model|@sites|--before|4|--random|10|-o|@out.vcf",
        "explain|@gkm|@dna.tsv|--column|0|--label|1|--rows|2|-o|@out.tsv",
        "kmers|@gkm|-o|@out.tsv",
        "inspect|@sites|--data|@sites.arrow",
    ),
    "text": _expression("NGrams((3, 4)) + BagOfWords()", ["some words", "other words"]),
}
