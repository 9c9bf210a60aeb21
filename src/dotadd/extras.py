"""Packages that only some work needs: looked for before that work begins, with the command that installs them."""

from __future__ import annotations

from dotadd.errors import DotaddError

EXTRAS = {"matplotlib": "plots", "PIL.Image": "images", "distributed": "dask", "pybigtools": "genomics"}
NAMES = {"PIL.Image": "pillow", "distributed": "Dask"}


def require(module: str, what: str, instead: str = "") -> None:
    """Raise a line with the command that installs this module, unless it is there."""
    try:
        __import__(module)
    except ImportError as error:
        name = NAMES.get(module, module)
        raise DotaddError(f"{what} {name}: pip install 'dotadd[{EXTRAS[module]}]'{instead}") from error
