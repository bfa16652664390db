"""Narrow kernels as source text: the innermost loops are written out, element by element."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from numba.core import types

from esat.codegen.ground.target import Target
from esat.codegen.kernel.loop_ir import Definition, Index, Load, Loop, Places, Store, Tile, walk
from esat.codegen.kernel.narrow import TRANSPOSED_WIDTH, Narrow, is_transposed_around
from esat.codegen.llvm import views
from esat.codegen.printing.loops import LoopPrinter, is_float_extremum, is_index
from esat.codegen.printing.printer import ENTRY, PrintedKernel, print_sizes
from esat.codegen.printing.scalars import Names, ScalarPrinter, array_name, size_name
from esat.codegen.printing.source import Source
from esat.codegen.printing.unrounded_products import horner_steps

_WIDTH_BITS = TRANSPOSED_WIDTH.bit_length() - 1


def print_narrow(narrow: Narrow, size: int, target: Target, comments: bool) -> PrintedKernel:
    """The numba source of a kernel whose narrow axis has a size, for contiguous arrays."""
    kernel = narrow.kernel
    source = Source(comments)
    arguments = ", ".join(array_name(kernel, number) for number in range(len(kernel.arrays)))
    if kernel.comment:
        source.remark(f"{kernel.comment}, for rows of {size}")
    with source.block(f"def {ENTRY}({arguments})"):
        print_sizes(kernel, source)
        _print_views(narrow, size, source)
        scratch = source.use("scratch", views.scratch) if narrow.transposed else ""
        for array in narrow.transposed:
            dtype = kernel.arrays[array].dtype
            source.line(f"transposed{array} = {scratch}({source.expression(dtype, dtype)})")
        scalars = _NarrowScalars(narrow, target, source)
        _NarrowLoops(scalars, narrow, size).block(kernel.body, Names(), None, flat=False)
    return PrintedKernel(source.text(), source.environment)


def _print_views(narrow: Narrow, size: int, source: Source) -> None:
    """Name the arrays in the shapes that loads and stores index, with the narrow size as a number."""
    indices: dict[int, Index] = {}
    for statement in walk(narrow.kernel.body):
        if isinstance(statement, Load | Store):
            indices.setdefault(statement.array, statement.index)
    view = source.use("contiguous_view", views.contiguous_view)
    for number, index in sorted(indices.items()):
        array = narrow.kernel.arrays[number]
        if not array.groups:
            continue
        name = array_name(narrow.kernel, number)
        sizes = [" * ".join(f"{name}.shape[{axis}]" for axis in group) for group in array.groups]
        shown = [str(size) if axis == narrow.axis else text for axis, text in zip(index, sizes, strict=True)]
        source.line(f"{name}_view = {view}({name}, ({', '.join(shown)}, ))")


class _NarrowScalars(ScalarPrinter):
    """Elements of arrays as views, and of transposed ones in scratch."""

    def __init__(self, narrow: Narrow, target: Target, source: Source) -> None:
        super().__init__(narrow.kernel, target, source, "C", horner_steps(narrow.kernel))
        self.narrow = narrow

    def element(self, number: int, index: Places, names: Names) -> str:
        """The text of an array's element."""
        if number in self.narrow.transposed and names.position(self.narrow.axis).isdecimal():
            return self.transposed(number, int(names.position(self.narrow.axis)))
        array = self.kernel.arrays[number]
        if not array.groups:
            return super().element(number, index, names)
        places = ", ".join(self.places(index, names))
        return f"{array_name(self.kernel, number)}_view[{places}]"

    def transposed(self, number: int, place: int) -> str:
        """The text of an element in scratch, for one place of the narrow axis."""
        uintp = self.source.use("uintp", types.uintp)
        return f"transposed{number}[{uintp}({place * TRANSPOSED_WIDTH}) + place]"


class _NarrowLoops(LoopPrinter):
    """Writes out loops along the narrow axis."""

    def __init__(self, scalars: _NarrowScalars, narrow: Narrow, size: int) -> None:
        super().__init__(scalars, _no_tile)
        self.narrow_scalars = scalars
        self.narrow = narrow
        self.size = size
        self.written = {
            accumulator.value
            for loop in walk(narrow.kernel.body)
            if isinstance(loop, Loop) and loop.axes[-1] == narrow.axis
            for accumulator in loop.accumulators
        }

    def loop(self, loop: Loop, names: Names) -> None:
        """Print a loop and what follows from its accumulators."""
        if loop.axes[-1] == self.narrow.axis:
            self._written_out(loop, names)
        elif self.narrow.transposed and is_transposed_around(loop, self.narrow.around):
            self._transposed(loop, names)
        else:
            super().loop(loop, names)

    def is_flat(self, loop: Loop) -> bool:
        """Whether nothing but elements is left of a loop that gathers, once those inside are written out."""
        if super().is_flat(loop):
            return True
        inner = [statement for statement in loop.body if isinstance(statement, Loop)]
        written = all(one.axes == (self.narrow.axis,) for one in inner)
        return bool(loop.accumulators) and written and not any(map(is_index, loop.accumulators))

    def _written_out(self, loop: Loop, names: Names) -> None:
        for accumulator in loop.accumulators:
            start = self.scalars.start(accumulator)
            self.source.line(f"v{accumulator.value} = {start}", accumulator.comment)
            if is_float_extremum(accumulator):
                self.source.line(f"nan{accumulator.value} = False")
        with ExitStack() as stack:
            for axis in loop.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in range({size_name(axis)})"))
            own = [s.value for s in loop.body if isinstance(s, Definition)]
            for place in range(self.size):
                values = {**names.values, **{value: f"v{value}_{place}" for value in own}}
                here = replace(names, values=values).with_position(self.narrow.axis, str(place))
                self.block(loop.body, here, loop, flat=True)
        for accumulator in loop.accumulators:
            if is_float_extremum(accumulator):
                self._restore_nan(accumulator, f"v{accumulator.value}")

    def partial_sum(self, value: int) -> str:
        """The name of what flat loops add to: those that are written out have no blocks."""
        return f"v{value}" if value in self.written else super().partial_sum(value)

    def whole_lanes(self, loop: Loop) -> int | None:
        """None around loops that are written out: their elements do not lie side by side."""
        return super().whole_lanes(loop) if super().is_flat(loop) else None

    def _transposed(self, loop: Loop, names: Names) -> None:
        """A nest whose last axis is gone through outermost, a few places at a time."""
        around = self.narrow.around
        size, uintp = size_name(around), self.source.use("uintp", types.uintp)
        places = f"for place in range({uintp}(width))"
        with self.source.block(f"for tile in range(({size} + {TRANSPOSED_WIDTH - 1}) >> {_WIDTH_BITS})"):
            self.source.line(f"start = {uintp}(tile << {_WIDTH_BITS})")
            self.source.line(f"width = {uintp}(min({size} - (tile << {_WIDTH_BITS}), {TRANSPOSED_WIDTH}))")
            names = names.with_position(around, "start + place")
            with self.source.block(places):
                for array in self.narrow.transposed:
                    name = array_name(self.narrow.kernel, array)
                    for place in range(self.size):
                        transposed = self.narrow_scalars.transposed(array, place)
                        self.source.line(f"{transposed} = {name}_view[start + place, {place}]")
            with ExitStack() as stack:
                for axis in loop.axes[:-1]:
                    stack.enter_context(self.source.block(f"for i{axis} in range({size_name(axis)})"))
                with self.source.block(places):
                    self.block(loop.body, names, loop, flat=False)


def _no_tile(tile: Tile, names: Names) -> None:
    raise AssertionError("a narrow kernel has no tiles")
