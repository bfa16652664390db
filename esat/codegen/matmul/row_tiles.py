"""Products with a few rows of a matrix at a time, vectors of the operand and of the sums kept in registers.

Where rows are some vectors long, loops over their elements spend more on what stands around the elements than
on them. Here loops run over rows, and tiles of four vectors of columns are written out: the operand's
are loaded once for all rows, and so are sums of multiples of rows. As many rows as a vector has lanes are
multiplied together, and adding up the lanes of all leaves one vector of products: three instructions for each
row, where one row by itself takes eight.

The last vector of a row ends where the row does. What it has in common with the one before is cleared.
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
from esat.codegen.ground.memory_access import item_size, pointer_to, word
from esat.codegen.ground.target import Target
from esat.codegen.llvm.prefetching import fetch
from esat.codegen.vector_math.builder import Float, Format
from esat.codegen.vector_math.shared_code import share_function, shared_name

_CGUTILS: Any = cgutils
_NUMBER = ir.IntType(32)
_WIDEST = 4
"""Vectors of a tile; what is left over is taken one by one. Tiles of 8, 4, 2 and 1 are as fast, within 5 %,
for 13 to 600 columns on an EPYC with AVX2, and take twice as long to compile."""
_SUMS = 8
"""Sums that are kept: with what they are made from, they fit 16 registers."""
_SHUFFLED_BITS = 128
"""Within so many bits, lanes change places in fewer steps than between them."""


def lanes_of(target: Target, itemsize: int) -> int:
    """Elements of a vector, and rows that are multiplied together; a matrix has as many columns at least."""
    return target.vector_bytes // itemsize


@record(frozen=True)
class _Tile:
    """Neighbouring columns: some vectors of them.

    Attributes
    ----------
    places
        Bytes from the beginning of a row to each vector.
    own
        Which lanes of the last vector are in no other one.
    """

    builder: Any
    format: Format
    places: tuple[Any, ...]
    own: Any

    def pointers(self, row: Any) -> list[Any]:
        """Pointers to the vectors of a row, which is a pointer to bytes."""
        return [self.builder.gep(row, [place]) for place in self.places]

    def load(self, row: Any) -> list[Float]:
        """The vectors of a row."""
        return [load(self.builder, pointer, self.format) for pointer in self.pointers(row)]

    def without_common(self, vectors: Sequence[Float]) -> list[Float]:
        """Vectors of this tile, what is in two of them cleared in the last one."""
        *others, last = vectors
        return [*others, last.mask(self.own).select(last, 0.0)]


@intrinsic
def multiply_rows(typing_context: Any, matrix: Any, low: Any, high: Any, vector: Any, products: Any) -> Any:
    """``products[: high - low] = matrix[low:high, : vector.size] @ vector`` for arrays in C order.

    The vector has as many elements as there are lanes at least (:func:`lanes_of`).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(context, builder, signature.args, arguments, "multiply_rows", _multiply)

    return types.void(matrix, low, high, vector, products), generate


