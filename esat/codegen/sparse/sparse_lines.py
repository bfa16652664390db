"""Code for one row or column of a sparse matrix, as LLVM IR with vectors in registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from esat.ops.sparse.passes import ABSENT, value_of

_CGUTILS: Any = cgutils
_LENGTHS = (8, 4, 2, 1)
"""Of the vectors that a row is cut into; LLVM cuts those further that the processor does not have."""
_WORD = ir.IntType(64)
_ONE = ir.Constant(_WORD, 1)
_VALUES_AHEAD = 128
"""How far ahead of their use values and their indices are fetched: the processor's own fetching stops at the
end of each page. With this, dense rows fetched as well and loops that are not unrolled,
``alpha * x @ d + u @ s`` for a matrix of 400 thousand values outside the caches takes 0.72 ms instead of
0.86, and 0.53 instead of 0.60 in them."""
_VALUES_FETCHED = 24
"""How many of them, once a line: for each value it would take longer than what is gained in the caches."""
_CACHE_LINE = 64
_ROWS_AHEAD = 16
"""How far ahead rows of dense matrices are fetched that are read or written one after the other."""


class SparseLinePrinter:
    """Writes code for what a formula makes of a row or column of a sparse matrix. Dense rows are vectors.

    Parameters
    ----------
    builder
        Where the code goes.
    formula
        That of a pass (:class:`esat.ops.sparse.passes.SparsePass`).
    data
        By name, pointers to the first elements of arrays: those of the sparse matrix are its ``pointers``,
        ``indices`` and ``values``, the result is the ``output``, or ``sums`` of a part of the rows.
    numbers
        By name, those of the formula.
    columns
        Of the dense matrices.
    """

    def __init__(
        self, builder: Any, formula: str, data: Mapping[str, Any], numbers: Mapping[str, Any], columns: int
    ) -> None:
        self._builder = builder
        self._formula = formula
        self._data = data
        self._numbers = numbers
        self._number = data["values"].type.pointee
        self._columns = ir.Constant(_WORD, columns)
        self._parts: list[tuple[int, int]] = []  # first column and length of each vector
        first = 0
        for length in _LENGTHS:
            while columns - first >= length:
                self._parts.append((first, length))
                first += length

    def write_row(self, row: Any) -> None:
        """One row of the output."""
        start = self._start(row)
        self._fetch_row("output", start, writes=True)
        self._store(self._value(row, lambda: self._product(row)), "output", start)

    def begin_row(self, row: Any) -> None:
        """One row of the output without the product, where there is something else."""
        self._store(self._value(row, lambda: ABSENT), "output", self._start(row))

    def add_column(self, column: Any) -> None:
        """Add multiples of one row of the dense operand, which stays in registers, to rows of the output."""
        first = self._start(column)
        self._fetch_row("dense", first)
        factors = self._load("dense", first)

        def add(value: Any, start: Any, nothing: list[Any]) -> list[Any]:
            scale = self._value(None, lambda: _Scale(self._builder, value)).value
            self._store(self._multiply_add_all(scale, factors, self._load("output", start)), "output", start)
            return nothing

        self._loop(column, [], add)

    def add_row(self, row: Any) -> None:
        """Add a row's share to the ``sums`` of columns, and that of the squares behind them."""
        builder = self._builder

        def product() -> Row:
            return self._product(row, "sparse**2" in self._formula)

        if "square" in self._data:  # rows that store nothing count, too
            self._value(row, product)
            return
        begin, end = (self._index("pointers", place) for place in (row, builder.add(row, _ONE)))
        with builder.if_then(builder.icmp_signed("<", begin, end)):
            self._value(row, product)

    def _start(self, row: Any) -> Any:
        """The place of the first element of a row of a dense matrix."""
        return self._builder.mul(row, self._columns)

    def _value(self, row: Any | None, product: Callable[[], Any]) -> Any:
        """What the formula is in a row, or without what has rows."""
        found = value_of(self._formula, _Operands(self, self._numbers, row, product))
        return found.vectors if isinstance(found, Row) else found

    def add_to_sums(self, row: Row) -> None:
        """Add a row to the sums of columns."""
        first = ir.Constant(_WORD, 0)
        pairs = zip(row.vectors, self._load("sums", first), strict=True)
        self._store([self._builder.fadd(*pair, flags=("contract",)) for pair in pairs], "sums", first)

    def loaded(self, name: str, row: Any) -> Row:
        """A row of a dense matrix."""
        start = self._start(row)
        self._fetch_row(name, start)
        return Row(self, self._load(name, start), (name, start))

    def with_square(self, row: Row, added: list[Any] | None = None) -> list[Any]:
        """The product of a row of a dense matrix with the square one, plus what is given."""
        name, start = row.place
        found = self._zeros() if added is None else added
        for place in range(self._columns.constant):
            index = self._builder.add(start, ir.Constant(_WORD, place))
            factor = self._builder.load(self._builder.gep(self._data[name], [index]))
            line = ir.Constant(_WORD, place * self._columns.constant)
            found = self._multiply_add_all(factor, self._load("square", line), found)
        return found

    def each(self, operation: str, *operands: list[Any]) -> Row:
        """A row of what an operation makes of the vectors of others; sums of products may be rounded once."""
        apply = getattr(self._builder, operation)
        return Row(self, [apply(*pair, flags=("contract",)) for pair in zip(*operands, strict=True)])

    def _zeros(self) -> list[Any]:
        return [ir.Constant(self._type(length), [0.0] * length) for _, length in self._parts]

    def _product(self, row: Any, squares: bool = False) -> Row:
        """A row of ``sparse @ dense``; the sum of the squares of its values is added behind sums if told."""

        def add(value: Any, start: Any, sums: list[Any]) -> list[Any]:
            found = self._multiply_add_all(value, self._load("dense", start), sums[: len(self._parts)])
            return [*found, self._sum_of_product(value, value, sums[-1])] if squares else found

        initial = [*self._zeros(), ir.Constant(self._number, 0.0)] if squares else self._zeros()
        sums = self._loop(row, initial, add)
        if squares:
            address = self._builder.gep(self._data["sums"], [self._columns])
            self._builder.store(self._builder.fadd(sums.pop(), self._builder.load(address)), address)
        return Row(self, sums)

    def _loop(self, line: Any, initial: list[Any], step: Any) -> list[Any]:
        """Carry values through the stored ones of a line: ``step(value, start, carried)`` gives the next.

        ``start`` is the element at which the row of a dense matrix begins that belongs to the index.
        """
        builder = self._builder
        begin, end = (self._index("pointers", place) for place in (line, builder.add(line, _ONE)))
        self._fetch_values(begin)
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("values", "value", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        place = builder.phi(_WORD)
        carried = [builder.phi(value.type) for value in initial]
        builder.cbranch(builder.icmp_signed("<", place, end), body, after)
        builder.position_at_end(body)
        value = builder.load(builder.gep(self._data["values"], [place]))
        start = builder.mul(self._index("indices", place), self._columns)
        following = step(value, start, carried)
        last = builder.block
        for phi, first, next_one in zip(
            (place, *carried), (begin, *initial), (builder.add(place, _ONE), *following), strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, last)
        self._keep_short(builder.branch(head))
        builder.position_at_end(after)
        return carried

    def _keep_short(self, back: Any) -> None:
        """Tell LLVM not to unroll the loop that a branch closes.

        A line stores a few values, of a number that differs from the next one's: with a second loop for what
        an unrolled one leaves over, the processor would guess both ends wrongly.
        """
        module = self._builder.module
        option = module.add_metadata(["llvm.loop.unroll.disable"])
        loop = module.add_metadata([option, f"loop {len(module.metadata)}"])
        loop.operands = (loop, option)  # what tells about a loop names itself first
        back.set_metadata("llvm.loop", loop)

    def _fetch_values(self, begin: Any) -> None:
        """Ask for what will be needed soon, seen from the first value of a line."""
        index = self._data["indices"].type.pointee.width // 8
        for name, size in (("values", self._alignment), ("indices", index)):
            for place in range(0, _VALUES_FETCHED, _CACHE_LINE // size):
                self._fetch(name, self._builder.add(begin, ir.Constant(_WORD, _VALUES_AHEAD + place)))

    def _fetch_row(self, name: str, start: Any, writes: bool = False) -> None:
        """Ask for a later row of a dense matrix; ``start`` is the first element of the present one."""
        later = ir.Constant(_WORD, self._columns.constant * _ROWS_AHEAD)
        self._fetch(name, self._builder.add(start, later), writes)

    def _fetch(self, name: str, place: Any, writes: bool = False) -> None:
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

    def spread(self, number: Any) -> list[Any]:
        """Vectors as those of a row, of one number."""
        zero = ir.Constant(ir.IntType(32), 0)
        found = []
        for _, length in self._parts:
            undefined = ir.Constant(self._type(length), ir.Undefined)
            single = self._builder.insert_element(undefined, number, zero)
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), length), [0] * length)
            found.append(self._builder.shuffle_vector(single, undefined, lanes))
        return found

    def _multiply_add_all(self, number: Any, factors: list[Any], added: list[Any]) -> list[Any]:
        """``number * factor + added``, which may be rounded once, for a number and the vectors of rows."""
        return list(map(self._sum_of_product, self.spread(number), factors, added))

    def _sum_of_product(self, one: Any, other: Any, added: Any) -> Any:
        """``one * other + added``, which may be rounded once."""
        product = self._builder.fmul(one, other, flags=("contract",))
        return self._builder.fadd(product, added, flags=("contract",))


