"""Machine code on disk: what it is kept under, and what Numba asks for it.

Numba checks a cached kernel against its own file alone, so a change to an `inner` function in another file would leave
old machine code in use. Here a kernel is kept under a hash of what its machine code is made from: its bytecode, that of
all that it calls, and the constants that these read. An edit or an upgrade compiles what has changed and nothing else.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba.core import compiler
from numba.core import config as _config
from numba.core.serialize import dumps

from dotadd._jit.beforehand import Beforehand, written
from dotadd._util.compiled_code import InstalledCode, installed_code
from dotadd._util.private_store import PrivateStore

config: Any = _config  # its names are made at run time
PACKAGE = "dotadd"


def recipe(function: Any) -> bytes:
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
            if value.__name__.partition(".")[0] == PACKAGE:
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


@cache
def surroundings() -> bytes:
    """Versions and options that machine code depends on beside its own source. What NumPy and Python may change from
    one minor version to the next they leave alone within one."""
    versions = (
        numba.__version__,
        llvmlite.__version__,
        np.__version__.split(".")[:2],
        sys.version_info[:2],
        sys.platform,
    )
    own = [hashlib.blake2b(path.read_bytes()).hexdigest() for path in sorted(Path(__file__).parent.glob("*.py"))]
    # A cached kernel would ignore NUMBA_BOUNDSCHECK, so checked and unchecked code have names of their own.
    return repr((versions, own, bool(config.BOUNDSCHECK), str(config.OPT))).encode()


def say(line: str) -> None:
    """A line for the person at the screen; one that nobody can receive is no reason to stop."""
    with suppress(OSError, ValueError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _installed() -> InstalledCode | None:
    """Machine code that was installed, if it runs on this processor and nobody has asked for that of another."""
    code = None if config.DISABLE_JIT or config.CPU_NAME is not None else installed_code()
    if code is None:
        return None
    there = llvmlite.binding.get_host_cpu_features()
    return code if code.runs_on(name for name, has in there.items() if has) else None


INSTALLED = _installed()


class KernelCache:
    """What Numba asks for machine code before it compiles, and hands it to afterwards; one for each kernel.

    A cache must never be the reason that a run fails: what cannot be loaded is compiled, and what cannot be saved is
    told once.
    """

    save_error_told = False
    beforehand: Beforehand | None = None

    def __init__(self, function: Any, store: PrivateStore | None, exact: bool) -> None:
        self.function, self.store, self.exact = function, store, exact

    @property
    def cache_path(self) -> str | None:
        return str(self.store.folder) if self.store else None

    @cached_property
    def _key(self) -> bytes:
        return surroundings() + bytes([self.exact]) + recipe(self.function)

    def name(self, signature: Any, processor: tuple[str, ...]) -> str:
        """That of the file: a kernel, and what tells its machine code from all other."""
        key = repr((self._key, str(signature), processor)).encode()
        readable = f"{self.function.__module__}.{self.function.__qualname__}".removeprefix("dotadd.")
        readable = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in readable)[-100:]
        return f"{readable}-{hashlib.blake2b(key, digest_size=16).hexdigest()}"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        processor = target_context.codegen().magic_tuple()
        name = self.name(signature, processor)
        kept = self.store.get(name) if self.store else None
        if kept is None and INSTALLED is not None:
            kept = INSTALLED.get(self.name(signature, (processor[0], INSTALLED.level, "")))
        if kept is None and self.store is not None and self.beforehand is not None:
            line = written(self.function, signature)
            if line is not None and self.beforehand.has(line):
                kept = self.store.get(name)
        if kept is None:
            return None
        try:
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(kept))
        except Exception:  # whatever is wrong with it, compiling puts it right
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        if self.store is None:
            return
        if result.library.has_dynamic_globals or any(not lifted.can_cache for lifted in result.lifted):
            return
        content = dumps(result._replace(type_annotation="")._reduce())  # which is long, takes long, and is for people
        try:
            self.store.put(self.name(signature, result.library.codegen.magic_tuple()), content)
        except OSError as error:
            if not KernelCache.save_error_told:
                KernelCache.save_error_told = True
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
