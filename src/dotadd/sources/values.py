"""Numbers of any type as the float32 or float64 that kernels take, copied only where they have to be."""

from __future__ import annotations

import numpy as np

from dotadd.errors import DataError

LAST_LETTER = 0x10FFFF  # of Unicode
GRAY = (np.uint8, np.uint16)  # pixels of images that stay what they are


def float_type(dtype: np.dtype) -> type[np.float32] | type[np.float64]:
    """The smallest of float32 and float64 that holds every number of this type, as far as float64 can."""
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def float_values(array: np.ndarray, what: str = "the array") -> np.ndarray:
    """The same memory if it is float32 or float64 already, else a copy."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    if array.dtype.kind in "biuf":
        return array.astype(float_type(array.dtype))
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {what} has complex numbers")
    try:
        return array.astype(np.float64)
    except ValueError as error:
        raise DataError(f"{what} has values of type {array.dtype} that are not numbers: {error}") from None


def require_letters(array: np.ndarray) -> None:
    """Refuse text with letters that do not exist, which NumPy reads without a look."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > LAST_LETTER:
            raise DataError("has letters that do not exist; it is damaged")


def pixel_values(array: np.ndarray, what: str = "the array") -> np.ndarray:
    """The same memory if pixels have one or two bytes, else like `float_values`."""
    return array if array.dtype in GRAY else float_values(array, what)
