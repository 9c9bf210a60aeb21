"""Gapped k-mers in the primal: LS-GKM's machines by DOT and ADD, on its own examples and on up to a million sequences.

LS-GKM (Lee 2016) trains on a kernel matrix, in time that grows with the square of the sequences. Here the same kernel
(`-t 2 -l 11 -k 7`, normalised) is that of `Gkm().normalized()`, a map into 2,097,152 slots, and the machine is a linear
one. Hinge, free intercept, C = 1, to the relative duality gap given by `--tol`; simulated sequences to 0.01.

- ctcf, nfe2: CTCF and NFE2 of the shared data. Beside our scores of the test sequences stand those of LS-GKM with
  `-d 4`, where its kernel is an inner product, and with its default `-d 3`, where it is one only nearly. `kernel off
  by` is the largest difference, on some pairs of sequences, between the product of features and the sum over pairs of
  l-mers.
- simulated: sequences of 300 letters, half of them with up to three of five words of twelve letters, 15 % of which are
  changed, on either strand. A pass is one DOT and one ADD of all sequences, whose lengths are known; these are worked
  out once. LS-GKM's seconds are the 51 s of CPU that it took for the 1,288 sequences of NFE2 (235 letters), times the
  square of how many times as many sequences there are, as its kernel matrix grows. It was not run on these: its author
  advises 16 threads and a cache of more than 20 GB for 275,000 (Dongwon-Lee/lsgkm, issue 5).
- loaded: files of LS-GKM's models with -d 3, written by the definition, with random support vectors and coefficients.
  `off by` is the largest difference between scores and sums over pairs of l-mers.

Seconds are those of the fit, with lengths of rows, after reading and compiling; all cores.

    python -m benchmarks.paper.gkm [--only ctcf,nfe2,simulated,loaded] [--rows N] [--tol 0.001]
        [--write docs/results.md] [--logo docs/gkm_ctcf.svg] [--tiny]

--rows is the largest number of simulated sequences; --logo draws what the letters around the strongest place add to the
score of the test sequences that the first model is surest about.
"""

from __future__ import annotations

import argparse
import lzma
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from benchmarks import datasets
from benchmarks.paper.coffin import Table, tell, with_section
from dotadd import LinearSVM, load
from dotadd._util.threads import thread_count
from dotadd.data.batches import Strings
from dotadd.explain.logo import logos
from dotadd.features import Gkm
from dotadd.features.lmer_counts import LmerCounts
from dotadd.features.mismatch_pairs import products
from dotadd.model import evaluation
from dotadd.problem.examples import InMemory
from dotadd.solvers.result import Result

FOLDER = datasets.FOLDER / "gkm"
NAMES = ("ctcf", "nfe2")
SIZES = (1000, 10_000, 100_000, 1_000_000)
TINY_SIZES = (200, 400)
WORDS, LETTERS, CHANGED = 5, 12, 0.15
DRAWN, AROUND = 4, 45  # sequences, and letters of each
COMPARED = 40  # sequences whose kernel values are compared
PEER = [
    "data", "sequences", "s", "CPU, s", "gap", "Pearson, -d 4", "Pearson, -d 3", "auROC", "auROC of LS-GKM",
    "kernel off by",
]  # fmt: skip
KERNEL, TINY_KERNEL = (11, 7), (5, 4)  # l and k
GROWTH = ["sequences", "s", "LS-GKM by n^2, s", "lengths, s", "a pass, s", "passes", "gap", "peak, MB", "exponent"]
PEER_CPU, PEER_ROWS = 51.0, 1288  # seconds that LS-GKM took for NFE2
LOADED = ["kernel_type", "support vectors", "loading, s", "sequences", "s", "sequences a second", "off by"]
KINDS: dict[str, tuple[int, float] | None] = {"gkm_esttrunc": None, "wgkm": (50, 50.0)}  # and what places count
VECTORS, SCORED = (2000, 72_000), 100_000
TINY_VECTORS, TINY_SCORED = (20, 40), 50
MISMATCHES, CHECKED = 3, 3  # -d, and sequences whose scores are summed up over pairs


