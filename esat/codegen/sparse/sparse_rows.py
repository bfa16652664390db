"""One row or column of a product with a sparse matrix, as intrinsics for kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.codegen.sparse.sparse_lines import SparseLinePrinter

_CGUTILS: Any = cgutils
_STORED = ("pointers", "indices", "values")
_Names: TypeAlias = str | tuple[str, ...]


@intrinsic(prefer_literal=True)
def row_of_product(
    typing_context: Any,
    row: Any,
    sparse: Any,
    dense: Any,
    alpha: Any,
    added: Any,
    output: Any,
    width: Any,
    adds: Any,
) -> Any:
    """One row of ``output = sparse @ dense``, or of ``alpha * (sparse @ dense) + added``.

    Parameters
    ----------
    sparse
        A matrix in CSR: a tuple of its ``indptr``, ``indices`` and ``data``.
    dense, added, output
        C-contiguous matrices of one dtype and ``width`` columns; ``added`` may be ``output``.
    width, adds
        Literals: the columns, and whether there is something to add (1) or not (0).
    """
    given = (row, sparse, dense, alpha, added, output, width, adds)

    def write(line: SparseLinePrinter, row: Any, numbers: Mapping[str, Any]) -> None:
        line.write_row(row, numbers["alpha"] if adds.literal_value else None)

    return _typed(given, ("dense", "alpha", "added", "output"), width, write, adds)


@intrinsic(prefer_literal=True)
def add_column_of_product(
    typing_context: Any,
    column: Any,
    sparse: Any,
    dense: Any,
    alpha: Any,
    added: Any,
    output: Any,
    width: Any,
    adds: Any,
) -> Any:
    """Add to the output what one column of a matrix in CSC contributes. See :func:`row_of_product`."""
    given = (column, sparse, dense, alpha, added, output, width, adds)

    def write(line: SparseLinePrinter, column: Any, numbers: Mapping[str, Any]) -> None:
        line.add_column(column, numbers["alpha"] if adds.literal_value else None)

    return _typed(given, ("dense", "alpha", "added", "output"), width, write, adds)


@intrinsic(prefer_literal=True)
def add_row_of_bilinear(
    typing_context: Any,
    row: Any,
    sparse: Any,
    dense: Any,
    other: Any,
    sums: Any,
    width: Any,
    squares: Any,
) -> Any:
    """Add the terms of one row of ``sum(other * (sparse @ dense))`` to sums, one for each column.

    Parameters
    ----------
    sparse
        A matrix in CSR: a tuple of its ``indptr``, ``indices`` and ``data``.
    dense, other
        C-contiguous matrices of one dtype and ``width`` columns.
    sums
        A vector of ``width + 1`` elements. The last is for the squares of the values stored.
    width, squares
        Literals: the columns, and whether the squares are wanted (1) or not (0).
    """
    given = (row, sparse, dense, other, sums, width, squares)

    def write(line: SparseLinePrinter, row: Any, numbers: Mapping[str, Any]) -> None:
        line.add_bilinear(row, bool(squares.literal_value))

    return _typed(given, ("dense", "other", "sums"), width, write, squares)


@intrinsic(prefer_literal=True)
def row_with_product(
    typing_context: Any,
    row: Any,
    sparse: Any,
    dense: Any,
    scales: Any,
    left: Any,
    square: Any,
    output: Any,
    width: Any,
) -> Any:
    """One row of ``output = alpha * (sparse @ dense) + left @ square + beta * left``.

    Parameters
    ----------
    scales
        ``(alpha, beta)``. Where ``beta`` is 0 its product is left out.
    dense, left, square, output
        C-contiguous matrices of one dtype and ``width`` columns, a literal.
    """
    given = (row, sparse, dense, scales, left, square, output, width)

    def write(line: SparseLinePrinter, row: Any, numbers: Mapping[str, Any]) -> None:
        line.write_row(row, numbers["alpha"], numbers["beta"])

    return _typed(given, ("dense", ("alpha", "beta"), "left", "square", "output"), width, write)


@intrinsic(prefer_literal=True)
def add_row_of_quadratic(
    typing_context: Any,
    row: Any,
    sparse: Any,
    dense: Any,
    alpha: Any,
    other: Any,
    square: Any,
    sums: Any,
    width: Any,
) -> Any:
    """Add the terms of one row of ``sum(other * (alpha * (sparse @ dense) + other @ square))`` to sums.

    The last of the sums is for the squares of the values stored. See :func:`add_row_of_bilinear`.
    """
    given = (row, sparse, dense, alpha, other, square, sums, width)

    def write(line: SparseLinePrinter, row: Any, numbers: Mapping[str, Any]) -> None:
        line.add_bilinear(row, True, numbers["alpha"])

    return _typed(given, ("dense", "alpha", "other", "square", "sums"), width, write)


def _typed(
    given: tuple[Any, ...], names: tuple[_Names, ...], width: Any, write: Callable[..., None], *flags: Any
) -> Any:
    """What an intrinsic hands to numba: its signature, and what writes its code.

    Parameters
    ----------
    given
        The types of the arguments: a line's number, a sparse matrix, then those with names.
    names
        Of the third argument and those after it: arrays, numbers, and tuples of these.
    write
        Called with the line, its number, and numbers such as ``alpha`` by name, in the dtype of the values.
    """
    if not all(isinstance(literal, types.IntegerLiteral) for literal in (width, *flags)):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        named: list[tuple[str, Any, Any]] = []
        for name, kind, argument in zip((_STORED, *names), kinds[1:], arguments[1:], strict=False):
            if isinstance(name, tuple):
                named += zip(name, kind.types, _CGUTILS.unpack_tuple(builder, argument), strict=True)
            else:
                named.append((name, kind, argument))
        data = {
            name: context.make_array(kind)(context, builder, array).data
            for name, kind, array in named
            if isinstance(kind, types.Array)
        }
        numbers = {
            name: context.cast(builder, argument, kind, kinds[2].dtype)
            for name, kind, argument in named
            if name not in data
        }
        number = context.cast(builder, arguments[0], kinds[0], types.int64)
        write(SparseLinePrinter(builder, data, width.literal_value), number, numbers)
        return context.get_dummy_value()

    return types.void(*given), generate
