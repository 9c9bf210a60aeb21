"""The expression of a builder as text, as in `ngram(3) + 0.5 * gappy_ngram(4, 0.8)`. It is read, never run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from dotadd.automata.builders import Builder, gappy_ngram, mismatch, ngram
from dotadd.errors import AutomatonError
from dotadd.expression import Reader, is_number

KNOWN: dict[str, Callable[..., Builder]] = {"ngram": ngram, "gappy_ngram": gappy_ngram, "mismatch": mismatch}


def parse(text: str) -> Builder:
    """The builder that an expression describes."""
    return _Transducers(KNOWN).read(text)


class _Transducers(Reader):
    where = subject = "transducer"
    makes, whole, one = Builder, "a transducer", "transducer"
    example = "ngram(4)"
    understood = "transducers, numbers, + and *"
    operators = (ast.Add, ast.Mult)
    error_class = AutomatonError

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        built = [isinstance(side, Builder) for side in (left, right)]
        numbers = [is_number(side) for side in (left, right)]
        try:
            if isinstance(operator, ast.Add) and all(built):
                return left + right
            if isinstance(operator, ast.Mult) and any(numbers) and any(built) | all(numbers):
                return left * right
        except AutomatonError as error:
            raise self.error(node, str(error)) from None
        raise self.error(node, "transducers are added to transducers, and multiplied with numbers")