class Problem(NamedTuple):
    """Sequences to train on and to test with, and the scores of a peer for the latter, by the name of the peer."""

    train: Strings
    y: np.ndarray
    test: Strings
    truth: np.ndarray
    peers: dict[str, np.ndarray]


def simulated(rows: int, length: int = 300, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """Sequences and their labels, every other of which has words planted."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(0, 4, (rows, length), dtype=np.uint8)
    words = np.random.default_rng(1).integers(0, 4, (WORDS, LETTERS), dtype=np.uint8)
    y = np.arange(rows) % 2
    for row in np.flatnonzero(y):
        for word in words[rng.integers(0, WORDS, rng.integers(0, 4))]:
            planted = np.where(rng.random(LETTERS) < CHANGED, rng.integers(0, 4, LETTERS), word)
            at = rng.integers(0, length - LETTERS + 1)
            letters[row, at : at + LETTERS] = planted if rng.random() < 0.5 else 3 - planted[::-1]
    return Strings(np.frombuffer(b"ACGT", np.uint8)[letters.reshape(-1)], width=length), y


def read(name: str) -> Problem:
    """A problem of the shared data."""
    sequences = {
        (part, sign): _fasta(FOLDER / f"{name}.{part}.{sign}.fa.xz")
        for part in ("train", "test")
        for sign in ("pos", "neg")
    }
    parts = {}
    for part in ("train", "test"):
        positive, negative = (list(sequences[part, sign].values()) for sign in ("pos", "neg"))
        parts[part] = Strings.from_list(positive + negative), np.repeat([1, 0], [len(positive), len(negative)])
    order = [*sequences["test", "pos"], *sequences["test", "neg"]]
    peers = {d: _scores(FOLDER / f"{name}.lsgkm_{d}.tsv.xz", order) for d in ("d4", "d3")}
    return Problem(*parts["train"], *parts["test"], peers)


def _fasta(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with lzma.open(datasets.existing(path), "rt") as file:
        for record in file.read().split(">")[1:]:
            head, _, letters = record.partition("\n")
            found[head.split()[0]] = letters.replace("\n", "")
    return found


def _scores(path: Path, order: Sequence[str]) -> np.ndarray:
    with lzma.open(datasets.existing(path), "rt") as file:
        scores = dict(line.split("\t")[:2] for line in file)
    return np.array([float(scores[name]) for name in order])


def tiny_problem() -> Problem:
    """A small one, whose peer is scikit-learn's SVC on the kernel by pairs of l-mers."""
    from sklearn.svm import SVC

    (train, y), (test, truth) = simulated(200, 60, seed=2), simulated(100, 60, seed=3)
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-4).fit(kernel_by_pairs(train, train, TINY_KERNEL), y)
    scores = svc.decision_function(kernel_by_pairs(test, train, TINY_KERNEL))
    return Problem(train, y, test, truth, {"d4": scores, "d3": scores})


def kernel_by_pairs(a: Strings, b: Strings, kernel: tuple[int, int]) -> np.ndarray:
    """LS-GKM's normalised kernel with -d 4, as a sum over pairs of l-mers."""
    return by_pairs(LmerCounts(*kernel, 4), a, b)


def by_pairs(phi: LmerCounts, a: Strings, b: Strings) -> np.ndarray:
    rows, columns = np.arange(len(a)), np.arange(len(b))
    out = np.empty((len(a), len(b)))
    letters, starts, ends, codes = phi.read(a, rows)
    products(letters, starts, ends, *phi.read(b, columns)[:3], codes, phi.pair_plan(), out)
    return out / np.multiply.outer(phi.lengths(a, rows), phi.lengths(b, columns))


def kernel_by_features(a: Strings, kernel: tuple[int, int]) -> np.ndarray:
    """The same as the product of features: each row is added to a w of its own, and all are looked up there."""
    phi = Gkm(*kernel).normalized()
    examples, out = InMemory(phi, a), np.empty((len(a), len(a)))
    for row in range(len(a)):
        coefficients, w = np.zeros(len(a)), np.zeros(phi.dim)
        coefficients[row] = 1.0
        examples.add([coefficients], [w])
        out[row] = examples.dot([w])[0]
    return out


