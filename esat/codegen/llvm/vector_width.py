"""How long vectors are: narrower ones for loops that do little but read and write memory.

Vectors of 64 bytes save instructions where there is much to compute. A loop that adds or multiplies once or
twice for each array it reads waits for the caches instead, and many of these serve half vectors better: one
that is not aligned lies in two lines only every other time, and what is missing is asked for earlier.
Divisions, comparisons and chains of operations take longer with half vectors; a sum of a row and a column,
which reads little, gains nothing.

Where a target has no vectors of 64 bytes, nothing changes. For some processors LLVM uses half of them
everywhere, since early ones slowed down their clock for whole ones; whole ones are asked for where the
target's tuning prefers them.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

_HALF_BYTES, _WHOLE_BYTES = 32, 64
_PREFERRED = '"prefer-vector-width"="{}"'
_HALF, _WHOLE = (_PREFERRED.format(8 * size) for size in (_HALF_BYTES, _WHOLE_BYTES))


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
