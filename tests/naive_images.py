"""Plain twins of the transformations: padding and slicing, and SciPy's affine map with one interpolation."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage


def translate(image: np.ndarray, down: int, right: int, fill="edge") -> np.ndarray:
    """The image pasted onto a wider one, of which a window is cut."""
    by = max(abs(down), abs(right))
    wide = np.pad(image, by, mode="edge") if fill == "edge" else np.pad(image, by, constant_values=fill)
    height, width = image.shape
    return wide[by - down : by - down + height, by - right : by - right + width]


def warp(image: np.ndarray, degrees: float, factor: float, fill="edge") -> np.ndarray:
    """Turned to the left and enlarged about the middle, as float64.

    Between an edge and what lies outside there is interpolated too, as between any two pixels.
    """
    c, s = math.cos(math.radians(degrees)) / factor, math.sin(math.radians(degrees)) / factor
    back = np.array([[c, s], [-s, c]])  # from (y, x) of the result to (y, x) of the image
    middle = (np.array(image.shape) - 1) / 2
    options = {"mode": "nearest"} if fill == "edge" else {"mode": "grid-constant", "cval": fill}
    return ndimage.affine_transform(image.astype(np.float64), back, middle - back @ middle, order=1, **options)


def reverse_complement(string: str) -> str:
    """By what the letters stand for: the complement of a set of letters is the set of their complements."""
    several = "R=AG Y=CT S=CG W=AT K=GT M=AC B=CGT D=AGT H=ACT V=ACG N=ACGT"
    stands_for = {letter: letter for letter in "ACGT"} | dict(code.split("=") for code in several.split())
    letter_for = {letters: letter for letter, letters in stands_for.items()}
    partner = dict(zip("ACGT", "TGCA", strict=True))
    table = {letter: letter_for["".join(sorted(partner[x] for x in set_))] for letter, set_ in stands_for.items()}
    table |= {letter.lower(): other.lower() for letter, other in table.items()}
    return "".join(table.get(letter, letter) for letter in reversed(string))


def shift(string: str, right: int, fill: str = "N") -> str:
    """The string written onto a longer one of `fill`, of which a window is cut."""
    by = abs(right)
    return (fill * by + string + fill * by)[by - right : by - right + len(string)]
