"""Code for one row or column of a product with a sparse matrix, as intrinsics with vectors in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_CGUTILS: Any = cgutils
_LENGTHS = (8, 4, 2, 1)
"""Of the vectors that a row is cut into; LLVM cuts those further that the processor does not have."""
_WORD = ir.IntType(64)
_ONE = ir.Constant(_WORD, 1)
_VALUES_AHEAD = 64
"""How far ahead of its use an index is fetched: what it points to cannot be until it is there. With these two
fetches a product of a matrix of 400 thousand values outside the caches takes 0.7 ms instead of 0.85, and one
of a matrix in them 2 % longer; fetching values as well would cost 11 % there."""
_ROWS_AHEAD = 16
"""How far ahead the row is fetched that a sum will be stored in."""
_STORED = ("pointers", "indices", "values")
_DENSE = {"dense": 2, "added": 4, "output": 5}
"""Places of these arguments."""


@intrinsic(prefer_literal=True)
def row_of_product(
    typing_context: Any,
    row: Any,
    sparse: Any,
    dense: Any,
    alpha: Any,
    added: Any,
    output: Any,
    width: Any,
    adds: Any,
) -> Any:
    """One row of ``output = sparse @ dense``, or of ``alpha * (sparse @ dense) + added``.

    Parameters
    ----------
    sparse
        A matrix in CSR: a tuple of its ``indptr``, ``indices`` and ``data``.
    dense, added, output
        C-contiguous matrices of one dtype and ``width`` columns; ``added`` may be ``output``.
    width, adds
        Literals: the columns, and whether there is something to add (1) or not (0).
    """
    given = (row, sparse, dense, alpha, added, output, width, adds)
    return _typed(given, lambda line, number, scale: line.write_row(number, scale))


@intrinsic(prefer_literal=True)
def add_column_of_product(
    typing_context: Any,
    column: Any,
    sparse: Any,
    dense: Any,
    alpha: Any,
    added: Any,
    output: Any,
    width: Any,
    adds: Any,
) -> Any:
    """Add to the output what one column of a matrix in CSC contributes. See :func:`row_of_product`."""
    given = (column, sparse, dense, alpha, added, output, width, adds)
    return _typed(given, lambda line, number, scale: line.add_column(number, scale))


def _typed(given: tuple[Any, ...], write: Any) -> Any:
    """What an intrinsic hands to numba: its signature, and what writes its code."""
    width, adds = given[-2:]
    if not isinstance(width, types.IntegerLiteral) or not isinstance(adds, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        stored = zip(_STORED, kinds[1].types, _CGUTILS.unpack_tuple(builder, arguments[1]), strict=True)
        dense = ((name, kinds[place], arguments[place]) for name, place in _DENSE.items())
        data = {
            name: context.make_array(kind)(context, builder, array).data
            for name, kind, array in (*stored, *dense)
        }
        number = context.cast(builder, arguments[0], kinds[0], types.int64)
        scale = context.cast(builder, arguments[3], kinds[3], kinds[2].dtype)
        write(_Line(builder, data, width.literal_value), number, scale if adds.literal_value else None)
        return context.get_dummy_value()

    return types.void(*given), generate


class _Line:
    """Writes the loop over the stored values of one row or column. Rows of dense matrices are vectors."""

    def __init__(self, builder: Any, data: dict[str, Any], columns: int) -> None:
        self._builder = builder
        self._data = data
        self._number = data["values"].type.pointee
        self._columns = ir.Constant(_WORD, columns)
        self._parts: list[tuple[int, int]] = []  # first column and length of each vector
        first = 0
        for length in _LENGTHS:
            while columns - first >= length:
                self._parts.append((first, length))
                first += length

    def write_row(self, row: Any, scale: Any | None) -> None:
        """Sum the row's products in registers, then store it; scaled and added to what is there if told."""
        builder = self._builder
        zeros = [ir.Constant(self._type(length), [0.0] * length) for _, length in self._parts]
        start = builder.mul(row, self._columns)
        self._fetch(
            "output",
            builder.add(start, ir.Constant(_WORD, self._columns.constant * _ROWS_AHEAD)),
            writes=True,
        )

        def add(value: Any, start: Any, sums: list[Any]) -> list[Any]:
            return [
                self._multiply_add(value, factor, total)
                for factor, total in zip(self._load("dense", start), sums, strict=True)
            ]

        sums = self._loop(row, zeros, add)
        if scale is not None:
            added = self._load("added", start)
            sums = [self._multiply_add(scale, total, more) for total, more in zip(sums, added, strict=True)]
        self._store(sums, "output", start)

    def add_column(self, column: Any, scale: Any | None) -> None:
        """Add multiples of one row of the dense operand, which stays in registers, to rows of the output."""
        factors = self._load("dense", self._builder.mul(column, self._columns))

        def add(value: Any, start: Any, nothing: list[Any]) -> list[Any]:
            if scale is not None:
                value = self._builder.fmul(scale, value)
            found = self._load("output", start)
            found = [self._multiply_add(value, f, total) for f, total in zip(factors, found, strict=True)]
            self._store(found, "output", start)
            return nothing

        self._loop(column, [], add)

    def _loop(self, line: Any, initial: list[Any], step: Any) -> list[Any]:
        """Carry values through the stored ones of a line: ``step(value, start, carried)`` gives the next.

        ``start`` is the element at which the row of a dense matrix begins that belongs to the index.
        """
        builder = self._builder
        begin = self._index("pointers", line)
        end = self._index("pointers", builder.add(line, _ONE))
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("values", "value", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        place = builder.phi(_WORD)
        carried = [builder.phi(value.type) for value in initial]
        builder.cbranch(builder.icmp_signed("<", place, end), body, after)
        builder.position_at_end(body)
        value = builder.load(builder.gep(self._data["values"], [place]))
        self._fetch("indices", builder.add(place, ir.Constant(_WORD, _VALUES_AHEAD)), writes=False)
        start = builder.mul(self._index("indices", place), self._columns)
        following = step(value, start, carried)
        last = builder.block
        for phi, first, next_one in zip(
            (place, *carried), (begin, *initial), (builder.add(place, _ONE), *following), strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, last)
        builder.branch(head)
        builder.position_at_end(after)
        return carried

    def _fetch(self, name: str, place: Any, writes: bool) -> None:
        """Ask for the cache line of an element, which need not exist: a fetch never fails."""
        builder = self._builder
        flag = ir.IntType(32)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = _CGUTILS.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        address = builder.bitcast(builder.gep(self._data[name], [place]), byte)
        keep, data = ir.Constant(flag, 3), ir.Constant(flag, 1)
        builder.call(prefetch, [address, ir.Constant(flag, int(writes)), keep, data])

    def _type(self, length: int) -> Any:
        return ir.VectorType(self._number, length)

    def _addresses(self, name: str, start: Any) -> list[Any]:
        """Of the vectors of a row that starts at an element."""
        builder = self._builder
        found = []
        for first, length in self._parts:
            address = builder.gep(self._data[name], [builder.add(start, ir.Constant(_WORD, first))])
            found.append(builder.bitcast(address, self._type(length).as_pointer()))
        return found

    @property
    def _alignment(self) -> int:
        """Numbers are aligned, rows are not."""
        return 8 if isinstance(self._number, ir.DoubleType) else 4

    def _load(self, name: str, start: Any) -> list[Any]:
        loaded = [self._builder.load(address) for address in self._addresses(name, start)]
        for load in loaded:
            load.align = self._alignment
        return loaded

    def _store(self, vectors: list[Any], name: str, start: Any) -> None:
        for vector, address in zip(vectors, self._addresses(name, start), strict=True):
            self._builder.store(vector, address).align = self._alignment

    def _index(self, name: str, place: Any) -> Any:
        found = self._builder.load(self._builder.gep(self._data[name], [place]))
        return found if found.type == _WORD else self._builder.sext(found, _WORD)

    def _multiply_add(self, number: Any, factor: Any, added: Any) -> Any:
        """``number * factor + added``, which may be rounded once, for a number and two vectors."""
        builder, type_ = self._builder, factor.type
        undefined = ir.Constant(type_, ir.Undefined)
        single = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), type_.count), [0] * type_.count)
        product = builder.fmul(builder.shuffle_vector(single, undefined, zeros), factor, flags=("contract",))
        return builder.fadd(product, added, flags=("contract",))
