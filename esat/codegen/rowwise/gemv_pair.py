"""``a' f(a x)`` for a column ``x``: each row of the matrix is used twice while it is in cache.

Two products with a vector read a matrix twice, and memory sets their pace. This kernel takes a few rows at a
time: their products with ``x``, and an elementwise function of them, say which multiples of these same rows
belong to the result. That takes 0.3 to 0.9 of the time of two products with matrices beyond the second-level
cache, and less for small ones, too, which have one call instead of three.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.compile import compile_kernel
from esat.codegen.ground.target import Target
from esat.codegen.lowering.lower import lower
from esat.codegen.matmul.row_tiles import lanes_of
from esat.codegen.rowwise.print_gemv_pair import (
    OWN_FACTORS,
    OWN_PRODUCTS,
    PARTS_OF_ROWS,
    ROWS_ENTRY,
    RowsKernel,
    print_rows,
)
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import granted_threads
from esat.codegen.threads.choice import Choices
from esat.graph.op import Array
from esat.graph.variables import Variable
from esat.ops.linalg.rows_product import RowsProduct
from esat.phases.fusing.group import Group

TILED_TO = 20 << 10
"""Bytes of as many rows as a vector has lanes, up to which vectors of the operand and of the sums are kept in
registers (:mod:`esat.codegen.matmul.row_tiles`), where longer rows would take more of the time."""
TILED_BYTES = 1 << 13
"""Bytes of a block of them, unless those multiplied together have more: with the next block, which is fetched
meanwhile, it stays in the first-level cache."""
FEW_ROWS, MORE_ROWS = 4, 8
"""Rows that are used at a time where they are shorter or longer; more where they have the lengths below."""
MORE_ROWS_FROM, MORE_ROWS_TO = 1 << 12, 1 << 16
"""Bytes of such a row. A few shorter ones are read as one piece of memory; so many longer ones leave the
core's own cache before they are used again."""
BLOCK = 64
"""Rows of a block at most: the function between the products is vectorised over them."""
BLOCK_BYTES = 1 << 18
"""Bytes of a block of other rows at most, unless those used at a time have more: it stays in the core's own
cache."""
LONGEST_ROW = 1 << 17
"""Bytes of a row at most."""
PARTS = 8
"""Parts that the rows are cut into, whatever the threads: results do not depend on how many there are."""
LEAST_ROWS = 32
"""Rows of a part at least: each leaves a partial result as long as a row."""
SHARED_FROM = 1 << 17
"""Elements from which there are several parts, for several threads: about 20 microseconds for one."""

Multiply = Callable[[Array, Array, Array], None]
"""Writes the product of a matrix with a column into a given column."""

_IN_ORDER = 0x101
"""The bits of ``ndarray.flags.num`` of aligned arrays in C order."""

_choices = Choices()
"""By sizes of matrices. All functions share them: what other processes do is the same for all."""


def rows_at_once(columns: int, itemsize: int, target: Target) -> int | None:
    """Rows of a matrix that its kernel uses at a time; None where it takes tiles of columns."""
    together = lanes_of(target, itemsize)
    if together <= columns and together * columns * itemsize <= TILED_TO:
        return None
    return MORE_ROWS if MORE_ROWS_FROM < columns * itemsize <= MORE_ROWS_TO else FEW_ROWS


