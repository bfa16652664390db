"""Several layers over the rows of matrices, block after block of rows: what lies between stays in cache.

A block is small enough for OpenBLAS's kernels that read operands where they are, as in
:mod:`esat.codegen.matmul.shared_products`; several threads share all of the work at once instead of each
step's.

Without AVX-512 it has no such kernels, and products are made in tiles of registers instead
(:mod:`esat.codegen.matmul.product_tiles`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np
from numba.core import types

from esat.base.records import record
from esat.codegen import cache
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.ground.target import Target
from esat.codegen.kernel.overwriting import overwritable, overwrite
from esat.codegen.lowering.lower import can_fuse, lower, supported
from esat.codegen.matmul.product_tiles import packed_size
from esat.codegen.matmul.row_tiles import lanes_of
from esat.codegen.matmul.shared_products import SHARED_FROM, SMALL_PRODUCT
from esat.codegen.matmul.small_products import function_address
from esat.codegen.rowwise.print_layers import (
    BLOCKS_ENTRY,
    FunctionStep,
    LayersKernel,
    Matrix,
    ProductStep,
    functions_of,
    print_layers,
)
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import granted_threads
from esat.codegen.threads.choice import Choices
from esat.graph import Apply, FunctionGraph, Variable
from esat.graph.identity import is_among
from esat.graph.op import Array
from esat.ops.contraction import MatMul
from esat.ops.linalg.row_blocks import RowBlocks, is_sum_over_rows, is_turned
from esat.phases.fusing.fusion import Limits, fuse
from esat.phases.fusing.group import Group

BLOCK, LEAST_BLOCK = 192, 32
"""Rows of a block at most, and at least: with fewer the steps one after the other are as fast."""
TILED_FROM = 16
"""Rows from which products are made in tiles of registers: fewer are not worth packing weights for."""
BLOCK_BYTES = 9 << 16
"""Bytes of all that a block reads and writes, at most: it stays in the core's own cache."""
PARTS = 8
"""Parts that the rows are cut into, whatever the threads: results do not depend on how many there are."""
FETCHED_FROM = 1 << 22
"""Bytes of matrices of rows from which the next block is fetched meanwhile: they come from further away."""
_MULTIPLE = 16
_LINE = 64
_MOST_SIZES = 64

Shape = tuple[int, ...]
Link = Callable[[FunctionGraph], Callable[..., Any]]
"""Compiles a graph to a function of arrays, which takes those of its results as ``out``."""

_AS_IT_IS: Any = nullcontext()
_IN_ORDER = 0x101
"""The bits of ``ndarray.flags.num`` of aligned arrays in C order."""
_choices = Choices()
"""By sizes. All functions share them: what other processes do is the same for all."""


class _Rules:
    """What may become kernels between the products."""

    limits = Limits()
    supported = staticmethod(supported)
    can_fuse = staticmethod(can_fuse)


@record(frozen=True, eq=False)
class Layers:
    """The kernel of an op, and what its arrays are.

    Attributes
    ----------
    target
        What it is for.
    scratch
        The variable of each array in scratch.
    sums
        The sums over all rows, in their order among the results.
    products
        The nodes of the products, in their order in the kernel.
    """

    kernel: LayersKernel
    target: Target
    scratch: tuple[Variable, ...]
    sums: tuple[Variable, ...]
    products: tuple[Apply, ...]


def lower_layers(op: RowBlocks, dtype: str, target: Target) -> Layers:
    """The kernel of an op for matrices of a dtype, and a target.

    Raises
    ------
    CompileError
        When what is between products cannot be lowered.
    """
    return _Lowering(op).layers(dtype, target)


