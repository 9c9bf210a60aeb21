"""Ordinary text: from strings in memory to a model with the same objective, features included.

Hinge loss, a regularised intercept, one against the rest where there are more classes. dotadd trains to a proven gap of
0.1 %. scikit-learn makes its features with a HashingVectorizer or TfidfVectorizer like the map; so that both minimise
the same objective, LinearSVC is then given the matrix of dotadd's features, with the loosest of a few tolerances by
which it comes within 0.1 % of dotadd's objective. Its accuracy is that of its own features. Best of some runs;
compiling is apart.

python -m benchmarks.everyday [--only NAMES] [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, solvers
from dotadd import LinearSVM, NotConvergedWarning
from dotadd.features.expression import parse

TOLERANCES = (1.0, 0.1, 0.01, 1e-3, 1e-4)  # of LinearSVC
WITHIN = 1e-3  # of dotadd's objective
Texts = tuple[list[str], np.ndarray]


@dataclass(frozen=True)
class Task:
    """Texts, how features are made of them by either program, and C."""

    name: str
    texts: Callable[[bool], Texts]
    phi: str
    words: dict[str, object]
    C: float
    test: Callable[[bool], Texts] | None = None
    """Texts to be told apart by the model; the accuracy is noted."""


def lines_of(*path: str) -> list[dict[str, str]]:
    with lzma.open(datasets.existing(datasets.FOLDER.joinpath(*path)), "rt") as file:
        return [json.loads(line) for line in file]


def few(classes: int) -> Texts:
    """Texts that take no time."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, 120)
    words = [[f"w{k}" for k in rng.integers(0, 30, 20)] + [f"c{label}"] * 2 for label in labels]
    return [" ".join(some) for some in words], labels.astype(str)


def mails(tiny: bool) -> Texts:
    if tiny:
        return few(2)
    rows = lines_of("enron_spam", "enron_spam.jsonl.xz")
    some = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))[:10_000]]
    return [row["text"] for row in some], np.array([row["label"] for row in some])


def news(tiny: bool, half: str = "train") -> Texts:
    if tiny:
        return few(4)
    rows = lines_of("news20", f"20news_{half}.jsonl.xz")
    return [row["text"] for row in rows], np.array([row["label"] for row in rows])


def sms(tiny: bool) -> Texts:
    if tiny:
        return few(2)
    with lzma.open(datasets.existing(datasets.FOLDER / "sms_spam" / "SMSSpamCollection.xz"), "rt") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return [text for _, text in rows], np.array([label for label, _ in rows])


TASKS = [
    Task("short messages, words", sms, "BagOfWords().normalized()", {}, 10.0),
    Task("mails, words", mails, "BagOfWords().normalized()", {}, 10.0),
    Task(
        "mails, 3-5-grams", mails, "NGrams((3, 5)).normalized()",
        {"analyzer": "char", "ngram_range": (3, 5)}, 10.0,
    ),
    Task("20 newsgroups, words and pairs", news, "WordNGrams((1, 2)).normalized()", {"ngram_range": (1, 2)}, 1.0),
    Task(
        "20 newsgroups, tf-idf of words and pairs", news, "WordNGrams((1, 2)).log().tfidf()",
        {"ngram_range": (1, 2), "sublinear_tf": True}, 1.0, partial(news, half="test"),
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What one program took: seconds for features (where they are apart), and in all; and its objective."""

    program: str
    features: float | None
    seconds: float
    primal: float
    note: str = ""


def ours(task: Task, texts: Texts, jobs: int, repeat: int, tiny: bool) -> Row:
    X, y = texts
    svm = LinearSVM(task.phi, C=task.C, n_jobs=jobs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        svm.fit(X[:: max(1, len(X) // 200)], y[:: max(1, len(X) // 200)])  # compiled, and not timed
    seconds = min(timed(lambda: svm.fit(X, y)) for _ in range(repeat))
    results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    gap, passes = max(result.gap for result in results), max(result.passes for result in results)
    kept = results[0].kept_bytes / 1e6
    note = f"gap {gap:.1e}, {passes} passes, {kept:.0f} MB kept"
    if task.test is not None:
        note += f", accuracy {svm.score(*task.test(tiny)):.4f}"
    return Row(f"dotadd, {jobs} thread{'s' * (jobs > 1)}", None, seconds, sum(r.primal for r in results), note)


def theirs(task: Task, texts: Texts, goal: float, repeat: int, tiny: bool) -> Row:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
    from sklearn.svm import LinearSVC

    X, y = texts
    hashing = partial(HashingVectorizer, n_features=2**20, alternate_sign=False)
    vectorizer = (TfidfVectorizer if ".tfidf()" in task.phi else hashing)(**task.words)
    features = min(timed(lambda: vectorizer.fit_transform(X)) for _ in range(repeat))
    matrix = sp.csr_matrix(parse(task.phi).fit_transform(X))
    for tol in TOLERANCES:
        svc = LinearSVC(loss="hinge", C=task.C, tol=tol, max_iter=20_000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = timed(lambda svc=svc: svc.fit(matrix, y))
        primal = solvers.objective(matrix, y, (svc.coef_, svc.intercept_), "hinge", task.C)
        if primal <= (1.0 + WITHIN) * goal:
            break
    note = ""
    if task.test is not None:  # by its own features
        unseen, truth = task.test(tiny)
        svc.fit(vectorizer.fit_transform(X), y)
        note = f", accuracy {svc.score(vectorizer.transform(unseen), truth):.4f}"
    reached = "" if primal <= (1.0 + WITHIN) * goal else ", not reached"
    return Row("scikit-learn", features, features + seconds, primal, f"tol {tol:g}{reached}{note}")


def timed(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def report(only: Sequence[str] = (), *, tiny: bool = False, repeat: int = 3) -> str:
    """The table, in Markdown."""
    out = ["| texts | program | features, s | in all, s | ratio | objective | |", "|---|---|--:|--:|--:|--:|---|"]
    for task in TASKS:
        if only and task.name not in only:
            continue
        texts = task.texts(tiny)
        rows = [ours(task, texts, jobs, repeat, tiny) for jobs in (1, 2)]
        rows.append(theirs(task, texts, min(row.primal for row in rows), repeat, tiny))
        for row in rows:
            features = "" if row.features is None else f"{row.features:.2f}"
            cells = [task.name, row.program, features, f"{row.seconds:.2f}", f"{row.seconds / rows[0].seconds:.2f}"]
            out.append("| " + " | ".join([*cells, f"{row.primal:.6g}", row.note]) + " |")
            sys.stderr.write(out[-1] + "\n")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of the first column, with ; between them")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    names = [name.strip() for name in options.only.split(";") if name.strip()]
    sys.stdout.write(report(names, tiny=options.tiny, repeat=options.repeat))
