"""The data of the benchmarks: public sets from the folder DOTADD_DATA, and a synthetic one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import dotadd

FOLDER = Path(os.environ.get("DOTADD_DATA", "../shared/data"))
FILES = {
    "a9a": "a9a/a9a.xz",
    "w8a": "w8a/w8a.xz",
    "ijcnn1": "ijcnn1/ijcnn1.trn.bz2",
    "sector": "sector/sector.scale.bz2",
}


def path(name: str) -> Path:
    return FOLDER / FILES[name]


def existing(path: Path) -> Path:
    """The path, if there is a file."""
    if not path.exists():
        raise SystemExit(f"{path} is not there: set DOTADD_DATA to the folder of {path.parent.name}, or give --tiny")
    return path


def load(name: str, tiny: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    """A set by name as float32 CSR and labels; tiny stands for a problem of the same kind that takes no time."""
    if name == "synthetic":
        return synthetic(2000, 2**12, 20) if tiny else synthetic(200_000, 2**20, 50)
    if tiny:
        return synthetic(300, 100, 10, classes=3 if name == "sector" else 2)
    data = dotadd.open(path(name)).load()
    rows = data.batch
    values = np.ones(len(rows.indices), np.float32) if rows.values is None else rows.values
    return sp.csr_matrix((values, rows.indices, rows.offsets), shape=(len(rows), rows.n_features)), data.y


def synthetic(n: int, d: int, nonzeros: int, classes: int = 2) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of `nonzeros` normal values at random places, labelled by a random direction and some noise."""
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, d, (n, nonzeros)), axis=1).astype(np.int32).ravel()
    values = (rng.normal(size=n * nonzeros) / np.sqrt(nonzeros)).astype(np.float32)
    X = sp.csr_matrix((values, indices, np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)), shape=(n, d))
    X.sum_duplicates()
    output = X @ rng.normal(size=d)
    output += 0.3 * output.std() * rng.normal(size=n)
    cuts = np.quantile(output, np.arange(1, classes) / classes)
    return X, np.searchsorted(cuts, output).astype(np.float64)