class _Lowering:
    def __init__(self, op: RowBlocks) -> None:
        self.body = op.body
        of_rows = op.of_rows()
        self.leaves = op.body.inputs[: op.leaves]
        self.others = op.body.inputs[op.leaves :]
        self.results = [output for output in op.body.outputs if output in of_rows]
        sums = [output for output in op.body.outputs if output not in of_rows]
        self.sums = {output: number for number, output in enumerate(sums)}
        self.scratch: list[Variable] = []
        self.products: list[Apply] = []
        self.places: dict[Variable, Matrix] = {}
        self.places.update((one, Matrix("leaf", number)) for number, one in enumerate(self.leaves))
        self.places.update((one, Matrix("other", number)) for number, one in enumerate(self.others))
        self.places.update((one, Matrix("result", number)) for number, one in enumerate(self.results))

    def layers(self, dtype: str, target: Target) -> Layers:
        steps: list[ProductStep | FunctionStep] = []
        groups = fuse(self.body, _Rules()).groups
        last_read = {_stored(variable): group for group in groups for variable in group.inputs}
        for group in groups:
            if group.kind == "kernel":
                dying = {variable for variable in group.inputs if last_read[variable] is group}
                steps.append(self._function(group, dying))
            elif isinstance(group.nodes[0].op, MatMul):
                steps.append(self._product(group.nodes[0]))
        kernel = LayersKernel(
            dtype,
            tuple(steps),
            len(self.leaves),
            len(self.others),
            len(self.results),
            len(self.sums),
            len(self.scratch),
            target.tiles_products,
        )
        return Layers(kernel, target, tuple(self.scratch), tuple(self.sums), tuple(self.products))

    def _function(self, group: Group, dying: AbstractSet[Variable]) -> FunctionStep:
        """A kernel, in place where it reads scratch that nothing reads afterwards."""
        function = lower(group)
        for number, place in overwritable(function):
            output, replaced = group.outputs[number], group.inputs[function.operands[place]]
            if output in self.places or replaced not in dying or self.places[replaced].kind != "scratch":
                continue
            function = overwrite(function, number, place)
            self.places[output] = self.places[replaced]
            break
        written = [self._written(output) for output in group.outputs]
        read = [self.places[group.inputs[place]] for place in function.operands]
        return FunctionStep(function, (*written, *read))

    def _product(self, node: Apply) -> ProductStep:
        self.products.append(node)
        left, right = map(_stored, node.inputs)
        transposed = is_turned(node.inputs[0]), is_turned(node.inputs[1])
        output = node.outputs[0]
        is_sum = is_sum_over_rows(node)
        written = Matrix("sum", self.sums[output]) if is_sum else self._written(output)
        return ProductStep(self.places[left], self.places[right], transposed, written)

    def _written(self, variable: Variable) -> Matrix:
        """Where a step writes to."""
        if variable in self.sums:
            total, rank = self.sums[variable], variable.tensor_type.ndim
            matrix = Matrix("part", len(self.scratch), rank, total)
        elif variable in self.places:
            return self.places[variable]
        else:
            matrix = self.places[variable] = Matrix("scratch", len(self.scratch))
        self.scratch.append(variable)
        return matrix


def _stored(variable: Variable) -> Variable:
    """The matrix itself where a variable shows its transpose."""
    return variable.owner.inputs[0] if is_turned(variable) and variable.owner is not None else variable


@functools.lru_cache(maxsize=cache.RECENT_KERNELS)
def compile_layers(kernel: LayersKernel, target: Target) -> cache.CompiledKernel:
    """The machine code of a kernel; :func:`print_layers` says what it is called with."""
    number, word = NUMBA_TYPES[kernel.dtype], types.int64
    matrix, vector = types.Array(number, 2, "C"), types.Array(number, 1, "C")
    signature = types.void(
        *(matrix for _ in kernel.arrays),
        *(vector for _ in range(kernel.sums)),
        matrix,
        types.Array(word, 2, "C"),
        *(word,) * 7,
    )
    printed = print_layers(kernel, target, comments=False)
    functions = functions_of(kernel)
    options = cache.CompileOptions(target, noalias=functions, joined=functions)
    return cache.load_or_compile(printed.text, BLOCKS_ENTRY, signature, printed.environment, options)


