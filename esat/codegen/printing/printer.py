"""Whole kernels as source text."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import takes_whole_vectors, waits_for_memory
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Kernel, Load, LoadAt, Loop, Scatter, Statement, Store, Tile, walk
from esat.codegen.llvm import views
from esat.codegen.llvm.vector_width import half_vectors
from esat.codegen.llvm.whole_vectors import whole_vectors
from esat.codegen.printing.input_layout import Layout
from esat.codegen.printing.loops import LoopPrinter
from esat.codegen.printing.scalars import Names, ScalarPrinter, array_name, is_viewed, size_name
from esat.codegen.printing.source import Source
from esat.codegen.printing.tiles import TilePrinter, declare_scratch
from esat.codegen.printing.unrounded_products import horner_steps

ENTRY = "kernel"
"""Name of the generated function."""
LONGEST_UNROLLED = 4
"""Elements of an axis up to which LLVM is told its size, and unrolls loops along it. The density and gradient
of a mixture of 3 parts in 1,000 rows took 56 us instead of 275; logarithms of sums of 8 exponentials a row
took 90 instead of 53."""


@record(frozen=True)
class PrintedKernel:
    """Source text of one function called :data:`ENTRY`, and the objects it names."""

    text: str
    environment: dict[str, object]


def print_kernel(kernel: Kernel, target: Target, layout: Layout = "C", comments: bool = True) -> str:
    """The numba source of a kernel, for people to read."""
    return print_source(kernel, target, layout, comments).text


def print_source(kernel: Kernel, target: Target, layout: Layout, comments: bool) -> PrintedKernel:
    """The numba source of a kernel and what it names.

    Parameters
    ----------
    kernel
        The kernel as lowered.
    target
        The machine that it is printed for.
    layout
        The layout of the inputs; for contiguous ones axes are collapsed first.
    comments
        Whether to name graph nodes in comments. Without them equal kernels have equal text.
    """
    if layout == "C":
        kernel = collapse(kernel)
    source = Source(comments)
    arguments = ", ".join(array_name(kernel, number) for number in range(len(kernel.arrays)))
    if kernel.comment:
        source.remark(kernel.comment)
    with source.block(f"def {ENTRY}({arguments})"):
        print_width(kernel.body, kernel, target, source)
        if layout == "C" and takes_whole_vectors(kernel):
            line = f"{source.use('whole_vectors', whole_vectors)}()"
            source.line(line, "called for whole vectors, the last one padded")
        print_sizes(kernel, source)
        print_views(kernel, source)
        for statement in walk(kernel.body):
            if isinstance(statement, Tile):
                declare_scratch(statement, source)
        scalars = ScalarPrinter(kernel, target, source, layout, horner_steps(kernel))
        LoopPrinter(scalars, TilePrinter(scalars).tile).block(kernel.body, Names(), None, flat=False)
    return PrintedKernel(source.text(), source.environment)


def _used_axes(kernel: Kernel) -> list[int]:
    used: set[int] = set()
    for statement in walk(kernel.body):
        if isinstance(statement, Tile):
            used.add(statement.axis)
        elif isinstance(statement, Loop):
            used.update(statement.axes)
    return sorted(used)


def print_width(body: Sequence[Statement], kernel: Kernel, target: Target, source: Source) -> None:
    """Ask for half vectors in the function of a body that waits for memory."""
    if target.halves_memory_vectors and waits_for_memory(body, kernel.arrays):
        source.line(f"{source.use('half_vectors', half_vectors)}()")


def print_sizes(kernel: Kernel, source: Source) -> None:
    """Name the sizes of the axes that loops run along."""
    for axis in _used_axes(kernel):
        factors = kernel.axes[axis].factors
        text = " * ".join(f"{array_name(kernel, array)}.shape[{place}]" for array, place in factors)
        known = kernel.axes[axis].size
        told = known is not None and known <= LONGEST_UNROLLED
        source.line(f"{size_name(axis)} = {known if told else text}")


def print_views(kernel: Kernel, source: Source) -> None:
    """Name the arrays in the shapes that loads and stores index."""
    used = {one.array for one in walk(kernel.body) if isinstance(one, Load | LoadAt | Store | Scatter)}
    for number, array in enumerate(kernel.arrays):
        if number not in used or not is_viewed(array):
            continue
        name = array_name(kernel, number)
        sizes = "".join(
            " * ".join(f"{name}.shape[{axis}]" for axis in group) + ", " for group in array.groups
        )
        view = source.use("contiguous_view", views.contiguous_view)
        source.line(f"{name}_view = {view}({name}, ({sizes}))")
