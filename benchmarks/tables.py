"""A table of numbers and words, from the file to a model and its accuracy on another file.

KDD 99: 494,021 connections with 38 columns of numbers and 3 of words, normal or an attack; tested on the 311,029 of the
corrected test set, whose attacks are others. dotadd is given the file and no features; scikit-learn reads it with
pandas, scales the numbers (StandardScaler), makes a column of each word (OneHotEncoder), and trains LinearSVC, or
SGDClassifier with its own defaults. Both have the hinge loss and C = 1. Seconds are from the file to the model;
compiling is apart.

python -m benchmarks.tables [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import lzma
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

import dotadd
from benchmarks import datasets
from dotadd import LinearSVM, NotConvergedWarning, UnusedColumnsWarning

COLUMNS = 41
FILES = {"train": "kddcup.data_10_percent.xz", "test": "corrected.xz"}
Predict = Callable[[str], np.ndarray]


def written(folder: Path, name: str, tiny: bool) -> str:
    """A CSV file with a header, and two classes."""
    path = folder / f"{name}.csv"
    header = ",".join([*(f"c{k}" for k in range(COLUMNS)), "label"])
    with open(path, "w") as file:
        file.write(f"{header}\n")
        if tiny:
            rng = np.random.default_rng(len(name))
            for attack in rng.integers(0, 2, 300):
                numbers = ",".join(f"{v:.3f}" for v in rng.exponential(1.0 + attack, COLUMNS - 3))
                word = rng.choice(["tcp", "udp"], p=[0.3 + 0.5 * attack, 0.7 - 0.5 * attack])
                file.write(f"0,{word},http,SF,{numbers.partition(',')[2]},{'attack' if attack else 'normal'}\n")
            return str(path)
        with lzma.open(datasets.existing(datasets.FOLDER / "kdd99" / FILES[name]), "rt") as rows:
            for row in rows:
                file.write(re.sub(r",(normal)?[^,]*\.\n", lambda end: f",{end[1] or 'attack'}\n", row))
    return str(path)


def ours(threads: int) -> Callable[[str], tuple[Predict, str]]:
    def train(path: str) -> tuple[Predict, str]:
        svm = LinearSVM(random_state=0, n_jobs=threads).fit(path)
        return svm.predict, f"{svm.result_.solver}, gap {svm.result_.gap:.1e}"

    return train


def theirs(name: str) -> Callable[[str], tuple[Predict, str]]:
    def train(path: str) -> tuple[Predict, str]:
        import pandas as pd
        from sklearn.compose import make_column_selector, make_column_transformer
        from sklearn.linear_model import SGDClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler
        from sklearn.svm import LinearSVC

        data = pd.read_csv(path)
        columns = make_column_transformer(
            (StandardScaler(), make_column_selector(dtype_include="number")),
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        )
        machine = LinearSVC(loss="hinge", random_state=0) if name == "LinearSVC" else SGDClassifier(random_state=0)
        pipeline = make_pipeline(columns, machine).fit(data.drop(columns="label"), data["label"])
        iterations = int(np.max(machine.n_iter_))
        return lambda other: pipeline.predict(pd.read_csv(other).drop(columns="label")), f"{iterations} iterations"

    return train


PROGRAMS: dict[str, Callable[[str], tuple[Predict, str]]] = {
    "dotadd, 1 thread": ours(1),
    "dotadd, 2 threads": ours(2),
    "scikit-learn, LinearSVC": theirs("LinearSVC"),
    "scikit-learn, SGDClassifier": theirs("SGDClassifier"),
}


def report(*, tiny: bool = False, repeat: int = 2) -> str:
    """The table in Markdown."""
    lines = ["| program | seconds | ratio | accuracy on the test file | |", "|---|--:|--:|--:|---|"]
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        for category in (UnusedColumnsWarning, NotConvergedWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        folder = Path(name)
        train, test = (written(folder, name, tiny) for name in FILES)
        few = str(folder / "few.csv")
        with open(train) as file:
            Path(few).write_text("".join(islice(file, 2000)))
        truth = dotadd.open(test, column="c1").load().y
        assert truth is not None
        first = None
        for program, fit in PROGRAMS.items():
            if program.startswith("dotadd"):
                fit(few)  # compiles
            best = np.inf
            for _ in range(repeat):
                began = perf_counter()
                predict, note = fit(train)
                best = min(best, perf_counter() - began)
            first = first or best
            right = float(np.mean(predict(test) == truth))
            lines.append(f"| {program} | {best:.2f} | {best / first:.2f} | {right:.4f} | {note} |")
            sys.stderr.write(f"{lines[-1]}\n")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=2)
    given = parser.parse_args()
    sys.stdout.write(report(tiny=given.tiny, repeat=given.repeat))