class RowTiling:
    """How the rows of matrices of certain shapes are taken.

    Attributes
    ----------
    block, parts
        Rows of a block, and parts of the rows.
    tiled
        Whether products are made in tiles of registers.
    places
        For each array in scratch its first place there, and its columns; for each packed one its elements.
    width
        Elements of scratch for a part.
    sums
        Elements of each sum over rows.
    fetch
        Whether the next block is fetched meanwhile.
    largest_product
        Multiplications of BLAS's largest product.
    """

    def __init__(self, op: RowBlocks, layers: Layers, inputs: Sequence[Shape], itemsize: int) -> None:
        shapes = op.shapes(inputs)
        self.rows = inputs[0][0]
        self.itemsize, self._target = itemsize, layers.target
        self.is_empty = any(0 in shape for shape in shapes.values())
        self.sums = [prod(shapes[variable]) for variable in layers.sums]
        products = [
            prod(shapes[node.inputs[1]]) if not is_sum_over_rows(node) else prod(shapes[node.outputs[0]])
            for node in layers.products
        ]
        stored = (*op.body.inputs[: op.leaves], *op.body.outputs, *layers.scratch)
        across = sum(shapes[variable][-1] for variable in dict.fromkeys(stored))
        self.multiplications = self.rows * sum(products)
        narrowest = min((shapes[node.outputs[0]][1] for node in layers.products), default=0)
        self.tiled = (
            layers.kernel.tiled and narrowest >= lanes_of(layers.target, itemsize) and self.rows >= TILED_FROM
        )
        self.block = min(
            BLOCK,
            SMALL_PRODUCT // max(*products, 1) // _MULTIPLE * _MULTIPLE,
            BLOCK_BYTES // (max(across, 1) * itemsize) // _MULTIPLE * _MULTIPLE,
        )
        self._scratch = [
            (is_among(variable, layers.sums), shapes[variable][-1]) for variable in layers.scratch
        ]
        # What is summed in a product, None for the rows of a block, and its columns.
        self._products = [
            (None if is_sum_over_rows(node) else shapes[node.inputs[0]][1], shapes[node.outputs[0]][1])
            for node in layers.products
            if layers.kernel.tiled
        ]
        if self.fits:  # nothing else is asked where they do not
            blocks = -(-self.rows // self.block)
            self.parts = min(PARTS, blocks) if self.multiplications >= SHARED_FROM else 1
            self.fetch = sum(prod(shape) for shape in inputs[: op.leaves]) * itemsize >= FETCHED_FROM
            self.width, self.places = self._laid_out()
            self.largest_product = 0 if self.tiled else max(products) * min(self.rows, self.block)

    @property
    def fits(self) -> bool:
        """Whether blocks of enough rows are small enough."""
        return self.block >= LEAST_BLOCK and not self.is_empty

    def _laid_out(self) -> tuple[int, Array]:
        per_line = _LINE // self.itemsize
        width, places = 0, []
        rows = min(self.block, self.rows)
        lengths = [(columns, columns if is_sum else columns * rows) for is_sum, columns in self._scratch]
        for inner, columns in self._products:
            size = packed_size(inner or rows, columns, self._target, self.itemsize) if self.tiled else 0
            lengths.append((size, size))
        for columns, length in lengths:
            places.append((width, columns))
            width += -(-length // per_line) * per_line
        return width, np.array(places, np.int64).reshape(-1, 2)


class RowBlocksRoutine:
    """The routine ``(*inputs, *outputs)`` of layers over rows.

    Parameters
    ----------
    op
        The op.
    dtype
        float32 or float64.
    target
        What it is compiled for.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    link
        What compiles the steps one after the other, for sizes and layouts that blocks do not suit; None for
        the op's own NumPy functions.
    """

    def __init__(
        self, op: RowBlocks, dtype: str, target: Target, threads: int | None, link: Link | None
    ) -> None:
        self.layers = lower_layers(op, dtype, target)
        self._op = op
        self._dtype = np.dtype(dtype)
        self._threads = threads
        self._link = link
        self._known: dict[tuple[Shape, ...], tuple[RowTiling, list[Array]]] = {}
        self.is_sum = [is_among(output, self.layers.sums) for output in op.body.outputs]
        self.compiled = compile_layers(self.layers.kernel, target)

    def source(self) -> str:
        """Its text, for the user to read."""
        return print_layers(self.layers.kernel, self.layers.target, comments=True).text

    def sizes(self, inputs: Sequence[Shape]) -> RowTiling:
        """How matrices of these shapes are taken."""
        return RowTiling(self._op, self.layers, inputs, self._dtype.itemsize)

    def __call__(self, *arrays: Array) -> None:
        count, leaves = len(self._op.body.inputs), self._op.leaves
        inputs, outputs = arrays[:count], arrays[count:]
        key = tuple([array.shape for array in inputs])
        known = self._known.get(key)
        if known is None:
            while len(self._known) >= _MOST_SIZES:
                self._known.pop(next(iter(self._known)), None)
            known = self._known[key] = self.sizes(key), []
        sizes, idle = known
        in_order = all(map(_is_in_order, (*inputs[:leaves], *outputs)))
        alone = one_thread()
        if not sizes.fits or not in_order or alone is None:
            self._one_after_the_other(inputs, outputs)
            return
        try:
            scratch = idle.pop()
        except IndexError:
            scratch = new_scratch(sizes, self._dtype)
        arguments = self._arguments(sizes, inputs, outputs, scratch)
        threads = granted_threads(self._threads) if sizes.parts > 1 else 1
        with _AS_IT_IS if alone.count() == 1 else alone:
            self._run(arguments, key, threads)
        idle.append(scratch)

    def _arguments(
        self, sizes: RowTiling, inputs: Sequence[Array], outputs: Sequence[Array], scratch: Array
    ) -> list[Any]:
        leaves = self._op.leaves
        pairs = list(zip(outputs, self.is_sum, strict=True))
        totals = [array.reshape(-1) for array, is_sum in pairs if is_sum]
        return [
            *inputs[:leaves],
            *(np.require(array, requirements=["C", "A"]) for array in inputs[leaves:]),
            *(array for array, is_sum in pairs if not is_sum),
            *(partial_sums(total, sizes.parts) for total in totals),
            *totals,
            scratch,
            sizes.places,
            *self.numbers(sizes),
        ]

    def numbers(self, sizes: RowTiling) -> tuple[int, ...]:
        """What the kernel is called with after its arrays, but for the pool and the threads."""
        gemm = 0 if sizes.tiled else function_address("sgemm" if self._dtype.itemsize == 4 else "dgemm")
        return gemm, sizes.rows, sizes.block, sizes.parts, int(sizes.fetch)

    def _run(self, arguments: Sequence[Any], key: tuple[Shape, ...], threads: int) -> None:
        if threads == 1:
            self.compiled.function(*arguments, 0, 1)
            return
        choice = _choices.of((self.compiled.key, key, threads))
        choice.run(threads, self.compiled.function, *arguments)

    def _one_after_the_other(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if self._link is None:
            for array, result in zip(outputs, self._op.perform(inputs), strict=True):
                array[...] = result
            return
        self._steps(*inputs, out=outputs[0] if len(outputs) == 1 else tuple(outputs))

    @functools.cached_property
    def _steps(self) -> Callable[..., Any]:
        assert self._link is not None
        return self._link(self._op.body.clone())


def _is_in_order(array: Array) -> bool:
    return array.flags.num & _IN_ORDER == _IN_ORDER


def partial_sums(total: Array, parts: int) -> Array:
    """An array for a sum over each part of the rows: that of the sum itself where there is one part."""
    return total.reshape(1, -1) if parts == 1 else np.empty((parts, total.size), total.dtype)


def new_scratch(sizes: RowTiling, dtype: np.dtype[Any]) -> Array:
    """Memory for the blocks of each part, from a cache line's boundary on."""
    length = sizes.parts * sizes.width * dtype.itemsize
    memory = np.empty(length + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + length].view(dtype).reshape(sizes.parts, sizes.width)
