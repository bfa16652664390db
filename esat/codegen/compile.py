"""Kernels to machine code, through the cache: for one thread, and for several that share loops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np
from numba.core import types

from esat.base.records import record
from esat.codegen import cache
from esat.codegen.cache import CompiledKernel
from esat.codegen.ground.target import Target
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Array, Kernel
from esat.codegen.kernel.moments import find_moments
from esat.codegen.kernel.narrow import Narrow
from esat.codegen.kernel.partition import Gather, LoopPartition, gathered, partition
from esat.codegen.printing.input_layout import Layout
from esat.codegen.printing.print_narrow import print_narrow
from esat.codegen.printing.printer import ENTRY, print_source
from esat.codegen.printing.shared_loops import PARALLEL_ENTRY, part_names, print_parallel_source
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import pool_address
from esat.errors import CompileError


@functools.lru_cache(maxsize=cache.RECENT_KERNELS)
def compile_kernel(kernel: Kernel, target: Target, layout: Layout = "C") -> cache.CompiledKernel:
    """The machine code of a kernel for a target, called as ``compiled(*outputs, *inputs)``.

    Kernels alike, that is equal but for comments, share machine code.

    Outputs are preallocated C-contiguous arrays, of the dtypes and ranks the kernel says, that do not
    overlap one another or any input. Inputs are those of the group that ``kernel.operands`` names, in this
    order; each is an aligned array in native byte order, rank 0 included, of layout ``layout``. Sizes agree
    as ``kernel.axes`` says, and no axis of an extremum or a softmax is empty. Nothing of this is checked.

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


Shape = tuple[int, ...]
Values = np.ndarray[Any, np.dtype[Any]]
_KEPT_SHAPES = 128


def axis_sizes(kernel: Kernel, shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The sizes of a kernel's axes, from the shapes of its arrays."""
    return tuple(prod(shapes[array][place] for array, place in axis.factors) for axis in kernel.axes)


def is_divisible(kernel: Kernel) -> bool:
    """Whether a kernel has loops that several threads can share."""
    return any(isinstance(part, LoopPartition | Gather) for part in partition(kernel))


@record(frozen=True)
class ParallelKernel:
    """A kernel for several threads, of one layout.

    Attributes
    ----------
    kernel
        As it was partitioned.
    partial
        For each accumulator that leaves partial results, what gathers it, and their dtype; then for moments.
    code
        The machine code, called with the kernel's arrays, arrays for the partial results, the address of a
        pool and a number of threads.
    """

    kernel: Kernel
    partial: tuple[tuple[Gather, str], ...]
    code: CompiledKernel
    _known: dict[tuple[Shape, ...], Callable[..., None]] = field(default_factory=dict, compare=False)

    def __call__(self, threads: int, *arrays: Values) -> None:
        """Run in so many threads; arrays as the kernel for one thread takes them."""
        shapes = tuple([array.shape for array in arrays])
        run = self._known.get(shapes)
        if run is None:
            while len(self._known) >= _KEPT_SHAPES:
                self._known.pop(next(iter(self._known)), None)
            run = self._known.setdefault(shapes, self.for_shapes(shapes))
        run(threads, *arrays)

    def for_shapes(self, shapes: tuple[Shape, ...]) -> Callable[..., None]:
        """The same, for arrays of these shapes only, which are not looked at again."""
        places, function, empty = self.partial_results(shapes), self.code.function, np.empty

        def run(threads: int, *arrays: Values) -> None:
            partial = [empty(size, dtype) for size, dtype in places]
            function(*arrays, *partial, pool_address(threads) if threads > 1 else 0, threads)

        return run

    def partial_results(self, shapes: Sequence[Shape]) -> list[tuple[int, np.dtype[Any]]]:
        """Size and dtype of the arrays for the partial results, for arrays of these shapes."""
        sizes = axis_sizes(self.kernel, shapes)
        return [(part.partial_results(sizes), np.dtype(dtype)) for part, dtype in self.partial]


@functools.lru_cache(maxsize=cache.RECENT_KERNELS)
def compile_parallel_kernel(
    kernel: Kernel, target: Target, layout: Layout = "C", streams: bool = False
) -> ParallelKernel:
    """The kernel in parts that several threads share.

    Its results are the same bits in any number of threads; those of :func:`compile_kernel`, too, unless
    LLVM chose another order in which to sum a block. With ``streams`` results are written past the caches,
    and long rows that these follow from may be read once instead of twice: see :mod:`.kernel.moments`.

    Raises
    ------
    CompileError
        When there is nothing to share, or numba refuses the source.
    """
    printed = print_parallel_source(kernel, target, layout, comments=False, streams=streams)
    if printed is None:
        raise CompileError(f"codegen: several threads have nothing to share in ({kernel.comment})")
    if layout == "C":
        kernel = collapse(kernel)
    parts = partition(kernel)
    partial = tuple((part, accumulator.dtype) for part, accumulator in gathered(parts))
    partial += tuple((one.chunks, one.dtype) for one in find_moments(parts) for _ in range(3))
    word = types.int64
    signature = types.void(
        *(numba_type(array, "C") for array in kernel.outputs),
        *(numba_type(array, layout) for array in kernel.inputs),
        *(types.Array(NUMBA_TYPES[dtype], 1, "C") for _, dtype in partial),
        word,
        word,
    )
    options = cache.CompileOptions(target, noalias=(PARALLEL_ENTRY, *part_names(kernel)))
    compiled = cache.load_or_compile(printed.text, PARALLEL_ENTRY, signature, printed.environment, options)
    return ParallelKernel(kernel, partial, compiled)
