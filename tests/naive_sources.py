"""Plain twins of the readers: slow, obvious, and written from the formats' definitions."""

from __future__ import annotations

import numpy as np

from dotadd.data.batches import Batch, DenseRows, SparseRows, Strings


def rows_of(batch: Batch) -> list:
    """A batch as plain Python rows: dicts of index and value, lists of numbers, or bytes."""
    if isinstance(batch, SparseRows):
        rows = []
        for lo, hi in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
            values = np.ones(hi - lo) if batch.values is None else batch.values[lo:hi]
            rows.append(list(zip(batch.indices[lo:hi].tolist(), values.tolist(), strict=True)))
        return rows
    if isinstance(batch, Strings):
        return [batch[row] for row in range(len(batch))]
    assert isinstance(batch, DenseRows)
    return batch.values.tolist()


def libsvm(text: str, dtype: type = np.float32) -> tuple[list, list[float], list[int]]:
    """Rows, labels and line numbers of LIBSVM text without errors."""
    rows, labels, lines = [], [], []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if words:
            pairs = [word.split(":") for word in words[1:]]
            rows.append([(int(index) - 1, float(dtype(float(value)))) for index, value in pairs])
            labels.append(float(words[0]))
            lines.append(number)
    return rows, labels, lines


def fasta(text: str) -> tuple[list[bytes], list[str], list[int]]:
    """Sequences, last words of the headers and header lines of FASTA text."""
    rows, words, lines = [], [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(">"):
            rows.append(b"")
            words.append(line.split()[-1])
            lines.append(number)
        else:
            rows[-1] += "".join(line.split()).encode()
    return rows, words, lines
