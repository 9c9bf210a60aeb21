"""Everyday data: from texts or rows in memory to a model with the same objective, features included.

Hinge loss, a regularised intercept, one against the rest where there are more classes. dotadd trains to a proven gap of
0.1 %. The others are given the matrix of dotadd's features, so that all minimise the same objective, and of a few
tolerances the loosest by which they come within 0.1 % of dotadd's; of texts, they are charged with the time that
scikit-learn's HashingVectorizer or TfidfVectorizer takes for the same kind of features. LIBLINEAR is the code of
liblinear-multicore, which takes a number of threads. Vowpal Wabbit has an objective and features of its own: it makes
1, 2, 4 ... 32 passes, until it is as accurate as dotadd less 0.2 %; its file of words is written beforehand.

Each program runs in a process of its own, whose peak of memory is told, texts and interpreter included. Best of some
runs; compiling is apart. Accuracy is that on rows that were not trained on. Tables of words and numbers, and click logs
larger than memory, are in `benchmarks.tables` and `benchmarks.clicks`.

python -m benchmarks.everyday [--only NAMES] [--programs NAMES] [--tiny] [--repeat N]
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, memory, reuters, runs, solvers
from dotadd import LinearSVM, NotConvergedWarning
from dotadd.features.expression import parse

TOLERANCES = (10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4)  # of LIBLINEAR's dual coordinate descent, which LinearSVC is, too
WITHIN = 1e-3  # of dotadd's objective
PASSES = (1, 2, 4, 8, 16, 32)  # of Vowpal Wabbit
AS_ACCURATE = 0.002  # less than dotadd's accuracy
NOT_A_WORD = re.compile(r"[^\w\n]+")
Rows = tuple[Any, np.ndarray]  # texts or a CSR matrix, and labels


@dataclass(frozen=True)
class Task:
    """Rows to train on and rows to be told apart by the model; how features are made by either program; C."""

    name: str
    rows: Callable[[bool], tuple[Rows, Rows]]
    phi: str
    C: float
    words: dict[str, Any] | None = None
    """What scikit-learn's vectorizer is told; rows that are no texts have none."""


def lines_of(*path: str) -> list[dict[str, str]]:
    with lzma.open(datasets.existing(datasets.FOLDER.joinpath(*path)), "rt") as file:
        return [json.loads(line) for line in file]


def few(classes: int) -> tuple[Rows, Rows]:
    """Texts that take no time."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, 160)
    words = [[f"w{k}" for k in rng.integers(0, 30, 20)] + [f"c{label}"] * 2 for label in labels]
    return apart(np.array([" ".join(some) for some in words], object), labels.astype(str), 120)


def apart(X: Any, y: np.ndarray, count: int, most: int | None = None) -> tuple[Rows, Rows]:
    """So many rows drawn at random, and the others, or the first of them."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:count], order[count:most]
    if isinstance(X, np.ndarray):
        return (X[train].tolist(), y[train]), (X[test].tolist(), y[test])
    return (X[train], y[train]), (X[test], y[test])


def mails(tiny: bool) -> tuple[Rows, Rows]:
    if tiny:
        return few(2)
    rows = lines_of("enron_spam", "enron_spam.jsonl.xz")
    texts, labels = ([row[name] for row in rows] for name in ("text", "label"))
    return apart(np.array(texts, object), np.array(labels), 10_000, 15_000)


def news(tiny: bool) -> tuple[Rows, Rows]:
    if tiny:
        return few(4)
    train, test = (
        ([row["text"] for row in rows], np.array([row["label"] for row in rows]))
        for rows in (lines_of("news20", f"20news_{half}.jsonl.xz") for half in ("train", "test"))
    )
    return train, test


def sms(tiny: bool) -> tuple[Rows, Rows]:
    if tiny:
        return few(2)
    with lzma.open(datasets.existing(datasets.FOLDER / "sms_spam" / "SMSSpamCollection.xz"), "rt") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return apart(np.array([text for _, text in rows], object), np.array([label for label, _ in rows]), 4_459)


