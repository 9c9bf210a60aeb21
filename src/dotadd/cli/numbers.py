"""Numbers on the command line: what was typed, neither rounded nor cut, or a line that says what is wanted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from cyclopts import Parameter, Token

DIGITS = 19  # of the largest whole number that is taken, 2**63 - 1
PROCESSES = 1024  # workers on one machine


def whole(least: int = 1 - (1 << 63), most: int = (1 << 63) - 1) -> Parameter:
    """An option that takes whole numbers of this range."""
    bounds = [f"of at least {least:,}"] * (least > -(1 << 62)) + [f"of at most {most:,}"] * (most < 1 << 62)

    def number(_: Any, tokens: Sequence[Token]) -> int:
        try:
            found = Decimal(tokens[0].value)
        except InvalidOperation:
            found = Decimal("nan")
        if found.is_finite() and found.adjusted() < DIGITS and found == int(found) and least <= found <= most:
            return int(found)
        raise ValueError(f"{tokens[0].value!r} is not a whole number {' and '.join(bounds)}".rstrip())

    return Parameter(converter=number)


def _finite(_: Any, tokens: Sequence[Token]) -> float:
    try:
        found = float(tokens[0].value)
    except ValueError:
        found = math.nan
    if math.isfinite(found):
        return found
    raise ValueError(f"{tokens[0].value!r} is not a finite number")


Real = Annotated[float, Parameter(converter=_finite)]
Whole = Annotated[int, whole()]
Count = Annotated[int, whole(1)]
Processes = Annotated[int, whole(1, PROCESSES)]
Seed = Annotated[int, whole(0, (1 << 32) - 1)]
