"""The only place that names Numba: flags, the cache on disk, and the line on screen while something compiles.

`kernel` marks a function that Python calls; it is compiled on first use for the types it meets and kept on disk.
`inner` marks a function that only kernels call; it is compiled into them.

Numba checks a cached kernel against its own file alone, so a change to an `inner` function in another file would leave
old machine code in use. Here a kernel is kept under a hash of what its machine code is made from: its bytecode, that of
all that it calls, and the constants that these read. An edit or an upgrade compiles what has changed and nothing else.
"""

from __future__ import annotations

import gc
import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from dotadd._util.compiled_code import EARLIER, open_store
from dotadd._util.private_store import PrivateStore


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
    import llvmlite
    import numba
    from numba.core import compiler, event
    from numba.core import config as _config
    from numba.core.serialize import dumps

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


def _recipe(function: Any) -> bytes:
    """A hash of all that the machine code of this Python function is made from, but for the types of its arguments."""
    digest = hashlib.blake2b(digest_size=16)
    seen: set[int] = set()

    def note(*values: object) -> None:
        digest.update(repr(values).encode())

    def take_code(code: CodeType, names: dict[str, Any]) -> None:
        note(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                take_code(constant, names)
            else:
                take(constant)
        for name in code.co_names:
            if name in names:
                note(name)
                take(names[name], code.co_names)

    def take(value: Any, attributes: tuple[str, ...] = ()) -> None:
        """Something that compiled code refers to; of a module of ours, the attributes that are named beside it."""
        called = getattr(value, "py_func", value)
        if isinstance(called, FunctionType):
            if id(called) in seen:
                return
            seen.add(id(called))
            note(called.__module__, called.__qualname__, called.__defaults__)
            take_code(called.__code__, called.__globals__)
            for cell in called.__closure__ or ():
                take(cell.cell_contents)
        elif isinstance(value, ModuleType):
            note(value.__name__)
            if value.__name__.partition(".")[0] == __package__:
                for name in attributes:
                    take(getattr(value, name, None))
        elif isinstance(value, np.ndarray):
            note(value.dtype.str, value.shape, value.tobytes())
        elif isinstance(value, frozenset):
            note(sorted(map(repr, value)))
        elif isinstance(value, tuple):
            note(len(value))
            for part in value:
                take(part)
        elif isinstance(value, (bool, int, float, complex, str, bytes, np.generic, type(None))):
            note(type(value).__name__, value)
        else:  # types and functions of NumPy and of Python, and `prefetch`: versions of all of them are in the key
            note(getattr(value, "__qualname__", None) or getattr(value, "_name", None) or type(value).__qualname__)

    take(function)
    return digest.digest()


def _surroundings() -> bytes:
    """Versions and options that machine code depends on beside its own source."""
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.version_info[:3], sys.platform)
    own = hashlib.blake2b(Path(__file__).read_bytes()).hexdigest()
    # A cached kernel would ignore NUMBA_BOUNDSCHECK, so checked and unchecked code have names of their own.
    return repr((versions, own, bool(config.BOUNDSCHECK), str(config.OPT))).encode()


def _open_store() -> PrivateStore | None:
    store = open_store()
    if store is not None and store.writable:
        store.prune(siblings=EARLIER)
    return store


STORE = None if JIT_DISABLED else _open_store()


class _KernelCache:
    """What Numba asks for machine code before it compiles, and hands it to afterwards; one for each kernel.

    A cache must never be the reason that a run fails: what cannot be loaded is compiled, and what cannot be saved is
    told once.
    """

    save_error_told = False

    def __init__(self, function: Any, store: PrivateStore, exact: bool) -> None:
        self.function, self.store, self.exact = function, store, exact

    @property
    def cache_path(self) -> str:
        return str(self.store.folder)

    @cached_property
    def _key(self) -> bytes:
        return _surroundings() + bytes([self.exact]) + _recipe(self.function)

    def _name(self, signature: Any, codegen: Any) -> str:
        key = repr((self._key, str(signature), codegen.magic_tuple())).encode()
        readable = f"{self.function.__module__}.{self.function.__qualname__}".removeprefix("dotadd.")
        readable = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in readable)[-100:]
        return f"{readable}-{hashlib.blake2b(key, digest_size=16).hexdigest()}"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        kept = self.store.get(self._name(signature, target_context.codegen()))
        if kept is None:
            return None
        try:
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(kept))
        except Exception:  # whatever is wrong with it, compiling puts it right
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        if result.library.has_dynamic_globals or any(not lifted.can_cache for lifted in result.lifted):
            return
        content = dumps(result._reduce())
        try:
            self.store.put(self._name(signature, result.library.codegen), content)
        except OSError as error:
            if not _KernelCache.save_error_told:
                _KernelCache.save_error_told = True
                why = f"{self.store.folder} ({error.strerror or error})"
                say(
                    f"dotadd: cannot keep compiled code in {why}, so that the next run compiles again: "
                    "make room there, or set DOTADD_CACHE_DIR to another folder"
                )

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass


def say(line: str) -> None:
    """A line for the person at the screen; one that nobody can receive is no reason to stop."""
    with suppress(OSError, ValueError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class _CompileNotice(event.Listener):
    """Says once in a process that something compiles, so that nobody wonders about the wait."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if self.said or not event.data["dispatcher"].py_func.__module__.startswith("dotadd"):
            return
        self.said = True
        if STORE is None:
            end = "; no cache folder can be written, so each run does this again: set DOTADD_CACHE_DIR to one that can"
        else:
            end = " (kept for later runs; `dotadd warmup` does all of it at once)"
        say(f"dotadd: compiling for this machine{end}")

    def on_end(self, event: Any) -> None:
        pass


NOTICE = _CompileNotice()

if not JIT_DISABLED:
    with _no_garbage_collection():
        _wake_numba()
    event.register("numba:compile", NOTICE)


KERNELS: list[Any] = []  # all that Python calls, so that a test can count what they were compiled for


def kernel(function: Function) -> Function:
    """A compiled function that Python calls: plain arrays and scalars in, GIL released, machine code kept on disk."""
    return _kept(function, exact=False)


def exact_kernel(function: Function) -> Function:
    """A kernel whose sums and products are taken as they are written: for those that carry rounding errors along."""
    return _kept(function, exact=True)


def _kept(function: Function, *, exact: bool) -> Function:
    dispatcher = numba.njit(**OPTIONS | ({"fastmath": False} if exact else {}))(function)
    KERNELS.append(dispatcher)
    if STORE is not None:
        dispatcher._cache = _KernelCache(function, STORE, exact)  # where cache=True puts one of Numba's own
    return dispatcher


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

    @intrinsic  # type: ignore[misc]  # Numba's decorators have no types
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
