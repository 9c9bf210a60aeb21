"""Models that were hours in the making are not lost because there is no room where they were to go."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dotadd.cli.screen import tell

if TYPE_CHECKING:
    from dotadd.kernel_model import KernelModel
    from dotadd.model import Model

ELSEWHERE = 1
"""The exit code where a model has been saved, but not where it should be."""


def save(model: Model | KernelModel, output: str) -> str:
    """Save the model to this file, or to one in another place if that cannot be written; returns which, and says so."""
    from dotadd.errors import DotaddError

    try:
        model.save(output)
        return output
    except OSError as error:
        why = f"{output}: the model cannot be written: {error.strerror or error}"
    tried = []
    for path in _other_places(output):
        try:
            model.save(path)
        except OSError:
            tried.append(str(path.parent))
            continue
        tell(f"error: {why}; it is in {path} now")
        return str(path)
    raise DotaddError(f"{why}; nor can it be in {', '.join(tried)}")


def _other_places(output: str) -> Iterator[Path]:
    """Files of the same name, or nearly so, that do not exist: here, at home, and among temporary ones."""
    name = Path(output).name
    for folder in dict.fromkeys((os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir())):
        names = (name, *(f"{name}.{number}" for number in range(1, 100)))
        free = (path for path in (Path(folder, other) for other in names) if not path.exists())
        if (path := next(free, None)) is not None:
            yield path
