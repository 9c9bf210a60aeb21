"""The solvers of kernel machines by name; the module of each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

import numpy as np

from dotadd.kernel_svm.problem import KernelProblem, KernelResult, KernelSettings

SOLVERS = ("double_chunking", "chunking", "smo")


class Solver(Protocol):
    """alpha of one binary problem, from an alpha to start from."""

    def __call__(
        self, problem: KernelProblem, settings: KernelSettings, alpha: np.ndarray | None = None
    ) -> KernelResult: ...


def solver_named(name: str) -> Solver:
    """The solver of this name, which is that of its module, too."""
    found: Solver = getattr(import_module(f"dotadd.kernel_svm.{name}"), name)
    return found
