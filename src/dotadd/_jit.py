"""The only place that names Numba: flags, the cache on disk, and the line on screen while something compiles.

`kernel` marks a function that Python calls; it is compiled on first use for the types it meets and kept on disk.
`inner` marks a function that only kernels call; it is compiled into them.

Numba checks a cached kernel against its own file alone, so a change to an `inner` function in another file would leave
old machine code in use. The cache folder is therefore named by a hash of all of the package's sources.
"""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Importing Numba makes some hundred thousand objects that stay; looking for garbage among them takes 0.1 s.

    Freezing and thawing makes old objects of them without a look, or the next small collection would take them all on.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


with _no_garbage_collection():
    import numba
    from numba.core import config as _config
    from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])
config: Any = _config  # its names are made at run time

# Everything that lets a sum be reordered and vectorised; not nnan and ninf, so NaN and infinity stay what they are.
FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
JIT_DISABLED = bool(config.DISABLE_JIT)


def _wake_numba() -> None:
    """Let Numba load what it loads before its first kernel, but for scipy.linalg.

    It would import that (0.2 s) only to see whether there is a BLAS. There is: SciPy is installed with this package.
    Numba still imports it where a kernel calls np.dot.
    """
    try:
        from numba.core.registry import cpu_target
        from numba.np import linalg

        ensure_blas = linalg.ensure_blas
        linalg.ensure_blas = lambda: None
        try:
            import numba.np.arraymath as arraymath

            arraymath.ensure_blas = ensure_blas
        finally:
            linalg.ensure_blas = ensure_blas
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    except (ImportError, AttributeError):  # another Numba, laid out otherwise: only slower
        return


def _sources_hash() -> str:
    package = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    # A cached kernel ignores NUMBA_BOUNDSCHECK, so checked and unchecked code live apart.
    return digest.hexdigest() + ("-checked" if config.BOUNDSCHECK else "")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _cache_folder() -> Path | None:
    """The first of these folders that can be written: the user's choice, the user's cache, the temporary folder."""
    chosen = os.environ.get("DOTADD_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if os.name == "nt":
        home = Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir())
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    candidates = [Path(chosen)] if chosen else [home / "dotadd", Path(tempfile.gettempdir()) / f"dotadd-{user}"]
    name = _sources_hash()
    for candidate in candidates:
        if _writable(candidate / name):
            return candidate / name
    return None


CACHE_FOLDER = None if JIT_DISABLED else _cache_folder()


class _CompileNotice(event.Listener):
    """Says once in a process that something compiles, so that nobody wonders about the wait."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if self.said or not event.data["dispatcher"].py_func.__module__.startswith("dotadd"):
            return
        self.said = True
        if CACHE_FOLDER is None:
            end = "; no cache folder can be written, so each run does this again: set DOTADD_CACHE_DIR to one that can"
        else:
            end = " (kept for later runs; `dotadd warmup` does all of it at once)"
        sys.stderr.write(f"dotadd: compiling for this machine{end}\n")
        sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        pass


if not JIT_DISABLED:
    with _no_garbage_collection():
        _wake_numba()
    event.register("numba:compile", _CompileNotice())


def kernel(function: Function) -> Function:
    """A compiled function that Python calls: plain arrays and scalars in, GIL released, machine code kept on disk."""
    if CACHE_FOLDER is None:
        return numba.njit(**OPTIONS)(function)
    chosen = config.CACHE_DIR
    config.CACHE_DIR = str(CACHE_FOLDER)  # read once, while the dispatcher is made
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    finally:
        config.CACHE_DIR = chosen


def inner(function: Function) -> Function:
    """A compiled function that only kernels call."""
    return numba.njit(inline="never", **OPTIONS)(function)


class _Alias:
    """Carries a read-only array's memory to NumPy under a writable flag, and keeps its owner alive."""

    def __init__(self, array: np.ndarray) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def plain(array: np.ndarray) -> np.ndarray:
    """The same memory as Numba's plainest type: contiguous, and not marked read-only.

    Numba compiles a kernel anew for read-only arrays, and Arrow buffers and memory maps are read-only. Kernels never
    write to what they read from, so one compilation serves both.
    """
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Alias(array))


def _make_prefetch() -> Any:
    """`prefetch(array, k)`: ask for the cache line of array[k] before it is needed. Does nothing without the JIT."""
    if JIT_DISABLED:
        return lambda array, k: None

    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[misc]
    def prefetch(typing_context: Any, array: Any, k: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
            address = builder.bitcast(builder.gep(data, [arguments[1]]), byte_pointer)
            declared = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
            call = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], declared)
            builder.call(call, [address, int32(0), int32(3), int32(1)])  # read, keep in all caches, data
            return context.get_dummy_value()

        return types.void(array, k), generate

    return prefetch


prefetch = _make_prefetch()
