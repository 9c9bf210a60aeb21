"""The expression of a feature map as text, as in `--features` and in model files. It is read, never run.

The grammar is Python's, of which this much is understood: calls of known maps with literal arguments, `.hashed(bits)`,
`.indexed(form)` and `.normalized()`, `+` between maps, `*` between a number and a map, and brackets; inside of
`Rational(...)`, transducers in the place of maps. For every map, `parse(repr(phi)) == phi`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dotadd._util.expression import Reader, is_number
from dotadd.automata.builders import KNOWN as TRANSDUCERS
from dotadd.automata.builders import Builder
from dotadd.errors import AutomatonError, FeatureError
from dotadd.features.base import FeatureMap
from dotadd.features.inexact import GappySpectrum, MismatchSpectrum
from dotadd.features.lbp import LBP
from dotadd.features.linear import Linear
from dotadd.features.polynomial import Polynomial
from dotadd.features.rational import Rational
from dotadd.features.spectrum import Spectrum, WeightedSpectrum
from dotadd.features.terms import Hashed
from dotadd.features.text import BagOfWords, NGrams, WordNGrams
from dotadd.features.weighted_degree import WeightedDegree, WeightedDegreeShift

KNOWN: dict[str, Callable[..., FeatureMap]] = {
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
        LBP,
        Rational,
    )
}
METHODS = ("hashed", "indexed", "normalized")
METHODS_TEXT = ".hashed(bits), .indexed(form) and .normalized()"


def parse(text: str, extra: Mapping[str, Callable[..., FeatureMap]] | None = None) -> FeatureMap:
    """The map that an expression describes. `extra` gives the names of further maps."""
    return FeatureReader(KNOWN | dict(extra or {})).read(text)


class FeatureReader(Reader):
    where = subject = "features"
    makes, whole, one = FeatureMap, "a feature map", "map"
    example = "Spectrum(8)"
    understood = f"maps, numbers, text, +, *, {METHODS_TEXT}"
    operators = (ast.Add, ast.Mult)
    methods, methods_text = METHODS, METHODS_TEXT
    error_class = FeatureError
    transducers: ClassVar[Mapping[str, Callable[..., Builder]]] = TRANSDUCERS

    def value(self, node: ast.AST) -> Any:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in self.transducers:
                return self.called(node, name, self.transducers[name])
        return super().value(node)

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        maps = [isinstance(side, FeatureMap) for side in (left, right)]
        if any(isinstance(side, Builder) for side in (left, right)):
            maps = [isinstance(side, Builder) for side in (left, right)]
        numbers = [is_number(side) for side in (left, right)]
        try:
            if isinstance(operator, ast.Add) and all(maps):
                return left + right
            if isinstance(operator, ast.Mult) and any(numbers) and any(maps) | all(numbers):
                return left * right
        except (FeatureError, AutomatonError) as error:
            raise self.error(node, str(error)) from None
        raise self.error(node, "maps are added to maps, and multiplied with numbers")
