"""Passes over sparse matrices beside narrow dense ones, by kernels for a formula and a number of columns.

A row of the dense operand is a few vector registers wide, and so is a row of the result. By rows (CSR), that
of the product stays in registers while it is summed, and all that the formula makes of it is computed there.
By columns (CSC), that of the operand does while it is added to many rows of the output. SciPy's loops, which
serve any number of columns, load and store both for every stored value.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.codegen import cache
from esat.codegen.ground.target import Target
from esat.codegen.llvm.views import corrected, rounding_error
from esat.codegen.sparse.sparse_calls import TURNS, SparseCalls, types_of_sparse
from esat.codegen.sparse.sparse_lines import SparseLinePrinter
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads.tasks import in_parallel
from esat.graph.sparse_type import Format
from esat.ops.sparse.passes import SQUARES_AND_BILINEAR, SQUARES_AND_QUADRATIC, SparsePass
from esat.ops.sparse.products import StructuredDot

_CGUTILS: Any = cgutils

ROWS = 64
"""Rows whose terms are added one by one, whatever the threads: results do not depend on how many there are.
The sums of such parts are added with their rounding errors."""

_BY_ROWS = """
def some_rows(begin, end, {given}, output):
    for row in range(begin, end):
        write_row(row, ({given}, output))


def compute({given}, output, pool, threads):  # {formula}
    in_parallel(pool, threads, output.shape[0], {turns}, some_rows, ({given}, output))
"""
# Columns add to the same rows: one thread takes them all.
_BY_COLUMNS = """
def compute({given}, output, pool, threads):  # {formula}
    for row in range(output.shape[0]):
        {begin}
    for column in range(pointers.size - 1):
        add_column(column, ({given}, output))
"""
_SUMS = """
def some_rows(begin, end, {given}, sums):
    for part in range(begin, end):
        line = sums[part]
        for column in range({width} + 1):
            line[column] = 0
        for row in range(part * {rows}, min(pointers.size - 1, (part + 1) * {rows})):
            add_row(row, ({given}, line))
        for column in range(1, {width}):
            line[0] += line[column]


def total(sums, column):
    found = sums[0, column]
    error = found - found
    for part in range(1, sums.shape[0]):
        error += rounding_error(found, sums[part, column])
        found += sums[part, column]
    return corrected(found, error)


def compute({given}, sums, output, pool, threads):  # {formula}
    in_parallel(pool, threads, sums.shape[0], {turns}, some_rows, ({given}, sums))
    output[0] = {result}
"""
_STORED = ("pointers", "indices", "values")


def sparse_routine(
    op: StructuredDot | SparsePass, dtype: str, target: Target, threads: int | None
) -> Callable[..., None]:
    """The routine of a pass: the op's operands, then an output of the result's shape.

    Parameters
    ----------
    target
        What it is compiled for.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """

    def kernel(sparse: Any, dense: Any, *_others: Any) -> Callable[..., None] | None:
        if op is SQUARES_AND_QUADRATIC and sparse.format == "csc":
            return None
        return _kernel(op, sparse.format, dtype, sparse.indices.dtype, dense.shape[1], target)

    def otherwise(*operands: Any) -> None:
        *given, output = operands
        output[...] = op.computed(given)

    def by_columns(*operands: Any) -> None:
        if operands[1].format == "csr":
            otherwise(*operands)
            return
        *given, other, square, output = operands
        bilinear(*given, other, output)
        with np.errstate(all="ignore"):
            output += np.sum((other.T @ other) * square)

    if op is SQUARES_AND_QUADRATIC:
        bilinear = sparse_routine(SQUARES_AND_BILINEAR, dtype, target, threads)
    shared: tuple[Format, ...] = ("csr", "csc") if op.is_number else ("csr",)
    environment: dict[str, Any] = {
        "calls": SparseCalls(dtype, threads, op.check_sizes, kernel, shared),
        "otherwise": by_columns if op is SQUARES_AND_QUADRATIC else otherwise,
        "isfinite": isfinite,
        "sums_of": lambda dense, other: np.empty((-(-len(other) // ROWS), dense.shape[1] + 1), dtype),
    }
    exec(_routine_source(op), environment)
    compute: Callable[..., None] = environment["compute"]
    return compute


def _routine_source(op: StructuredDot | SparsePass) -> str:
    """Source of what looks for the kernel and calls it: between long calls, each of its steps takes time."""
    numbers = [name for name, kind in zip(op.operands, op.kinds, strict=True) if kind == 0]
    matrices = [name for name in op.operands if name not in numbers]
    passed = [f"float({name})" if name in numbers else name for name in op.operands]
    place, output = op.operands.index("sparse"), "output"
    passed[place] = "sparse.indptr, sparse.indices, sparse.data"
    # What is not finite would meet the zeros of rows without values.
    finite = "".join(f" or not isfinite({name})" for name in numbers if op.is_number)
    swapped = ""
    if op.is_number:
        # Columns are the rows of the transpose, for which the other two change places.
        swapped = "if sparse.format == 'csc': dense, other = other, dense"
        output = "sums_of(dense, other), output.reshape(1)"
    return f"""
