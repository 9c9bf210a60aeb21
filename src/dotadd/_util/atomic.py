"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dotadd._util.temporary import Temporary, sweep_once

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | os.PathLike[str], *, ending: str = "") -> Iterator[Path]:
    """An empty temporary file beside `path` to write to; renamed to it at the end, removed if anything went wrong.

    What a killed process has left in the folder is removed, too. A link keeps pointing where it did. Devices and pipes
    cannot be replaced and are written to directly. The name of the temporary file ends in `ending`.
    """
    target = _named(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = _resolved(target)
    sweep_once(target.parent)
    temporary = Temporary(target, ending)
    try:
        yield temporary.path
        temporary.replace_target()
    except BaseException as error:
        temporary.discard()
        if isinstance(error, OSError) and error.errno in FULL and error.filename in (None, str(temporary.path)):
            error.filename = str(path)  # a write does not know where it goes
        raise


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError now, and not after hours of work, if a file of this name could not be written."""
    target = _named(path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; give the name of a file", str(target))
    if target.exists() and not target.is_file():
        return
    folder = _resolved(target).parent
    if not folder.is_dir():
        raise FileNotFoundError(2, f"the folder {folder} does not exist", str(target))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, f"the folder {folder} cannot be written to", str(target))


def _named(path: str | os.PathLike[str]) -> Path:
    """The path, unless no file can have such a name."""
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "no file can have a name with a zero byte in it", os.fspath(path))
    return Path(path)


def _resolved(target: Path) -> Path:
    """Where links lead to. Python raises RuntimeError for links in a loop before 3.13, and nothing from then on."""
    try:
        found = target.resolve()
    except RuntimeError:
        found = target
    if found.is_symlink():
        raise OSError(errno.ELOOP, "is a link that leads back to itself", str(target))
    return found
