"""Sets of transformations: changes of raw examples under which their labels stay what they are.

The expression of a set as text, as in `--virtual`, is a product of calls of known names with literal arguments. It is
read, never run. For every set of these, `parse(repr(t)) == t`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from dotadd._util.expression import Reader
from dotadd.data.transforms.base import Product, TransformError, Transforms, functions
from dotadd.data.transforms.images import mirror, rotate, scale, translate
from dotadd.data.transforms.strings import reverse_complement, shift

__all__ = [
    "Product", "TransformError", "Transforms", "functions", "mirror", "parse", "reverse_complement", "rotate", "scale",
    "shift", "translate",
]  # fmt: skip

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

    def combined(self, node: ast.AST, operator: ast.operator, left: object, right: object) -> Transforms:
        if not isinstance(left, Transforms) or not isinstance(right, Transforms):
            raise self.error(node, "transformations are multiplied with transformations")
        try:
            return left * right
        except TransformError as error:
            raise self.error(node, str(error)) from None