class Row:
    """Code for a row, as formulas add and multiply it.

    Attributes
    ----------
    vectors
        Its vectors.
    place
        The name of the dense matrix that it is loaded from, and the place of its first element.
    """

    def __init__(self, printer: SparseLinePrinter, vectors: list[Any], place: tuple[str, Any] = ("", None)):
        self._printer, self.vectors, self.place = printer, vectors, place

    def __add__(self, other: Any) -> Any:
        if isinstance(other, _SquareProduct):
            return Row(self._printer, self._printer.with_square(other.row, self.vectors))
        return self._printer.each("fadd", self.vectors, other.vectors) if isinstance(other, Row) else self

    def __mul__(self, other: Any) -> Any:
        return self._printer.each("fmul", self.vectors, other.vectors) if isinstance(other, Row) else other

    def __rmul__(self, number: Any) -> Row:
        return self._printer.each("fmul", self._printer.spread(number), self.vectors)

    def __matmul__(self, _square: object) -> Row:
        return _SquareProduct(self._printer, self)


class _SquareProduct(Row):
    """A row times the square matrix, computed on top of what it is added to: that takes fewer registers."""

    def __init__(self, printer: SparseLinePrinter, row: Row) -> None:
        self._printer, self.row = printer, row

    @cached_property
    def vectors(self) -> list[Any]:  # type: ignore[override]
        return self._printer.with_square(self.row)


class _Scale:
    """Code for what the product is multiplied by, where all that is added to it is there already."""

    def __init__(self, builder: Any, value: Any) -> None:
        self._builder, self.value = builder, value

    def __add__(self, _other: object) -> _Scale:
        return self

    def __rmul__(self, number: Any) -> _Scale:
        return _Scale(self._builder, self._builder.fmul(number, self.value))


class _Operands(dict[str, Any]):
    """What the names of a formula stand for in a row: code for it is written where they are first met."""

    def __init__(
        self,
        printer: SparseLinePrinter,
        numbers: Mapping[str, Any],
        row: Any | None,
        product: Callable[[], Any],
    ) -> None:
        super().__init__(numbers, sparse=self, dense=None, square=None, sum=self._add)
        self._printer, self._row, self._product = printer, row, product

    def __missing__(self, name: str) -> Any:
        self[name] = ABSENT if self._row is None else self._printer.loaded(name, self._row)
        return self[name]

    def __matmul__(self, _dense: object) -> Any:
        return self._product()

    def __pow__(self, exponent: int) -> Any:
        return ABSENT  # added where the values are read

    def _add(self, part: Any) -> Any:
        if part is not ABSENT:
            self._printer.add_to_sums(part)
        return ABSENT
