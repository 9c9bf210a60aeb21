"""Kernel machines: kernels, their Grams in blocks, and solvers that see no more than these."""

from dotadd.kernel_svm.expression import named, parse
from dotadd.kernel_svm.gram import Gram
from dotadd.kernel_svm.kernels import (
    RBF,
    FeatureKernel,
    FunctionKernel,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    Precomputed,
    Sigmoid,
)

__all__ = [
    "RBF",
    "FeatureKernel",
    "FunctionKernel",
    "Gram",
    "Kernel",
    "LinearKernel",
    "PolynomialKernel",
    "Precomputed",
    "Sigmoid",
    "named",
    "parse",
]
