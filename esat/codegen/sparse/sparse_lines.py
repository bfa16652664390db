"""Code for one row or column of a product with a sparse matrix, as LLVM IR with vectors in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

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
    """Writes code for one row or column of a sparse matrix. Rows of dense matrices are vectors.

    Parameters
    ----------
    builder
        Where the code goes.
    data
        By name, pointers to the first elements of arrays. Those of the sparse matrix are its ``pointers``,
        ``indices`` and ``values``; methods name the others.
    columns
        Of the dense matrices.
    """

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

    def write_row(self, row: Any, scale: Any | None, beta: Any | None = None) -> None:
        """``output = sparse @ dense`` in one row, or ``scale`` times it plus that row of something else.

        That is ``added``, or ``left @ square + beta * left``; where ``beta`` is 0 its product is left out.
        """
        builder = self._builder
        start = builder.mul(row, self._columns)
        self._fetch_row("output", start, writes=True)
        sums, _ = self._product(row, False)
        if "square" in self._data:
            self._fetch_row("left", start)
            sums = self._with_product(scale, sums, "left", start)
            nothing = builder.fcmp_ordered("==", beta, ir.Constant(self._number, 0.0))
            scaled = self._multiply_add_all(beta, self._load("left", start), sums)
            sums = [builder.select(nothing, *pair) for pair in zip(sums, scaled, strict=True)]
        elif scale is not None:
            self._fetch_row("added", start)
            sums = self._multiply_add_all(scale, sums, self._load("added", start))
        self._store(sums, "output", start)

    def add_bilinear(self, row: Any, squares: bool, scale: Any | None = None) -> None:
        """Add a row's elements of ``other * (sparse @ dense)`` to ``sums``, and the squares behind them.

        With a ``scale`` it is ``other * (scale * (sparse @ dense) + other @ square)``.
        """
        start = self._builder.mul(row, self._columns)
        self._fetch_row("other", start)
        sums, total = self._product(row, squares)
        if scale is not None:
            sums = self._with_product(scale, sums, "other", start)
        other = self._load("other", start)
        first = ir.Constant(_WORD, 0)
        pairs = zip(other, sums, self._load("sums", first), strict=True)
        self._store([self._sum_of_product(*pair) for pair in pairs], "sums", first)
        if total is not None:
            address = self._builder.gep(self._data["sums"], [self._columns])
            self._builder.store(self._builder.fadd(total, self._builder.load(address)), address)

    def add_column(self, column: Any, scale: Any | None) -> None:
        """Add multiples of one row of the dense operand, which stays in registers, to rows of the output."""
        first = self._builder.mul(column, self._columns)
        self._fetch_row("dense", first)
        factors = self._load("dense", first)

        def add(value: Any, start: Any, nothing: list[Any]) -> list[Any]:
            if scale is not None:
                value = self._builder.fmul(scale, value)
            self._store(self._multiply_add_all(value, factors, self._load("output", start)), "output", start)
            return nothing

        self._loop(column, [], add)

    def _with_product(self, scale: Any, sums: list[Any], left: str, start: Any) -> list[Any]:
        """``scale * sums`` plus the row of a dense matrix, which starts there, times ``square``."""
        builder = self._builder
        found = self._multiply_add_all(scale, sums, self._zeros())
        for place in range(self._columns.constant):
            factor = builder.load(
                builder.gep(self._data[left], [builder.add(start, ir.Constant(_WORD, place))])
            )
            row = ir.Constant(_WORD, place * self._columns.constant)
            found = self._multiply_add_all(factor, self._load("square", row), found)
        return found

    def _zeros(self) -> list[Any]:
        return [ir.Constant(self._type(length), [0.0] * length) for _, length in self._parts]

    def _product(self, row: Any, squares: bool) -> tuple[list[Any], Any | None]:
        """A row of ``sparse @ dense``, and the sum of the squares of the values stored in it if told."""

        def add(value: Any, start: Any, sums: list[Any]) -> list[Any]:
            found = self._multiply_add_all(value, self._load("dense", start), sums[: len(self._parts)])
            return [*found, self._sum_of_product(value, value, sums[-1])] if squares else found

        initial = [*self._zeros(), ir.Constant(self._number, 0.0)] if squares else self._zeros()
        sums = self._loop(row, initial, add)
        return (sums[:-1], sums[-1]) if squares else (sums, None)

    def _loop(self, line: Any, initial: list[Any], step: Any) -> list[Any]:
        """Carry values through the stored ones of a line: ``step(value, start, carried)`` gives the next.

        ``start`` is the element at which the row of a dense matrix begins that belongs to the index.
        """
        builder = self._builder
        begin = self._index("pointers", line)
        end = self._index("pointers", builder.add(line, _ONE))
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

    def _multiply_add_all(self, number: Any, factors: list[Any], added: list[Any]) -> list[Any]:
        """``number * factor + added``, which may be rounded once, for a number and the vectors of rows."""
        zero = ir.Constant(ir.IntType(32), 0)
        found = []
        for factor, total in zip(factors, added, strict=True):
            undefined = ir.Constant(factor.type, ir.Undefined)
            single = self._builder.insert_element(undefined, number, zero)
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), factor.type.count), [0] * factor.type.count)
            spread = self._builder.shuffle_vector(single, undefined, lanes)
            found.append(self._sum_of_product(spread, factor, total))
        return found

    def _sum_of_product(self, one: Any, other: Any, added: Any) -> Any:
        """``one * other + added``, which may be rounded once."""
        product = self._builder.fmul(one, other, flags=("contract",))
        return self._builder.fadd(product, added, flags=("contract",))
