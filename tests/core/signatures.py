"""Runs every solver over every kind of batch, and prints for each kernel the types it was compiled for, as JSON."""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import dotadd
from dotadd import KernelSVM, LinearSVM
from dotadd._jit import KERNELS
from dotadd.solvers.table import Needs, that_need

SMOOTH = "squared_hinge"


def vectors(rng):
    """The same numbers in the types that NumPy, SciPy and files bring."""
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.5)
    rows = sp.csr_array(X)
    long = sp.csr_array((rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)), shape=rows.shape)
    ones = sp.csr_array((np.ones_like(rows.data), rows.indices, rows.indptr), shape=rows.shape)
    yield from (X, X.astype(np.float32), np.abs(100 * X).astype(np.uint8), rows, rows.astype(np.float32), ones, long)
    yield long.astype(np.float32)


def texts(rng):
    words = np.array(["spam", "eggs", "ham", "x", "a longer word"])
    return [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(120)]


def dna(rng):
    return ["".join(rng.choice(list("ACGT"), 20)) for _ in range(120)]


def train(X, y, **options):
    LinearSVM(tol=0.1, max_passes=3, random_state=0, n_jobs=2, **options).fit(X, y).predict(X)


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    solvers = [name for name, solver in that_need(Needs.ROWS, Needs.PASSES).items() if not solver.ancestor]
    for X in vectors(rng):
        for dtype in ("float32", "float64"):
            for solver in solvers:
                train(X, y, solver=solver, loss=SMOOTH, dtype=dtype)
            for how in ("std", "max", "robust"):
                train(X, y, phi=f"Linear().scaled({how!r})", loss=SMOOTH, dtype=dtype)
    maps = {
        "NGrams((2, 3), bits=10)": texts,
        "BagOfWords(bits=10).normalized()": texts,
        "WordNGrams((1, 2), bits=10)": texts,
        "NGrams(2, bits=10).indexed()": texts,
        "WordNGrams((1, 2), bits=10).log().frequent(min_df=2).tfidf()": texts,
        "Spectrum(3)": dna,
        "WeightedDegree(4)": dna,
        "WeightedDegree(6).hashed(4) + 0.5 * Spectrum(4).normalized()": dna,
        "MismatchSpectrum(3, 1)": dna,
        "Gkm(3, 2).normalized() + Gkm(2, 1)": dna,
    }
    for phi, made in maps.items():
        X = made(rng)
        for solver in solvers:
            train(X, y, phi=phi, solver=solver, loss=SMOOTH)
    KernelSVM("rbf", random_state=0).fit(rng.normal(size=(120, 6)), y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.arrow"
        dotadd.convert(dotadd.open(rng.normal(size=(3000, 6)), np.arange(3000) % 2), path)
        for solver in that_need(Needs.PIECES, Needs.PASSES):
            train(path, None, solver=solver, loss=SMOOTH, memory="20kB")
    found = {}
    for kernel in KERNELS:
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}".removeprefix("dotadd.")
        found[name] = [str(signature) for signature in kernel.signatures]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
