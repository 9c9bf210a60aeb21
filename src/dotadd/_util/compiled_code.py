"""Where compiled code is kept, found without Numba, so that `dotadd doctor` can tell of it whatever is wrong there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dotadd._util.private_store import PrivateStore

EARLIER = "[0-9a-f]" * 16 + "*"  # folders of dotadd 0.1, one for each edit of its sources


def candidates() -> list[Path]:
    """Folders for caches, the best first: the user's choice, or the user's cache and the temporary folder."""
    chosen = os.environ.get("DOTADD_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen)]
    if os.name == "nt":
        home = Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir())
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return [home / "dotadd", Path(tempfile.gettempdir()) / f"dotadd-{user}"]


def open_store() -> PrivateStore | None:
    """In the first of these folders that can be written, or at least be read."""
    stores = [store for folder in candidates() if (store := PrivateStore.at(folder / "kernels"))]
    return next((store for store in stores if store.writable), stores[0] if stores else None)