def parts_of(rows: int, columns: int) -> int:
    """Parts that the rows of a matrix are cut into: its shape alone decides."""
    return 1 if rows * columns < SHARED_FROM else max(1, min(PARTS, rows // LEAST_ROWS))


def block_of(columns: int, itemsize: int, target: Target) -> int:
    """Rows of a block."""
    count, most = rows_at_once(columns, itemsize, target), BLOCK_BYTES
    if count is None:
        count, most = lanes_of(target, itemsize), TILED_BYTES
    return min(BLOCK, max(1, most // (count * max(columns, 1) * itemsize)) * count)


def stays_in_cache(columns: int, itemsize: int) -> bool:
    """Whether rows are short enough to be there still when they are used again."""
    return columns * itemsize <= LONGEST_ROW


@functools.lru_cache(maxsize=cache.RECENT_KERNELS)
def compile_rows(kernel: RowsKernel, count: int | None, target: Target) -> cache.CompiledKernel:
    """The machine code ``(matrix, vector, sums, *others, *kept, output, block, pool, threads)``.

    Its arrays are in C order and of shapes (m, s), (n,), (parts, n), (m,) or () for others, (m,) for what is
    kept, and (n,). Rows are the first n of s elements. Of one part, the sums may be the output. The pool is 0
    for one thread.

    Parameters
    ----------
    count
        What :func:`rows_at_once` says.
    """
    number, word = NUMBA_TYPES[kernel.dtype], types.int64
    matrix, vector = (types.Array(number, rank, "C") for rank in (2, 1))
    passed = [types.Array(NUMBA_TYPES[dtype], rank, "C") for dtype, rank in (*kernel.others, *kernel.kept)]
    signature = types.void(matrix, vector, matrix, *passed, vector, word, word, word)
    printed = print_rows(kernel, count, target, comments=False)
    options = cache.CompileOptions(target, noalias=PARTS_OF_ROWS, joined=PARTS_OF_ROWS)
    return cache.load_or_compile(printed.text, ROWS_ENTRY, signature, printed.environment, options)


def lower_rows(op: RowsProduct, dtype: str) -> RowsKernel:
    """The kernel of an op for a matrix of a dtype.

    Raises
    ------
    CompileError
        When the function between the products cannot be lowered.
    """
    if op.middle is None:
        return RowsKernel(dtype)
    products, factors = op.middle.inputs[0], op.middle.outputs[0]
    places = {factors: OWN_FACTORS}
    places[products] = OWN_PRODUCTS
    for place, variable in enumerate(op.others):
        places[variable] = f"other{place}[low:high]" if variable.tensor_type.ndim else f"other{place}"
    places.update((variable, f"kept{place}[low:high]") for place, variable in enumerate(op.kept))
    group = _between(op)
    function = lower(group) if group.nodes else None
    operands = [] if function is None else [group.inputs[place] for place in function.operands]
    return RowsKernel(
        dtype,
        function,
        tuple(places[variable] for variable in (*group.outputs, *operands)),
        places[products],
        places[factors],
        tuple((variable.tensor_type.dtype, variable.tensor_type.ndim) for variable in op.others),
        tuple((variable.tensor_type.dtype, 1) for variable in op.kept),
    )


def _between(op: RowsProduct) -> Group:
    """What is computed between the products."""
    assert op.middle is not None
    nodes = tuple(op.middle.toposort())
    computed = {output for node in nodes for output in node.outputs}
    inputs = dict.fromkeys(variable for node in nodes for variable in node.inputs if variable not in computed)
    outputs = dict.fromkeys(variable for variable in op.middle.outputs if variable in computed)
    return Group("kernel", nodes, tuple(inputs), tuple(outputs))


class RowsRoutine:
    """The routine ``(matrix, operand, *others, output, *kept)`` of a rows product.

    Parameters
    ----------
    op
        The op.
    matrix
        The variable that it multiplies, of dtype float32 or float64.
    target
        What it is compiled for.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    multiply
        What multiplies a matrix whose rows do not lie in one piece each, or are too long.
    """

    def __init__(
        self, op: RowsProduct, matrix: Variable, target: Target, threads: int | None, multiply: Multiply
    ) -> None:
        self.kernel = lower_rows(op, matrix.tensor_type.dtype)
        self.target = target
        self._op = op
        self._threads = threads
        self._multiply = multiply
        columns, itemsize = matrix.tensor_type.shape[1], matrix.tensor_type.numpy_dtype.itemsize
        self._count = None if columns is None else rows_at_once(columns, itemsize, target)
        compile_rows(self.kernel, self._count, target)

    def source(self) -> str:
        """Its text, for the user to read."""
        return print_rows(self.kernel, self._count, self.target, comments=True).text

    def __call__(self, matrix: Array, operand: Array, *arrays: Array) -> None:
        count = len(self.kernel.others)
        others, output, kept = arrays[:count], arrays[count], arrays[count + 1 :]
        (rows, columns), itemsize = matrix.shape, matrix.itemsize
        stored = _by_rows(matrix)
        if operand.shape != (columns, 1) or stored is None or not stays_in_cache(columns, itemsize):
            self._in_two_passes(matrix, operand, others, output, kept)
            return
        parts = parts_of(rows, columns)
        sums = np.empty((parts, columns), matrix.dtype) if parts > 1 else output.reshape(1, columns)
        count_at_once = rows_at_once(columns, itemsize, self.target)
        compiled = compile_rows(self.kernel, count_at_once, self.target)
        vector, given = _in_order(operand).reshape(-1), (*map(_in_order, others), *kept, output.reshape(-1))
        block = block_of(columns, itemsize, self.target)
        run = functools.partial(compiled.function, stored, vector, sums, *given, block)
        threads = granted_threads(self._threads) if parts > 1 else 1
        if threads == 1:
            run(0, 1)
            return
        _choices.of((compiled.key, matrix.shape, threads)).run(threads, run)

    def _in_two_passes(
        self,
        matrix: Array,
        operand: Array,
        others: Sequence[Array],
        output: Array,
        kept: Sequence[Array],
    ) -> None:
        """By a product with the matrix, the function, and a product with the transposed matrix."""
        middle = self._op.middle
        if operand.shape[1] != 1:
            (output[...],) = self._op.perform((matrix, operand))
            return
        products = np.empty((len(matrix), 1), matrix.dtype)
        self._multiply(matrix, operand, products)
        factors = products
        if middle is not None:
            arrays = dict(zip(self._op.others, map(_in_order, others), strict=True))
            arrays.update(zip(self._op.kept, kept, strict=True))
            if middle.inputs[0] in arrays:
                arrays[middle.inputs[0]][:] = products[:, 0]
            arrays[middle.inputs[0]] = products[:, 0]
            self._call_function(arrays, len(matrix))
            factors = arrays[middle.outputs[0]][:, None]
        self._multiply(matrix.T, factors, output)

    def _call_function(self, arrays: dict[Variable, Array], rows: int) -> None:
        """Compute what is between the products, for all rows at once; what has no array gets one."""
        function = self.kernel.function
        if function is None:
            return
        group = _between(self._op)
        for variable in group.outputs:
            if variable not in arrays:
                arrays[variable] = np.empty(rows, variable.tensor_type.numpy_dtype)
        read = [group.inputs[place] for place in function.operands]
        compile_kernel(function, self.target).function(
            *(arrays[variable] for variable in (*group.outputs, *read))
        )


def _in_order(array: Array) -> Array:
    """The array, aligned and in C order."""
    return array if array.flags.num & _IN_ORDER == _IN_ORDER else np.require(array, requirements=["C", "A"])


def _by_rows(matrix: Array) -> Array | None:
    """A matrix in C order with rows that begin with those given; None where these are not in one piece."""
    if matrix.flags.num & _IN_ORDER == _IN_ORDER:
        return matrix
    step, rest = divmod(matrix.strides[0], matrix.itemsize)
    in_pieces = matrix.strides[1] == matrix.itemsize and not rest and step >= matrix.shape[1]
    if not in_pieces or not matrix.flags.aligned:
        return None
    # Memory may end where the last row does; nothing behind it is read.
    return np.lib.stride_tricks.as_strided(matrix, (matrix.shape[0], step), matrix.strides)
