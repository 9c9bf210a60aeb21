"""The expression of a feature map as text, as in `--features` and in model files. It is read, never run.

The grammar is Python's, of which this much is understood: calls of known maps with literal arguments, `.hashed(bits)`,
`.indexed(form)` and `.normalized()`, `+` between maps, `*` between a number and a map, and brackets. For every map,
`parse(repr(phi)) == phi`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from dotadd.errors import FeatureError
from dotadd.expression import Reader, is_number
from dotadd.features.base import FeatureMap
from dotadd.features.gappy import GappySpectrum
from dotadd.features.hashing import Hashed
from dotadd.features.lbp import LBP
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
        LBP,
    )
}
METHODS = ("hashed", "indexed", "normalized")
METHODS_TEXT = ".hashed(bits), .indexed(form) and .normalized()"


def parse(text: str, extra: Mapping[str, type[FeatureMap]] | None = None) -> FeatureMap:
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

    def combined(self, node: ast.AST, operator: ast.operator, left: Any, right: Any) -> Any:
        maps = [isinstance(side, FeatureMap) for side in (left, right)]
        numbers = [is_number(side) for side in (left, right)]
        try:
            if isinstance(operator, ast.Add) and all(maps):
                return left + right
            if isinstance(operator, ast.Mult) and any(numbers) and any(maps) | all(numbers):
                return left * right
        except FeatureError as error:
            raise self.error(node, str(error)) from None
        raise self.error(node, "maps are added to maps, and multiplied with numbers")
