"""Feature maps: what turns raw examples into sparse rows."""

from dotadd.features.alphabet import Alphabet as Alphabet
from dotadd.features.base import BadRow as BadRow
from dotadd.features.base import FeatureMap as FeatureMap
from dotadd.features.base import Shape as Shape
from dotadd.features.expression import parse as parse
from dotadd.features.inexact import GappySpectrum as GappySpectrum
from dotadd.features.inexact import MismatchSpectrum as MismatchSpectrum
from dotadd.features.lbp import LBP as LBP
from dotadd.features.linear import Linear as Linear
from dotadd.features.polynomial import Polynomial as Polynomial
from dotadd.features.rational import Rational as Rational
from dotadd.features.spectrum import Spectrum as Spectrum
from dotadd.features.spectrum import WeightedSpectrum as WeightedSpectrum
from dotadd.features.stack import Stack as Stack
from dotadd.features.terms import Hashed as Hashed
from dotadd.features.text import BagOfWords as BagOfWords
from dotadd.features.text import NGrams as NGrams
from dotadd.features.text import WordNGrams as WordNGrams
from dotadd.features.weighted_degree import WeightedDegree as WeightedDegree
from dotadd.features.weighted_degree import WeightedDegreeShift as WeightedDegreeShift
