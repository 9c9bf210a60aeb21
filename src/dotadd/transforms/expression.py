"""The expression of a set of transformations as text, as in `--virtual`. It is read, never run.

It is a product of calls of known names with literal arguments. For every set of these, `parse(repr(t)) == t`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from dotadd.expression import Reader
from dotadd.transforms.base import TransformError, Transforms
from dotadd.transforms.images import mirror, translate
from dotadd.transforms.strings import reverse_complement, shift
from dotadd.transforms.warps import rotate, scale

KNOWN: dict[str, Callable[..., Transforms]] = {
    known.__name__: known for known in (translate, rotate, scale, mirror, reverse_complement, shift)
}


def parse(text: str) -> Transforms:
    """The set of transformations that an expression describes."""
    return _Expression(KNOWN).read(text)


class _Expression(Reader):
    where, subject = "--virtual", "transformations"
    makes, whole, one = Transforms, "a set of transformations", "transformation"
    example = "translate(1)"
    understood = "transformations, numbers, text and *"
    operators = (ast.Mult,)
    error_class = TransformError

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        if not isinstance(left, Transforms) or not isinstance(right, Transforms):
            raise self.error(node, "transformations are multiplied with transformations")
        try:
            return left * right
        except TransformError as error:
            raise self.error(node, str(error)) from None
