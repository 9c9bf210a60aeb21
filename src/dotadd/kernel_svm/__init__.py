"""Kernel machines: kernels, their Grams in blocks, and solvers that see no more than these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd.kernel_svm.expression import named as named
    from dotadd.kernel_svm.expression import parse as parse
    from dotadd.kernel_svm.gram import Gram as Gram
    from dotadd.kernel_svm.kernels import RBF as RBF
    from dotadd.kernel_svm.kernels import FeatureKernel as FeatureKernel
    from dotadd.kernel_svm.kernels import FunctionKernel as FunctionKernel
    from dotadd.kernel_svm.kernels import Kernel as Kernel
    from dotadd.kernel_svm.kernels import LinearKernel as LinearKernel
    from dotadd.kernel_svm.kernels import PolynomialKernel as PolynomialKernel
    from dotadd.kernel_svm.kernels import Precomputed as Precomputed
    from dotadd.kernel_svm.kernels import Sigmoid as Sigmoid

__all__, __getattr__ = lazy(
    __name__,
    {
        ".expression": ["named", "parse"],
        ".gram": ["Gram"],
        ".kernels": [
            "RBF",
            "FeatureKernel",
            "FunctionKernel",
            "Kernel",
            "LinearKernel",
            "PolynomialKernel",
            "Precomputed",
            "Sigmoid",
        ],
    },
)
