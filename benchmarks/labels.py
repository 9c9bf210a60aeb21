"""Several labels a row: Reuters-21578 with the 90 topics that have stories to train and to test on (ModApte).

A story has one topic, several or none. Features are tf-idf of words, with logarithms of counts; each topic is a binary
problem, squared hinge loss, C = 1. dotadd trains from strings in memory to a proven gap of 0.1 % in each topic;
scikit-learn makes its features with a TfidfVectorizer and trains OneVsRestClassifier(LinearSVC) with its own defaults,
on two processes in the last row. F1 is measured on the test stories by scikit-learn. Best of some runs; compiling is
apart.

python -m benchmarks.labels [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from benchmarks import reuters
from dotadd import LinearSVM

PHI = 'WordNGrams(1, shortest_word=2).indexed("hash_table").log().tfidf()'  # the words of TfidfVectorizer
Data = tuple[list[str], np.ndarray]
Fit = Callable[[list[str], np.ndarray], Callable[[list[str]], np.ndarray]]


def split(tiny: bool) -> tuple[Data, Data]:
    """Texts and indicators of topics, to train on and to test on."""
    stories = reuters.load_topics(tiny=tiny)
    train = stories.train
    both = np.flatnonzero(stories.topics[train].any(axis=0) & stories.topics[~train].any(axis=0))
    halves = (np.flatnonzero(train), np.flatnonzero(~train))
    one, other = (([stories.texts[row] for row in rows], stories.topics[np.ix_(rows, both)]) for rows in halves)
    return one, other


def ours(jobs: int) -> Fit:
    def fit(X: list[str], Y: np.ndarray) -> Callable[[list[str]], np.ndarray]:
        return LinearSVM(PHI, loss="squared_hinge", n_jobs=jobs, random_state=0).fit(X, Y).predict

    return fit


def theirs(jobs: int) -> Fit:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    def fit(X: list[str], Y: np.ndarray) -> Callable[[list[str]], np.ndarray]:
        machine = OneVsRestClassifier(LinearSVC(random_state=0), n_jobs=jobs)
        return make_pipeline(TfidfVectorizer(sublinear_tf=True), machine).fit(X, Y).predict

    return fit


PROGRAMS = {
    "dotadd, 1 thread": (ours, 1), "dotadd, 2 threads": (ours, 2),
    "OneVsRestClassifier, 1 process": (theirs, 1), "OneVsRestClassifier, 2 processes": (theirs, 2),
}  # fmt: skip


def report(*, tiny: bool = False, repeat: int = 3) -> str:
    """The table, in Markdown."""
    (X, Y), (unseen, truth) = split(tiny)
    out = ["| program | s | ratio | micro F1 | macro F1 | all topics right |", "|---|--:|--:|--:|--:|--:|"]
    first = 0.0
    for name, (make, jobs) in PROGRAMS.items():
        if tiny and make is theirs and jobs > 1:  # processes take longer to begin than all the rest
            continue
        fit, best = make(jobs), np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if make is ours:
                fit(X[:: max(1, len(X) // 200)], Y[:: max(1, len(X) // 200)])  # compiled, and not timed
            for _ in range(repeat):
                began = perf_counter()
                predict = fit(X, Y)
                best = min(best, perf_counter() - began)
            found = predict(unseen)
            scores = [f1_score(truth, found, average=how, zero_division=0.0) for how in ("micro", "macro")]
        first = first or best
        cells = [f"{best:.2f}", f"{best / first:.2f}", *(f"{score:.4f}" for score in scores)]
        out.append("| " + " | ".join([name, *cells, f"{accuracy_score(truth, found):.4f}"]) + " |")
        sys.stderr.write(out[-1] + "\n")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    sys.stdout.write(report(tiny=options.tiny, repeat=options.repeat))
