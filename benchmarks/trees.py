"""Two trees of dotadd side by side: `python -m benchmarks.trees OLD NEW`.

Five ways of training that between them touch every kernel that has to be fast. Each tree runs in processes of its own,
in turns, so that a busy moment of the machine meets both; the first run of each, which compiles, does not count. Ratios
of the best of several are what counts: new over old, and 1.03 is where a change has cost too much.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import lzma
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

Data = tuple[Any, np.ndarray]
FOLDER = Path(os.environ.get("DOTADD_DATA", "../shared/data"))
WD = "WeightedDegree(20).hashed(12)"
REPEAT = 5


def vectors(rows: int) -> Data:
    """a9a, or numbers like it."""
    from sklearn.datasets import load_svmlight_file

    if (path := FOLDER / "a9a" / "a9a.xz").exists():
        with lzma.open(path) as file:
            X, y = load_svmlight_file(io.BytesIO(file.read()), n_features=123, dtype=np.float32)
        return X[:rows], y[:rows]
    rng = np.random.default_rng(0)
    X = sp.random(rows, 123, density=0.11, format="csr", dtype=np.float32, random_state=rng)
    X.data[:] = 1.0
    return X, np.where(X @ rng.normal(size=123) + rng.normal(size=rows) > 0, 1, -1)


def windows(rows: int) -> Data:
    """Random DNA with a motif in the middle of some."""
    rng = np.random.default_rng(1)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), (rows, 141))
    y = np.where(rng.random(rows) < 0.3, 1, -1)
    true, motif = y > 0, np.frombuffer(b"TTTCAGG", np.uint8)
    letters[true, 56:63] = np.where(rng.random((np.count_nonzero(true), 7)) < 0.6, motif, letters[true, 56:63])
    return [bytes(window) for window in letters], y


def mails(rows: int) -> Data:
    """Enron's mails, or texts of made-up words."""
    if (path := FOLDER / "enron_spam" / "enron_spam.jsonl.xz").exists():
        with lzma.open(path, "rt") as file:
            found = [json.loads(line) for line in itertools.islice(file, 0, 30 * rows, 30)]  # they are in order
        return [mail["text"] for mail in found], np.array([mail["label"] for mail in found])
    rng = np.random.default_rng(2)
    words = ["".join(rng.choice(list("etaoinshrdlu"), rng.integers(2, 9))) for _ in range(500)]
    y = np.arange(rows) % 2
    return [" ".join(rng.choice(words[250 * label :], 60)) for label in y], y


def digits(rows: int) -> Data:
    """MNIST, the digit 0 against the rest, or random numbers inside and outside of a ball."""
    if (path := FOLDER / "mnist" / "train-images-idx3-ubyte.gz").exists():
        with gzip.open(path) as file:
            X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:rows] / np.float32(255)
        with gzip.open(path.with_name("train-labels-idx1-ubyte.gz")) as file:
            return X, np.where(np.frombuffer(file.read(), np.uint8, offset=8)[:rows] == 0, 1, -1)
    X = np.random.default_rng(3).normal(size=(rows, 100)).astype(np.float32)
    return X, np.where((X[:, :10] ** 2).sum(axis=1) > 9.3, 1, -1)


CASES: dict[str, tuple[Callable[[int], Data], int, dict[str, Any]]] = {
    "a9a, dcd": (vectors, 32_561, {"solver": "dcd", "C": 0.1}),
    "weighted degree 20, 12 bits, dcd": (windows, 20_000, {"phi": WD, "solver": "dcd", "tol": 1e-2, "C": 0.1}),
    "weighted degree 20, 12 bits, ocas": (windows, 5_000, {"phi": WD, "solver": "ocas", "tol": 0.1, "C": 0.01}),
    "3-5-grams of mails, dcd": (mails, 1_000, {"phi": "NGrams((3, 5)).normalized()", "solver": "dcd"}),
    "a9a, stream with a tenth in memory": (vectors, 32_561, {"solver": "stream", "C": 0.1, "memory": 360_000}),
    "digits, RBF": (digits, 10_000, {"kernel": "rbf", "C": 10.0}),
}


def seconds(case: str, rows: int) -> float:
    """Train once in this process, what it takes being compiled before, and return how long it took."""
    from dotadd import KernelSVM, LinearSVM

    warnings.simplefilter("ignore")
    made, _, options = CASES[case]
    machine = KernelSVM if "kernel" in options else LinearSVM

    def fit(data: Data) -> float:
        began = perf_counter()
        machine(random_state=0, n_jobs=1, **options).fit(*data)
        return perf_counter() - began

    fit(made(300))
    return fit(made(rows))


def measured(tree: Path, case: str, rows: int) -> float:
    """The same in a process of its own with the package of this tree."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, __file__, "--one", case, "--rows", str(rows)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(ran.stdout.splitlines()[-1])


def table(trees: list[Path], repeat: int, scale: float) -> list[str]:
    lines = ["| | old | new | new / old |", "|---|--:|--:|--:|"]
    for case, (_, rows, _) in CASES.items():
        rows = max(400, int(scale * rows))
        found: dict[Path, list[float]] = {tree: [] for tree in trees}
        for turn in range(repeat + 1):
            for tree in trees:
                took = measured(tree, case, rows)
                if turn:
                    found[tree].append(took)
        old, new = (min(found[tree]) for tree in trees)
        lines.append(f"| {case} | {old:.3f} s | {new:.3f} s | {new / old:.3f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, help="the old tree and the new one")
    parser.add_argument("--repeat", type=int, default=REPEAT)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(seconds(given.one, given.rows))
        return
    if len(given.trees) != 2:
        parser.error("give two trees: the old one and the new one")
    print("\n".join(table([tree.resolve() for tree in given.trees], given.repeat, 0.01 if given.tiny else 1.0)))


if __name__ == "__main__":
    main()
