"""How a kernel hands a part of its work to the pool."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.codegen.threads import shared_memory
from esat.codegen.threads.protocol import SHARE

_CGUTILS: Any = cgutils
_WORD = ir.IntType(64)


@intrinsic
def in_parallel(
    typing_context: Any,
    pool: Any,
    threads: Any,
    units: Any,
    turns: Any,
    function: Any,
    arguments: Any,
) -> Any:
    """Call ``function(begin, end, *arguments)`` for parts of ``range(units)``, in any order.

    Parameters
    ----------
    pool
        The address of a pool, or 0 to call it once for all units.
    threads
        How many may run at a time, the caller counted.
    units
        Their number.
    turns
        Parts of the work for each thread. With several, one that is late leaves its share to others.
    function
        A compiled function that returns nothing and does not raise.
    arguments
        A tuple of arrays and numbers. Nothing is counted as a reference: they outlive the call.
    """
    if not isinstance(function, types.Dispatcher) or not isinstance(arguments, types.BaseTuple):
        return None
    given: Any = arguments
    called: Any = function.get_call_type(typing_context, (types.int64, types.int64, *given.types), {})

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pool, threads, units, turns = values[:4]
        result = function.dispatcher.overloads[called.args]
        context.add_linking_libs([result.library])
        data = _CGUTILS.alloca_once_value(builder, values[5])
        task = _task(context, builder, result.fndesc, called, arguments, values[5].type)
        address = builder.ptrtoint(data, _WORD)
        zero = ir.Constant(_WORD, 0)
        with builder.if_else(builder.icmp_signed("==", pool, zero)) as (alone, together):
            with alone:
                builder.call(task, [address, zero, units])
            with together:
                place = builder.add(pool, ir.Constant(_WORD, SHARE))
                code = builder.load(builder.inttoptr(place, _WORD.as_pointer()))
                helpers = builder.sub(threads, ir.Constant(_WORD, 1))
                builder.call(
                    builder.inttoptr(code, shared_memory.SHARE.as_pointer()),
                    [pool, builder.ptrtoint(task, _WORD), address, units, turns, helpers],
                )
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 4, function, arguments), generate


def _task(context: Any, builder: Any, description: Any, called: Any, arguments: Any, structure: Any) -> Any:
    """A C function that finds the arguments at an address and calls the numba function."""
    module = builder.module
    task = ir.Function(module, shared_memory.TASK, module.get_unique_name(f"{builder.function.name}.task"))
    task.linkage = "internal"
    inner = ir.IRBuilder(task.append_basic_block("entry"))
    data, begin, end = task.args
    packed = inner.load(inner.inttoptr(data, structure.as_pointer()))
    values = [
        context.cast(inner, value, type_, wanted)
        for value, type_, wanted in zip(
            _CGUTILS.unpack_tuple(inner, packed), arguments.types, called.args[2:], strict=True
        )
    ]
    context.call_internal_no_propagate(inner, description, called, [begin, end, *values])
    inner.ret_void()
    return task
