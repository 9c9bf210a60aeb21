"""What one prediction of one short row takes from Python, by a model that was loaded from its file: microseconds of the
processor, the best of several stretches of calls.

python -m benchmarks.one_row [--tiny]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

import dotadd
from dotadd import KernelSVM, LinearSVM
from dotadd.model.file import Classifier

WORDS = ["free", "money", "buy", "now", "lunch", "at", "noon", "tomorrow", "hello", "friend"]
TEXT = "free money"
MAPS = [
    "BagOfWords()",
    "WordNGrams((1, 2)).normalized()",
    "WordNGrams((1, 2)).tfidf()",
    "WordNGrams((1, 2)).indexed('hash_table')",
    "NGrams((2, 3)).normalized()",
    "NGrams(3).indexed('trie')",
    "WordNGrams((1, 2)).tfidf() + NGrams((3, 5)).normalized()",
    "Spectrum(3, alphabet='bytes').normalized()",
    "AllSubstrings(decay=0.8)",
]


KERNEL = f'`KernelSVM("rbf", of="{MAPS[0]}")`'


def microseconds(call: Callable[[object], object], row: object, calls: int, repeat: int) -> float:
    """What a call takes of the processor."""
    took = []
    for _ in range(repeat):
        began = process_time()
        for _ in range(calls):
            call(row)
        took.append((process_time() - began) / calls)
    return 1e6 * min(took)


def loaded(svm: LinearSVM | KernelSVM, X: object, y: np.ndarray, folder: str) -> Classifier:
    path = Path(folder, "one.dotadd")
    svm.fit(X, y).model_.save(path)
    return dotadd.load(path)


def report(*, tiny: bool = False) -> str:
    """The table, in Markdown."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 8)) for _ in range(200)]
    two = np.array(["money" in text for text in texts])
    three = np.array([len(text) % 3 for text in texts])
    numbers = rng.normal(size=(200, 5))
    calls, repeat = (2, 1) if tiny else (300, 15)
    lines = ["| model | `predict` of one row, microseconds | `decision_function` |", "|---|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        models = {
            "five numbers": (loaded(LinearSVM(), numbers, two, folder), numbers[:1]),
            f"`{MAPS[0]}`, three classes": (loaded(LinearSVM(MAPS[0]), texts, three, folder), [TEXT]),
        }
        models |= {
            f"`{each}`": (loaded(LinearSVM(each), texts, two, folder), [TEXT]) for each in MAPS[: 2 if tiny else None]
        }
        models |= {KERNEL: (loaded(KernelSVM("rbf", of=MAPS[0]), texts, two, folder), [TEXT])}
        for name, (model, row) in models.items():
            found = [microseconds(of, row, calls, repeat) for of in (model.predict, model.decision_function)]
            lines.append(f"| {name} | {found[0]:.0f} | {found[1]:.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    sys.stdout.write(report(tiny=parser.parse_args().tiny))
