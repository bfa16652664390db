"""Kernels to machine code, through the cache."""

from __future__ import annotations

import functools
from typing import Any

from numba.core import types

from esat.codegen import cache
from esat.codegen.ground.target import Target
from esat.codegen.kernel.loop_ir import Array, Kernel
from esat.codegen.kernel.narrow import Narrow
from esat.codegen.printing.input_layout import Layout
from esat.codegen.printing.print_narrow import print_narrow
from esat.codegen.printing.printer import ENTRY, print_source
from esat.codegen.template import NUMBA_TYPES


@functools.lru_cache(maxsize=cache.RECENT_KERNELS)
def compile_kernel(kernel: Kernel, target: Target, layout: Layout = "C") -> cache.CompiledKernel:
    """The machine code of a kernel for a target, called as ``compiled(*outputs, *inputs)``.

    Kernels alike, that is equal but for comments, share machine code.

    Outputs are preallocated C-contiguous arrays, of the dtypes and ranks the kernel says, that do not
    overlap one another or any input. Inputs are those of the group that ``kernel.operands`` names, in this
    order; each is an aligned array in native byte order, rank 0 included, of layout ``layout``. Sizes agree
    as ``kernel.axes`` says, and axes of ``kernel.nonempty`` are not empty. Nothing of this is checked.

    Raises
    ------
    CompileError
        When numba refuses the source.
    """
    printed, signature = print_source(kernel, target, layout, comments=False), signature_of(kernel, layout)
    options = _options(target)
    return cache.load_or_compile(printed.text, ENTRY, signature, printed.environment, options)


@functools.lru_cache(maxsize=cache.RECENT_KERNELS)
def compile_narrow(narrow: Narrow, size: int, target: Target) -> cache.CompiledKernel:
    """The machine code of a narrow kernel for one size of its narrow axis; see :func:`compile_kernel`."""
    printed = print_narrow(narrow, size, target, comments=False)
    signature = types.void(*(numba_type(array, "C") for array in narrow.kernel.arrays))
    options = _options(target)
    return cache.load_or_compile(printed.text, ENTRY, signature, printed.environment, options)


def assembly(kernel: Kernel, target: Target, layout: Layout = "C") -> str:
    """The machine code of a kernel as assembly text, for any target that LLVM knows: it is not loaded.

    Raises
    ------
    CompileError
        When numba refuses the source.
    """
    printed, signature = print_source(kernel, target, layout, comments=False), signature_of(kernel, layout)
    return cache.assembly(printed.text, ENTRY, signature, printed.environment, _options(target))


def signature_of(kernel: Kernel, layout: Layout) -> Any:
    """The numba signature of a kernel for inputs of a layout."""
    return types.void(
        *(numba_type(array, "C") for array in kernel.outputs),
        *(numba_type(array, layout) for array in kernel.inputs),
    )


def _options(target: Target) -> cache.CompileOptions:
    # Unless arrays overlap nowhere loops over many do not vectorise: LLVM gives up on checking all pairs.
    return cache.CompileOptions(target, noalias=(ENTRY,))


def numba_type(array: Array, layout: Layout) -> Any:
    """The numba type of an array that a kernel takes."""
    return types.Array(NUMBA_TYPES[array.dtype], array.rank, "C" if array.rank == 0 or layout == "C" else "A")
