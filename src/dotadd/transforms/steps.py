"""The numbers that sets of transformations are made of: steps both ways from 0, and the checks of arguments."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from dotadd.transforms.base import TransformError

MOST_STEPS = 500  # each way: a square of them is a million moves


def steps(most: float, step: float) -> np.ndarray:
    """-most, -most + step, ..., most. One of them is 0, exactly."""
    if not 0 < step <= most:
        raise TransformError(f"step has to be above 0 and at most {most}, and not {step}")
    if most / step > MOST_STEPS + 0.5:
        raise TransformError(f"step={step} makes more than {MOST_STEPS} steps to {most}")
    count = round(most / step)
    if abs(count * step - most) > 1e-9 * most:
        raise TransformError(f"step={step} does not lead from 0 to {most}: {most} has to be a multiple of it")
    return np.arange(-count, count + 1) * (most / count)


def whole_number(name: str, value: Any) -> int:
    """value as an int, if it is a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise TransformError(f"{name} has to be a whole number above 0, and not {value!r}")
    return int(value)


def number(wanted: str, value: Any) -> int | float:
    """value as a Python number, an int where it is a whole one, so that 6 and 6.0 are written alike.

    The complaint about anything else is that "`wanted` a number".
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
        raise TransformError(f"{wanted} a number, and not {value!r}")
    value = float(value)
    return int(value) if value.is_integer() else value
