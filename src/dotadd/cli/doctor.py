"""dotadd doctor: what is installed, what the machine has, where compiled code is kept, and what is missing.

It is for the day on which something is wrong, so it imports none of the packages that it tells of.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dotadd.cli.screen import Json, facts
from dotadd.errors import EXTRAS, NAMES

if TYPE_CHECKING:
    from dotadd.model.file import Record

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pyarrow", "scikit-learn", "safetensors", "cyclopts", "rich")
SERVES = {
    "matplotlib": "pictures and pages",
    "PIL.Image": "images in PNG and JPEG",
    "distributed": "clusters",
    "pybigtools": "bigWig",
    "pysam": "BCF",
    "dotadd_kernels": "a first fit that does not wait for the compiler",
}
SWITCHES = ("DOTADD_", "NUMBA_", "OMP_", "MKL_", "OPENBLAS_")  # variables that change how things run


def doctor(*, as_json: Json = False) -> int:
    """Tell what is installed, what the machine has, and what is missing.

    Versions, cores, free memory and disk, where compiled code is kept and how much
    of it there is, and optional packages that are missing, with the command that
    installs them. The exit status is 1 if a package that is needed is not there.
    For a report of a mistake, add what this prints, or the same as JSON:

        dotadd doctor --json

    Parameters
    ----------
    as_json
        All of it as one JSON object; sizes are in bytes.
    """
    found = examined()
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        facts(_lines(found))
    return 0 if all(found["packages"].values()) else 1


def examined() -> Record:
    """All of it as plain data; sizes are in bytes."""
    from dotadd._util.memory import available
    from dotadd._util.threads import thread_count

    return {
        "dotadd": _version("dotadd"),
        "folder": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cores": {"usable": thread_count(None), "machine": os.cpu_count()},
        "memory": {"free": available()},
        "disk": {folder: _free(folder) for folder in dict.fromkeys((os.getcwd(), tempfile.gettempdir()))},
        "cache": _cache(),
        "environment": {name: os.environ[name] for name in sorted(os.environ) if name.startswith(SWITCHES)},
        "optional": {NAMES.get(module, module).lower(): _optional(module) for module in EXTRAS},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _free(folder: str | Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _optional(module: str) -> dict[str, str | bool]:
    try:
        there = find_spec(module) is not None
    except ImportError:  # the package that it is in is missing
        there = False
    return {"installed": there, "for": SERVES[module], "install": f"pip install 'dotadd[{EXTRAS[module]}]'"}


def _cache() -> Record:
    """Where compiled code is kept; None for the folder if there is none that can be used."""
    from dotadd._util.compiled_code import EARLIER, installed_code, open_store
    from dotadd._util.private_store import UNUSED

    store, came = open_store(), installed_code()
    installed = None if came is None else {"folder": str(came.folder), **came.made}
    if store is None:
        return {"folder": None, "installed": installed}
    files, now = store.files(), time.time()
    earlier = store.siblings(EARLIER)
    return {
        "folder": str(store.folder),
        "installed": installed,
        "writable": store.writable,
        "files": len(files),
        "bytes": sum(status.st_size for _, status in files),
        "unused_for_a_month": sum(now - status.st_mtime > UNUSED for _, status in files),
        "folders_of_earlier_versions": [str(folder) for folder in earlier],
        "free": _free(store.folder),
    }


def _lines(found: Record) -> dict[str, str]:
    """The same for people."""
    from dotadd._util.memory import words

    def room(nbytes: int | None) -> str:
        return "unknown" if nbytes is None else f"{words(nbytes)} free"

    cache, cores = found["cache"], found["cores"]
    lines = {
        "dotadd": f"{found['dotadd']} in {found['folder']}",
        "Python": f"{found['python']}, {found['executable']}",
        "system": found["platform"],
        **{name: told or "MISSING: pip install dotadd" for name, told in found["packages"].items()},
        "cores": f"{cores['usable']} of {cores['machine']}",
        "memory": room(found["memory"]["free"]),
        "disk": ", ".join(f"{room(free)} in {folder}" for folder, free in found["disk"].items()),
    }
    if cache["folder"] is None:
        lines["compiled code"] = "not kept, as no folder can be written: set DOTADD_CACHE_DIR to one that can"
    else:
        kept = f"{cache['files']:,} files, {words(cache['bytes'])}, in {cache['folder']}, {room(cache['free'])}"
        lines["compiled code"] = kept if cache["writable"] else f"{kept}; it is only read: nothing can be written there"
        if cache["files"] < 2:  # there may be the mark of when it was pruned
            lines["compiled code"] += "; `dotadd warmup` compiles all of it at once"
    if made := cache["installed"]:
        versions = {"dotadd": found["dotadd"], "numba": found["packages"]["numba"], "python": found["python"]}
        other = [
            f"{name} {made[name]}" for name, here in versions.items() if not f"{here}.".startswith(f"{made[name]}.")
        ]
        unused = f"; not used, for it is of {' and '.join(other)}" if other else ""
        lines["installed code"] = f"for processors of {made['level']}, in {made['folder']}{unused}"
    if earlier := cache.get("folders_of_earlier_versions"):
        lines["earlier code"] = f"{len(earlier)} folders; they go a month after their last use"
    if found["environment"]:
        lines["set"] = " ".join(f"{name}={value}" for name, value in found["environment"].items())
    for name, one in found["optional"].items():
        told = _version(name) or "installed"
        lines[name] = told if one["installed"] else f"missing, for {one['for']}: {one['install']}"
    return lines
