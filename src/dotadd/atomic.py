"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty temporary file beside `path` to write to; renamed to it at the end, removed if anything went wrong.

    A link keeps pointing where it did. Devices and pipes cannot be replaced and are written to directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    with open(temporary, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode  # as the user's umask has it; some writers make private files
    try:
        yield temporary
        os.chmod(temporary, mode)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError now, and not after hours of work, if a file of this name could not be written."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; give the name of a file", str(target))
    if target.exists() and not target.is_file():
        return
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(2, f"the folder {folder} does not exist", str(target))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, f"the folder {folder} cannot be written to", str(target))
