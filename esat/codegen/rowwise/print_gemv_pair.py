"""Kernels that use each row of a matrix twice, as source text: its product with a vector, then a multiple.

Between the two a kernel of its own, printed like any other, says for a block of rows which multiples.
"""

from __future__ import annotations

import numpy as np

from esat.base.records import record
from esat.codegen.ground.target import Target
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.llvm import views
from esat.codegen.matmul.row_tiles import add_rows, multiply_rows
from esat.codegen.printing.printer import ENTRY, PrintedKernel, print_source
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads.tasks import in_parallel
from esat.codegen.vector_math.reduction import reassociating_multiply_add

ROWS_ENTRY = "product"
"""Name of the generated function."""
PARTS_OF_ROWS = ("some_rows", ENTRY)
"""Names of the functions that it calls."""

OWN_PRODUCTS, OWN_FACTORS = "own_products[: high - low]", "own_factors[: high - low]"
"""Where the products of a block's rows are, and the multiples, that are no results."""

_SOURCE = """
def some_rows(begin, end, {arrays}, block):
    rows, columns, parts = matrix.shape[0], vector.size, sums.shape[0]
    {scratch}
    for part in range(begin, end):
        total = sums[part]
        for column in range(columns):
            total[column] = 0
        last = (part + 1) * rows // parts
        for low in range(part * rows // parts, last, block):
            high = min(low + block, last)
            products = {products}
            factors = {factors}
            {multiplied}
            {call}
            {added}


def product({arrays}, output, block, pool, threads):
    in_parallel(pool, threads, sums.shape[0], 1, some_rows, ({arrays}, block))
    for column in range(output.size):
        element = sums[0, column]
        for part in range(1, sums.shape[0]):
            element += sums[part, column]
        output[column] = element
"""

_MULTIPLIED_BY_ELEMENTS = """
rest = high - (high - low) % {count}
for row in range(low, rest, {count}):
    {names} = zero
    for column in range(columns):
        factor = vector[column]
        {each}
    {stored}
for row in range(rest, high):
    t0 = zero
    for column in range(columns):
        t0 = add(t0, matrix[row, column], vector[column])
    products[row - low] = t0
"""
_ADDED_BY_ELEMENTS = """
for row in range(low, rest, {count}):
    {loaded}
    for column in range(columns):
        element = total[column]
        {each}
        total[column] = element
for row in range(rest, high):
    t0 = factors[row - low]
    for column in range(columns):
        total[column] = add(total[column], t0, matrix[row, column])
"""
_MULTIPLIED_BY_TILES = "multiply_rows(matrix, low, high, vector, products)"
_ADDED_BY_TILES = "add_rows(matrix, low, high, total, factors, block if matrix.size <= {fetched} else 0)"
_FETCHED_TO = 1 << 24
"""Bytes of a matrix up to which the next block is fetched while one is added. What comes from memory, and not
from the last level of the caches, the processor fetches earlier by itself."""


@record(frozen=True)
class RowsKernel:
    """What a kernel over the rows of a matrix computes; equal for those that compute the same.

    Attributes
    ----------
    dtype
        Of the matrix: float32 or float64.
    function
        The kernel between the products; None where it has nothing to compute.
    operands
        What it is called with for the rows from ``low`` to ``high``, outputs first: source text.
    products, factors
        Where the products of these rows are, and the multiples: source text.
    others, kept
        Dtype and rank of each further operand and each further result. They are called ``other0``, ``kept0``.
    """

    dtype: str
    function: Kernel | None = None
    operands: tuple[str, ...] = ()
    products: str = OWN_PRODUCTS
    factors: str = OWN_PRODUCTS
    others: tuple[tuple[str, int], ...] = ()
    kept: tuple[tuple[str, int], ...] = ()


def print_rows(kernel: RowsKernel, count: int | None, target: Target, comments: bool) -> PrintedKernel:
    """The source of a kernel over rows, and what it names.

    Its entry, :data:`ROWS_ENTRY`, is called with the matrix, the vector, an array for the sums of each part,
    further operands and results, the output, the number of rows of a block, the address of a pool of threads,
    and how many of them to use.

    Parameters
    ----------
    count
        Rows that are used at a time: so many factors are kept in registers. None for vectors of the operand
        and of the sums in their place (:mod:`esat.codegen.matmul.row_tiles`).
    target
        What it is printed for.
    comments
        Whether to name graph nodes in comments.
    """
    if count is None:
        environment: dict[str, object] = {"multiply_rows": multiply_rows, "add_rows": add_rows}
        fetched = _FETCHED_TO // np.dtype(kernel.dtype).itemsize
        multiplied, added = [_MULTIPLIED_BY_TILES], [_ADDED_BY_TILES.format(fetched=fetched)]
    else:
        zero = np.dtype(kernel.dtype).type(0)
        environment = {"add": reassociating_multiply_add, "zero": zero}
        multiplied, added = _by_elements(count)
    environment["in_parallel"] = in_parallel
    text, call = "", ""
    if kernel.function is not None:
        printed = print_source(kernel.function, target, "C", comments)
        environment |= printed.environment
        text, call = f"{printed.text}\n\n", f"{ENTRY}({', '.join(kernel.operands)})"
    scratch = []
    for place in dict.fromkeys((kernel.products, kernel.factors)):
        if place in (OWN_PRODUCTS, OWN_FACTORS):
            environment |= {"scratch": views.scratch, "number": NUMBA_TYPES[kernel.dtype]}
            scratch.append(f"{place.partition('[')[0]} = scratch(number)")
    arrays = ["matrix", "vector", "sums"]
    arrays += [f"other{place}" for place in range(len(kernel.others))]
    arrays += [f"kept{place}" for place in range(len(kernel.kept))]
    body = _SOURCE.format(
        arrays=", ".join(arrays),
        scratch=_lines(4, scratch),
        products=kernel.products,
        factors=kernel.factors,
        multiplied=_lines(12, multiplied),
        call=call,
        added=_lines(12, added),
    )
    lines = (line for line in body.strip("\n").splitlines() if not line or line.strip())
    return PrintedKernel(text + "\n".join(lines) + "\n", environment)


def _by_elements(count: int) -> tuple[list[str], list[str]]:
    """The loops before and after the function, so many rows at a time."""
    places = range(count)
    multiplied = _MULTIPLIED_BY_ELEMENTS.strip("\n").format(
        count=count,
        names=" = ".join(f"t{n}" for n in places),
        each=_lines(8, [f"t{n} = add(t{n}, matrix[row + {n}, column], factor)" for n in places]),
        stored=_lines(4, [f"products[row - low + {n}] = t{n}" for n in places]),
    )
    added = _ADDED_BY_ELEMENTS.strip("\n").format(
        count=count,
        loaded=_lines(4, [f"t{n} = factors[row - low + {n}]" for n in places]),
        each=_lines(8, [f"element = add(element, matrix[row + {n}, column], t{n})" for n in places]),
    )
    return multiplied.splitlines(), added.splitlines()


def _lines(depth: int, lines: list[str]) -> str:
    """Lines at the place of one."""
    return f"\n{' ' * depth}".join(lines)
