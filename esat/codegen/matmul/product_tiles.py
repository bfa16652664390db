"""Products of matrices in tiles that stay in registers, read where they are.

A BLAS copies both operands into panels before it multiplies them. For some hundred rows with a small matrix
that is much of the time, and OpenBLAS has kernels without copies only for AVX-512. Here only the right one is
copied, a small matrix once for all rows. Tiles of the output, a few rows of a few vectors each, stay in 12 of
the 16 registers of AVX2 while one loop goes through all that is summed, at the rate of large matrices.

The last vector of a row ends where the row does, and the last tile computes the last row several times: what
is computed twice is the same, and so is what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.base.records import record
from esat.codegen.ground.host import target_of
from esat.codegen.ground.memory_access import BYTE, item_size, word
from esat.codegen.ground.target import Target
from esat.codegen.matmul.row_tiles import lanes_of, load, spread, steps, store
from esat.codegen.vector_math.builder import Float, Format

_CGUTILS: Any = cgutils
_HEIGHTS = {1: 6, 2: 6, 3: 4}
"""Rows of a tile by how many vectors wide it is."""
_WIDTH = 2
"""Vectors of a tile, but for the last ones of a row."""


def packed_size(inner: int, columns: int, target: Target, itemsize: int) -> int:
    """Elements of what :func:`pack_columns` writes in code for a target."""
    lanes = lanes_of(target, itemsize)
    return -(-columns // lanes) * lanes * inner


@intrinsic
def pack_columns(typing_context: Any, matrix: Any, packed: Any) -> Any:
    """Write vectors of a matrix's columns one after the other, each vector row after row.

    The matrix has as many columns as a vector has lanes at least (:func:`lanes_of`).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, shape, strides = _described(context, builder, matrix, arguments[0])
        given = [first, *shape, *strides, _described(context, builder, packed, arguments[1])[0]]
        format_ = _format(context, matrix)
        _call(builder, "pack_columns", format_, given, lambda inner, *values: _pack(inner, format_, *values))
        return context.get_dummy_value()

    return types.void(matrix, packed), generate


