"""The expression of a feature map as text, as in `--features` and in model files. It is read, never run.

The grammar is Python's, of which this much is understood: calls of known maps with literal arguments, `.hashed(bits)`,
`.indexed(form)` and `.normalized()`, `+` between maps, `*` between a number and a map, and brackets. For every map,
`parse(repr(phi)) == phi`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dotadd.errors import FeatureError
from dotadd.features.base import FeatureMap
from dotadd.features.gappy import GappySpectrum
from dotadd.features.hashing import Hashed
from dotadd.features.linear import Linear
from dotadd.features.mismatch import MismatchSpectrum
from dotadd.features.polynomial import Polynomial
from dotadd.features.shifted import WeightedDegreeShift
from dotadd.features.spectrum import Spectrum, WeightedSpectrum
from dotadd.features.text import BagOfWords, NGrams, WordNGrams
from dotadd.features.weighted_degree import WeightedDegree

KNOWN: dict[str, type[FeatureMap]] = {
    known.__name__: known
    for known in (
        Linear,
        Hashed,
        Polynomial,
        Spectrum,
        WeightedSpectrum,
        GappySpectrum,
        MismatchSpectrum,
        WeightedDegree,
        WeightedDegreeShift,
        NGrams,
        BagOfWords,
        WordNGrams,
    )
}
METHODS = ("hashed", "indexed", "normalized")
METHODS_TEXT = ".hashed(bits), .indexed(form) and .normalized()"


def parse(text: str, extra: Mapping[str, type[FeatureMap]] | None = None) -> FeatureMap:
    """The map that an expression describes. `extra` gives the names of further maps."""
    line = " ".join(text.splitlines()) if isinstance(text, str) else ""
    if not line.strip():
        raise FeatureError("the expression of features is empty: write for example Spectrum(8)")
    start = len(line) - len(line.lstrip())
    try:
        tree = ast.parse(line.strip(), mode="eval")
        phi = _Reader(start, KNOWN | dict(extra or {})).value(tree.body)
    except SyntaxError as error:
        column = start + error.offset if error.offset else len(line.rstrip()) + 1  # no offset: the end is missing
        raise FeatureError(f"features, column {column}: this is not an expression ({error.msg}): {text!r}") from None
    except (RecursionError, MemoryError):
        raise FeatureError("features: the expression is nested too deeply") from None
    except OverflowError:
        raise FeatureError("features: a number in the expression is too large") from None
    except ValueError as error:  # a null byte
        if isinstance(error, FeatureError):
            raise
        raise FeatureError(f"features: this is not an expression ({error})") from None
    if not isinstance(phi, FeatureMap):
        raise FeatureError(f"features, column {start + 1}: {phi!r} is not a feature map: write for example Spectrum(8)")
    return phi


class _Reader:
    """Walks over a syntax tree. Anything that is not expected is refused with its column."""

    def __init__(self, start: int, known: Mapping[str, type[FeatureMap]]) -> None:
        self.start, self.known = start, known

    def error(self, node: ast.AST, message: str) -> FeatureError:
        column = self.start + getattr(node, "col_offset", 0) + 1
        return FeatureError(f"features, column {column}: {message}")

    def value(self, node: ast.AST) -> Any:
        """A map, or a literal: a number, text, True, False, None, or a tuple or list of these."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Tuple(elts=items):
                return tuple(self.value(item) for item in items)
            case ast.List(elts=items):
                return [self.value(item) for item in items]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                return self.signed(node, sign, self.value(operand))
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as operator, right=right):
                return self.combined(node, operator, self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name)):
                if name not in self.known:
                    raise self.error(node, f"there is no map {name!r}; there are {', '.join(self.known)}")
                return self.called(node, name, self.known[name])
            case ast.Call(func=ast.Attribute(value=target, attr=name)):
                phi = self.value(target)
                if not isinstance(phi, FeatureMap) or name not in METHODS:
                    raise self.error(node, f"there is no .{name}() here; a map has {METHODS_TEXT}")
                return self.called(node, f".{name}", getattr(phi, name))
            case ast.Name(id=name) if name in self.known:
                raise self.error(node, f"{name} needs brackets: {name}{inspect.signature(self.known[name])}")
            case ast.Name(id=name):
                raise self.error(node, f"{name!r} is not known here; there are {', '.join(self.known)}")
        raise self.error(node, f"only maps, numbers, text, +, *, {METHODS_TEXT} are understood")

    def signed(self, node: ast.AST, sign: ast.unaryop, number: Any) -> int | float:
        if not _is_number(number):
            raise self.error(node, "only a number can have a sign")
        return -number if isinstance(sign, ast.USub) else number

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        maps = [isinstance(side, FeatureMap) for side in (left, right)]
        numbers = [_is_number(side) for side in (left, right)]
        try:
            if isinstance(operator, ast.Add) and all(maps):
                return left + right
            if isinstance(operator, ast.Mult) and any(numbers) and any(maps) | all(numbers):
                return left * right
        except FeatureError as error:
            raise self.error(node, str(error)) from None
        raise self.error(node, "maps are added to maps, and multiplied with numbers")

    def called(self, node: ast.Call, name: str, make: Callable[..., FeatureMap]) -> FeatureMap:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            raise self.error(node, "arguments are written one by one, without *")
        positional = [self.value(argument) for argument in node.args]
        keywords = {str(keyword.arg): self.value(keyword.value) for keyword in node.keywords}
        signature = inspect.signature(make)
        try:
            signature.bind(*positional, **keywords)
        except TypeError as error:
            accepted = ", ".join(signature.parameters) or "no arguments"
            raise self.error(node, f"{name}: {error}; it takes {accepted}") from None
        try:
            return make(*positional, **keywords)
        except FeatureError as error:
            raise self.error(node, f"{name}: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
