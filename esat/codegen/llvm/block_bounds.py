"""The bounds of blocks and tiles, as numba intrinsics.

Numba compiles its own ``min`` and ``max`` as functions of tuples, apart, and with its run-time library: a
twentieth of the time that a first program's kernels take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numba.core import types
from numba.extending import intrinsic

_TYPES: Any = types  # which numba annotates in part


@intrinsic
def smaller(typing_context: Any, first: Any, second: Any) -> Any:
    """The smaller of two integers."""
    return _chosen(typing_context, first, second, "<")


@intrinsic
def larger(typing_context: Any, first: Any, second: Any) -> Any:
    """The larger of two integers."""
    return _chosen(typing_context, first, second, ">")


BOUNDS: Mapping[str, object] = {"min": smaller, "max": larger}
"""What stands for Python's functions in the source of a kernel."""


def _chosen(typing_context: Any, first: Any, second: Any, relation: str) -> Any:
    result = typing_context.unify_types(_TYPES.unliteral(first), _TYPES.unliteral(second))
    if not isinstance(result, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        compare = builder.icmp_signed if signature.return_type.signed else builder.icmp_unsigned
        return builder.select(compare(relation, *arguments), *arguments)

    return result(result, result), generate