@intrinsic
def multiply_tiles(typing_context: Any, left: Any, packed: Any, output: Any) -> Any:
    """``output[...] = left @ matrix`` for a matrix that :func:`pack_columns` wrote.

    Both others are in C order, and the output is apart from them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        format_ = _format(context, left)
        first, (_, inner), (stride, _) = _described(context, builder, left, arguments[0])
        right, _, _ = _described(context, builder, packed, arguments[1])
        written, (rows, columns), (output_stride, _) = _described(context, builder, output, arguments[2])

        def emit(inside: Any, left: Any, stride: Any, *others: Any) -> None:
            values = (*others, word(0))
            _Product(inside, format_, left, (stride, word(format_.bits // 8)), *values).emit()

        given = [first, stride, right, written, output_stride, rows, inner, columns]
        _call(builder, "multiply_tiles", format_, given, emit)
        return context.get_dummy_value()

    return types.void(left, packed, output), generate


@intrinsic
def add_tiles(typing_context: Any, left: Any, packed: Any, output: Any, kept: Any) -> Any:
    """``output[...] = left.T @ matrix + (output if kept else 0)``, else as :func:`multiply_tiles`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        format_ = _format(context, left)
        first, (inner, _), (stride, _) = _described(context, builder, left, arguments[0])
        right, _, _ = _described(context, builder, packed, arguments[1])
        written, (rows, columns), (output_stride, _) = _described(context, builder, output, arguments[2])
        is_kept = context.cast(builder, arguments[3], kept, types.int64)

        def emit(inside: Any, left: Any, stride: Any, *others: Any) -> None:
            _Product(inside, format_, left, (word(format_.bits // 8), stride), *others).emit()

        given = [first, stride, right, written, output_stride, rows, inner, columns, is_kept]
        _call(builder, "add_tiles", format_, given, emit)
        return context.get_dummy_value()

    return types.void(left, packed, output, kept), generate


def _format(context: Any, kind: Any) -> Format:
    """Of a vector of an array's elements."""
    itemsize = item_size(context, kind)
    target = target_of(context)
    return Format(8 * itemsize, target, lanes_of(target, itemsize))


def _described(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any], list[Any]]:
    """A pointer to an array's bytes, its shape and its strides."""
    fields = context.make_array(kind)(context, builder, value)
    shape, strides = (
        _CGUTILS.unpack_tuple(builder, one, kind.ndim) for one in (fields.shape, fields.strides)
    )
    return builder.bitcast(fields.data, BYTE.as_pointer()), shape, strides


def _call(builder: Any, name: str, format_: Format, given: Sequence[Any], emit: Callable[..., None]) -> None:
    """Call a function that is emitted where a module has none of its name and format yet.

    It is not inlined: its loops need all registers.
    """
    module, name = builder.module, f"{name}_{format_.suffix}"
    function = module.globals.get(name)
    if function is None:
        function_type = ir.FunctionType(ir.VoidType(), [value.type for value in given])
        function = ir.Function(module, function_type, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        emit(inside, *function.args)
        inside.ret_void()
    builder.call(function, given)


def _pack(
    builder: Any,
    format_: Format,
    matrix: Any,
    rows: Any,
    columns: Any,
    row_stride: Any,
    column_stride: Any,
    packed: Any,
) -> None:
    lanes, size = format_.lanes, format_.bits // 8
    vectors = _vectors(builder, columns, lanes)
    in_order = builder.icmp_signed("==", column_stride, word(size))
    with steps(builder, word(0), vectors, 1) as (vector, _):
        first = builder.mul(_first_column(builder, vector, columns, lanes), column_stride)
        target = builder.gep(packed, [builder.mul(builder.mul(vector, rows), word(lanes * size))])
        with steps(builder, word(0), rows, 1) as (row, _):
            source = builder.gep(matrix, [builder.add(first, builder.mul(row, row_stride))])
            written = builder.gep(target, [builder.mul(row, word(lanes * size))])
            with builder.if_else(in_order) as (together, apart):
                with together:
                    store(written, load(builder, source, format_))
                with apart, steps(builder, word(0), word(lanes), 1) as (lane, _):
                    number = load(
                        builder,
                        builder.gep(source, [builder.mul(lane, column_stride)]),
                        replace(format_, lanes=1),
                    )
                    store(builder.gep(written, [builder.mul(lane, word(size))]), number)


def _vectors(builder: Any, columns: Any, lanes: int) -> Any:
    """How many vectors a row consists of."""
    return builder.udiv(builder.add(columns, word(lanes - 1)), word(lanes))


def _first_column(builder: Any, vector: Any, columns: Any, lanes: int) -> Any:
    """Where a vector of a row begins: the last one ends where the row does."""
    return _smaller(builder, builder.mul(vector, word(lanes)), builder.sub(columns, word(lanes)))


@record(frozen=True)
class _Product:
    """A product whose code is emitted.

    Attributes
    ----------
    format
        Of a vector of elements.
    left, left_strides
        A pointer to the left matrix, and bytes between what belongs to one row of the output and to the
        next, and between what is summed.
    right
        A pointer to the packed right matrix.
    output, output_stride
        A pointer to the output, and bytes between its rows.
    rows, inner, columns
        Sizes of the output, and how many products are summed.
    kept
        Whether the output is added to.
    """

    builder: Any
    format: Format
    left: Any
    left_strides: tuple[Any, Any]
    right: Any
    output: Any
    output_stride: Any
    rows: Any
    inner: Any
    columns: Any
    kept: Any

    def emit(self) -> None:
        """Emit all tiles."""
        builder = self.builder
        vectors = _vectors(builder, self.columns, self.format.lanes)
        is_one = builder.icmp_signed("==", vectors, word(1))
        is_odd = builder.trunc(vectors, ir.IntType(1))
        rest = builder.select(is_one, word(1), builder.select(is_odd, word(3), word(0)))
        paired = builder.sub(vectors, rest)
        with steps(builder, word(0), paired, _WIDTH) as (first, _):
            self._panel(first, _WIDTH)
        for width in (1, 3):
            with builder.if_then(builder.icmp_signed("==", rest, word(width))):
                self._panel(paired, width)

    def _panel(self, first: Any, width: int) -> None:
        """Emit the tiles of some vectors of columns."""
        builder, height = self.builder, _HEIGHTS[width]
        last = builder.sub(self.rows, word(1))
        vectors = [builder.add(first, word(place)) for place in range(width)]
        with steps(builder, word(0), self.rows, height) as (low, _):
            rows = [_smaller(builder, builder.add(low, word(row)), last) for row in range(height)]
            self._tile(rows, vectors)

    def _tile(self, rows: Sequence[Any], vectors: Sequence[Any]) -> None:
        """Emit a tile, of rows and vectors by their numbers."""
        builder = self.builder
        across, along = self.left_strides
        lefts = [self._moved(self.left, row, across) for row in rows]
        step = word(self._vector_bytes)
        rights = [self._moved(self.right, builder.mul(vector, self.inner), step) for vector in vectors]
        sums = [[self._zero_slot() for _ in vectors] for _ in rows]
        with steps(builder, word(0), self.inner, 1) as (number, _):
            values = [load(builder, self._moved(right, number, step), self.format) for right in rights]
            for left, slots in zip(lefts, sums, strict=True):
                factor = self._factor(self._moved(left, number, along))
                for value, slot in zip(values, slots, strict=True):
                    builder.store(factor.multiply_add(value, self._value(slot)).value, slot)
        starts = [self._moved(self.output, row, self.output_stride) for row in rows]
        places = [self._column_bytes(vector) for vector in vectors]
        pointers = [builder.gep(start, [place]) for start in starts for place in places]
        self._write(pointers, [slot for slots in sums for slot in slots])

    def _column_bytes(self, vector: Any) -> Any:
        """Bytes from the beginning of a row to a vector."""
        lanes = self.format.lanes
        first = _first_column(self.builder, vector, self.columns, lanes)
        return self.builder.mul(first, word(self._vector_bytes // lanes))

    def _write(self, pointers: Sequence[Any], sums: Sequence[Any]) -> None:
        """Write sums, or add them; tiles overlap themselves, so all is read before any of it is written."""
        builder = self.builder
        with builder.if_then(builder.icmp_signed("!=", self.kept, word(0))):
            for pointer, slot in zip(pointers, sums, strict=True):
                total = load(builder, pointer, self.format) + self._value(slot)
                builder.store(total.value, slot)
        for pointer, slot in zip(pointers, sums, strict=True):
            store(pointer, self._value(slot))

    def _factor(self, pointer: Any) -> Float:
        """A number in every lane."""
        number = load(self.builder, pointer, replace(self.format, lanes=1))
        return Float(self.builder, spread(self.builder, number.value, self.format.lanes), self.format)

    def _zero_slot(self) -> Any:
        """Memory for a vector, 0 at first: LLVM turns what only loads and stores use into a register."""
        slot = _CGUTILS.alloca_once(self.builder, self.format.float_type)
        self.builder.store(self.format.constant(self.format.float_type, 0.0), slot)
        return slot

    def _value(self, slot: Any) -> Float:
        return Float(self.builder, self.builder.load(slot), self.format)

    def _moved(self, pointer: Any, count: Any, stride: Any) -> Any:
        return self.builder.gep(pointer, [self.builder.mul(count, stride)])

    @property
    def _vector_bytes(self) -> int:
        return self.format.bits // 8 * self.format.lanes


def _smaller(builder: Any, first: Any, second: Any) -> Any:
    return builder.select(builder.icmp_signed("<", first, second), first, second)
