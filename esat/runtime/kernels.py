"""From kernel groups to what the driver calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.codegen import Kernel, compile_kernel, lower, print_kernel
from esat.phases.group import Group
from esat.runtime.program import KernelCall


def compile_group(group: Group) -> KernelCall:
    """The compiled kernel of a group.

    The variant for contiguous inputs is compiled now; that for other layouts when one arrives.

    Raises
    ------
    CompileError
        When the group cannot be lowered, or the kernel breaks its invariants.
    """
    kernel = lower(group)
    inputs = tuple(group.inputs[place] for place in kernel.operands)
    contiguous = compile_kernel(kernel).function
    # Arrays of rank 0 have one layout.
    strided = _Later(kernel) if any(array.rank for array in kernel.inputs) else contiguous
    return KernelCall(inputs, contiguous, strided, print_kernel(kernel))


class _Later:
    """The variant of a kernel for any strides, compiled on its first call."""

    __slots__ = ("_function", "_kernel")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arrays: Any) -> None:
        if self._function is None:
            self._function = compile_kernel(self._kernel, "A").function
        self._function(*arrays)
