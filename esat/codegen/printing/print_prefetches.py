"""What prefetches memory, as source text: see :mod:`esat.codegen.llvm.prefetching`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numba.core import types

from esat.codegen.kernel.loop_ir import Load
from esat.codegen.llvm import prefetching
from esat.codegen.llvm.prefetching import RUN
from esat.codegen.printing.scalars import Names, ScalarPrinter, size_name


def print_ahead(loads: Sequence[Load], scalars: ScalarPrinter, names: Names, count: str) -> None:
    """Print what prefetches memory some way behind the ``count`` elements that loads are about to read.

    That is nothing where processors see by themselves what comes next.
    """
    if not _prefetches_lines(loads, scalars):
        return
    (load,) = loads
    axis = load.index[-1]
    assert axis is not None
    distance = scalars.target.tuning.prefetch_distance // _item_size(load, scalars)
    ahead = f"{names.position(axis)} + {scalars.source.use('uintp', types.uintp)}({distance})"
    _prefetch("prefetch_near", load, scalars, names.with_position(axis, ahead), count)


def runs_ahead(
    loads: Sequence[Load], scalars: ScalarPrinter, names: Names, block: tuple[str, str], length: int
) -> Iterator[tuple[str, str]]:
    """Prefetch what lies behind a block, run by run where its lines are prefetched.

    These runs are of a fixed length; the remainder of the block is one of its own, without prefetches. So
    is all of it where arrays are not far.

    Parameters
    ----------
    loads
        What is read of the block; its places are called as ``names`` has it.
    block, length
        Its first place, the one after its last, and how many there are at most.

    Yields
    ------
    The first place of each run and the one after its last, in the block of the source that is to read it.
    """
    first, end = block
    axis = loads[0].index[-1] if loads else None
    if axis is None or not _prefetches_lines(loads, scalars):
        print_ahead(loads, scalars, names if axis is None else names.with_position(axis, first), str(length))
        yield first, end
        return
    run, uintp = RUN // _item_size(loads[0], scalars), scalars.source.use("uintp", types.uintp)
    elements = " * ".join(size_name(one) for one in loads[0].index if one is not None)
    near = scalars.target.tuning.prefetch_from // _item_size(loads[0], scalars)
    is_far = f"{elements} > {near}"
    scalars.source.line(f"rest = {first} + ({end} - {first}) // {run} * {run} if {is_far} else {first}")
    with scalars.source.block(f"for run in range({first}, rest, {run})"):
        print_ahead(loads, scalars, names.with_position(axis, f"{uintp}(run)"), str(run))
        yield "run", f"run + {run}"
    yield "rest", end


def print_next_row(
    loads: Sequence[Load],
    scalars: ScalarPrinter,
    names: Names,
    count: str,
    distance: str = "1",
    near: bool = False,
) -> None:
    """Print what prefetches ``count`` elements of rows so far below those that loads are about to read."""
    for load in loads:
        row, uintp = load.index[-2], scalars.source.use("uintp", types.uintp)
        assert row is not None
        below = names.with_position(row, f"{names.position(row)} + {uintp}({distance})")
        _prefetch("prefetch_near" if near else "prefetch_lines", load, scalars, below, count)


def _prefetches_lines(loads: Sequence[Load], scalars: ScalarPrinter) -> bool:
    return len(loads) == 1 and scalars.target.tuning.prefetch_distance > 0


def _prefetch(name: str, load: Load, scalars: ScalarPrinter, names: Names, count: str) -> None:
    prefetch = scalars.source.use(name, getattr(prefetching, name))
    places = "".join(f"{place}, " for place in scalars.places(load.index, names))
    scalars.source.line(f"{prefetch}({scalars.indexed_name(load.array)}, ({places}), {count})")


def _item_size(load: Load, scalars: ScalarPrinter) -> int:
    return np.dtype(scalars.kernel.arrays[load.array].dtype).itemsize
