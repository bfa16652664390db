"""How long vectors are: narrower ones for loops that do little but read and write memory.

Vectors of 64 bytes save instructions where there is much to compute. A loop that adds or multiplies once or
twice for each array it reads waits for the caches instead, and these serve half vectors better: one that is
not aligned lies in two lines only every other time, and what is missing is asked for earlier. On a Zen 4
server, between the second and the last level of the caches, ``(M + r) * c`` takes 0.83 to 0.96 of the time
and float32 ``a * x + b`` 0.93; nearer by, 0.96 to 1.0. Divisions, comparisons and chains of operations take
longer with half vectors, up to 1.3 times; a sum of a row and a column, which reads little, gains nothing.
Sums of large arrays that read more than they compute take less time, too: ``sum((x - y)**2)`` of 80 MB in
float32 0.83 to 0.91, of 16 MB in float64 0.93 to 0.98. On a Zen 5 server, which loads 64 bytes at a time, the
latter takes 1.3 times as long with half vectors, so it is given whole ones.

Where a processor has no vectors of 64 bytes, nothing changes. For Intel's LLVM uses half of them everywhere,
since early ones slowed down their clock for whole ones. An Emerald Rapids server does not, and loops that
compute take 0.7 of the time with whole vectors; they are asked for there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from esat.codegen.ground.target import Target
from esat.codegen.loop_ir import Array, Compute, Literal, Load, Loop, Statement, Store, Update, walk
from esat.codegen.prefetching import loads_along
from esat.codegen.streaming import stores_along

_CHEAP = re.compile(r"(?:[-+*() ]|\{\d+\})+")
_MOST_OPERATIONS = 2
"""Additions and multiplications for each array that is read along memory."""
_HALF_BYTES, _WHOLE_BYTES = 32, 64
_PREFERRED = '"prefer-vector-width"="{}"'
_HALF, _WHOLE = (_PREFERRED.format(8 * size) for size in (_HALF_BYTES, _WHOLE_BYTES))


def takes_half_vectors(target: Target) -> bool:
    """Whether loops that wait for memory are told to take vectors of half the length."""
    return target.tuning.memory_vector_bytes == _HALF_BYTES < target.vector_bytes


def takes_whole_vectors_everywhere(target: Target) -> bool:
    """Whether all other loops are told to take the longest vectors, of which LLVM might take halves."""
    return target.vector_bytes == target.tuning.preferred_vector_bytes == _WHOLE_BYTES


def waits_for_memory(body: Sequence[Statement], arrays: Sequence[Array]) -> bool:
    """Whether all innermost loops of a body do little but read and write memory, of one float type.

    Parameters
    ----------
    body
        Statements of a kernel.
    arrays
        All arrays of that kernel.
    """
    statements = list(walk(tuple(body)))
    used = {arrays[one.array].dtype for one in statements if isinstance(one, Load | Store)}
    loops = [one for one in statements if isinstance(one, Loop)]
    inner = [loop for loop in loops if not any(isinstance(one, Loop) for one in loop.body)]
    return used in ({"float32"}, {"float64"}) and bool(inner) and all(map(_is_cheap, inner))


def adds_from_memory(loop: Loop, arrays: Sequence[Array]) -> bool:
    """Whether a loop does little but read memory along its last axis and add up, all in one float type."""
    loads = [one for one in loop.body if isinstance(one, Load)]
    along = loads_along(loop, loop.axes)
    operations = [one for one in loop.body if isinstance(one, Compute)]
    return (
        bool(along)
        and {arrays[one.array].dtype for one in loads} in ({"float32"}, {"float64"})
        and all(one.kind == "sum" for one in loop.accumulators)
        and all(isinstance(one, Compute | Literal | Load | Update) for one in loop.body)
        and all(_CHEAP.fullmatch(one.template) for one in operations)
        and len(operations) <= _MOST_OPERATIONS * len(along)
    )


def _is_cheap(loop: Loop) -> bool:
    stored = {axis for one in loop.body if isinstance(one, Store) for axis in one.index if axis is not None}
    operations = [one for one in loop.body if isinstance(one, Compute)]
    return (
        bool(stores_along(loop))
        and all(isinstance(one, Compute | Literal | Load | Store) for one in loop.body)
        and all(_CHEAP.fullmatch(one.template) for one in operations)
        and len(operations) <= _MOST_OPERATIONS * len(loads_along(loop, tuple(stored)))
        and bool(loads_along(loop, tuple(stored)))
    )


@intrinsic
def half_vectors(typing_context: Any) -> Any:
    """Let LLVM prefer vectors of 32 bytes in the function that calls this."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Llvmlite knows no attributes with values, but prints what it is given.
        set.add(builder.function.attributes, _HALF)
        return context.get_dummy_value()

    return types.void(), generate


def prefer_whole_vectors(module: Any) -> None:
    """Let LLVM prefer vectors of 64 bytes in a module's functions, but for those that prefer halves."""
    for function in module.functions:
        if not function.is_declaration and _HALF not in function.attributes:
            set.add(function.attributes, _WHOLE)
