"""The expression of a kernel as text, as on the command line and in model files. It is read, never run.

Calls of known kernels with literal arguments, as in `RBF(gamma=0.1)`; and wherever a feature map may stand its own
expression, which alone means its kernel: `Spectrum(8).normalized()` is `FeatureKernel(Spectrum(8).normalized())`. For
every kernel but those made of a function, `parse(repr(kernel)) == kernel`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from dotadd._util.expression import Reader
from dotadd.errors import DotaddError
from dotadd.features.base import FeatureMap
from dotadd.features.expression import KNOWN as MAPS
from dotadd.features.expression import FeatureReader
from dotadd.features.expression import parse as parse_map
from dotadd.kernel_svm.feature_rbf import FeatureRBF, rbf_of
from dotadd.kernel_svm.gkm_kernel import GkmRBF
from dotadd.kernel_svm.gram import Function
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

KNOWN: dict[str, type[Kernel]] = {
    known.__name__: known
    for known in (LinearKernel, PolynomialKernel, RBF, Sigmoid, Precomputed, FeatureKernel, FeatureRBF, GkmRBF)
}
NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def parse(text: str, extra: Mapping[str, Callable[..., FeatureMap]] | None = None) -> Kernel:
    """The kernel that an expression describes. `extra` gives the names of further maps."""
    made = _Kernels(MAPS | dict(extra or {})).read(text)
    return made if isinstance(made, Kernel) else FeatureKernel(made)


def named(
    kernel: str | Kernel | FeatureMap | Function,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    of: str | FeatureMap | None = None,
) -> Kernel:
    """The kernel that an estimator is given: a name, with these parameters; an expression, a kernel, a map or a
    function, which have their own. `of` gives "rbf" the features whose distance it takes."""
    if of is not None:
        if kernel != "rbf":
            raise DotaddError(f'of= gives the features of kernel="rbf", and the kernel is {kernel!r}')
        return rbf_of(parse_map(of) if isinstance(of, str) else of, gamma)
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, FeatureMap):
        return FeatureKernel(kernel)
    if isinstance(kernel, str) and "(" in kernel:
        return parse(kernel)
    match kernel:
        case "linear":
            return LinearKernel()
        case "poly":
            return PolynomialKernel(degree, gamma, coef0)
        case "rbf":
            return RBF(gamma)
        case "sigmoid":
            return Sigmoid(gamma, coef0)
        case "precomputed":
            return Precomputed()
    if callable(kernel) and not isinstance(kernel, type):
        return FunctionKernel(kernel)
    names = ", ".join(f'"{name}"' for name in NAMES)
    raise DotaddError(
        f"there is no kernel {kernel!r}; there are {names}, an expression such as RBF(gamma=0.1) or Spectrum(8), "
        "a feature map, and a function of two arrays"
    )


class _Maps(FeatureReader):
    where = "kernel"


class _Kernels(Reader):
    where, subject = "kernel", "a kernel"
    makes = (Kernel, FeatureMap)
    whole, one = "a kernel", "kernel"
    example = "RBF(gamma=0.1)"
    understood = "kernels, feature maps, numbers and text"
    operators = ()
    error_class = DotaddError

    def __init__(self, maps: Mapping[str, Callable[..., FeatureMap]]) -> None:
        super().__init__(KNOWN)
        self.maps = _Maps(maps)

    def value(self, node: ast.AST) -> object:
        """Kernels are read here, and everything else as part of a feature map."""
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name) if name in self.known:
                return super().value(node)
            case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name) if name not in self.maps.known:
                there_are = f"there are {', '.join(self.known)}, and the maps {', '.join(self.maps.known)}"
                raise self.error(node, f"there is no kernel {name!r}; {there_are}")
        self.maps.start = self.start
        return self.maps.value(node)
