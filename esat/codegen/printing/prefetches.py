"""What announces memory to the caches, as source text: see :mod:`esat.codegen.prefetching`."""

from __future__ import annotations

from numba.core import types

from esat.codegen import prefetching, processor
from esat.codegen.loop_ir import Load
from esat.codegen.printing.scalars import Names, ScalarPrinter


def print_pages(loads: list[Load], scalars: ScalarPrinter, names: Names, count: str) -> None:
    """Print what announces pages some way behind the ``count`` elements that loads are about to read.

    That is nothing where processors go on to the next page by themselves.
    """
    if not loads or not processor.waits_at_pages():
        return
    announce = scalars.source.use("prefetch_pages", prefetching.prefetch_pages)
    for load in loads:
        scalars.source.line(f"{announce}({_place(load, scalars, names)}, {count})")


def print_next_row(
    loads: list[Load], scalars: ScalarPrinter, names: Names, count: str, distance: str = "1"
) -> None:
    """Print what announces ``count`` elements of rows so far below those that loads are about to read."""
    announce = scalars.source.use("prefetch_lines", prefetching.prefetch_lines) if loads else ""
    for load in loads:
        row, uintp = load.index[-2], scalars.source.use("uintp", types.uintp)
        assert row is not None
        below = names.with_position(row, f"{names.position(row)} + {uintp}({distance})")
        scalars.source.line(f"{announce}({_place(load, scalars, below)}, {count})")


def _place(load: Load, scalars: ScalarPrinter, names: Names) -> str:
    places = "".join(f"{place}, " for place in scalars.places(load.index, names))
    return f"{scalars.indexed_name(load.array)}, ({places})"
