"""A small sound file of every format, with labels and enough rows for several chunks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dotadd.sources import open as open_source
from dotadd.sources.convert import convert

ROWS = 40
Y = np.where(np.arange(ROWS) % 3, 1, -1)
X = np.random.default_rng(0).standard_normal((ROWS, 3)).astype(np.float32)
WORDS = ["".join("ACGT"[k % 4] for k in range(row, row + 4 + row % 5)) for row in range(ROWS)]


def _text(name: str, lines: list[str]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def _converted(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        convert(open_source(WORDS, Y), folder / name)
        return folder / name

    return write


def _npy(folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def _npz(folder: Path) -> Path:
    np.savez(folder / "x.npz", x=X, label=Y)
    return folder / "x.npz"


def _idx(folder: Path) -> Path:
    def write(name: str, array: np.ndarray) -> Path:
        sizes = np.array(array.shape, ">u4").tobytes()
        (folder / name).write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
        return folder / name

    write("x-labels-idx1-ubyte", (Y > 0).astype(np.uint8))
    return write("x-images-idx3-ubyte", np.arange(ROWS * 6, dtype=np.uint8).reshape(ROWS, 2, 3))


def _folder(folder: Path) -> Path:
    from PIL import Image

    for row, label in enumerate(Y):
        path = folder / "images" / ("site" if label > 0 else "decoy") / f"{row:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 5), row, np.uint8)).save(path)
    return folder / "images"


def _texts(folder: Path) -> Path:
    for row, label in enumerate(Y):
        path = folder / "texts" / ("site" if label > 0 else "decoy") / f"{row:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS[row])
    return folder / "texts"


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "libsvm": _text("x.svm", [f"{y} {1 + k % 3}:1.5 7:{k}" for k, y in enumerate(Y)]),
    "csv": _text("x.csv", ["a,b,c,label", *(",".join(map(str, [*x, y])) for x, y in zip(X, Y, strict=True))]),
    "tsv": _text("x.tsv", ["text\tlabel", *(f"{word}\t{y}" for word, y in zip(WORDS, Y, strict=True))]),
    "jsonl": _text("x.jsonl", [f'{{"text": "{word}", "label": {y}}}' for word, y in zip(WORDS, Y, strict=True)]),
    "txt": _text("x.txt", [f"__label__{y} {word}" for word, y in zip(WORDS, Y, strict=True)]),
    "fasta": _text("x.fa", [f">r{k} label={y}\n{WORDS[k][:3]}\n{WORDS[k][3:]}" for k, y in enumerate(Y)]),
    "arrow": _converted("x.arrow"),
    "parquet": _converted("x.parquet"),
    "npy": _npy,
    "npz": _npz,
    "idx": _idx,
    "lattices": _text("x.sausage", [f"{y}\tr{k} [ a 0.5 b{k} 0.5 ] [ c 1 ]" for k, y in enumerate(Y)]),
    "images": _folder,
    "texts": _texts,
}
"""By the name of the format; each writes its file into a folder and returns its path."""
