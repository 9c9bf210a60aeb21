"""dotadd: support vector machines in feature spaces that are never stored, on data that does not fit in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd._version import __version__ as __version__
    from dotadd.checks import check_feature_map as check_feature_map
    from dotadd.errors import DataError as DataError
    from dotadd.errors import DotaddError as DotaddError
    from dotadd.errors import FeatureError as FeatureError
    from dotadd.errors import IndefiniteKernelWarning as IndefiniteKernelWarning
    from dotadd.errors import ModelError as ModelError
    from dotadd.errors import NotConvergedWarning as NotConvergedWarning
    from dotadd.errors import UntrainedClassWarning as UntrainedClassWarning
    from dotadd.errors import UnusedColumnsWarning as UnusedColumnsWarning
    from dotadd.estimators import LinearSVM as LinearSVM
    from dotadd.features.base import FeatureMap as FeatureMap
    from dotadd.features.expression import parse as parse
    from dotadd.features.gappy import GappySpectrum as GappySpectrum
    from dotadd.features.hashing import Hashed as Hashed
    from dotadd.features.lbp import LBP as LBP
    from dotadd.features.linear import Linear as Linear
    from dotadd.features.mismatch import MismatchSpectrum as MismatchSpectrum
    from dotadd.features.polynomial import Polynomial as Polynomial
    from dotadd.features.rational import Rational as Rational
    from dotadd.features.shifted import WeightedDegreeShift as WeightedDegreeShift
    from dotadd.features.spectrum import Spectrum as Spectrum
    from dotadd.features.spectrum import WeightedSpectrum as WeightedSpectrum
    from dotadd.features.stack import Stack as Stack
    from dotadd.features.text import BagOfWords as BagOfWords
    from dotadd.features.text import NGrams as NGrams
    from dotadd.features.text import WordNGrams as WordNGrams
    from dotadd.features.weighted_degree import WeightedDegree as WeightedDegree
    from dotadd.kernel_machine import KernelSVM as KernelSVM
    from dotadd.kernel_model import KernelModel as KernelModel
    from dotadd.lattices import Lattices as Lattices
    from dotadd.model import Model as Model
    from dotadd.model import load as load
    from dotadd.naming import strongest_features as strongest_features
    from dotadd.poim import letter_chances as letter_chances
    from dotadd.poim import oligomer_importance as oligomer_importance
    from dotadd.sources import open as open
    from dotadd.sources.convert import convert as convert
    from dotadd.sources.windows import Windows as Windows
    from dotadd.virtual import Virtual as Virtual

__all__, __getattr__ = lazy(
    __name__,
    {
        "._version": ["__version__"],
        ".checks": ["check_feature_map"],
        ".errors": [
            "DataError",
            "DotaddError",
            "FeatureError",
            "IndefiniteKernelWarning",
            "ModelError",
            "NotConvergedWarning",
            "UntrainedClassWarning",
            "UnusedColumnsWarning",
        ],
        ".estimators": ["LinearSVM"],
        ".features.base": ["FeatureMap"],
        ".features.expression": ["parse"],
        ".features.gappy": ["GappySpectrum"],
        ".features.hashing": ["Hashed"],
        ".features.lbp": ["LBP"],
        ".features.linear": ["Linear"],
        ".features.mismatch": ["MismatchSpectrum"],
        ".features.polynomial": ["Polynomial"],
        ".features.rational": ["Rational"],
        ".features.shifted": ["WeightedDegreeShift"],
        ".features.spectrum": ["Spectrum", "WeightedSpectrum"],
        ".features.stack": ["Stack"],
        ".features.text": ["BagOfWords", "NGrams", "WordNGrams"],
        ".features.weighted_degree": ["WeightedDegree"],
        ".kernel_machine": ["KernelSVM"],
        ".kernel_model": ["KernelModel"],
        ".lattices": ["Lattices"],
        ".model": ["Model", "load"],
        ".naming": ["strongest_features"],
        ".poim": ["letter_chances", "oligomer_importance"],
        ".sources": ["open"],
        ".sources.convert": ["convert"],
        ".sources.windows": ["Windows"],
        ".virtual": ["Virtual"],
    },
)
