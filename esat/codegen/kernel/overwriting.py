"""Kernels in place: an output in the memory of an input that nothing reads afterwards.

The input is then no argument of its own. LLVM may go on assuming that arguments do not overlap, which
it could not if one array were passed twice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from esat.codegen.kernel.loop_ir import (
    Kernel,
    Load,
    LoadAt,
    Loop,
    Scatter,
    Size,
    Statement,
    Store,
    Tile,
    operands_of,
    walk,
)
from esat.errors import CompileError


def overwritable(kernel: Kernel) -> tuple[tuple[int, int], ...]:
    """Pairs of an output and an input, each by its position, where the output may replace the input.

    That is so where both have one dtype and shape, the input is read only at the place that is written,
    and nothing reads it once that place has been written. An output can replace one input only.
    """
    first_store: dict[int, int] = {}
    last_load: dict[int, int] = {}
    indices: dict[int, set[object]] = {}
    for position, statement in enumerate(walk(kernel.body)):
        if isinstance(statement, Store):
            first_store.setdefault(statement.array, position)
        elif isinstance(statement, Load | LoadAt):
            last_load[statement.array] = position
        else:
            continue
        indices.setdefault(statement.array, set()).add(statement.index)
    count = len(kernel.outputs)
    return tuple(
        (output, number)
        for output in range(count)
        for number, array in enumerate(kernel.inputs)
        if array == kernel.outputs[output]
        and last_load.get(count + number, -1) < first_store[output]
        and indices.get(count + number) == indices[output]
        and len(indices[output]) == 1
    )


def overwrite(kernel: Kernel, output: int, replaced: int) -> Kernel:
    """The kernel that finds input number ``replaced`` in the memory of output number ``output``.

    It is called without that input, and with an output that holds it.

    Raises
    ------
    CompileError
        When :func:`overwritable` does not name the pair.
    """
    if (output, replaced) not in overwritable(kernel):
        raise CompileError(f"codegen: output {output} cannot replace input {replaced} of ({kernel.comment})")
    gone = len(kernel.outputs) + replaced

    def renumbered(array: int) -> int:
        return output if array == gone else array - (array > gone)

    def rewritten(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for statement in body:
            if isinstance(statement, Load | LoadAt | Size | Store | Scatter):
                statements.append(replace(statement, array=renumbered(statement.array)))
            elif isinstance(statement, Loop | Tile):
                statements.append(replace(statement, body=rewritten(statement.body)))
            else:
                statements.append(statement)
        return tuple(statements)

    def sizes(pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple(dict.fromkeys((renumbered(array), axis) for array, axis in pairs))

    axes = []
    for axis in kernel.axes:
        factors = sizes(axis.factors)
        equal = tuple(pair for pair in sizes(axis.equal) if pair not in factors)
        axes.append(replace(axis, factors=factors, equal=equal))
    return replace(
        kernel,
        inputs=kernel.inputs[:replaced] + kernel.inputs[replaced + 1 :],
        operands=kernel.operands[:replaced] + kernel.operands[replaced + 1 :],
        axes=tuple(axes),
        body=rewritten(kernel.body),
    )


def without_copies(kernel: Kernel) -> Kernel:
    """The kernel without what fills outputs, which others scatter into, with what they hold already."""
    arrays = {one.array for one in walk(kernel.body) if isinstance(one, Scatter)}
    return replace(kernel, body=_without_copies(kernel.body, arrays)) if arrays else kernel


def _without_copies(body: tuple[Statement, ...], arrays: Collection[int]) -> tuple[Statement, ...]:
    held = {
        one.value: (one.array, one.index) for one in body if isinstance(one, Load) and one.array in arrays
    }
    stays: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            inner = _without_copies(statement.body, arrays)
            if inner:
                stays.append(replace(statement, body=inner))
        elif not (
            isinstance(statement, Store) and held.get(statement.operand) == (statement.array, statement.index)
        ):
            stays.append(statement)
    read = {operand for one in walk(tuple(stays)) for operand in operands_of(one)}
    return tuple(one for one in stays if not (isinstance(one, Load) and one.value in held.keys() - read))
