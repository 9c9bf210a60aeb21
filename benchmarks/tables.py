"""Tables of numbers, words and text, from the file to a model and its accuracy on another file.

KDD 99: 494,021 connections with 38 columns of numbers and 3 of words, normal or an attack; tested on the 311,029 of the
corrected test set, whose attacks are others. dotadd is given the file and no features; scikit-learn reads it with
pandas, scales the numbers (StandardScaler), makes a column of each word (OneHotEncoder), and trains LinearSVC, or
SGDClassifier with its own defaults.

Mails: the 33,715 of Enron, spam or ham, subject and body as two columns of text, two thirds of them to train on and the
rest to test on. dotadd is given words (or words and pairs) with tf-idf for each column, scikit-learn a TfidfVectorizer.

All have the hinge loss and C = 1, but for LinearSVC where it says that it has its own, the squared hinge. Seconds are
from the file to the model, and the best of some runs; compiling is apart.

python -m benchmarks.tables [--only NAMES] [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import csv
import lzma
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import datasets, everyday
from dotadd import LinearSVM, NotConvergedWarning, UnusedColumnsWarning

COLUMNS = 41
FILES = {"train": "kddcup.data_10_percent.xz", "test": "corrected.xz"}
Predict = Callable[[str], np.ndarray]


def connections(folder: Path, tiny: bool) -> tuple[str, str]:
    """The files of KDD 99 with a header, and two classes."""
    return connections_of(folder, "train", tiny), connections_of(folder, "test", tiny)


def connections_of(folder: Path, name: str, tiny: bool) -> str:
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


def mails(folder: Path, tiny: bool) -> tuple[str, str]:
    """Files of subject, body and label. Of both parts each third mail is tested on, in an order by chance."""
    if tiny:
        (texts, labels), _ = everyday.mails(tiny)
        rows = [(text[:20], text, f"class {label}") for text, label in zip(texts, labels.tolist(), strict=True)]
    else:
        rows = []
        for mail in everyday.lines_of("enron_spam", "enron_spam.jsonl.xz"):
            subject, _, body = mail["text"].removeprefix("Subject:").partition("\n")
            rows.append((subject.strip(), body, mail["label"]))
    order = np.random.default_rng(0).permutation(len(rows))
    paths = folder / "train.csv", folder / "test.csv"
    for path, chosen in zip(paths, (order[len(rows) // 3 :], order[: len(rows) // 3]), strict=True):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([("subject", "body", "label"), *(rows[k] for k in chosen)])
    return str(paths[0]), str(paths[1])


def ours(path: str, features: str | None, threads: int) -> tuple[Predict, str]:
    svm = LinearSVM(features, random_state=0, n_jobs=threads).fit(path)
    return svm.predict, f"{svm.result_.solver}, gap {svm.result_.gap:.1e}"


def theirs(path: str, columns: Callable[[], Any], name: str) -> tuple[Predict, str]:
    import pandas as pd
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    def read(path: str) -> pd.DataFrame:
        return pd.read_csv(path, keep_default_na=False)  # a subject that is empty, or NULL, is a text

    data = read(path)
    loss = "squared_hinge" if name.endswith("squared hinge") else "hinge"
    machine = SGDClassifier(random_state=0) if name == "SGDClassifier" else LinearSVC(loss=loss, random_state=0)
    pipeline = make_pipeline(columns(), machine).fit(data.drop(columns="label"), data["label"])
    return lambda other: pipeline.predict(
        read(other).drop(columns="label")
    ), f"{int(np.max(machine.n_iter_))} iterations"


def numbers_and_words() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )


def two_texts(longest: int) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(ngram_range=(1, longest))
    return make_column_transformer((words, "subject"), (words, "body"))


@dataclass(frozen=True)
class Task:
    """A file to train on and one to test on, and how features are made of them by either program."""

    name: str
    files: Callable[[Path, bool], tuple[str, str]]
    features: str | None
    columns: Callable[[], Any]
    machines: tuple[str, ...]

    def programs(self) -> dict[str, Callable[[str], tuple[Predict, str]]]:
        mine = {"dotadd, 1 thread": 1, "dotadd, 2 threads": 2}
        programs = {name: partial(ours, features=self.features, threads=threads) for name, threads in mine.items()}
        peers = {f"scikit-learn, {name}": partial(theirs, columns=self.columns, name=name) for name in self.machines}
        return programs | peers


WORDS = 'Column("subject", WordNGrams({0}).tfidf()) + Column("body", WordNGrams({0}).tfidf())'
MACHINES = ("LinearSVC", "LinearSVC, squared hinge")
TASKS = (
    Task("KDD 99", connections, None, numbers_and_words, ("LinearSVC", "SGDClassifier")),
    Task("mails, words", mails, WORDS.format(1), partial(two_texts, 1), MACHINES),
    Task("mails, words and pairs", mails, WORDS.format((1, 2)), partial(two_texts, 2), MACHINES),
)


def report(only: Sequence[str] = (), *, tiny: bool = False, repeat: int = 2) -> str:
    """The table in Markdown."""
    lines = ["| table | program | seconds | ratio | accuracy on the test file | |", "|---|---|--:|--:|--:|---|"]
    with warnings.catch_warnings():
        for category in (UnusedColumnsWarning, NotConvergedWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        for task in TASKS:
            if not only or task.name in only:
                with tempfile.TemporaryDirectory() as name:
                    lines += measured(task, Path(name), tiny, repeat)
    return "\n".join(lines) + "\n"


def measured(task: Task, folder: Path, tiny: bool, repeat: int) -> list[str]:
    """The lines of a task."""
    import pandas as pd

    train, test = task.files(folder, tiny)
    few = str(folder / "few.csv")
    pd.read_csv(train, nrows=2000, dtype=str, keep_default_na=False).to_csv(few, index=False)
    truth = pd.read_csv(test, usecols=["label"])["label"].to_numpy()
    first, lines = None, []
    for program, fit in task.programs().items():
        if program.startswith("dotadd"):
            fit(few)  # compiles
        best = np.inf
        for _ in range(repeat):
            began = perf_counter()
            predict, note = fit(train)
            best = min(best, perf_counter() - began)
        first = first or best
        right = float(np.mean(predict(test) == truth))
        lines.append(f"| {task.name} | {program} | {best:.2f} | {best / first:.2f} | {right:.4f} | {note} |")
        sys.stderr.write(f"{lines[-1]}\n")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of the first column, with ; between them")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=2)
    given = parser.parse_args()
    names = [name.strip() for name in given.only.split(";") if name.strip()]
    sys.stdout.write(report(names, tiny=given.tiny, repeat=given.repeat))
