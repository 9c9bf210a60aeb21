"""Where compiled code is kept, found without Numba, so that `dotadd doctor` can tell of it whatever is wrong there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from dotadd._util.private_store import PrivateStore, whole

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


# What a processor must have for machine code of a level, in LLVM's words; `release/kernels.py` compiles for a level.
LEVELS = {
    "x86-64-v3": "cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "generic": "",  # the least that processors of another kind have
}


@dataclass(frozen=True)
class InstalledCode:
    """Machine code that came as the optional package dotadd-kernels, for all processors of a level."""

    folder: Path
    made: dict[str, str]
    """For which level, and with which versions."""

    @property
    def level(self) -> str:
        return self.made["level"]

    def runs_on(self, features: Iterable[str]) -> bool:
        """Whether a processor with these features is of the level."""
        return self.level in LEVELS and set(LEVELS[self.level].split()) <= set(features)

    def get(self, name: str) -> bytes | None:
        try:
            return whole((self.folder / "code" / name).read_bytes())
        except OSError:
            return None


def installed_code() -> InstalledCode | None:
    """That package, if it lies beside dotadd or beside Numba and nowhere else on Python's path.

    What is in it is unpickled and run. Whoever can write beside these packages can change what they run anyway.
    """
    for package in ("dotadd", "numba"):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parents[1] / "dotadd_kernels"
            with suppress(OSError, ValueError, KeyError):
                made = json.loads((folder / "made.json").read_text())
                return InstalledCode(folder, {name: str(made[name]) for name in ("level", "dotadd", "numba", "python")})
    return None
