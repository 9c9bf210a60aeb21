"""Leaf: what the maps that read the data themselves share: parameters that are checked and written down, hashing of
their own, and DOT and ADD tile by tile.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from dotadd._util.expression import call_repr, quoted
from dotadd.data.batches import LARGEST_VALUE, Batch
from dotadd.errors import FeatureError
from dotadd.features.base import Arrays, FeatureMap, Origins, Part


class Leaf(FeatureMap):
    """A map with a parameter for each argument of its constructor, of the same name. These are all that it is."""

    def __repr__(self) -> str:
        """The call that makes it again: of arguments that have a keyword, those that are not as by default."""
        values, positional, keywords = self.get_params(deep=False), [], {}
        for parameter in inspect.signature(type(self).__init__).parameters.values():
            if parameter.name in values:
                value = values[parameter.name]
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    positional.append(value)
                elif value != parameter.default:
                    keywords[parameter.name] = value
        return call_repr(type(self).__name__, *positional, **keywords)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    __hash__ = FeatureMap.__hash__


class HashingLeaf(Leaf):
    """A map that hashes by itself, while it makes its features."""

    bits: int | None = None

    def __repr__(self) -> str:
        return super().__repr__() + ("" if self.bits is None else f".hashed({self.bits})")

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | {"bits": self.bits}

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        params = self.get_params() | dict(params)
        bits = params.pop("bits")
        phi = cast("Callable[..., FeatureMap]", type(self))(**params)
        return phi if bits is None else phi.hashed(checked_bits(bits))

    def hashed(self, bits: int) -> FeatureMap:
        """This map with its features hashed into 2**bits slots by itself; those of a hashed one are hashed again."""
        if self.bits is not None:
            return super().hashed(bits)
        twin = copy.copy(self)
        twin.hash_into(checked_bits(bits))
        return twin

    def hash_into(self, bits: int) -> None:
        """Become a hashed map."""
        self.bits = bits


class TiledLeaf(Leaf):
    """A map whose w has a stretch of slots, all as long, for each of its places (positions of a string, pixels), and
    which does DOT and ADD of the features at neighbouring places by itself."""

    @property
    def place_slots(self) -> int:
        """Slots of one place; 0 where features do not lie place by place, and blocks are filled."""
        raise NotImplementedError

    def touch(self, batch: Batch, rows: np.ndarray, first: int, ws: Arrays, numbers: Arrays, *, adding: bool) -> None:
        """DOT, or if `adding` ADD, of the features at the places from `first` on whose slots each w holds."""
        raise NotImplementedError

    def dot(self, batch: Batch, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        if self.place_slots:
            self.touch(batch, rows, 0, [w], [out], adding=False)
        else:
            super().dot(batch, rows, w, out)

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        if self.place_slots:
            self.touch(batch, rows, 0, ws, outs, adding=False)
        else:
            super().dots(batch, rows, ws, outs)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        if self.place_slots:
            self.touch(batch, rows, 0, [w], [coefficients], adding=True)
        else:
            super().add(batch, rows, coefficients, w)

    def tiles(self, slots: int) -> list[tuple[int, Part]]:
        stride = self.place_slots
        if not stride:
            return super().tiles(slots)
        places, step = self.dim // stride, max(1, slots // stride)
        return [(at * stride, _Tile(self, at, min(step, places - at))) for at in range(0, places, step)]


class _Tile(Part):
    """The features of a map at some neighbouring places."""

    bulk = True

    def __init__(self, phi: TiledLeaf, first: int, count: int) -> None:
        self.phi, self.first, self.count = phi, first, count

    @property
    def dim(self) -> int:
        return self.count * self.phi.place_slots

    def dots(self, batch: Batch, rows: np.ndarray, ws: Arrays, outs: Arrays) -> None:
        self.phi.touch(batch, rows, self.first, ws, outs, adding=False)

    def add(self, batch: Batch, rows: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
        self.phi.touch(batch, rows, self.first, [w], [coefficients], adding=True)


def named_by_row(
    phi: FeatureMap, rows: np.ndarray, nth: np.ndarray, texts_of: Callable[[int], Sequence[bytes]]
) -> tuple[Origins, np.ndarray]:
    """`FeatureMap.origins`, where all non-zeros of a row are named at once, in the order of `fill`."""
    names, beyond = Origins.unnamed(repr(phi), len(rows)), np.full(len(rows), -1, np.int64)
    texts = {row: texts_of(row) for row in np.unique(rows).tolist()}
    for h, (row, n) in enumerate(zip(rows.tolist(), nth.tolist(), strict=True)):
        if n < len(texts[row]):
            names.text[h] = texts[row][n]
        else:
            beyond[h] = n - len(texts[row])
    return names, beyond


def checked_int(name: str, value: object, low: int, high: int) -> int:
    """value as an int, if it is a whole number between low and high."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise FeatureError(f"{name} has to be a whole number from {low} to {high}, and not {quoted(value)}")
    return int(value)


def checked_factor(name: str, value: object, largest: float = LARGEST_VALUE) -> float:
    """value as a float, if it is a number up to `largest`, with which features and their squares stay numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not -largest <= value <= largest:
        raise FeatureError(
            f"{name} has to be a number that is finite and at most {largest:.3g}, and not {quoted(value)}"
        )
    return float(value)


def checked_bits(bits: object) -> int:
    """The size of a hash table as a power of two."""
    return checked_int("bits", bits, 1, 32)


def checked_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise FeatureError(f"{name} has to be True or False, and not {value!r}")
    return bool(value)
