"""Kernels whose loops several threads share, as source text.

Every loop that is shared becomes a function of its own, which runs through the units it is given; the
kernel itself starts them one after another, and takes in the partial results they leave.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from numba.core import types

from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import adds_from_memory, loads_along, streamed_outputs
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Accumulator, Kernel, Load, Loop, Statement, Tile, walk
from esat.codegen.kernel.moments import GROUP_BITS, Moments, accumulator_of, find_moments
from esat.codegen.kernel.partition import (
    Gather,
    LoopPartition,
    captured,
    constants,
    definitions,
    gathered,
    is_constant,
    partition,
)
from esat.codegen.llvm.vector_width import half_vectors
from esat.codegen.printing.input_layout import Layout
from esat.codegen.printing.loops import LoopPrinter, is_float_extremum, is_float_sum, is_index
from esat.codegen.printing.print_moments import (
    print_chunks,
    print_helpers,
    print_squares,
    print_total,
    results_names,
)
from esat.codegen.printing.print_nontemporal import StreamPrinter
from esat.codegen.printing.print_prefetches import runs_ahead
from esat.codegen.printing.printer import PrintedKernel, print_sizes, print_views, print_width
from esat.codegen.printing.scalars import Names, ScalarPrinter, array_name, size_name
from esat.codegen.printing.source import Source
from esat.codegen.printing.tiles import TilePrinter, declare_scratch
from esat.codegen.printing.unrounded_products import horner_steps
from esat.codegen.threads.tasks import in_parallel

PARALLEL_ENTRY = "kernel_in_parallel"
"""Name of the generated function. It takes the arrays of the kernel, an array for the partial results of each
accumulator that leaves some, three for each of the moments, the address of a pool of threads, and how many of
them to use."""

_TURNS = 4
"""Parts of a loop for each thread."""
_FEW_UNITS = 64
"""An outermost axis that is shorter is shared less evenly than the innermost one of long rows."""


def print_parallel_source(
    kernel: Kernel, target: Target, layout: Layout, comments: bool, streams: bool = False
) -> PrintedKernel | None:
    """The source of a kernel for several threads, and what it names; None if they have nothing to share.

    Parameters
    ----------
    kernel, target, layout, comments
        As for :func:`print_source`.
    streams
        Whether results are written past the caches.
    """
    if layout == "C":
        kernel = collapse(kernel)
    parts = partition(kernel)
    if not any(isinstance(part, LoopPartition | Gather) for part in parts):
        return None
    source = Source(comments)
    _Printer(kernel, target, source, layout, streamed_outputs(kernel) if streams else ()).print()
    return PrintedKernel(source.text(), source.environment)


def part_names(kernel: Kernel) -> tuple[str, ...]:
    """Names of the functions for the parts of a kernel that is collapsed if its arrays are contiguous.

    Those for moments in one pass come last.
    """
    parts = partition(kernel)
    shared = sum(isinstance(part, LoopPartition | Gather) for part in parts)
    moments = [_chunks_name(one) for one in find_moments(parts)]
    return (*(f"part_{number}" for number in range(shared)), *moments)


def _chunks_name(moments: Moments) -> str:
    return f"moments_{moments.value}"


class _Printer:
    def __init__(
        self, kernel: Kernel, target: Target, source: Source, layout: Layout, streamed: tuple[int, ...]
    ) -> None:
        self.kernel = kernel
        self.target = target
        self.source = source
        self.layout = layout
        self.steps = horner_steps(kernel)
        self.streamed = streamed
        self.parts = partition(kernel)
        self.moments = find_moments(self.parts)
        self.row_moments: tuple[Moments, ...] = ()
        self.known = definitions(kernel)
        self.arrays = [array_name(kernel, number) for number in range(len(kernel.arrays))]
        self.results = [_results_name(accumulator) for _, accumulator in gathered(self.parts)]
        self.results += [name for one in self.moments for name in results_names(one)]

    def print(self) -> None:
        if self.kernel.comment:
            self.source.remark(self.kernel.comment)
        shared = [part for part in self.parts if isinstance(part, LoopPartition | Gather)]
        for name, part in zip(part_names(self.kernel), shared, strict=False):
            self._function(name, part)
        for moments in self.moments:
            self._chunks(moments)
        print_helpers((*self.moments, *self.row_moments), self.source)
        arguments = ", ".join([*self.arrays, *self.results, "pool", "threads"])
        with self.source.block(f"def {PARALLEL_ENTRY}({arguments})"):
            self._caller()

    # ---- the functions that threads run

    def _function(self, name: str, part: LoopPartition | Gather) -> None:
        numbers = self._passed(part)
        arguments = ["begin", "end", *self.arrays, *self._own_results(part), *(f"v{v}" for v in numbers)]
        if isinstance(part, LoopPartition) and len(part.axes) > 1:
            arguments.append("inner")
        with self.source.block(f"def {name}({', '.join(arguments)})"):
            printer = self._open((part.statement,))
            for definition in constants(self._constants(part), self.known):
                printer.scalars.definition(definition, Names())
            if isinstance(part, LoopPartition):
                self._run_split(part, printer)
            else:
                if self.target.halves_memory_vectors and adds_from_memory(part.statement, self.kernel.arrays):
                    self.source.line(f"{self.source.use('half_vectors', half_vectors)}()")
                printer.run_units(part)
            printer.end_streams()
            self.row_moments += printer.moments
        self.source.line("")

    def _chunks(self, moments: Moments) -> None:
        arguments = ", ".join(["begin", "end", *self.arrays, *results_names(moments)])
        with self.source.block(f"def {_chunks_name(moments)}({arguments})"):
            print_chunks(moments, self._open((moments.total.statement,)).scalars)
        self.source.line("")

    def _open(self, body: tuple[Statement, ...]) -> _GatherPrinter:
        """Print what a function starts with; the printer of its loops."""
        kernel = replace(self.kernel, body=body)
        if not self.streamed:
            print_width(body, kernel, self.target, self.source)
        print_sizes(kernel, self.source)
        print_views(kernel, self.source)
        for statement in walk(body):
            if isinstance(statement, Tile):
                declare_scratch(statement, self.source)
        scalars = ScalarPrinter(kernel, self.target, self.source, self.layout, self.steps)
        printer = _GatherPrinter(scalars, TilePrinter(scalars).tile)
        printer.open_streams(self.streamed)
        return printer

    def _run_split(self, part: LoopPartition, printer: LoopPrinter) -> None:
        """Run through the units from ``begin`` to ``end`` along one axis, and through all of the others."""
        first, last = part.axes[0], part.axes[-1]
        lines = f"begin * {part.columns}, min(end * {part.columns}, {size_name(last)})"
        if len(part.axes) > 1:
            self.source.line(f"begin{first}, end{first} = (0, {size_name(first)}) if inner else (begin, end)")
            self.source.line(f"begin{last}, end{last} = ({lines}) if inner else (0, {size_name(last)})")
        else:
            units = lines if part.by_lines else "begin, end"
            self.source.line(f"begin{first}, end{first} = {units}")
        bounds = {axis: (f"begin{axis}", f"end{axis}") for axis in part.axes}
        printer.block((part.statement,), Names(bounds=bounds), None, flat=False)

    # ---- the caller

    def _caller(self) -> None:
        serial = [part for part in self.parts if not isinstance(part, LoopPartition | Gather)]
        print_sizes(self.kernel, self.source)
        print_views(self.kernel, self.source)
        for statement in walk(tuple(serial)):
            if isinstance(statement, Tile):
                declare_scratch(statement, self.source)
        scalars = ScalarPrinter(self.kernel, self.target, self.source, self.layout, self.steps)
        printer = _GatherPrinter(scalars, TilePrinter(scalars).tile)
        names = iter(part_names(self.kernel))
        for part in self.parts:
            if isinstance(part, Gather):
                self._gather(next(names), part, printer)
            elif isinstance(part, LoopPartition):
                self._start(next(names), part)
            else:
                printer.block((part,), Names(), None, flat=False)

    def _gather(self, name: str, part: Gather, printer: _GatherPrinter) -> None:
        """Start a loop and take its results in; for one of moments only where these are not finite."""
        with ExitStack() as stack:
            for moments in self.moments:
                if part is moments.total:
                    units = _blocks(size_name(part.statement.axes[0]), GROUP_BITS)
                    arguments = ", ".join([*self.arrays, *results_names(moments)])
                    self._run(units, _TURNS, _chunks_name(moments), arguments)
                    print_total(moments, self.source)
                elif part is moments.squares:
                    print_squares(moments, self.source)
                else:
                    continue
                finite = self.source.expression("isfinite", moments.dtype)
                stack.enter_context(self.source.block(f"if not {finite}(v{accumulator_of(part).value})"))
            self._start(name, part)
            printer.take_in(part)

    def _run(self, units: str, turns: int, name: str, arguments: str) -> None:
        run = self.source.use("in_parallel", in_parallel)
        self.source.line(f"{run}(pool, threads, {units}, {turns}, {name}, ({arguments},))")

    def _start(self, name: str, part: LoopPartition | Gather) -> None:
        arguments = [*self.arrays, *self._own_results(part), *(f"v{value}" for value in self._passed(part))]
        if isinstance(part, Gather):
            units = size_name(part.statement.axes[0])
            if part.by_blocks:
                units = _blocks(units, part.block_bits + _places_bits(part, self.kernel, self.target))
        else:
            units = self._split_units(part)
            if len(part.axes) > 1:
                arguments.append("inner")
        turns = _TURNS
        if isinstance(part, LoopPartition) and part.is_tiled and len(part.axes) == 1:
            turns = 1  # the wider the part of each row, the faster memory is read
        self._run(units, turns, name, ", ".join(arguments))

    def _split_units(self, part: LoopPartition) -> str:
        first, last = part.axes[0], part.axes[-1]
        lines = f"({size_name(last)} + {part.columns - 1}) // {part.columns}"
        if len(part.axes) == 1:
            return lines if part.by_lines else size_name(first)
        self.source.line(f"inner = {size_name(first)} < {_FEW_UNITS} and {lines} > {size_name(first)}")
        return f"{lines} if inner else {size_name(first)}"

    # ---- what they share

    def _passed(self, part: LoopPartition | Gather) -> list[int]:
        return [value for value in captured(part.statement) if not is_constant(value, self.known)]

    def _constants(self, part: LoopPartition | Gather) -> list[int]:
        return [value for value in captured(part.statement) if is_constant(value, self.known)]

    def _own_results(self, part: LoopPartition | Gather) -> list[str]:
        if isinstance(part, LoopPartition):
            return []
        return [_results_name(accumulator) for accumulator in part.statement.accumulators]


def _results_name(accumulator: Accumulator) -> str:
    return f"partial{accumulator.value}"


def _blocks(size: str, bits: int) -> str:
    return f"({size} + {(1 << bits) - 1}) >> {bits}"


def _places_bits(part: Gather, kernel: Kernel, target: Target) -> int:
    """The logarithm of the number of places, a group of elements apart, that a sum is read from in turns."""
    loop = part.statement
    if not adds_from_memory(loop, kernel.arrays):
        return 0
    arrays = len({one.array for one in loop.body if isinstance(one, Load)})
    return max(target.tuning.reading_places // arrays, 1).bit_length() - 1


class _GatherPrinter(StreamPrinter):
    """Prints loops; those of a :class:`Gather` as units that leave partial results, and taking these in."""

    _leaving: Loop | None = None
    _distance: int | None = None

    # ---- leaving partial results

    def run_units(self, part: Gather) -> None:
        """Print the loops over the units from ``begin`` to ``end``."""
        loop = part.statement
        names = Names(bounds={loop.axes[0]: ("begin", "end")})
        if part.by_blocks and _places_bits(part, self.scalars.kernel, self.scalars.target):
            self._units_in_turns(part, names)
            return
        if part.by_blocks:
            with self.source.block("for place in range(begin, end)"):
                self._block(part, "place", names)
            return
        if part.block_bits == 0:
            self._leaving = loop
            with ExitStack() as stack:
                for axis in loop.axes:
                    stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
                self.block(loop.body, names, loop, flat=False)
            return
        *outer, last = loop.axes
        blocks = _blocks(size_name(last), part.block_bits)
        self.source.line(f"place = {' * '.join(['begin', *map(size_name, outer[1:]), f'({blocks})'])}")
        with ExitStack() as stack:
            for axis in outer:
                stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
            with self.source.block(f"for block in range({blocks})"):
                self._block(part, "block", names)
                self.source.line("place += 1")

    def _units_in_turns(self, part: Gather, names: Names) -> None:
        """Units of a block from each place of a group, or of neighbours where a group is not whole.

        So a block is read by the same code whoever reads it.
        """
        size = size_name(part.statement.axes[0])
        bits = _places_bits(part, self.scalars.kernel, self.scalars.target)
        apart = GROUP_BITS - part.block_bits - bits
        with self.source.block("for unit in range(begin, end)"):
            self.source.line(f"group = unit >> {apart}")
            with self.source.block(f"if (group + 1) << {GROUP_BITS} <= {size}"):
                self.source.line(f"place = (group << {apart + bits}) + (unit & {(1 << apart) - 1})")
                self._blocks_in_turns(part, [number << apart for number in range(1 << bits)], names)
            with self.source.block("else"):
                end = f"min((unit + 1) << {bits}, {_blocks(size, part.block_bits)})"
                with self.source.block(f"for place in range(unit << {bits}, {end})"):
                    self._block(part, "place", names)

    def _blocks_in_turns(self, part: Gather, distances: list[int], names: Names) -> None:
        """Blocks that lie so many blocks behind the one that ``place`` says, all at once."""
        loop, axis = part.statement, part.statement.axes[0]
        uintp = self.source.use("uintp", types.uintp)
        self.source.line(f"start = {uintp}(place << {part.block_bits})")
        for self._distance in distances:
            for accumulator in loop.accumulators:
                name = self.partial_sum(accumulator.value)
                self.source.line(f"{name} = {self.scalars.start(accumulator)}")
        with self.source.block(f"for i{axis} in range({uintp}({1 << part.block_bits}))"):
            for self._distance in distances:
                behind = f"{uintp}({self._distance << part.block_bits})"
                there = names.with_position(axis, f"start + {behind} + i{axis}")
                self.block(loop.body, there, loop, flat=True)
        for self._distance in distances:
            for accumulator in loop.accumulators:
                left = f"{_results_name(accumulator)}[place + {self._distance}]"
                self.source.line(f"{left} = {self.partial_sum(accumulator.value)}")
        self._distance = None

    def partial_sum(self, value: int) -> str:
        """As for all loops; blocks that are read in turns have one each."""
        name = super().partial_sum(value)
        return name if self._distance is None else f"{name}_{self._distance}"

    def _block(self, part: Gather, number: str, names: Names) -> None:
        """One block, whose results go where ``place`` says."""
        loop, axis = part.statement, part.statement.axes[-1]

        def print_elements(begin: str, end: str) -> None:
            with self.source.block(f"for i{axis} in {self.span(begin, end)}"):
                self.block(loop.body, names, loop, flat=True)

        self.source.line(f"first{axis} = {number} << {part.block_bits}")
        for accumulator in loop.accumulators:
            self.source.line(f"{_gathered_name(accumulator)} = {self.scalars.start(accumulator)}")
            if _notes_nan(accumulator):
                self.source.line(f"nan{accumulator.value} = False")
        length, size = 1 << part.block_bits, size_name(axis)
        block = f"first{axis}", f"min(first{axis} + {length}, {size})"
        for first, end in runs_ahead(loads_along(loop, loop.axes), self.scalars, names, block, length):
            self.few_at_a_time(loop, (first, end), self.gathered_first(loop), print_elements)
        for accumulator in loop.accumulators:
            name = _gathered_name(accumulator)
            if _notes_nan(accumulator):
                self._restore_nan(accumulator, name)
            self.source.line(f"{_results_name(accumulator)}[place] = {name}")

    def _nested_update(self, accumulator: Accumulator, operand: str, loop: Loop, names: Names) -> None:
        if loop is self._leaving:
            position = self._flat_position(loop, names)
            self.source.line(f"{_results_name(accumulator)}[{position}] = {operand}")
        else:
            super()._nested_update(accumulator, operand, loop, names)

    # ---- taking them in

    def take_in(self, part: Gather) -> None:
        """Print the loop over partial results, and what follows from the accumulators."""
        loop, flat = part.statement, part.block_bits > 0
        for accumulator in loop.accumulators:
            self._declare(accumulator, loop, flat)
        *outer, last = loop.axes
        lasts = _blocks(size_name(last), part.block_bits) if flat else size_name(last)
        with self.source.block(f"for place in range({' * '.join([*map(size_name, outer), f'({lasts})'])})"):
            for accumulator in loop.accumulators:
                self._take_result(accumulator, part)
        for accumulator in loop.accumulators:
            self._finish(accumulator, loop, flat, Names())

    def _take_result(self, accumulator: Accumulator, part: Gather) -> None:
        loop, value = part.statement, accumulator.value
        result = f"{_results_name(accumulator)}[place]"
        if part.block_bits == 0:
            first = loop.axes[0]  # iterations are counted through all axes
            flattened = replace(loop, axes=(first,))
            self._nested_update(accumulator, result, flattened, Names(positions={first: "place"}))
        elif is_index(accumulator):
            with self.source.block(f"if {self._is_better(accumulator, result, f'best{value}')}"):
                self.source.line(f"best{value} = {result}")
                self.source.line(f"place{value}_{loop.axes[0]} = place << {part.block_bits}")
        elif not is_float_sum(accumulator):
            self.source.line(f"v{value} = {self.scalars.combination(accumulator, f'v{value}', result)}")
        elif len(loop.axes) > 1:
            self._compensated(value, result)
        else:
            with self.source.block("if place == 0"):
                self.source.line(f"v{value} = {result}")
            with self.source.block("else"):
                self._compensated(value, result)


def _gathered_name(accumulator: Accumulator) -> str:
    """What a block is gathered in: the name that steps of flat loops use."""
    prefix = "part" if is_float_sum(accumulator) or is_index(accumulator) else "v"
    return f"{prefix}{accumulator.value}"


def _notes_nan(accumulator: Accumulator) -> bool:
    if is_index(accumulator):
        return accumulator.dtype.startswith("float")
    return is_float_extremum(accumulator)
