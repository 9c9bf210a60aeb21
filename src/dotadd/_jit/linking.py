"""Functions that only kernels call: made ready for linking, and for nothing else.

Numba gives every function that it compiles a door for Python and one for C, optimizes it with all that it calls, and
makes machine code of it; then it links the function into each caller and optimizes it there again. Of a function that
Python never calls only the last is used, and the rest is more than half of the time that a first fit waits. So here
such a function is translated and no more: the kernels that it is linked into are optimized as a whole, once.

That reaches behind what Numba promises, so it is done with the versions that it was tried with. With others such
functions are compiled as Numba does it, which takes longer and is no different otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import compiler, dispatcher, typed_passes
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import _dynfunc

from dotadd._jit.keeping import config

TRIED = {(0, 68)}


def _link(library: Any) -> None:
    """What `CodeLibrary.finalize` does, without optimizing what is linked and without machine code of it."""
    library._raise_if_finalized()
    for other in dict.fromkeys(library._linking_libraries):
        library._reload_init.update(other._reload_init)
        library._final_module.link_in(other._get_module_for_linking(), preserve=True)
    library._finalize_dynamic_globals()
    library._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringForLinks(typed_passes.NativeLowering):
    _name = "lowering_for_links"

    def run_pass(self, state: Any) -> bool:
        state.library = library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library.finalize = lambda: _link(library)
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        lowered, name = state["cr"], state.func_id.func_name
        library._ensure_finalized()
        # What callers know the function by; it keeps alive what they link, and is never called.
        key = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=key)
        return True


class _Linked(compiler.CompilerBase):
    def define_pipelines(self) -> list[object]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        at = next(k for k, (each, _) in enumerate(passes.passes) if each is typed_passes.NativeLowering)
        passes.passes[at] = (_LoweringForLinks, "lowering for links")
        passes._finalized = False
        passes.finalize()
        return [passes]


def link_parts_of_numba(inside: Callable[[], bool]) -> None:
    """What Numba itself is made of, such as np.empty and min, is only linked as well, where it is compiled for a kernel
    of ours: while `inside`. That takes a twentieth of the time less, and nobody calls these functions from Python."""
    functions: Any = vars(dispatcher)["_FunctionCompiler"]
    compile_core = functions._compile_core

    def core(self: Any, *given: object) -> object:
        plain = self.pipeline_class is compiler.Compiler and (self.py_func.__module__ or "").startswith("numba.")
        self.pipeline_class = _Linked if plain and inside() else self.pipeline_class
        try:
            return compile_core(self, *given)
        finally:
            self.pipeline_class = compiler.Compiler if plain else self.pipeline_class

    functions._compile_core = core


def only_linked(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A dispatcher of this function for compiled callers. Where Python calls it, it runs as Python."""
    if config.DISABLE_JIT:
        return function
    if numba.version_info[:2] not in TRIED:
        return numba.njit(**options)(function)
    options = {**options, "inline": "never", "no_cpython_wrapper": True, "pipeline_class": _Linked}
    made: Any = numba.njit(**options)(function)

    def in_python(*given: object) -> object:
        with np.errstate(over="ignore"):  # numbers of 64 bits wrap around, as they do in compiled code
            return function(*given)

    made._insert = lambda *_: None  # so that a call from Python finds nothing compiled, and asks what to call:
    made._compile_for_args = lambda *_: in_python
    return made
