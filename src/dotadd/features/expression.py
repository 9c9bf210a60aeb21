"""The expression of a feature map as text, as in `--features` and in model files. It is read, never run.

The grammar is Python's, of which this much is understood: calls of known maps with literal arguments, the methods that
make one map of another, `+` between maps, `*` between a number and a map or between categories, and brackets; inside of
`Rational(...)`, transducers in the place of maps. For every map, `parse(repr(phi)) == phi`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from dotadd._util.expression import Reader, is_number
from dotadd.errors import AutomatonError, FeatureError
from dotadd.features import MAPS
from dotadd.features.base import FeatureMap

if TYPE_CHECKING:
    from dotadd.automata.builders import Builder

T = TypeVar("T")


class Known(Mapping[str, Callable[..., T]]):
    """What names stand for. Where it is the name of a module, that one is imported when the name is used."""

    def __init__(self, homes: Mapping[str, str | Callable[..., T]]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> Callable[..., T]:
        home = self._homes[name]
        found: Callable[..., T] = getattr(import_module(home), name) if isinstance(home, str) else home
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __or__(self, more: Mapping[str, Callable[..., T]]) -> Known[T]:
        return Known({**self._homes, **more})


KNOWN: Known[FeatureMap] = Known({name: f"dotadd.features{home}" for home, names in MAPS.items() for name in names})
TRANSDUCERS: Known[Builder] = Known(dict.fromkeys(("ngram", "gappy_ngram", "mismatch"), "dotadd.automata.builders"))
METHODS = (
    "hashed", "indexed", "normalized", "binary", "log", "sqrt", "idf", "tfidf", "frequent", "scaled",
)  # fmt: skip
METHODS_TEXT = (
    ".hashed(bits), .indexed(form), .normalized(), .binary(), .log(), .sqrt(), .idf(), .tfidf(), "
    ".frequent(min_df, max_df) and .scaled(how)"
)


def parse(text: str, extra: Mapping[str, Callable[..., FeatureMap]] | None = None) -> FeatureMap:
    """The map that an expression describes. `extra` gives the names of further maps."""
    return FeatureReader(KNOWN | dict(extra or {})).read(text)


TEXT_MAPS = ("NGrams", "BagOfWords", "WordNGrams")


def maps_of_0_1() -> dict[str, Callable[..., FeatureMap]]:
    """Maps that meant something else in expressions of versions up to 0.1, which read text byte by byte."""
    return {name: partial(KNOWN[name], unicode=False) for name in TEXT_MAPS}


def reads_text(expression: str) -> bool:
    """Whether an expression names such a map, so that files with it have to tell which reading they mean."""
    return any(f"{name}(" in expression for name in TEXT_MAPS)


class FeatureReader(Reader):
    where = subject = "features"
    makes, whole, one = FeatureMap, "a feature map", "map"
    example = "Spectrum(8)"
    understood = f"maps, numbers, text, +, *, {METHODS_TEXT}"
    operators = (ast.Add, ast.Mult)
    methods, methods_text = METHODS, METHODS_TEXT
    error_class = FeatureError

    def value(self, node: ast.AST) -> Any:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in TRANSDUCERS:
                return self.called(node, name, TRANSDUCERS[name])
        return super().value(node)

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        maps = [isinstance(side, FeatureMap) for side in (left, right)]
        numbers = [is_number(side) for side in (left, right)]
        if not any(maps):  # transducers, if anything that can be added
            maps = [hasattr(side, "transducer") for side in (left, right)]
        try:
            if isinstance(operator, ast.Add) and all(maps):
                return left + right
            crossed = all(hasattr(side, "crosses") for side in (left, right))
            if isinstance(operator, ast.Mult) and (crossed or (any(numbers) and any(maps) | all(numbers))):
                return left * right
        except (FeatureError, AutomatonError) as error:
            raise self.error(node, str(error)) from None
        raise self.error(node, "maps are added to maps and multiplied with numbers, categories also with categories")
