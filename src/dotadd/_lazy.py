"""Names that are imported when they are first used, so that importing a package costs next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from textwrap import fill
from typing import Any


def lazy(
    package: str, homes: Mapping[str, list[str]], *, told: bool = False
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package whose names live in the modules `homes` (relative to it).
    They are `told` at the end of its docstring."""
    home = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name], package), name)

    if told and sys.modules[package].__doc__:  # there is none with python -OO
        sys.modules[package].__doc__ = f"{sys.modules[package].__doc__}{by_subject(homes)}"
    names = sorted(home)
    return names, get, lambda: names


def by_subject(homes: Mapping[str, list[str]]) -> str:
    """The names as lines of a docstring, a paragraph for each package that they live in."""
    subjects: dict[str, list[str]] = {}
    for module, names in homes.items():
        if not module.startswith("._"):
            subjects.setdefault(module.split(".")[1], []).extend(names)
    width = max(map(len, subjects))
    return "\n".join(
        fill(
            ", ".join(sorted(names)),
            118,
            initial_indent=f"    {subject:{width}}  ",
            subsequent_indent=" " * (width + 6),
        )
        for subject, names in sorted(subjects.items())
    )
