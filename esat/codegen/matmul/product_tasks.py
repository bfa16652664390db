"""Parts of a product of matrices as tasks of the pool: functions of the subset of :mod:`esat.base.native`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from llvmlite import ir

from esat.base.native import Primitive
from esat.codegen.threads.shared_memory import load

BLAS, LEFT_LETTER, RIGHT_LETTER, IS_COLUMN = 0, 8, 16, 24
ROWS, INNER, COLUMNS, LENGTH, PARTS = 32, 40, 48, 56, 64
LEFT_STEP, LEFT_ROW, LEFT_COLUMN, RIGHT_STEP, RIGHT_ROW, RESULT_ROW = 72, 80, 88, 96, 104, 112
LEFT, RIGHT, RESULT, ALPHA, BETA = 120, 128, 136, 144, 152
"""Where the words of a task's data are: a function of BLAS, the operands' letters, whether the right one is a
column; sizes, how many rows or columns of the left operand a part has, and the number of partial results;
distances of rows or columns as BLAS is told of them, in elements, and in bytes; addresses, and scalars."""

PLAIN, TRANSPOSED = ord("N"), ord("T")
_BYTE, _NUMBER = ir.IntType(8), ir.IntType(32)


def _blas(operands: int, letters: int, pointers: Collection[int]) -> Primitive:
    """A call of a function of BLAS, whose address comes first; it takes pointers to letters and to numbers.

    Parameters
    ----------
    operands, letters
        How many it takes, and how many of them, the first ones, are letters.
    pointers
        Places of those that are addresses already.
    """

    def write(build: Any, values: Sequence[Any]) -> None:
        pointer, passed = _BYTE.as_pointer(), []
        for place, value in enumerate(values[1:]):
            if place in pointers:
                passed.append(build.inttoptr(value, pointer))
            else:
                room = build.alloca(_BYTE if place < letters else _NUMBER)
                build.store(build.trunc(value, room.type.pointee), room)
                passed.append(build.bitcast(room, pointer))
        function = ir.FunctionType(ir.VoidType(), [pointer] * operands)
        build.call(build.inttoptr(values[0], function.as_pointer()), passed)

    return Primitive(1 + operands, write)


gemv = _blas(11, 1, (3, 4, 6, 8, 9))
gemm = _blas(13, 2, (5, 6, 8, 10, 11))


def some_rows(task: int, begin: int, end: int) -> None:
    """Parts of the rows of the left operand, and so of the result."""
    length, rows = load(task + LENGTH), load(task + ROWS)
    for part in range(begin, end):
        first = part * length
        left = load(task + LEFT) + first * load(task + LEFT_ROW)
        result = load(task + RESULT) + first * load(task + RESULT_ROW)
        multiply(task, min(length, rows - first), load(task + INNER), left, load(task + RIGHT), result)


def some_sums(task: int, begin: int, end: int) -> None:
    """Parts of the sums over the columns of the left operand, each added to a matrix of its own."""
    length, rows, inner, parts = (
        load(task + LENGTH),
        load(task + ROWS),
        load(task + INNER),
        load(task + PARTS),
    )
    share = ((inner + length - 1) // length + parts - 1) // parts * length
    for part in range(begin, end):
        result = load(task + RESULT) + part * rows * load(task + RESULT_ROW)
        first, last = part * share, min((part + 1) * share, inner)
        while first < last:
            left = load(task + LEFT) + first * load(task + LEFT_COLUMN)
            right = load(task + RIGHT) + first * load(task + RIGHT_ROW)
            multiply(task, rows, min(length, last - first), left, right, result)
            first += length


def multiply(task: int, rows: int, inner: int, left: int, right: int, result: int) -> None:
    """``result = alpha * left @ right + beta * result``, of parts of the task's operands.

    Row-major matrices are the transposed column-major ones that BLAS takes, and ``(AB)' = B'A'``.
    """
    blas, columns, letter = load(task + BLAS), load(task + COLUMNS), load(task + LEFT_LETTER)
    left_step, right_step = load(task + LEFT_STEP), load(task + RIGHT_STEP)
    alpha, beta = task + ALPHA, task + BETA
    if load(task + IS_COLUMN) == 0:
        gemm(
            blas, load(task + RIGHT_LETTER), letter, columns, rows, inner,
            alpha, right, right_step, left, left_step, beta, result, columns,
        )  # fmt: skip
    elif letter == TRANSPOSED:
        gemv(blas, PLAIN, rows, inner, alpha, left, left_step, right, right_step, beta, result, 1)
    else:
        gemv(blas, TRANSPOSED, inner, rows, alpha, left, left_step, right, right_step, beta, result, 1)
