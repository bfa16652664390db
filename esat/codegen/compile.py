"""Kernels to machine code, through the cache."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from numba.core import types

from esat.codegen import cache
from esat.codegen.loop_ir import Array, Kernel
from esat.codegen.printing.printer import ENTRY, Layout, print_source
from esat.codegen.template import NUMBA_TYPES


@dataclass(frozen=True)
class CompileRequest:
    """One variant of a kernel.

    Attributes
    ----------
    kernel
        What to compile. Kernels alike, that is equal but for comments, share machine code.
    layout
        The layout of the inputs.
    aliased
        Whether an output may be an input as well (see ``codegen.overwritable``). Kernels with several
        outputs are faster where none is.
    """

    kernel: Kernel
    layout: Layout
    aliased: bool


def compile_kernel(kernel: Kernel, layout: Layout = "C", aliased: bool = False) -> cache.CompiledKernel:
    """The machine code of a kernel, called as ``compiled(*outputs, *inputs)``.

    Outputs are preallocated C-contiguous arrays, of the dtypes and ranks the kernel says. Inputs are those
    of the group that ``kernel.operands`` names, in this order; each is an aligned array in native byte
    order, rank 0 included, of layout ``layout``. Sizes must agree as ``kernel.axes`` says. Nothing of this
    is checked. Outputs do not overlap one another or, unless ``aliased``, any input.

    Raises
    ------
    CompileError
        When numba refuses the source.
    """
    return _compile(CompileRequest(kernel, layout, aliased))


@functools.lru_cache(maxsize=4096)
def _compile(request: CompileRequest) -> cache.CompiledKernel:
    kernel = request.kernel
    printed = print_source(kernel, request.layout, comments=False)
    signature = types.void(
        *(_numba_type(array, "C") for array in kernel.outputs),
        *(_numba_type(array, request.layout) for array in kernel.inputs),
    )
    noalias = () if request.aliased or len(kernel.outputs) < 2 else (ENTRY,)
    options = cache.CompileOptions(noalias=noalias)
    return cache.load_or_compile(printed.text, ENTRY, signature, printed.environment, options)


def _numba_type(array: Array, layout: Layout) -> Any:
    return types.Array(NUMBA_TYPES[array.dtype], array.rank, "C" if array.rank == 0 or layout == "C" else "A")
