"""Functions of a user's own as changes of vectors and images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dotadd.data.batches import Batch, DenseRows
from dotadd.data.transforms.base import TransformError, Transforms

Function = Callable[[np.ndarray], np.ndarray]

TRIED = 16  # rows that functions are tried on


def functions(*several: Function, names: Sequence[str] | None = None, costly: bool = True) -> Functions:
    """The vector as it is, and what each of these functions makes of it.

    several: functions of an array of vectors (n, p), or of images (n, height, width), for any n. Each returns an array
             of the same shape, whose row r depends on row r alone.
    names:   what each of them does; by default the functions' own names.
    costly:  whether a changed row is better kept than made again each time it is wanted.
    """
    if not several or not all(map(callable, several)):
        raise TransformError("functions has to be given one or more functions")
    if names is None:
        names = [getattr(function, "__name__", repr(function)) for function in several]
    if isinstance(names, str) or len(names) != len(several) or not all(isinstance(name, str) for name in names):
        raise TransformError(f"names has to be {len(several)} names, one for each function, and not {names!r}")
    return Functions(several, tuple(names), costly)


class Functions(Transforms):
    """Rows keep their type of numbers: where it is one of whole numbers, results are rounded and cut off."""

    takes = (DenseRows,)

    def __init__(self, several: tuple[Function, ...], named: tuple[str, ...], costly: bool) -> None:
        self.several, self.named, self.costly = several, named, costly

    def __repr__(self) -> str:
        return f"functions({', '.join(self.named)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Functions) and (self.several, self.named) == (other.several, other.named)

    __hash__ = Transforms.__hash__

    def __len__(self) -> int:
        return 1 + len(self.several)

    @property
    def identity(self) -> int:
        return 0

    def names(self) -> list[str]:
        return ["as it is", *self.named]

    def check(self, batch: Batch) -> None:
        super().check(batch)
        rows = np.arange(min(len(batch), TRIED))
        for member in range(len(self)):
            self.apply(batch, rows, np.full(len(rows), member))

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> DenseRows:
        assert isinstance(batch, DenseRows)
        out = batch.values[rows]
        for member, (function, name) in enumerate(zip(self.several, self.named, strict=True), 1):
            at = np.flatnonzero(which == member)
            if len(at):
                out[at] = _result(function, name, out[at])
        return type(batch)(out)


def _result(function: Function, name: str, rows: np.ndarray) -> np.ndarray:
    """What a function makes of these rows, in their type of numbers."""
    shape, dtype = rows.shape, rows.dtype
    try:
        made = np.asarray(function(rows))
    except Exception as error:
        raise TransformError(f"{name} fails: {type(error).__name__}: {_one_line(error)}") from error
    if made.dtype.kind not in "buif":
        raise TransformError(f"{name} gives an array of {made.dtype}, and not of numbers")
    if made.ndim != len(shape):
        raise TransformError(f"{name} gives an array with {made.ndim} dimensions, and not {len(shape)}")
    if len(made) != len(rows):
        raise TransformError(f"{name} gives {len(made)} rows for {len(rows)}")
    if made.shape != shape:
        sizes = [" x ".join(map(str, size[1:])) for size in (made.shape, shape)]
        raise TransformError(f"{name} gives rows of {sizes[0]} values for rows of {sizes[1]}")
    if np.isnan(made).any():
        raise TransformError(f"{name} gives NaN")
    if dtype.kind in "iu" and made.dtype != dtype:
        limits = np.iinfo(dtype)
        made = np.clip(np.rint(made), limits.min, limits.max)
    return made.astype(dtype, copy=False)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
