"""The only package that names Numba: flags, and the line on screen while something compiles.

`kernel` marks a function that Python calls; it is compiled on first use for the types it meets and kept on disk
(`keeping.py`). `inner` marks a function that only kernels call; it is compiled into them (`linking.py`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np

from dotadd._util.compiled_code import EARLIER, open_store
from dotadd._util.interrupts import Interrupts
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
    import numba
    from numba.core import event

    from dotadd._jit.beforehand import Beforehand
    from dotadd._jit.keeping import KernelCache, config, say
    from dotadd._jit.linking import TRIED, link_parts_of_numba, only_linked
    from dotadd._jit.quicker import make_quicker

Function = TypeVar("Function", bound=Callable[..., Any])

# Everything that lets a sum be reordered and vectorised; not nnan and ninf, so NaN and infinity stay what they are.
FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
OPTIONS |= {"no_cfunc_wrapper": True}  # a second door into each function, which nobody here calls it by
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


def _open_store() -> PrivateStore | None:
    store = open_store()
    if store is not None and store.writable:
        store.prune(siblings=EARLIER)
    return store


STORE = None if JIT_DISABLED else _open_store()


def _on_terminal(text: str) -> None:
    """On a line of the screen that is empty again before anybody else writes there."""
    if sys.stderr is sys.__stderr__ and sys.stderr is not None and sys.stderr.isatty():  # and no bar stands there
        with suppress(OSError, ValueError):
            sys.stderr.write(f"\r\x1b[K{text and 'dotadd: '}{text[:60]}")
            sys.stderr.flush()


class _CompileNotice(event.Listener):
    """Says once in a process that something compiles, so that nobody wonders about the wait, and on a terminal what and
    how much is left. Meanwhile no garbage is looked for: compiling makes objects by the hundred thousand, and looking
    through them took a tenth of its time."""

    def __init__(self) -> None:
        self.said = self.paused = False
        self.quiet = False  # where it is known that something compiles
        self.show: Callable[[str], None] = _on_terminal  # of a moment; nothing when it is over
        self.depth = 0  # of functions that are compiled for others; Numba lets one thread compile at a time
        self.ours = False  # whether that for which they all are is one of this package

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        ours = function.__module__.startswith("dotadd")
        self.depth += 1
        if self.depth == 1:
            self.ours, self.paused = ours, gc.isenabled()
            gc.disable()
        if ours:
            self.say(f"{function.__module__}.{function.__qualname__}".removeprefix("dotadd."))

    def say(self, name: str) -> None:
        """Which kernel is being compiled; none any more where there is no name."""
        if self.quiet:
            return
        if not self.said:
            self.said = True
            end = " (kept for later runs; `dotadd warmup` does all of it at once)"
            if STORE is None:
                end = (
                    "; no cache folder can be written, so each run does it again: set DOTADD_CACHE_DIR to one that can"
                )
            say(f"dotadd: compiling for this machine{end}")
        done, expected = BEFOREHAND.progress if BEFOREHAND else (0, 0)
        self.show(f"compiling {f'{done} of about {expected}: ' * (expected > 0)}{name}" if name else "")

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.ours:
            self.say("")
        if self.depth == 0 and self.paused:
            gc.enable()


NOTICE = _CompileNotice()
BEFOREHAND = Beforehand(STORE.folder.parent, NOTICE.say) if STORE and STORE.writable else None

if not JIT_DISABLED:
    with _no_garbage_collection(), Interrupts() as _scope, _scope.later():
        _wake_numba()
    event.register("numba:compile", NOTICE)
    KernelCache.beforehand = BEFOREHAND
    if numba.version_info[:2] in TRIED:
        link_parts_of_numba(lambda: NOTICE.depth > 1 and NOTICE.ours)
        make_quicker()


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
    if not JIT_DISABLED:
        dispatcher._cache = KernelCache(function, STORE, exact)  # where cache=True puts one of Numba's own
        dispatcher.compile = _uninterrupted(dispatcher.compile)
    return dispatcher


def _uninterrupted(compile: Callable[[object], object]) -> Callable[[object], object]:
    """Compiling, or loading, while signals wait: what Ctrl-C raises in Python that LLVM calls is lost, or worse."""

    def compiled(signature: object) -> object:
        with Interrupts() as scope, scope.later():
            return compile(signature)

    return compiled


def inner(function: Function) -> Function:
    """A compiled function that only kernels call."""
    return only_linked(function, OPTIONS)


def exact_inner(function: Function) -> Function:
    """The same with sums and products taken as they are written, so that every processor finds the same bits."""
    return only_linked(function, OPTIONS | {"fastmath": False})


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


def _make_prefetch():
    """`prefetch(array, k)`: ask for the cache line of array[k] before it is needed. Does nothing without the JIT."""
    if JIT_DISABLED:
        return lambda array, k: None

    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[misc]  # Numba's decorators have no types
    def prefetch(typing_context, array, k):
        def generate(context, builder, signature, arguments):
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
