"""A click log from its file to a model, under a budget of memory, beside online learners.

The log is made like Criteo's: 13 columns of numbers, some of them empty, 26 categories whose values have long tails
(from 4 to a million of them), and a click whose odds depend on numbers, values and pairs of values. The features are
the same for all: the numbers, the categories, and crosses of three pairs, hashed to 2^22 slots.

dotadd minimises the logistic loss from the CSV file with --memory for examples. scikit-learn reads the CSV file in
pieces (pandas), hashes them (FeatureHasher) and learns by SGDClassifier.partial_fit. Vowpal Wabbit is given a file in
its own format, and what it takes to write that is not counted. Log loss, area and peak of memory are those of a process
of its own for each; seconds are from the file to the model, compiling is apart. A million rows take 43 s to be written,
0.7 GB on disk in both formats, and 0.3 GB for dotadd's Arrow copy while it trains.

python -m benchmarks.clicks [--rows 1000000] [--memory 500MB] [--folder DIR] [--only PROGRAM] [--tiny]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import memory, runs

NUMBERS = [f"I{k}" for k in range(1, 14)]
CATEGORIES = [f"C{k}" for k in range(1, 27)]
SIZES = np.geomspace(4, 1_000_000, len(CATEGORIES)).astype(np.int64)
PAIRS = [("C3", "C5"), ("C8", "C4"), ("C10", "C6")]
BITS, C, PIECE, TESTED = 22, 0.05, 100_000, 200_000
NAMESPACES = {
    name: chr(ord("a") + k) for k, name in enumerate(CATEGORIES)
}  # Vowpal Wabbit crosses by their first letter


def pieces(rows: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Clicks (0, 1), numbers (NaN where empty) and values of categories, some rows at a time."""
    truth = np.random.default_rng(0)
    slopes = 0.25 * truth.normal(size=len(NUMBERS))
    effects = [0.35 * truth.normal(size=size) for size in SIZES]
    crossed = [0.5 * truth.normal(size=1 << 12) for _ in PAIRS]
    rng = np.random.default_rng(1 + seed)
    for first in range(0, rows, PIECE):
        n = min(PIECE, rows - first)
        numbers = np.log1p(rng.lognormal(1.0, 1.2, (n, len(NUMBERS))))
        numbers[rng.random(numbers.shape) < 0.15] = np.nan
        values = np.minimum(SIZES - 1, np.exp(rng.random((n, len(SIZES))) * np.log(SIZES + 1)).astype(np.int64) - 1)
        odds = np.nan_to_num(numbers - 1.5) @ slopes - 1.8
        for k, effect in enumerate(effects):
            odds += effect[values[:, k]]
        for (a, b), effect in zip(PAIRS, crossed, strict=True):
            pair = values[:, CATEGORIES.index(a)] * 7919 + values[:, CATEGORIES.index(b)]
            odds += effect[pair % len(effect)]
        yield (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64), numbers, values


def written(folder: Path, name: str, rows: int, seed: int) -> tuple[str, str]:
    """The log as CSV and in Vowpal Wabbit's format, unless they are there."""
    csv, vw = folder / f"{name}_{rows}.csv", folder / f"{name}_{rows}.vw"
    if csv.exists() and vw.exists():
        return str(csv), str(vw)
    with open(f"{csv}.partial", "w") as table, open(f"{vw}.partial", "w") as lines:
        table.write(",".join(["label", *NUMBERS, *CATEGORIES]) + "\n")
        for clicks, numbers, values in pieces(rows, seed):
            for click, some, words in zip(clicks.tolist(), numbers.tolist(), values.tolist(), strict=True):
                cells = ["" if x != x else f"{x:.2f}" for x in some]
                names = [f"{word * 2654435761 % 4294967296:08x}" for word in words]
                table.write(f"{click},{','.join(cells)},{','.join(names)}\n")
                told = " ".join(f"{name}:{cell}" for name, cell in zip(NUMBERS, cells, strict=True) if cell)
                spaces = "".join(f" |{NAMESPACES[c]} {word}" for c, word in zip(CATEGORIES, names, strict=True))
                lines.write(f"{2 * click - 1} |N {told}{spaces}\n")
    for path in (csv, vw):
        Path(f"{path}.partial").rename(path)
    return str(csv), str(vw)


Scores = Callable[[], np.ndarray]


def by_dotadd(job: dict[str, Any]) -> Scores:
    from dotadd import LinearSVM

    crosses = "".join(f" + Category({a!r}) * Category({b!r})" for a, b in PAIRS)
    phi = f"(Number{tuple(NUMBERS)!r} + Category{tuple(CATEGORIES)!r}{crosses}).hashed({job['bits']})"
    options = {"loss": "logistic", "C": C, "memory": job["memory"], "tol": job["tol"], "random_state": 0}
    warnings.simplefilter("ignore")  # that it is read while training runs
    LinearSVM(phi, **options | {"memory": "100kB", "max_passes": 3}).fit(job["few"], keep_cache=False)
    began = perf_counter()
    svm = LinearSVM(phi, **options).fit(job["train"], keep_cache=False)
    job["seconds"] = perf_counter() - began
    job["note"] = f"{svm.result_.solver}, {svm.result_.passes} passes, gap {svm.result_.gap:.2g}"
    return lambda: svm.decision_function(job["test"])