def fitted(train: Strings, y: np.ndarray, kernel: tuple[int, int], tol: float) -> tuple[LinearSVM, Result, float]:
    svm = LinearSVM(Gkm(*kernel).normalized(), loss="hinge", intercept="free", C=1.0, tol=tol, random_state=0)
    began = perf_counter()
    svm.fit(train, y)
    return svm, svm.result_, perf_counter() - began


def drawn(svm: LinearSVM, test: Strings, name: str) -> str:
    """Logos of the surest test sequences, around their strongest places."""
    surest = np.argsort(-svm.decision_function(test))[:DRAWN]
    pictures = []
    for row, explained in zip(surest, svm.explain(test.take(surest)).rows, strict=True):
        text, adds = explained.texts[""]
        middle = int(np.argmax(np.convolve(adds, np.ones(AROUND // 3), "same")))
        first = int(np.clip(middle - AROUND // 2, 0, max(0, len(text) - AROUND)))
        some = slice(first, first + AROUND)
        title = f"{name}, test sequence {row + 1}, letters {first + 1} to {first + len(text[some])}"
        pictures.append((text[some].decode(), adds[some], f"{title}, score {explained.score:.2f}"))
    return logos(pictures)


def beside_lsgkm(
    name: str, problem: Problem, kernel: tuple[int, int], tol: float, logo: Path | None = None
) -> list[str]:
    """A row of the table: how close to LS-GKM we are."""
    began = process_time()
    svm, result, seconds = fitted(problem.train, problem.y, kernel, tol)
    cpu = process_time() - began
    if logo is not None:
        logo.write_text(drawn(svm, problem.test, name.upper()))
    scores = svm.decision_function(problem.test)
    some = problem.test.slice(0, COMPARED)
    off = np.abs(kernel_by_features(some, kernel) - kernel_by_pairs(some, some, kernel)).max()
    close = [f"{np.corrcoef(scores, problem.peers[d])[0, 1]:.6f}" for d in ("d4", "d3")]
    areas = [f"{evaluation.auroc(problem.truth, one):.4f}" for one in (scores, problem.peers["d4"])]
    took = [f"{seconds:.2f}", f"{cpu:.2f}", f"{result.gap:.2g}"]
    return [name, f"{len(problem.train):,}", *took, *close, *areas, f"{off:.1g}"]


def growth(rows: int, kernel: tuple[int, int], tol: float, before: tuple[int, float] | None) -> tuple[list[str], float]:
    """A row of the table for so many simulated sequences, and the seconds of its fit."""
    train, y = simulated(rows)
    examples = InMemory(Gkm(*kernel).normalized(), train, threads=thread_count(None))
    w = np.zeros(examples.dim, np.float32)
    began = perf_counter()
    _ = examples.phi  # with the lengths of its rows
    lengths = perf_counter() - began
    began = perf_counter()
    examples.add([examples.dot([w])[0] + 1.0], [w])
    a_pass = perf_counter() - began
    _, result, seconds = fitted(train, y, kernel, tol)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
    exponent = "" if before is None else f"{np.log(seconds / before[1]) / np.log(rows / before[0]):.2f}"
    cells = [f"{rows:,}", f"{seconds:.1f}", f"{PEER_CPU * (rows / PEER_ROWS) ** 2:,.0f}", f"{lengths:.1f}"]
    return [*cells, f"{a_pass:.2f}", str(result.passes), f"{result.gap:.2g}", f"{peak:,}", exponent], seconds


def loaded(kind: str, vectors: int, kernel: tuple[int, int], scored: int, folder: Path) -> list[str]:
    """A row of the table: how fast such a model scores sequences."""
    length, middle = 60 if scored == TINY_SCORED else 300, KINDS[kind]
    theirs, asked = simulated(vectors, length, seed=2)[0], simulated(scored, length, seed=3)[0]
    coefficients, rho = np.random.default_rng(4).normal(size=vectors), 0.25
    header = {"svm_type": "c_svc", "kernel_type": kind, "L": kernel[0], "k": kernel[1], "d": MISMATCHES}
    if middle is not None:
        header |= {"M": middle[0], "H": middle[1]}
    half = vectors // 2
    header |= {"nr_class": 2, "total_sv": vectors, "rho": rho, "label": "1 -1", "nr_sv": f"{half} {vectors - half}"}
    lines = [f"{name} {value}" for name, value in header.items()]
    lines += ["SV", *(f"{a:.16g} {theirs[j].decode()}" for j, a in enumerate(coefficients)), ""]
    path = folder / "x.model.txt"
    path.write_text("\n".join(lines))
    began = perf_counter()
    model = load(path)
    loading = perf_counter() - began
    model.decision_function(asked.slice(0, min(10, scored)))  # compile before the clock starts
    began = perf_counter()
    scores = model.decision_function(asked)
    seconds = perf_counter() - began
    phi = LmerCounts(*kernel, MISMATCHES, middle=middle)
    wanted = by_pairs(phi, asked.slice(0, CHECKED), theirs) @ coefficients - rho
    cells = [kind, f"{vectors:,}", f"{loading:.2f}", f"{scored:,}", f"{seconds:.2f}", f"{scored / seconds:,.0f}"]
    return [*cells, f"{np.abs(scores[:CHECKED] - wanted).max():.1g}"]


def section() -> str:
    about = (__doc__ or "").partition("\n\n")[2].rpartition("\n\n    python")[0]
    tables = "\n\n".join(f"<!-- {name} -->\n<!-- /{name} -->" for name in ("gkm_peer", "gkm_growth", "gkm_loaded"))
    return f"## Gapped k-mers in the primal\n\n{about}\n\n{tables}\n\n`python -m benchmarks.paper.gkm`\n"


def main(
    *, only: Sequence[str] = (*NAMES, "simulated", "loaded"), rows: int = SIZES[-1], tol: float = 1e-3,
    tiny: bool = False, page: Path | None = None, logo: Path | None = None,
) -> None:  # fmt: skip
    """The tables, printed as they come and kept in the page."""
    with_section(page, section())
    kernel = TINY_KERNEL if tiny else KERNEL
    fitted(*simulated(200, 60), kernel, 0.1)  # compile before the clock starts
    names = [name for name in NAMES if name in only]
    if names:
        table = Table("gkm_peer", PEER, [(name,) for name in NAMES], page)
    for name in names:
        tell(name)
        problem = tiny_problem() if tiny else read(name)
        table.add(*beside_lsgkm(name, problem, kernel, tol, logo if name == names[0] else None))
    if "simulated" in only:
        sizes = TINY_SIZES if tiny else [size for size in SIZES if size <= rows]
        table = Table("gkm_growth", GROWTH, [(f"{size:,}",) for size in sizes], page)
        before = None
        for size in sizes:
            tell(f"{size:,} sequences")
            cells, seconds = growth(size, kernel, 0.01, before)
            before = (size, seconds)
            table.add(*cells)
    if "loaded" in only:
        counts, scored = (TINY_VECTORS, TINY_SCORED) if tiny else (VECTORS, SCORED)
        order = [(kind, f"{count:,}") for kind in KINDS for count in counts]
        table = Table("gkm_loaded", LOADED, order, page)
        with tempfile.TemporaryDirectory() as folder:
            for kind in KINDS:
                for count in counts:
                    tell(f"{kind}, {count:,} support vectors")
                    table.add(*loaded(kind, count, kernel, scored, Path(folder)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join((*NAMES, "simulated", "loaded")))
    parser.add_argument("--rows", type=int, default=SIZES[-1])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--logo", type=Path)
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    main(only=asked.only.split(","), rows=asked.rows, tol=asked.tol, tiny=asked.tiny, page=asked.write, logo=asked.logo)