@intrinsic
def add_rows(
    typing_context: Any, matrix: Any, low: Any, high: Any, total: Any, factors: Any, ahead: Any
) -> Any:
    """``total += factors[: high - low] @ matrix[low:high, : total.size]`` for arrays in C order.

    What is added is summed first: errors grow with the number of calls, not of rows. The total has as many
    elements as there are lanes at least (:func:`lanes_of`). Meanwhile the rows that are so far ``ahead`` of
    these, 0 for none, come into the first-level cache.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(context, builder, signature.args, arguments, "add_rows", _add)

    return types.void(matrix, low, high, total, factors, ahead), generate


@record(frozen=True)
class _Rows:
    """Some rows of a matrix, and what belongs to them.

    Attributes
    ----------
    format
        Of a vector of elements.
    first, stride, count, columns
        A pointer to the first row, bytes between rows, and their number and length.
    along, across
        Pointers to a row, and to a column, that is read or written.
    ahead
        How many rows ahead others are fetched, 0 for none; only where rows are added.
    """

    builder: Any
    format: Format
    first: Any
    stride: Any
    count: Any
    columns: Any
    along: Any
    across: Any
    ahead: Any = None

    def row(self, number: Any) -> Any:
        """A pointer to the bytes of a row."""
        return self.builder.gep(self.first, [self.builder.mul(number, self.stride)])

    def of_column(self, number: Any) -> Any:
        """A pointer to the bytes of an element of the column."""
        return self.builder.gep(self.across, [self.builder.mul(number, word(self.format.bits // 8))])


def _call(
    context: Any,
    builder: Any,
    kinds: Sequence[Any],
    arguments: Sequence[Any],
    name: str,
    emit: Callable[[_Rows], None],
) -> Any:
    """Call a function that the kernels of a process share.

    It is not inlined: around its loops, LLVM would run out of registers for what they begin with. Nor does
    LLVM find anything to do in it, and it takes three times as long to look as to make machine code.
    """

    def start(place: int, *index: Any) -> Any:
        places = _CGUTILS.pack_array(builder, index)
        return pointer_to(
            context, builder, kinds[place], arguments[place], [types.int64] * len(index), places
        )

    def fields(place: int) -> Any:
        return context.make_array(kinds[place])(context, builder, arguments[place])

    low, high = (context.cast(builder, arguments[place], kinds[place], types.int64) for place in (1, 2))
    stride = _CGUTILS.unpack_tuple(builder, fields(0).strides, 2)[0]
    first, along, across = start(0, low, word(0)), start(3, word(0)), start(4, word(0))
    given = [first, stride, builder.sub(high, low), fields(3).nitems, along, across]
    given += [
        context.cast(builder, value, kind, types.int64)
        for value, kind in zip(arguments[5:], kinds[5:], strict=True)
    ]
    itemsize, target = item_size(context, kinds[0]), target_of(context)
    format_ = Format(8 * itemsize, target, lanes_of(target, itemsize))
    function_type = ir.FunctionType(ir.VoidType(), [value.type for value in given])
    name = shared_name(f"esat_{name}_{format_.bits}", target)
    share_function(name, target, lambda module: _write(module, name, function_type, format_, emit))
    builder.call(_CGUTILS.get_or_insert_function(builder.module, function_type, name), given)
    return context.get_dummy_value()


def _write(module: Any, name: str, type_: Any, format_: Format, emit: Callable[[_Rows], None]) -> None:
    """Write the function into a module."""
    function = ir.Function(module, type_, name)
    for place in (0, 4, 5):
        function.args[place].add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emit(_Rows(builder, format_, *function.args))
    builder.ret_void()


def _multiply(rows: _Rows) -> None:
    builder, format_ = rows.builder, rows.format
    whole = builder.and_(rows.count, word(-format_.lanes))

    def multiply(tile: _Tile) -> None:
        factors = tile.without_common(tile.load(rows.along))

        def product(row: Any) -> Float:
            return _sum_of_products(factors, tile.without_common(tile.load(row)))

        with steps(builder, word(0), whole, format_.lanes) as (first, _):
            _add_to(rows.of_column(first), _products_of_rows(rows, rows.row(first), product))
        with steps(builder, whole, rows.count, 1) as (row, _):
            _add_to(rows.of_column(row), _sum_of_lanes(product(rows.row(row))))

    zero, zeros = (
        Float(builder, one.constant(one.float_type, 0.0), one) for one in (replace(format_, lanes=1), format_)
    )
    # A processor waits where it reads a vector whose elements have just been written one by one.
    with steps(builder, word(0), whole, format_.lanes) as (first, _):
        store(rows.of_column(first), zeros)
    with steps(builder, whole, rows.count, 1) as (row, _):
        store(rows.of_column(row), zero)
    _for_tiles(rows, multiply)


def _add(rows: _Rows) -> None:
    builder, format_ = rows.builder, rows.format

    def add(tile: _Tile) -> None:
        width = len(tile.places)
        sets = [_Sums(builder, format_, width) for _ in range(_SUMS // width)]

        def add_row(sums: _Sums, row: Any) -> None:
            factor = load(builder, rows.of_column(row), replace(format_, lanes=1))
            factors = Float(builder, spread(builder, factor.value, format_.lanes), format_)
            sums.add(factors, tile.load(rows.row(row)))
            with builder.if_then(builder.icmp_signed("!=", rows.ahead, word(0))):
                for pointer in tile.pointers(rows.row(builder.add(row, rows.ahead))):
                    fetch(builder, pointer, level=1)

        whole = builder.and_(rows.count, word(-len(sets)))
        with steps(builder, word(0), whole, len(sets)) as (first, _):
            for number, sums in enumerate(sets):
                add_row(sums, builder.add(first, word(number)))
        with steps(builder, whole, rows.count, 1) as (row, _):
            add_row(sets[0], row)
        gathered = [_pairwise(vectors) for vectors in zip(*(one.values() for one in sets), strict=True)]
        for pointer, vector in zip(tile.pointers(rows.along), tile.without_common(gathered), strict=True):
            _add_to(pointer, vector)

    _for_tiles(rows, add)


class _Sums:
    """Vectors that are summed, zero at first."""

    def __init__(self, builder: Any, format_: Format, count: int) -> None:
        self.builder, self._format = builder, format_
        # LLVM turns memory that only loads and stores use into registers.
        self._slots = [_CGUTILS.alloca_once(builder, format_.float_type) for _ in range(count)]
        for slot in self._slots:
            builder.store(format_.constant(format_.float_type, 0.0), slot)

    def values(self) -> list[Float]:
        """The sums so far."""
        return [Float(self.builder, self.builder.load(slot), self._format) for slot in self._slots]

    def add(self, factor: Float, vectors: Sequence[Float]) -> None:
        """Add multiples of vectors."""
        for slot, sum_, vector in zip(self._slots, self.values(), vectors, strict=True):
            self.builder.store(factor.multiply_add(vector, sum_).value, slot)


def _for_tiles(rows: _Rows, emit: Callable[[_Tile], None]) -> None:
    """Emit code for the tiles that all columns consist of."""
    builder, format_, columns = rows.builder, rows.format, rows.columns
    lanes, size = format_.lanes, format_.bits // 8
    vectors = builder.udiv(builder.add(columns, word(lanes - 1)), word(lanes))
    last = builder.sub(columns, word(lanes))

    def emit_tile(first: Any, width: int) -> None:
        starts = [builder.mul(builder.add(first, word(number)), word(lanes)) for number in range(width)]
        is_last = builder.icmp_signed(">", starts[-1], last)
        common = builder.select(is_last, builder.sub(starts[-1], last), word(0))
        starts[-1] = builder.select(is_last, last, starts[-1])
        common = spread(builder, builder.trunc(common, _NUMBER), lanes)
        own = builder.icmp_signed(">=", _numbers(range(lanes)), common)
        emit(_Tile(builder, format_, tuple(builder.mul(start, word(size)) for start in starts), own))

    with steps(builder, word(0), builder.and_(vectors, word(-_WIDEST)), _WIDEST) as (first, _):
        emit_tile(first, _WIDEST)
    with steps(builder, builder.and_(vectors, word(-_WIDEST)), vectors, 1) as (first, _):
        emit_tile(first, 1)


def _sum_of_products(factors: Sequence[Float], vectors: Sequence[Float]) -> Float:
    """By two sums, since each addition waits for the one before."""
    sums: list[Float] = []
    for number, (factor, vector) in enumerate(zip(factors, vectors, strict=True)):
        if number < 2:
            sums.append(factor * vector)
        else:
            sums[number % 2] = factor.multiply_add(vector, sums[number % 2])
    return _pairwise(sums)


def _pairwise(vectors: Sequence[Float]) -> Float:
    if len(vectors) == 1:
        return vectors[0]
    half = len(vectors) // 2
    return _pairwise(vectors[:half]) + _pairwise(vectors[half:])


def _products_of_rows(rows: _Rows, start: Any, product: Callable[[Any], Float]) -> Float:
    """The sums of the lanes of what is emitted for each of as many rows as there are lanes.

    Rows are read in their order, by which a processor knows what to fetch next.
    """
    builder, format_ = rows.builder, rows.format

    def sums(numbers: Sequence[int]) -> Float:
        if len(numbers) == 1:
            return product(builder.gep(start, [builder.mul(word(numbers[0]), rows.stride)]))
        half = len(numbers) // 2
        return _joined(sums(numbers[:half]), sums(numbers[half:]), half)

    numbers = range(format_.lanes)
    order = _lanes_after(numbers, format_)
    gathered = sums(numbers)
    in_order = _numbers([order.index(number) for number in numbers])
    return gathered.float(builder.shuffle_vector(gathered.value, gathered.value, in_order))


def _joined(first: Float, second: Float, count: int) -> Float:
    """Two vectors of partial sums in one: in each, lanes side by side add up to one of ``count`` sums."""
    builder, lanes = first.builder, first.format.lanes
    width = lanes // count
    starts = [side * lanes + place * width for side, place in _order(count, first.format)]
    low = [start + lane for start in starts for lane in range(width // 2)]
    halves = (low, [lane + width // 2 for lane in low])
    left, right = (builder.shuffle_vector(first.value, second.value, _numbers(half)) for half in halves)
    return first.float(left) + first.float(right)


def _order(count: int, format_: Format) -> list[tuple[int, int]]:
    """Which of two vectors each sum comes from that they are joined to, and its place there."""
    if format_.lanes // count * format_.bits > _SHUFFLED_BITS:
        return [(side, place) for side in range(2) for place in range(count)]
    return [(side, place) for place in range(count) for side in range(2)]


def _lanes_after(numbers: Sequence[int], format_: Format) -> list[int]:
    """Which vector's sum each lane holds after all have been joined."""
    if len(numbers) == 1:
        return list(numbers)
    half = len(numbers) // 2
    sides = _lanes_after(numbers[:half], format_), _lanes_after(numbers[half:], format_)
    return [sides[side][place] for side, place in _order(half, format_)]