def by_scikit_learn(job: dict[str, Any]) -> Scores:
    import pandas as pd
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    hasher = FeatureHasher(1 << job["bits"], input_type="pair", alternate_sign=False)
    machine = SGDClassifier(loss="log_loss", alpha=1.0 / (C * job["rows"]), random_state=0)

    def read(path: str) -> Iterator[tuple[Any, np.ndarray]]:
        words = dict.fromkeys(CATEGORIES, str)
        for table in pd.read_csv(path, chunksize=PIECE // 5, dtype=words):
            columns = [table[name].tolist() for name in (*NUMBERS, *CATEGORIES)]
            where = [(CATEGORIES.index(a) + len(NUMBERS), CATEGORIES.index(b) + len(NUMBERS)) for a, b in PAIRS]
            rows = (
                [
                    *((name, x) for name, x in zip(NUMBERS, row, strict=False) if x == x),
                    *((f"{name} empty", 1.0) for name, x in zip(NUMBERS, row, strict=False) if x != x),
                    *((f"{name}={x}", 1.0) for name, x in zip(CATEGORIES, row[len(NUMBERS) :], strict=True)),
                    *((f"{a}={row[a]} {b}={row[b]}", 1.0) for a, b in where),
                ]
                for row in zip(*columns, strict=True)
            )
            yield hasher.transform(rows), table["label"].to_numpy()

    began = perf_counter()
    for _ in range(job["passes"]):
        for X, y in read(job["train"]):
            machine.partial_fit(X, y, classes=[0, 1])
    job["seconds"], job["note"] = perf_counter() - began, f"{job['passes']} passes"
    return lambda: np.concatenate([machine.decision_function(X) for X, _ in read(job["test"])])


def by_vowpal_wabbit(job: dict[str, Any]) -> Scores:
    from vowpalwabbit import Workspace

    folder = Path(job["folder"])
    model, scores, cache = (str(folder / name) for name in ("vw.model", "vw.scores", "vw.cache"))
    crosses = [word for a, b in PAIRS for word in ("-q", NAMESPACES[a] + NAMESPACES[b])]
    several = (
        ["--passes", str(job["passes"]), "--cache_file", cache, "-k", "--holdout_off"] if job["passes"] > 1 else []
    )
    began = perf_counter()
    train = [
        "-d",
        job["train_vw"],
        "--loss_function",
        "logistic",
        "-b",
        str(job["bits"]),
        *crosses,
        *several,
        "-f",
        model,
    ]
    Workspace(arg_list=["--quiet", *train]).finish()
    job["seconds"], job["note"] = perf_counter() - began, f"{job['passes']} passes"

    def scored() -> np.ndarray:
        Workspace(arg_list=["--quiet", "-t", "-d", job["test_vw"], "-i", model, "-r", scores]).finish()
        return np.loadtxt(scores, usecols=0, ndmin=1)

    return scored


PROGRAMS: dict[str, tuple[Callable[[dict[str, Any]], Scores], dict[str, Any]]] = {
    "dotadd, gap 0.1": (by_dotadd, {"tol": 0.1}),
    "dotadd, gap 0.01": (by_dotadd, {"tol": 0.01}),
    "Vowpal Wabbit, 1 pass": (by_vowpal_wabbit, {"passes": 1}),
    "Vowpal Wabbit, 3 passes": (by_vowpal_wabbit, {"passes": 3}),
    "Vowpal Wabbit, 5 passes": (by_vowpal_wabbit, {"passes": 5}),  # which take as long as dotadd, or longer
    "scikit-learn, FeatureHasher + SGD, 1 pass": (by_scikit_learn, {"passes": 1}),
    "scikit-learn, FeatureHasher + SGD, 3 passes": (by_scikit_learn, {"passes": 3}),
}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Train and score in this process."""
    from sklearn.metrics import log_loss, roc_auc_score

    scores = PROGRAMS[job["program"]][0](job)
    peak = memory.peak()
    with open(job["test"]) as file:
        truth = np.array([line[0] == "1" for line in file][1:])
    found = scores()
    return {
        "seconds": job["seconds"],
        "peak": peak,
        "log_loss": float(log_loss(truth, 1.0 / (1.0 + np.exp(-np.clip(found, -30.0, 30.0))))),
        "auc": float(roc_auc_score(truth, found)),
        "note": job["note"],
    }


def report(
    rows: int = 1_000_000, memory: str = "500MB", folder: str | None = None, only: str = "", *, tiny: bool = False
) -> str:
    """The table in Markdown."""
    lines = ["| program | seconds | log loss | area | peak of memory | |", "|---|--:|--:|--:|--:|---|"]
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(folder or temporary)
        rows, tested, memory = (1500, 500, "100kB") if tiny else (rows, TESTED, memory)
        train, train_vw = written(here, "train", rows, 0)
        test, test_vw = written(here, "test", tested, 1)
        few, _ = written(here, "few", 1000, 2)
        job: dict[str, Any] = {
            "train": train,
            "train_vw": train_vw,
            "test": test,
            "test_vw": test_vw,
            "few": few,
            "memory": memory,
        }
        job["bits"] = 14 if tiny else BITS
        for program, (_, how) in PROGRAMS.items():
            missing = program.startswith("Vowpal") and importlib.util.find_spec("vowpalwabbit") is None
            if missing or only not in program or (tiny and how.get("passes", 1) > 1):
                continue
            found = runs.call(
                "benchmarks.clicks", {**job, "program": program, "rows": rows, "folder": str(here), **how}
            )
            told = f"{found['log_loss']:.4f} | {found['auc']:.4f} | {found['peak'] / 1e6:,.0f} MB | {found['note']}"
            lines.append(f"| {program} | {found['seconds']:.1f} | {told} |")
            sys.stderr.write(f"{lines[-1]}\n")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        print(json.dumps(work(json.loads(sys.argv[1]))))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", default="500MB", help="for examples, in dotadd")
    parser.add_argument("--folder", help="where the log is kept for the next time")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--tiny", action="store_true")
    sys.stdout.write(report(**vars(parser.parse_args())))