def stories(tiny: bool) -> tuple[Rows, Rows]:
    if tiny:
        return few(2)
    found = reuters.load()
    halves = (found.some(np.flatnonzero(half)) for half in (found.train, ~found.train))
    train, test = ((half.texts, half.signs) for half in halves)
    return train, test


def stored(name: str, tiny: bool) -> tuple[Rows, Rows]:
    X, y = datasets.load(name, tiny)
    return apart(X, y, len(y) * 4 // 5)


PAIRS, LETTERS = {"ngram_range": (1, 2)}, {"analyzer": "char", "ngram_range": (3, 5)}
TASKS = {
    task.name: task
    for task in (
        Task("short messages, words", sms, "BagOfWords().normalized()", 10.0, {}),
        Task("Reuters, acq, words", stories, "BagOfWords().normalized()", 10.0, {}),
        Task("mails, words", mails, "BagOfWords().normalized()", 10.0, {}),
        Task("mails, 3-5-grams", mails, "NGrams((3, 5)).normalized()", 10.0, LETTERS),
        Task("20 newsgroups, words and pairs", news, "WordNGrams((1, 2)).normalized()", 1.0, PAIRS),
        Task(
            "20 newsgroups, tf-idf of words and pairs", news, "WordNGrams((1, 2)).log().tfidf()", 1.0,
            PAIRS | {"sublinear_tf": True},
        ),
        Task("a9a", partial(stored, "a9a"), "Linear()", 1.0),
        Task("sector", partial(stored, "sector"), "Linear()", 1.0),
    )
}  # fmt: skip

Job = dict[str, Any]
Found = dict[str, Any]


def timed(work: Callable[[], object], repeat: int = 1) -> float:
    """The fewest seconds that it took."""
    best = np.inf
    for _ in range(repeat):
        began = perf_counter()
        work()
        best = min(best, perf_counter() - began)
    return best


def by_dotadd(job: Job, threads: int) -> Found:
    task = TASKS[job["task"]]
    (X, y), (unseen, truth) = task.rows(job["tiny"])
    svm = LinearSVM(task.phi, C=task.C, n_jobs=threads, random_state=0)
    step = max(1, len(y) // 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        svm.fit(X[::step], y[::step])  # compiles
    seconds = timed(lambda: svm.fit(X, y), job["repeat"])
    results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    gap, passes = max(result.gap for result in results), max(result.passes for result in results)
    told = f"gap {gap:.1e}, {passes} passes, {results[0].kept_bytes / 1e6:.0f} MB kept"
    found = {"seconds": seconds, "peak": memory.peak(), "primal": sum(result.primal for result in results)}
    return {**found, "accuracy": svm.score(unseen, truth), "note": told}


def by_vectorizer(job: Job) -> Found:
    """What it takes scikit-learn to make such features."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

    task = TASKS[job["task"]]
    (X, _), _ = task.rows(job["tiny"])
    assert task.words is not None
    hashing = partial(HashingVectorizer, n_features=2**20, alternate_sign=False)
    vectorizer = (TfidfVectorizer if ".tfidf()" in task.phi else hashing)(**task.words)
    return {"seconds": timed(lambda: vectorizer.fit_transform(X), job["repeat"]), "peak": memory.peak()}


def by_liblinear(job: Job, prepare: Callable[[sp.csr_matrix, np.ndarray, float], solvers.Run]) -> Found:
    """The loosest tolerance that comes as low as dotadd, on the matrix of its features."""
    (X, y), (unseen, truth) = ((sp.load_npz(job[f"{k}_X"]), np.load(job[f"{k}_y"])) for k in ("train", "test"))
    labels, numbers = np.unique(y, return_inverse=True)
    run = prepare(X, numbers.astype(np.float64), TASKS[job["task"]].C)
    for tol in TOLERANCES:
        seconds, weights = run(tol)
        primal = solvers.objective(X, numbers, weights, "hinge", TASKS[job["task"]].C)
        reached = primal <= (1.0 + WITHIN) * job["goal"]
        if reached:
            for _ in range(job["repeat"] - 1):
                seconds = min(seconds, run(tol)[0])
            break
    peak = memory.peak()
    w, b = weights
    output = unseen @ w.T + b
    guess = output.argmax(axis=1) if len(labels) > 2 else (output[:, 0] > 0.0).astype(int)
    note = f"tol {tol:g}{'' if reached else ', not reached'}"
    found = {"seconds": seconds, "peak": peak, "primal": primal, "note": note}
    return {**found, "accuracy": float(np.mean(labels[guess] == truth))}


def by_linear_svc(job: Job) -> Found:
    return by_liblinear(job, lambda X, y, C: solvers.linear_svc(X, y, C, loss="hinge", dual=True))


def by_library(job: Job, threads: int) -> Found:
    def prepare(X: sp.csr_matrix, y: np.ndarray, C: float) -> solvers.Run:
        run = solvers.liblinear(X, y, C, threads=threads)
        assert run is not None
        return run

    return by_liblinear(job, prepare)


def by_vowpal_wabbit(job: Job) -> Found:
    from vowpalwabbit import Workspace

    task, best = TASKS[job["task"]], (np.inf, 0.0, 0)
    (_, y), (_, truth) = task.rows(job["tiny"])
    classes = len(np.unique(y))
    numbers = np.unique(np.concatenate([y, truth]), return_inverse=True)[1]
    model, scores = (f"{job['folder']}/vw.{kind}" for kind in ("model", "scores"))
    words = ["-b", "20", "--loss_function", "hinge", *(["--ngram", "2"] if task.words == PAIRS else [])]
    words += ["--oaa", str(classes)] if classes > 2 else []
    for passes in PASSES:
        again = ["--passes", str(passes), "--cache_file", f"{model}.cache", "-k", "--holdout_off"] if passes > 1 else []
        train = ["--quiet", "-d", job["train_vw"], *words, *again, "-f", model]
        seconds = timed(lambda train=train: Workspace(arg_list=train).finish())
        peak = memory.peak()
        Path(scores).unlink(missing_ok=True)
        Workspace(arg_list=["--quiet", "-t", "-d", job["test_vw"], "-i", model, "-p", scores]).finish()
        found = np.loadtxt(scores, usecols=0, ndmin=1)
        guess = found.astype(int) - 1 if classes > 2 else (found > 0.0).astype(int)
        accuracy = float(np.mean(guess == numbers[len(y) :]))
        if accuracy > best[1]:
            best = seconds, accuracy, passes
        if accuracy >= job["accuracy"] - AS_ACCURATE:
            break
    as_good = "" if best[1] >= job["accuracy"] - AS_ACCURATE else ", not as accurate"
    return {
        "seconds": best[0],
        "peak": peak,
        "accuracy": best[1],
        "note": f"{best[2]} {'pass' if best[2] == 1 else 'passes'}{as_good}",
    }


PROGRAMS: dict[str, Callable[[Job], Found]] = {
    "dotadd, 1 thread": partial(by_dotadd, threads=1),
    "dotadd, 2 threads": partial(by_dotadd, threads=2),
    "vectorizer": by_vectorizer,
    "scikit-learn LinearSVC": by_linear_svc,
    "LIBLINEAR, 1 thread": partial(by_library, threads=1),
    "LIBLINEAR, 2 threads": partial(by_library, threads=2),
    "Vowpal Wabbit": by_vowpal_wabbit,
}
NEEDS = {"LIBLINEAR": "liblinear", "Vowpal": "vowpalwabbit"}


def written(task: Task, folder: Path, tiny: bool) -> dict[str, str]:
    """What the others are given: matrices of dotadd's features, labels, and files of words for Vowpal Wabbit."""
    train, test = task.rows(tiny)
    phi, files = parse(task.phi), {}
    numbers = np.unique(np.concatenate([train[1], test[1]]), return_inverse=True)[1]
    classes = len(np.unique(train[1]))
    for name, (X, y) in {"train": train, "test": test}.items():
        files |= {f"{name}_X": str(folder / f"{name}.npz"), f"{name}_y": str(folder / f"{name}.npy")}
        matrix = phi.fit_transform(X) if name == "train" else phi.transform(X)
        sp.save_npz(files[f"{name}_X"], sp.csr_matrix(matrix))
        np.save(files[f"{name}_y"], y)
        files[f"{name}_vw"] = str(folder / f"{name}.vw")
        mine = numbers[: len(train[1])] if name == "train" else numbers[len(train[1]) :]
        with open(files[f"{name}_vw"], "w") as file:
            file.writelines(
                f"{number + 1 if classes > 2 else 2 * number - 1} | {words}\n"
                for number, words in zip(mine.tolist(), words_of(X), strict=True)
            )
    return files


def words_of(X: Any) -> Iterator[str]:
    """Rows as Vowpal Wabbit reads them."""
    if isinstance(X, list):
        yield from (" ".join(NOT_A_WORD.sub(" ", text).lower().split()) for text in X)
        return
    for first, stop in zip(X.indptr, X.indptr[1:], strict=False):
        yield " ".join(f"{j}:{x:g}" for j, x in zip(X.indices[first:stop], X.data[first:stop], strict=True))


def report(only: str = "", programs: str = "", *, tiny: bool = False, repeat: int = 3) -> str:
    """The table, in Markdown."""
    out = ["| rows | program | features, s | in all, s | ratio | objective | accuracy | peak of memory | |"]
    out.append("|---|---|--:|--:|--:|--:|--:|--:|---|")
    names, wanted = ([name.strip() for name in text.split(";") if name.strip()] for text in (only, programs))
    for task in TASKS.values():
        if names and task.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            job = {"task": task.name, "tiny": tiny, "repeat": repeat, "folder": folder}
            job |= written(task, Path(folder), tiny)
            ours: list[Found] = []
            made = {"seconds": 0.0, "peak": 0}
            for program in PROGRAMS:
                missing = any(program.startswith(name) and find_spec(module) is None for name, module in NEEDS.items())
                if missing or (wanted and program not in wanted and not program.startswith("dotadd")):
                    continue
                if (program == "vectorizer" and task.words is None) or (
                    program.startswith("Vowpal") and task.words == LETTERS
                ):
                    continue  # rows that are features; Vowpal Wabbit knows no n-grams of letters
                if ours:
                    job |= {"goal": min(row["primal"] for row in ours), "accuracy": ours[0]["accuracy"]}
                asked = {**job, "program": program}
                found = PROGRAMS[program](asked) if tiny else runs.call("benchmarks.everyday", asked)
                if program.startswith("dotadd"):
                    ours.append(found)
                elif program == "vectorizer":
                    made = found
                    continue
                charged = "primal" in found and not program.startswith("dotadd")
                seconds = found["seconds"] + (made["seconds"] if charged else 0.0)
                features = f"{made['seconds']:.2f}" if charged and made["peak"] else ""
                primal = f"{found['primal']:.6g}" if "primal" in found else ""
                peak = max(found["peak"], made["peak"] if charged else 0)
                cells = [task.name, program, features, f"{seconds:.2f}", f"{seconds / ours[0]['seconds']:.2f}", primal]
                cells += [f"{found['accuracy']:.4f}", f"{peak / 1e6:,.0f} MB", found["note"]]
                out.append(f"| {' | '.join(cells)} |")
                sys.stderr.write(f"{out[-1]}\n")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("{"):
        given = json.loads(sys.argv[1])
        print(json.dumps(PROGRAMS[given["program"]](given)))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of the first column, with ; between them")
    parser.add_argument("--programs", default="", help="names of the second column, with ; between them, beside dotadd")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    sys.stdout.write(report(**vars(parser.parse_args())))