def _sum_of_lanes(vector: Float) -> Float:
    builder, format_ = vector.builder, vector.format
    lanes, value = format_.lanes, vector.value
    while lanes > 1:
        lanes //= 2
        halves = range(lanes), range(lanes, 2 * lanes)
        value = builder.fadd(*(builder.shuffle_vector(value, value, _numbers(half)) for half in halves))
    number = builder.extract_element(value, ir.Constant(_NUMBER, 0))
    return Float(builder, number, replace(format_, lanes=1))


def load(builder: Any, pointer: Any, format_: Format) -> Float:
    """A number or a vector at a pointer to bytes."""
    typed = builder.bitcast(pointer, format_.float_type.as_pointer())
    return Float(builder, builder.load(typed, align=format_.bits // 8), format_)


def store(pointer: Any, value: Float) -> None:
    """Write a number or a vector to a pointer to bytes."""
    typed = value.builder.bitcast(pointer, value.format.float_type.as_pointer())
    value.builder.store(value.value, typed, align=value.format.bits // 8)


def _add_to(pointer: Any, value: Float) -> None:
    store(pointer, load(value.builder, pointer, value.format) + value)


def spread(builder: Any, value: Any, lanes: int) -> Any:
    """A vector with a value in every lane."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    single = builder.insert_element(undefined, value, ir.Constant(_NUMBER, 0))
    return builder.shuffle_vector(single, undefined, _numbers([0] * lanes))


def _numbers(values: Sequence[int]) -> Any:
    """A constant vector of integers."""
    return ir.Constant(ir.VectorType(_NUMBER, len(values)), [ir.Constant(_NUMBER, value) for value in values])


def steps(builder: Any, start: Any, stop: Any, step: int) -> Any:
    """The context of a loop over integers."""
    return _CGUTILS.for_range_slice(builder, start, stop, word(step), inc=True)