def compute({", ".join(op.operands)}, output):
    run = calls({", ".join(matrices)})
    if run is None{finite}:
        return otherwise({", ".join(op.operands)}, output)
    {swapped}
    run({", ".join(passed)}, {output})
"""


@functools.cache
def _kernel(
    op: StructuredDot | SparsePass,
    format: Format,
    dtype: str,
    index: np.dtype[Any],
    width: int,
    target: Target,
) -> Callable[..., None]:
    template = _SUMS if op.is_number else _BY_ROWS if format == "csr" else _BY_COLUMNS
    begin = f"for column in range({width}): output[row, column] = "
    begin += "added[row, column]" if "added" in op.operands else "0"
    names = [name for operand in op.operands for name in (_STORED if operand == "sparse" else (operand,))]
    given = ", ".join(names)
    source = template.format(
        given=given,
        begin=f"begin_row(row, ({given}, output))" if "square" in op.operands else begin,
        formula=op.formula,
        result=_of_totals(op.formula, width),
        width=width,
        rows=ROWS,
        turns=TURNS,
    )
    number, word = NUMBA_TYPES[dtype], types.int64
    matrix, vector = (types.Array(number, rank, "C") for rank in (2, 1))
    signature: list[Any] = []
    for kind in op.kinds:
        signature += types_of_sparse(dtype, index) if kind == "sparse" else [matrix if kind else number]
    signature += [matrix, vector] if op.is_number else [matrix]
    environment: dict[str, object] = {
        "in_parallel": in_parallel,
        "rounding_error": rounding_error,
        "corrected": corrected,
    }
    last = "sums" if op.is_number else "output"
    for name in ("write_row", "begin_row", "add_column", "add_row"):
        environment[name] = _of_line(name, op.formula, (*names, last), width)
    # The rows of a square factor stay in registers, since the output is known to be elsewhere.
    options = cache.CompileOptions(target, noalias=("some_rows",) if "square" in op.operands else ())
    whole = types.void(*signature, word, word)
    return cache.load_or_compile(source, "compute", whole, environment, options).function


def _of_totals(formula: str, width: int) -> str:
    """A formula with the totals over all rows in the place of its sums: source text."""

    class Totals(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.expr:
            of_squares = isinstance(node.args[0], ast.BinOp) and isinstance(node.args[0].op, ast.Pow)
            return ast.parse(f"total(sums, {width if of_squares else 0})", mode="eval").body

    return ast.unparse(Totals().visit(ast.parse(formula, mode="eval")))


@functools.cache
def _of_line(method: str, formula: str, names: tuple[str, ...], width: int) -> Any:
    """An intrinsic for a line's number, and a tuple of the arrays and numbers with these names.

    It writes what a method of :class:`SparseLinePrinter` does for the line.
    """

    def write(_typing_context: Any, line: Any, given: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = context.cast(builder, arguments[0], signature.args[0], types.int64)
            data, numbers = {}, {}
            operands = _CGUTILS.unpack_tuple(builder, arguments[1])
            for name, kind, operand in zip(names, given.types, operands, strict=True):
                if isinstance(kind, types.Array):
                    data[name] = context.make_array(kind)(context, builder, operand).data
                else:
                    numbers[name] = operand
            getattr(SparseLinePrinter(builder, formula, data, numbers, width), method)(place)
            return context.get_dummy_value()

        return types.void(line, given), generate

    # The cache of kernels tells it by its name.
    write.__qualname__ = f"{method} of {width} columns: {formula}"
    return intrinsic(write)
