"""Loops as source text.

A loop that gathers float sums or the index of an extremum runs in blocks: 256 elements are summed in
any order, which vectorises, and these sums are added with their rounding errors kept. So each of the partial
sums that vectors keep gets eight elements or so, and the error is no larger than that of NumPy's pairwise
sums, which add 16 in sequence. Loops over elements that do not lie side by side do not vectorise, and sum 16
at a time. Of an index, the first block of 256 with the extremum is found, and then its place in that block.
Extrema of floats are gathered as if there were no NaN, and whether there was one apart from them.

A loop that calls functions is printed twice, over whole vectors and over the remainder, where
:mod:`esat.codegen.llvm.interleaving` makes long vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from numba.core import types

from esat.codegen.kernel.access import calls_function, takes_whole_vectors
from esat.codegen.kernel.loop_ir import (
    MAXIMUM,
    MINIMUM,
    Accumulator,
    Check,
    Compute,
    Definition,
    Load,
    LoadAt,
    Loop,
    Scatter,
    Statement,
    Store,
    Tile,
    Update,
    is_square,
    operands_of,
    walk,
)
from esat.codegen.kernel.partition import INDEX_BLOCK_BITS, SUM_BLOCK_BITS
from esat.codegen.llvm import interleaving, views
from esat.codegen.printing.scalars import Names, ScalarPrinter, size_name
from esat.codegen.vector_math import reduction

SCATTERED = (64, 16)
"""Elements of a block that are summed before others are where loops do not vectorise."""


def is_index(accumulator: Accumulator) -> bool:
    """Whether the accumulator finds the index of an extremum."""
    return accumulator.kind in ("argmax", "argmin")


def is_float_sum(accumulator: Accumulator) -> bool:
    """Whether the accumulator is a sum whose rounding matters."""
    return accumulator.kind == "sum" and accumulator.dtype.startswith("float")


def is_float_extremum(accumulator: Accumulator) -> bool:
    """Whether the accumulator is a maximum or minimum that NaN must find its way through."""
    return accumulator.template in (MAXIMUM, MINIMUM) and accumulator.dtype.startswith("float")


class LoopPrinter:
    """Prints loops, outside of tiles.

    Parameters
    ----------
    scalars
        Prints what is no loop.
    print_tile
        Prints a tile.
    """

    def __init__(self, scalars: ScalarPrinter, print_tile: Callable[[Tile, Names], None]) -> None:
        self.source = scalars.source
        self.scalars = scalars
        self.print_tile = print_tile

    def block(self, statements: Iterable[Statement], names: Names, loop: Loop | None, flat: bool) -> None:
        """Print the statements of a body; ``flat`` says whether its loop runs over nothing else."""
        accumulators = {accumulator.value: accumulator for accumulator in (loop.accumulators if loop else ())}
        squares = squares_summed(loop) if loop and flat else {}
        for statement in statements:
            if isinstance(statement, Loop):
                self.loop(statement, names)
            elif isinstance(statement, Tile):
                self.print_tile(statement, names)
            elif isinstance(statement, Store):
                self.scalars.store(statement, names)
            elif isinstance(statement, Scatter):
                self.scalars.scatter(statement, names)
            elif isinstance(statement, Check):
                self.scalars.check(statement, names)
            elif isinstance(statement, Update) and statement.operand in squares:
                self._add_square(statement, names.value(squares[statement.operand]))
            elif isinstance(statement, Update):
                accumulator = accumulators[statement.accumulator]
                update = self._flat_update if flat else self._nested_update
                assert loop is not None
                update(accumulator, names.value(statement.operand), loop, names)
            elif statement.value not in squares:
                self.scalars.definition(statement, names)

    def loop(self, loop: Loop, names: Names) -> None:
        """Print a loop and what follows from its accumulators."""
        flat = self.is_flat(loop)
        in_blocks = not (flat and self._is_one_block(loop))
        for accumulator in loop.accumulators:
            self._declare(accumulator, loop, flat, in_blocks)
        with ExitStack() as stack:
            for axis in loop.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
            last = loop.axes[-1]
            if flat and any(is_float_sum(part) or is_index(part) for part in loop.accumulators):
                self._blocks(loop, last, names)
            elif flat and not takes_whole_vectors(self.scalars.kernel):
                bounds = names.bounds.get(last, ("0", size_name(last)))
                self._elements(loop, names, self.places(last, names), bounds)
            else:
                with self.source.block(f"for i{last} in {self.places(last, names)}"):
                    self.block(loop.body, names, loop, flat)
        for accumulator in loop.accumulators:
            self._finish(accumulator, loop, flat, names, in_blocks)

    def is_flat(self, loop: Loop) -> bool:
        """Whether a loop runs over nothing but elements."""
        return not any(isinstance(statement, Loop | Tile) for statement in loop.body)

    # ---- accumulators

    def _declare(self, accumulator: Accumulator, loop: Loop, flat: bool, in_blocks: bool = True) -> None:
        value, start = accumulator.value, self.scalars.start(accumulator)
        if is_index(accumulator):
            self.source.line(f"best{value} = {start}", accumulator.comment)
            if flat:
                for axis in loop.axes:
                    self.source.line(f"place{value}_{axis} = 0")
            else:
                self.source.line(f"v{value} = 0")
            return
        self.source.line(f"v{value} = {start}", accumulator.comment)
        if is_float_sum(accumulator):
            if in_blocks:
                self.source.line(f"error{value} = {start}")
        elif flat and is_float_extremum(accumulator):
            self.source.line(f"nan{value} = False")

    def _compensated(self, value: int, operand: str) -> None:
        error = self.source.use("rounding_error", views.rounding_error)
        self.source.line(f"error{value} += {error}(v{value}, {operand})")
        self.source.line(f"v{value} += {operand}")

    def _nested_update(self, accumulator: Accumulator, operand: str, loop: Loop, names: Names) -> None:
        """A step of a loop that has loops inside: few of them, so it may branch."""
        value = accumulator.value
        if is_index(accumulator):
            with self.source.block(f"if {self._is_better(accumulator, operand, f'best{value}')}"):
                self.source.line(f"best{value} = {operand}")
                self.source.line(f"v{value} = {self._flat_position(loop, names)}")
        elif is_float_sum(accumulator):
            self._compensated(value, operand)
        else:
            self.source.line(f"v{value} = {self.scalars.combination(accumulator, f'v{value}', operand)}")

    def _flat_update(self, accumulator: Accumulator, operand: str, loop: Loop, names: Names) -> None:
        value = accumulator.value
        if is_index(accumulator):
            self._gather_extremum(accumulator, f"part{value}", operand)
        elif is_float_extremum(accumulator):
            self._gather_extremum(accumulator, f"v{value}", operand)
        elif is_float_sum(accumulator):
            add = self.source.use("reassociating_add", reduction.reassociating_add)
            self.source.line(f"{self.partial_sum(value)} = {add}({self.partial_sum(value)}, {operand})")
        else:
            self.source.line(f"v{value} = {self.scalars.combination(accumulator, f'v{value}', operand)}")

    def partial_sum(self, value: int) -> str:
        """The name of what flat loops add to."""
        return f"part{value}"

    def _add_square(self, update: Update, factor: str) -> None:
        add_product = self.source.use("reassociating_multiply_add", reduction.reassociating_multiply_add)
        part = self.partial_sum(update.accumulator)
        self.source.line(f"{part} = {add_product}({part}, {factor}, {factor})")

    def _gather_extremum(self, accumulator: Accumulator, gathered: str, operand: str) -> None:
        largest = accumulator.kind == "argmax" or accumulator.template == MAXIMUM
        if not accumulator.dtype.startswith("float"):
            text = self.source.expression(MAXIMUM if largest else MINIMUM, accumulator.dtype)
            self.source.line(f"{gathered} = {text.format(gathered, operand)}")
            return
        step = views.larger_number if largest else views.smaller_number
        name = self.source.use("larger_number" if largest else "smaller_number", step)
        self.source.line(f"{gathered} = {name}({gathered}, {operand})")
        self.source.line(f"nan{accumulator.value} |= {operand} != {operand}")

    def _restore_nan(self, accumulator: Accumulator, gathered: str) -> None:
        dtype = accumulator.dtype
        text = self.source.expression(f"select({{0}}, {dtype}(nan), {{1}})", dtype)
        self.source.line(f"{gathered} = {text.format(f'nan{accumulator.value}', gathered)}")

    def _is_better(self, accumulator: Accumulator, candidate: str, best: str) -> str:
        """Whether a candidate replaces the best so far: it is beyond it, or the first NaN."""
        relation = ">" if accumulator.kind == "argmax" else "<"
        text = f"{candidate} {relation} {best}"
        if accumulator.dtype.startswith("float"):
            text += f" or ({candidate} != {candidate} and {best} == {best})"
        return text

    def _flat_position(self, loop: Loop, names: Names) -> str:
        """The number of the present iteration."""
        text = ""
        for axis in loop.axes:
            place = f"{self.source.use('int64', types.int64)}({names.position(axis)})"
            text = f"({text}) * {size_name(axis)} + {place}" if text else place
        return text

    # ---- blocks

    def _is_one_block(self, loop: Loop) -> bool:
        """Whether a flat loop runs along an axis that one block holds, and gathers nothing but sums."""
        bound = self.scalars.kernel.axes[loop.axes[-1]].bound
        short = bound is not None and bound <= 1 << SUM_BLOCK_BITS and len(loop.axes) == 1
        return short and not any(map(is_index, loop.accumulators))

    def _blocks(self, loop: Loop, axis: int, names: Names) -> None:
        size = size_name(axis)
        blocked = [part for part in loop.accumulators if is_float_sum(part) or is_index(part)]
        if self._is_one_block(loop):
            for accumulator in blocked:
                self.source.line(f"part{accumulator.value} = {self.scalars.start(accumulator)}")
            self._parts(loop, names, ("0", size))
            for accumulator in blocked:
                self.source.line(f"v{accumulator.value} = part{accumulator.value}")
            return
        bits = INDEX_BLOCK_BITS if any(is_index(part) for part in blocked) else SUM_BLOCK_BITS
        length = 1 << bits
        with self.source.block(f"for block{axis} in range(({size} + {length - 1}) >> {bits})"):
            self.source.line(f"first{axis} = block{axis} << {bits}")
            for accumulator in blocked:
                self.source.line(f"part{accumulator.value} = {self.scalars.start(accumulator)}")
                if is_index(accumulator) and accumulator.dtype.startswith("float"):
                    self.source.line(f"nan{accumulator.value} = False")
            self.look_ahead(loop, names, length)
            self._parts(loop, names, (f"first{axis}", f"min(first{axis} + {length}, {size})"))
            self._take_sums([part for part in blocked if is_float_sum(part)], loop)
            for accumulator in blocked:
                if is_index(accumulator):
                    self._take_block(accumulator, loop)

    def _parts(self, loop: Loop, names: Names, bounds: tuple[str, str]) -> None:
        """Print the loop over a block."""
        self.few_at_a_time(
            loop,
            bounds,
            self.gathered_first(loop),
            lambda begin, end: self._elements(loop, names, self.span(begin, end), (begin, end)),
        )

    def gathered_first(self, loop: Loop) -> Sequence[int]:
        """How many elements of a block are summed before others, the most first; none if it vectorises."""
        if not any(map(is_float_sum, loop.accumulators)):
            return ()
        axis = loop.axes[-1]
        loads = [one.index for one in loop.body if isinstance(one, Load)]
        gathered = any(isinstance(one, LoadAt) for one in loop.body)
        scattered = gathered or self.scalars.layout == "A" or any(axis in index[:-1] for index in loads)
        return SCATTERED if scattered else ()

    def few_at_a_time(
        self,
        loop: Loop,
        bounds: tuple[str, str],
        counts: Sequence[int],
        print_elements: Callable[[str, str], None],
    ) -> None:
        """Print the loop over a block as sums of so many elements, each of them one of fewer, and so on.

        Those of the fewest do not wait for one another.
        """
        begin, end = bounds
        if not counts:
            print_elements(begin, end)
            return
        count, few = counts[0], f"few{counts[0]}_{loop.axes[-1]}"
        sums = {one.value: self.scalars.start(one) for one in loop.accumulators if is_float_sum(one)}
        with self.source.block(f"for {few} in range({begin}, {end}, {count})"):
            for value, start in sums.items():
                self.source.line(f"before{count}_{value} = {self.partial_sum(value)}")
                self.source.line(f"{self.partial_sum(value)} = {start}")
            self.few_at_a_time(loop, (few, f"min({few} + {count}, {end})"), counts[1:], print_elements)
            for value in sums:
                self.source.line(f"{self.partial_sum(value)} += before{count}_{value}")

    def look_ahead(self, loop: Loop, names: Names, length: int) -> None:
        """Print what is to be done before a block: nothing, but where rows are known to come from memory."""

    def _elements(self, loop: Loop, names: Names, places: str, bounds: tuple[str, str]) -> None:
        """Print an innermost loop: where it calls functions, one over whole vectors and one over the rest."""
        axis = loop.axes[-1]
        position, lanes = names.position(axis), self.whole_lanes(loop)
        if lanes is None:
            with self.source.block(f"for {position} in {places}"):
                self.block(loop.body, names, loop, flat=True)
            return
        uintp = self.source.use("uintp", types.uintp)
        remainder = self.source.use("remainder_loop", interleaving.remainder_loop)
        bound = self.scalars.kernel.axes[axis].bound
        if bound is None or bound >= lanes:
            self.source.line(f"begin{axis}, end{axis} = {', '.join(bounds)}")
            self.source.line(f"whole{axis} = begin{axis} + (end{axis} - begin{axis} & -{lanes})")
            with self.source.block(f"for {position} in range({uintp}(begin{axis}), {uintp}(whole{axis}))"):
                self.block(loop.body, names, loop, flat=True)
            places = f"range({uintp}(whole{axis}), {uintp}(end{axis}))"
        with self.source.block(f"for {position} in {places}"):
            self.source.line(f"{remainder}()", "of whole vectors: in masks")
            self.block(loop.body, names, loop, flat=True)

    def whole_lanes(self, loop: Loop) -> int | None:
        """Of how many elements an innermost loop takes whole vectors; None for any number.

        Elements are loaded in masks only where they lie side by side.
        """
        called = [one for one in loop.body if isinstance(one, Compute) and calls_function(one)]
        accessed = [one.index for one in loop.body if isinstance(one, Load | Store)]
        axis = loop.axes[-1]
        if not called or self.scalars.layout == "A" or any(axis in index[:-1] for index in accessed):
            return None
        if any(isinstance(one, LoadAt) for one in loop.body):
            return None
        bits = 64 if any(one.dtype == "float64" for one in called) else 32
        return interleaving.whole_lanes(bits, self.scalars.target)

    def _take_sums(self, sums: Sequence[Accumulator], loop: Loop) -> None:
        """Add the sums of a block; the first one is taken as it is, since most rows are no longer."""
        if not sums:
            return
        if len(loop.axes) > 1:
            for accumulator in sums:
                self._compensated(accumulator.value, f"part{accumulator.value}")
            return
        with self.source.block(f"if first{loop.axes[0]} == 0"):
            for accumulator in sums:
                self.source.line(f"v{accumulator.value} = part{accumulator.value}")
        with self.source.block("else"):
            for accumulator in sums:
                self._compensated(accumulator.value, f"part{accumulator.value}")

    def places(self, axis: int, names: Names) -> str:
        """The range of places that a loop along an axis runs through."""
        bounds = names.bounds.get(axis)
        if bounds is None:
            return f"range({size_name(axis)})"
        uintp = self.source.use("uintp", types.uintp)
        return f"range({uintp}({bounds[0]}), {uintp}({bounds[1]}))"

    def span(self, first: str, end: str) -> str:
        """A range of places; unsigned, since signed bounds keep loops from vectorising."""
        uintp = self.source.use("uintp", types.uintp)
        return f"range({uintp}({first}), {uintp}({end}))"

    def _take_block(self, accumulator: Accumulator, loop: Loop) -> None:
        value = accumulator.value
        if accumulator.dtype.startswith("float"):
            self._restore_nan(accumulator, f"part{value}")
        with self.source.block(f"if {self._is_better(accumulator, f'part{value}', f'best{value}')}"):
            self.source.line(f"best{value} = part{value}")
            for axis in loop.axes[:-1]:
                self.source.line(f"place{value}_{axis} = i{axis}")
            last = loop.axes[-1]
            self.source.line(f"place{value}_{last} = first{last}")

    def _finish(
        self, accumulator: Accumulator, loop: Loop, flat: bool, names: Names, in_blocks: bool = True
    ) -> None:
        value = accumulator.value
        if is_float_sum(accumulator):
            if not in_blocks:
                return
            corrected = self.source.use("corrected", views.corrected)
            text = f"v{value} = {corrected}(v{value}, error{value})"
            if flat and len(loop.axes) == 1:
                # Not the size, which is the same for all rows: LLVM would write all loops twice.
                text = f"if error{value} != 0: {text}"
            self.source.line(text)
        elif flat and is_float_extremum(accumulator):
            self._restore_nan(accumulator, f"v{value}")
        elif flat and is_index(accumulator):
            self._find_place(accumulator, loop, names)

    def _find_place(self, accumulator: Accumulator, loop: Loop, names: Names) -> None:
        """Look for the extremum in the first block that has it."""
        value, last = accumulator.value, loop.axes[-1]
        (operand,) = [
            statement.operand
            for statement in loop.body
            if isinstance(statement, Update) and statement.accumulator == value
        ]
        self.source.line(f"v{value} = 0")
        for axis in loop.axes[:-1]:
            self.source.line(f"i{axis} = place{value}_{axis}")
        first = f"place{value}_{last}"
        span = self.span(first, f"min({first} + {1 << INDEX_BLOCK_BITS}, {size_name(last)})")
        with self.source.block(f"for i{last} in {span}"):
            for statement in leading_to(operand, loop.body):
                self.scalars.definition(statement, names)
            found = names.value(operand)
            condition = f"{found} == best{value}"
            if accumulator.dtype.startswith("float"):
                condition += f" or {found} != {found}"
            with self.source.block(f"if {condition}"):
                self.source.line(f"v{value} = {self._flat_position(loop, names)}")
                self.source.line("break")


def leading_to(value: int, body: Sequence[Statement]) -> list[Definition]:
    """The definitions of a body that a value depends on, itself included."""
    wanted = {value}
    found: list[Definition] = []
    for statement in reversed(body):
        if not isinstance(statement, Definition) or statement.value not in wanted:
            continue
        found.insert(0, statement)
        wanted.update(operands_of(statement))
    return found


def squares_summed(loop: Loop) -> dict[int, int]:
    """Squares that a loop adds to float sums and does nothing else with, each with what is squared.

    They need not be rounded before they are added: sums of them are never negative, so what is finite,
    infinite or NaN remains so. Of other products, one that overflows might cancel.
    """
    floats = {one.value for one in loop.accumulators if is_float_sum(one)}
    squares = {
        statement.value: statement.operands[0]
        for statement in loop.body
        if isinstance(statement, Compute) and is_square(statement)
    }
    for statement in walk(loop.body):
        if isinstance(statement, Update) and statement.accumulator in floats:
            continue
        for operand in operands_of(statement):
            squares.pop(operand, None)
    return squares
