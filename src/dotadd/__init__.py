"""dotadd: support vector machines in feature spaces that are never stored, on data that does not fit in memory.

Names are imported when they are first used, so that `import dotadd` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dotadd.checks import check_feature_map
    from dotadd.errors import DataError, DotaddError, FeatureError, ModelError, NotConvergedWarning
    from dotadd.estimators import LinearSVM
    from dotadd.features import (
        BagOfWords,
        Hashed,
        Linear,
        NGrams,
        Polynomial,
        Spectrum,
        Stack,
        WeightedDegree,
        WeightedSpectrum,
    )
    from dotadd.features.base import FeatureMap
    from dotadd.features.expression import parse
    from dotadd.model import Model, load
    from dotadd.sources import open
    from dotadd.sources.convert import convert

_HOME = {
    "check_feature_map": "dotadd.checks",
    "DataError": "dotadd.errors",
    "DotaddError": "dotadd.errors",
    "FeatureError": "dotadd.errors",
    "ModelError": "dotadd.errors",
    "NotConvergedWarning": "dotadd.errors",
    "LinearSVM": "dotadd.estimators",
    "BagOfWords": "dotadd.features",
    "Hashed": "dotadd.features",
    "Linear": "dotadd.features",
    "NGrams": "dotadd.features",
    "Polynomial": "dotadd.features",
    "Spectrum": "dotadd.features",
    "Stack": "dotadd.features",
    "WeightedDegree": "dotadd.features",
    "WeightedSpectrum": "dotadd.features",
    "FeatureMap": "dotadd.features.base",
    "parse": "dotadd.features.expression",
    "Model": "dotadd.model",
    "load": "dotadd.model",
    "open": "dotadd.sources",
    "convert": "dotadd.sources.convert",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dotadd")
    if name not in _HOME:
        raise AttributeError(f"module 'dotadd' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
