"""Feature maps: what turns raw examples into sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd.features.alphabet import Alphabet as Alphabet
    from dotadd.features.base import BadRow as BadRow
    from dotadd.features.base import FeatureMap as FeatureMap
    from dotadd.features.base import Shape as Shape
    from dotadd.features.expression import parse as parse
    from dotadd.features.gappy import GappySpectrum as GappySpectrum
    from dotadd.features.hashing import Hashed as Hashed
    from dotadd.features.indexed import Indexed as Indexed
    from dotadd.features.lbp import LBP as LBP
    from dotadd.features.linear import Linear as Linear
    from dotadd.features.mismatch import MismatchSpectrum as MismatchSpectrum
    from dotadd.features.normalized import Normalized as Normalized
    from dotadd.features.polynomial import Polynomial as Polynomial
    from dotadd.features.rational import Rational as Rational
    from dotadd.features.scaled import Scaled as Scaled
    from dotadd.features.shifted import WeightedDegreeShift as WeightedDegreeShift
    from dotadd.features.spectrum import Spectrum as Spectrum
    from dotadd.features.spectrum import WeightedSpectrum as WeightedSpectrum
    from dotadd.features.stack import Stack as Stack
    from dotadd.features.text import BagOfWords as BagOfWords
    from dotadd.features.text import NGrams as NGrams
    from dotadd.features.text import WordNGrams as WordNGrams
    from dotadd.features.weighted_degree import WeightedDegree as WeightedDegree

__all__, __getattr__ = lazy(
    __name__,
    {
        ".alphabet": ["Alphabet"],
        ".base": ["BadRow", "FeatureMap", "Shape"],
        ".expression": ["parse"],
        ".gappy": ["GappySpectrum"],
        ".hashing": ["Hashed"],
        ".indexed": ["Indexed"],
        ".lbp": ["LBP"],
        ".linear": ["Linear"],
        ".mismatch": ["MismatchSpectrum"],
        ".normalized": ["Normalized"],
        ".polynomial": ["Polynomial"],
        ".rational": ["Rational"],
        ".scaled": ["Scaled"],
        ".shifted": ["WeightedDegreeShift"],
        ".spectrum": ["Spectrum", "WeightedSpectrum"],
        ".stack": ["Stack"],
        ".text": ["BagOfWords", "NGrams", "WordNGrams"],
        ".weighted_degree": ["WeightedDegree"],
    },
)
