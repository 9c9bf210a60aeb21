"""Feature maps: what turns raw examples into sparse rows. Each is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd.features.alphabet import Alphabet as Alphabet
    from dotadd.features.base import BadRow as BadRow
    from dotadd.features.base import FeatureMap as FeatureMap
    from dotadd.features.base import Shape as Shape
    from dotadd.features.cells import Category as Category
    from dotadd.features.cells import Number as Number
    from dotadd.features.columns import Column as Column
    from dotadd.features.dates import Date as Date
    from dotadd.features.expression import parse as parse
    from dotadd.features.gkm import Gkm as Gkm
    from dotadd.features.lbp import LBP as LBP
    from dotadd.features.linear import Linear as Linear
    from dotadd.features.lmer_counts import LmerCounts as LmerCounts
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

MAPS = {
    ".linear": ["Linear"],
    ".terms": ["Hashed"],
    ".polynomial": ["Polynomial"],
    ".spectrum": ["Spectrum", "WeightedSpectrum", "GappySpectrum"],
    ".substrings": ["AllSubstrings"],
    ".mismatch_spectrum": ["MismatchSpectrum"],
    ".gkm": ["Gkm"],
    ".lmer_counts": ["LmerCounts"],
    ".weighted_degree": ["WeightedDegree", "WeightedDegreeShift"],
    ".text": ["NGrams"],
    ".words": ["BagOfWords", "WordNGrams"],
    ".lbp": ["LBP"],
    ".rational": ["Rational"],
    ".columns": ["Column"],
    ".cells": ["Number", "Category"],
    ".dates": ["Date"],
}  # that expressions may name, by module
OTHERS = {
    ".alphabet": ["Alphabet"],
    ".base": ["BadRow", "FeatureMap", "Shape"],
    ".expression": ["parse"],
    ".stack": ["Stack"],
}
__all__, __getattr__, __dir__ = lazy(__name__, MAPS | OTHERS)
