"""dotadd: support vector machines in feature spaces that need not be stored, on data that does not fit in memory.

    >>> import dotadd
    >>> mails = ["win a prize now", "call me at noon", "free prize, call now", "lunch at noon?"]
    >>> svm = dotadd.LinearSVM("NGrams((2, 4)).normalized()", C=10).fit(mails, ["spam", "ham", "spam", "ham"])
    >>> svm.predict(["a free prize"])
    array(['spam'], dtype='<U4')
    >>> bool(svm.result_.gap <= svm.tol)  # how good the answer is at least
    True

`LinearSVM` trains on arrays, lists of strings, data frames and files (`dotadd.open` tells which), `KernelSVM` by
kernels, and `LinearSVMCV` and `KernelSVMCV` choose C. Feature maps are objects or the same as text; `+` stacks them.
`help` of each name tells the rest. What is there, by subject:

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd._version import __version__ as __version__
    from dotadd.data.lattices import Lattices as Lattices
    from dotadd.errors import DataError as DataError
    from dotadd.errors import DotaddError as DotaddError
    from dotadd.errors import FeatureError as FeatureError
    from dotadd.errors import IndefiniteKernelWarning as IndefiniteKernelWarning
    from dotadd.errors import ModelError as ModelError
    from dotadd.errors import NotConvergedWarning as NotConvergedWarning
    from dotadd.errors import UntrainedClassWarning as UntrainedClassWarning
    from dotadd.errors import UnusedColumnsWarning as UnusedColumnsWarning
    from dotadd.estimators.cross_validation import LinearSVMCV as LinearSVMCV
    from dotadd.estimators.kernel import KernelSVM as KernelSVM
    from dotadd.estimators.kernel_cross_validation import KernelSVMCV as KernelSVMCV
    from dotadd.estimators.linear import LinearSVM as LinearSVM
    from dotadd.explain.explanation import Explanation as Explanation
    from dotadd.features.base import FeatureMap as FeatureMap
    from dotadd.features.cells import Category as Category
    from dotadd.features.cells import Number as Number
    from dotadd.features.checks import check_feature_map as check_feature_map
    from dotadd.features.columns import Column as Column
    from dotadd.features.dates import Date as Date
    from dotadd.features.expression import parse as parse
    from dotadd.features.gkm import Gkm as Gkm
    from dotadd.features.lbp import LBP as LBP
    from dotadd.features.linear import Linear as Linear
    from dotadd.features.mismatch_spectrum import MismatchSpectrum as MismatchSpectrum
    from dotadd.features.polynomial import Polynomial as Polynomial
    from dotadd.features.rational import Rational as Rational
    from dotadd.features.spectrum import GappySpectrum as GappySpectrum
    from dotadd.features.spectrum import Spectrum as Spectrum
    from dotadd.features.spectrum import WeightedSpectrum as WeightedSpectrum
    from dotadd.features.stack import Stack as Stack
    from dotadd.features.substrings import AllSubstrings as AllSubstrings
    from dotadd.features.terms import Hashed as Hashed
    from dotadd.features.text import NGrams as NGrams
    from dotadd.features.weighted_degree import WeightedDegree as WeightedDegree
    from dotadd.features.weighted_degree import WeightedDegreeShift as WeightedDegreeShift
    from dotadd.features.words import BagOfWords as BagOfWords
    from dotadd.features.words import WordNGrams as WordNGrams
    from dotadd.genome.peaks import Peaks as Peaks
    from dotadd.genome.poim import letter_chances as letter_chances
    from dotadd.genome.poim import oligomer_importance as oligomer_importance
    from dotadd.genome.windows import Windows as Windows
    from dotadd.model.kernel import KernelModel as KernelModel
    from dotadd.model.linear import Model as Model
    from dotadd.model.linear import load as load
    from dotadd.model.naming import strongest_features as strongest_features
    from dotadd.solvers.checks import check_solver as check_solver
    from dotadd.sources import open as open
    from dotadd.sources.around import Virtual as Virtual
    from dotadd.sources.base import Chunk as Chunk
    from dotadd.sources.base import Source as Source
    from dotadd.sources.checks import check_source as check_source
    from dotadd.sources.convert import convert as convert
    from dotadd.sources.files import FileSource as FileSource

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "._version": ["__version__"],
        ".features.checks": ["check_feature_map"],
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
        ".estimators.cross_validation": ["LinearSVMCV"],
        ".estimators.kernel_cross_validation": ["KernelSVMCV"],
        ".estimators.linear": ["LinearSVM"],
        ".explain.explanation": ["Explanation"],
        ".features.base": ["FeatureMap"],
        ".features.cells": ["Category", "Number"],
        ".features.dates": ["Date"],
        ".features.columns": ["Column"],
        ".features.expression": ["parse"],
        ".features.gkm": ["Gkm"],
        ".features.lbp": ["LBP"],
        ".features.linear": ["Linear"],
        ".features.polynomial": ["Polynomial"],
        ".features.rational": ["Rational"],
        ".features.mismatch_spectrum": ["MismatchSpectrum"],
        ".features.spectrum": ["GappySpectrum", "Spectrum", "WeightedSpectrum"],
        ".features.stack": ["Stack"],
        ".features.substrings": ["AllSubstrings"],
        ".features.terms": ["Hashed"],
        ".features.text": ["NGrams"],
        ".features.weighted_degree": ["WeightedDegree", "WeightedDegreeShift"],
        ".features.words": ["BagOfWords", "WordNGrams"],
        ".estimators.kernel": ["KernelSVM"],
        ".model.kernel": ["KernelModel"],
        ".data.lattices": ["Lattices"],
        ".model.linear": ["Model", "load"],
        ".model.naming": ["strongest_features"],
        ".genome.peaks": ["Peaks"],
        ".genome.poim": ["letter_chances", "oligomer_importance"],
        ".sources": ["open"],
        ".sources.base": ["Chunk", "Source"],
        ".solvers.checks": ["check_solver"],
        ".sources.checks": ["check_source"],
        ".sources.convert": ["convert"],
        ".sources.files": ["FileSource"],
        ".genome.windows": ["Windows"],
        ".sources.around": ["Virtual"],
    },
    told=True,
)
