"""Expressions that describe an object as text: written by `call_repr`, read by a `Reader`, and never run.

The grammar is Python's, of which this much is understood: calls of known names with literal arguments, operators
between what they make, its methods, and brackets. Everything else is refused with its column.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeGuard

from dotadd.errors import DotaddError

LONGEST = 10_000  # characters of an expression: the longest ones that were meant have some hundred
SHOWN = 60  # of what is quoted in a complaint


def call_repr(name: str, *positional: object, **keywords: object) -> str:
    """`name(positional, keyword=value)`; give only the keywords that differ from their defaults."""
    arguments = [repr(value) for value in positional] + [f"{key}={value!r}" for key, value in keywords.items()]
    return f"{name}({', '.join(arguments)})"


class Reader:
    """Walks over a syntax tree. Subclasses say what there is, and how two things are combined."""

    where: ClassVar[str]  # begins each complaint about a place in the text
    subject: ClassVar[str]  # what these are expressions of
    makes: ClassVar[type | tuple[type, ...]]  # what an expression describes ...
    whole: ClassVar[str]  # ... in words
    one: ClassVar[str]  # what a call of a known name makes, in a word
    example: ClassVar[str]
    understood: ClassVar[str]  # all that may stand in an expression
    operators: ClassVar[tuple[type[ast.operator], ...]]
    methods: ClassVar[tuple[str, ...]] = ()
    methods_text: ClassVar[str] = ""  # how the methods are written
    error_class: ClassVar[type[DotaddError]]  # is raised; when a maker raises it, its message gets the column

    def __init__(self, known: Mapping[str, Callable[..., Any]]) -> None:
        self.known = known
        self.start = 0

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        """`left operator right`, for one of the operators."""
        raise NotImplementedError

    def read(self, text: str) -> Any:
        """What the text describes."""
        line = " ".join(text.splitlines()) if isinstance(text, str) else ""
        if not line.strip():
            raise self.error_class(f"the expression of {self.subject} is empty: write for example {self.example}")
        if len(line) > LONGEST:
            raise self.error_class(f"{self.where}: an expression of {len(line)} characters; {LONGEST} are the most")
        self.start = len(line) - len(line.lstrip())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # what is odd and no error is for those who write Python
                tree = ast.parse(line.strip(), mode="eval")
            made = self.value(tree.body)
        except self.error_class:
            raise
        except SyntaxError as error:
            # Without an offset the end is missing.
            column = self.start + error.offset if error.offset else len(line.rstrip()) + 1
            raise self.at(column, f"this is not an expression ({shortened(error.msg)}): {quoted(text)}") from None
        except (RecursionError, MemoryError):
            raise self.error_class(f"{self.where}: the expression is nested too deeply") from None
        except OverflowError:
            raise self.error_class(f"{self.where}: a number in the expression is too large") from None
        except ValueError as error:  # a null byte
            raise self.error_class(f"{self.where}: this is not an expression ({error})") from None
        if not isinstance(made, self.makes):
            raise self.at(self.start + 1, f"{quoted(made)} is not {self.whole}: write for example {self.example}")
        return made

    def at(self, column: int, message: str) -> DotaddError:
        return self.error_class(f"{self.where}, column {column}: {message}")

    def error(self, node: ast.AST, message: str) -> DotaddError:
        return self.at(self.start + getattr(node, "col_offset", 0) + 1, message)

    def value(self, node: ast.AST) -> Any:
        """What is described, or a literal: a number, text, True, False, None, or a tuple or list of these."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Tuple(elts=items):
                return tuple(self.value(item) for item in items)
            case ast.List(elts=items):
                return [self.value(item) for item in items]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                return self.signed(node, sign, self.value(operand))
            case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, self.operators):
                return self.combined(node, operator, self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name)):
                if name not in self.known:
                    raise self.error(node, f"there is no {self.one} {quoted(name)}; there are {', '.join(self.known)}")
                return self.called(node, name, self.known[name])
            case ast.Call(func=ast.Attribute(value=target, attr=name)) if self.methods:
                made = self.value(target)
                if not isinstance(made, self.makes) or name not in self.methods:
                    raise self.error(
                        node, f"there is no .{shortened(name)}() here; a {self.one} has {self.methods_text}"
                    )
                return self.called(node, f".{name}", getattr(made, name))
            case ast.Name(id=name) if name in self.known:
                raise self.error(node, f"{name} needs brackets: {name}{inspect.signature(self.known[name])}")
            case ast.Name(id=name):
                raise self.error(node, f"{quoted(name)} is not known here; there are {', '.join(self.known)}")
        raise self.error(node, f"only {self.understood} are understood")

    def signed(self, node: ast.AST, sign: ast.unaryop, number: object) -> int | float:
        if not is_number(number):
            raise self.error(node, "only a number can have a sign")
        return -number if isinstance(sign, ast.USub) else number

    def called(self, node: ast.Call, name: str, make: Callable[..., Any]) -> Any:
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
            raise self.error(node, f"{name}: {shortened(str(error))}; it takes {accepted}") from None
        try:
            return make(*positional, **keywords)
        except DotaddError as error:
            raise self.error(node, f"{name}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # of a map of one's own
            raise self.error(node, f"{name}: {shortened(' '.join(str(error).split()))}") from None


def quoted(value: object) -> str:
    """What is shown of a value, or of a text that may be very long."""
    return shortened(repr(value))


def shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
