"""What two threads need that work on the same numbers: words that are read and written in order, and ways to wait.

All take an array of float64, of which a word is 8 bytes read as a whole number.
"""

from __future__ import annotations

import os
import platform

from dotadd._jit.keeping import config

X86, ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (1,))
PAUSE = {"x86_64": X86, "amd64": X86, "aarch64": ARM, "arm64": ARM}

CAN_WAIT = not config.DISABLE_JIT and hasattr(os, "sched_yield")
"""Whether threads can wait for each other in compiled code here."""


def _make():
    if config.DISABLE_JIT:  # one thread
        return lambda array, k: 0, lambda array, k, value: None, lambda *_: False, lambda: None, lambda: None

    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    def word(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())

    def whole(context, builder, signature, arguments, k):
        return context.cast(builder, arguments[k], signature.args[k], types.int64)

    def load(typing_context, array, k):
        """Read a word, and after it what was written before it."""

        def generate(context, builder, signature, arguments):
            return builder.load_atomic(word(context, builder, signature, arguments), "acquire", 8)

        return types.int64(array, k), generate

    def store(typing_context, array, k, value):
        """Write a word after all that was written before."""

        def generate(context, builder, signature, arguments):
            to = word(context, builder, signature, arguments)
            builder.store_atomic(whole(context, builder, signature, arguments, 2), to, "release", 8)
            return context.get_dummy_value()

        return types.void(array, k, value), generate

    def swap(typing_context, array, k, old, new):
        """Write a word if it is as expected; says whether it was."""

        def generate(context, builder, signature, arguments):
            at = word(context, builder, signature, arguments)
            before, after = (whole(context, builder, signature, arguments, n) for n in (2, 3))
            return builder.extract_value(builder.cmpxchg(at, before, after, "acq_rel", "acquire"), 1)

        return types.boolean(array, k, old, new), generate

    def pause(typing_context):
        """Leave the core to its other thread for a moment, if it has one."""

        def generate(context, builder, signature, arguments):
            if (named := PAUSE.get(platform.machine().lower())) is not None:
                name, given = named
                int32 = ir.IntType(32)
                declared = ir.FunctionType(ir.VoidType(), [int32] * len(given))
                builder.call(builder.module.declare_intrinsic(name, (), declared), [int32(each) for each in given])
            return context.get_dummy_value()

        return types.void(), generate

    def give_way(typing_context):
        """Let other threads have the core, if there are any that wait for it."""

        def generate(context, builder, signature, arguments):
            if CAN_WAIT:
                declared = ir.FunctionType(ir.IntType(32), [])
                builder.call(cgutils.get_or_insert_function(builder.module, declared, "sched_yield"), [])
            return context.get_dummy_value()

        return types.void(), generate

    return tuple(map(intrinsic, (load, store, swap, pause, give_way)))


load, store, swap, pause, give_way = _make()
