"""Spans: which positions of a string a map reads."""

from __future__ import annotations

import numpy as np

from dotadd.errors import FeatureError
from dotadd.expression import quoted

FURTHEST = 2**62  # position

Span = tuple[int | None, int | None]


def as_span(span: Span | None) -> Span | None:
    """A checked span: (first, stop) as in Python's slices, counted from 0, negative from the end of each string."""
    if span is None:
        return None
    good = isinstance(span, tuple | list) and len(span) == 2
    if not good or not all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in span):
        raise FeatureError(f"span has to be (first, stop), two whole numbers or None, and not {quoted(span)}")
    if any(x is not None and abs(x) > FURTHEST for x in span):
        raise FeatureError(f"span={quoted(span)} lies beyond all strings: positions go up to 2**62")
    first, stop = span
    same_side = first is not None and stop is not None and (first < 0) == (stop < 0)
    if (same_side and first >= stop) or stop == 0:  # type: ignore[operator]
        raise FeatureError(f"span={span!r} holds no position: positions run from first to stop - 1, counted from 0")
    return (first, stop)


def clipped_length(span: Span | None, length: int) -> int:
    """Letters of the span in a string of this length."""
    return length if span is None else len(range(*slice(*span).indices(length)))


def clip(span: Span | None, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the span begins and ends in strings that begin and end here."""
    if span is None:
        return starts, ends
    first, stop = span
    low = starts if not first else _place(first, starts, ends)
    return low, ends if stop is None else np.maximum(low, _place(stop, starts, ends))


def _place(at: int, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.minimum(starts + at, ends) if at >= 0 else np.maximum(ends + at, starts)
