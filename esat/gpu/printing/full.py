"""Loops outside all others that gather: partial results of a grid that sizes alone decide, then one block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.codegen.kernel.loop_ir import Statement
from esat.gpu.kernel_text.launches import Workspace
from esat.gpu.printing.body import Body
from esat.gpu.printing.flat import BLOCK
from esat.gpu.printing.gathering import Gathering
from esat.gpu.printing.nests import Nest
from esat.gpu.printing.source import from_memory, stored, to_memory

MOST_BLOCKS = 1024
"""Blocks of a full reduction: fixed, so that sums do not depend on the device."""


def print_partial(body: Gathering, nest: Nest) -> tuple[str, dict[str, Workspace]]:
    """The lines that leave a partial result a block; the grid, and where the results are."""
    source, lanes = body.source, body.lanes
    units = body.units(nest.axes, lanes)
    for accumulator in nest.accumulators:
        body.start(accumulator)
    source.line(f"unit = int64(cuda.blockIdx.x) * {BLOCK} + cuda.threadIdx.x")
    with source.block(f"while unit < {units}"):
        position = body.split(nest.axes, "unit", lanes)
        if nest.inner is None:
            body.sequence(nest.body, position)
        else:
            body.elements(nest.body, position, lanes)
        source.line(f"unit += int64(cuda.gridDim.x) * {BLOCK}")
    if lanes > 1 and len(nest.axes) == 1:
        (axis,) = nest.axes
        source.line(f"i{axis} = {units} * {lanes} + int64(cuda.blockIdx.x) * {BLOCK} + cuda.threadIdx.x")
        with source.block(f"if i{axis} < n{axis}"):  # less than a vector is left
            body.elements(nest.body, {axis: f"i{axis}"}, 1)
    body.reduce(nest.accumulators, BLOCK, "cuda.threadIdx.x")
    workspaces = {}
    with source.block("if cuda.threadIdx.x == 0"):
        for accumulator in nest.accumulators:
            for name, dtype in body.state(accumulator):
                workspaces[f"w_{name}"] = Workspace(stored(dtype), str(MOST_BLOCKS))
                source.line(f"w_{name}[cuda.blockIdx.x] = {to_memory(name, dtype)}")
    return _grid(body, nest), workspaces


def _grid(body: Gathering, nest: Nest) -> str:
    units = body.units(nest.axes, body.lanes)
    if body.lanes > 1 and len(nest.axes) == 1:
        units = f"{units} + n{nest.axes[0]} % {body.lanes}"
    return f"min(({units} + {BLOCK - 1}) // {BLOCK}, {MOST_BLOCKS})"


def print_final(
    body: Gathering, nest: Nest, following: Sequence[Statement], needed: Mapping[int, str]
) -> dict[str, Workspace]:
    """The lines of the block that combines partial results and does what follows.

    Returns
    -------
    Where results are that later launches need: values -> their dtype.
    """
    source = body.source
    source.line(f"blocks = {_grid(body, nest)}")
    for accumulator in nest.accumulators:
        body.start(accumulator)
        source.line("place = int64(cuda.threadIdx.x)")
        with source.block("while place < blocks"):
            body.take_state(accumulator, [f"w_{name}[place]" for name, _ in body.state(accumulator)])
            source.line(f"place += {BLOCK}")
    body.reduce(nest.accumulators, BLOCK, "cuda.threadIdx.x")
    workspaces = {}
    with source.block("if cuda.threadIdx.x == 0"):
        for value, dtype in needed.items():
            workspaces[f"r{value}"] = Workspace(stored(dtype), "1")
            source.line(f"r{value}[0] = {to_memory(f'v{value}', dtype)}")
        body.sequence(following, {})
    return workspaces


def load_result(body: Body, value: int, dtype: str) -> None:
    """The line that reads what an earlier launch gathered."""
    body.source.line(f"v{value} = {from_memory(f'r{value}[0]', dtype)}")
