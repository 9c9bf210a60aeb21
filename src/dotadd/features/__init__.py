"""Feature maps: what turns raw examples into sparse rows."""

from dotadd.features.alphabet import Alphabet
from dotadd.features.base import BadRow, FeatureMap, Shape
from dotadd.features.expression import parse
from dotadd.features.hashing import Hashed
from dotadd.features.linear import Linear
from dotadd.features.normalized import Normalized
from dotadd.features.polynomial import Polynomial
from dotadd.features.spectrum import Spectrum, WeightedSpectrum
from dotadd.features.stack import Scaled, Stack
from dotadd.features.text import BagOfWords, NGrams
from dotadd.features.weighted_degree import WeightedDegree

__all__ = [
    "Alphabet",
    "BadRow",
    "BagOfWords",
    "FeatureMap",
    "Hashed",
    "Linear",
    "NGrams",
    "Normalized",
    "Polynomial",
    "Scaled",
    "Shape",
    "Spectrum",
    "Stack",
    "WeightedDegree",
    "WeightedSpectrum",
    "parse",
]
