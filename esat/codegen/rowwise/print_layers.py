"""Kernels that take blocks of rows through several layers, as source text.

Products are calls of BLAS, or made in tiles of registers where processor and sizes suit these. What is
elementwise between them are kernels of their own, printed like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from esat.base.records import record
from esat.codegen.ground.blas_calls import call_blas
from esat.codegen.ground.target import Target
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.llvm.prefetching import prefetch_lines
from esat.codegen.llvm.views import contiguous_view
from esat.codegen.matmul.product_tiles import add_tiles, multiply_tiles, pack_columns
from esat.codegen.printing.printer import ENTRY, PrintedKernel, print_source
from esat.codegen.threads.tasks import in_parallel

_HELPERS = """
def add(sums, others, is_first):
    flat = view(others, (sums.size,))
    if is_first:
        for place in range(sums.size):
            sums[place] = flat[place]
    else:
        for place in range(sums.size):
            sums[place] += flat[place]
"""

BLOCKS_ENTRY = "layers"
"""Name of the generated function."""
SOME_BLOCKS = "some_blocks"
"""Name of the function that it lets threads call."""
_AT_ONCE = 16
"""Rows that a kernel is called for at a time where the next block's rows are fetched meanwhile."""


@record(frozen=True)
class Matrix:
    """An array of the body.

    Attributes
    ----------
    kind
        A ``leaf`` and a ``result`` have all rows, ``scratch`` those of a block. A ``sum`` is over all rows; a
        ``part``, which is in scratch too, is over those of a block. An ``other`` matrix is an input.
    number
        Its place among those of its kind, parts and other scratch counted together.
    rank
        How many axes it has.
    total
        The sum that a part is added to.
    """

    kind: Literal["leaf", "other", "result", "scratch", "part", "sum"]
    number: int
    rank: int = 2
    total: int = 0


@record(frozen=True)
class ProductStep:
    """A product of rows with another matrix, or of transposed rows with rows, which is added to a sum.

    Attributes
    ----------
    transposed
        Whether each operand is transposed.
    """

    left: Matrix
    right: Matrix
    transposed: tuple[bool, bool]
    output: Matrix

    @property
    def is_sum(self) -> bool:
        """Whether it is one over rows."""
        return self.transposed[0]


@record(frozen=True)
class FunctionStep:
    """A kernel, and what it is called with, outputs first."""

    function: Kernel
    operands: tuple[Matrix, ...]


@record(frozen=True)
class LayersKernel:
    """What a kernel over blocks of rows computes; equal for those that compute the same.

    Attributes
    ----------
    dtype
        float32 or float64.
    steps
        What happens to each block.
    leaves, others, results, sums
        How many arrays there are of each kind.
    scratch
        How many arrays are in scratch, parts of sums among them.
    tiled
        Whether products may be made in tiles of registers. Behind other scratch are then their right
        matrices, packed (:func:`esat.codegen.matmul.product_tiles.pack_columns`).
    """

    dtype: str
    steps: tuple[ProductStep | FunctionStep, ...]
    leaves: int
    others: int
    results: int
    sums: int
    scratch: int
    tiled: bool

    @property
    def products(self) -> tuple[ProductStep, ...]:
        """The products, in their order."""
        return tuple(step for step in self.steps if isinstance(step, ProductStep))

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of the arrays that it is called with, but for results of sums."""
        kinds = (("leaf", self.leaves), ("other", self.others), ("result", self.results), ("sum", self.sums))
        return tuple(f"{kind}{number}" for kind, count in kinds for number in range(count))


def print_layers(kernel: LayersKernel, target: Target, comments: bool) -> PrintedKernel:
    """The source of a kernel over blocks of rows, and what it names.

    Its entry, :data:`BLOCKS_ENTRY`, is called with :attr:`LayersKernel.arrays`, where sums have a row for
    each part of the rows, and with vectors for the sums of all parts; with scratch, which has a row for each
    part too, and a matrix of the first place there, and the columns, of each array in it; with the address of
    ``gemm``, or 0 for products in tiles, the number of rows, those of a block, the parts, whether the next
    block is fetched meanwhile, the address of a pool of threads, and how many of them to use.
    """
    environment: dict[str, object] = {
        "in_parallel": in_parallel,
        "call_blas": call_blas,
        "pack_columns": pack_columns,
        "multiply_tiles": multiply_tiles,
        "add_tiles": add_tiles,
        "prefetch_lines": prefetch_lines,
        "view": contiguous_view,
        "zero": np.dtype(kernel.dtype).type(0),
        "one": np.dtype(kernel.dtype).type(1),
    }
    text = [_HELPERS.lstrip("\n")] if kernel.sums else []
    for number, step in enumerate(kernel.steps):
        if isinstance(step, FunctionStep):
            printed = print_source(step.function, target, "C", comments)
            environment |= printed.environment
            text.append(printed.text.replace(f"def {ENTRY}(", f"def {ENTRY}_{number}(", 1))
    arrays = ", ".join(kernel.arrays)
    text.append(_some_blocks(kernel, arrays))
    text.append(_entry(kernel, arrays))
    return PrintedKernel("\n\n".join(text), environment)


def functions_of(kernel: LayersKernel) -> tuple[str, ...]:
    """The names of the functions whose arrays never overlap."""
    steps = enumerate(kernel.steps)
    return tuple(f"{ENTRY}_{number}" for number, step in steps if isinstance(step, FunctionStep))


def _some_blocks(kernel: LayersKernel, arrays: str) -> str:
    lines = [
        f"def {SOME_BLOCKS}(begin, end, {arrays}, scratch, places, gemm, rows, block, parts, fetch):",
        "    work, blocks = scratch[begin], (rows + block - 1) // block",
        *_indented(1, _packed(kernel)),
        "    for part in range(begin, end):",
        "        start = part * blocks // parts * block",
        "        for low in range(start, (part + 1) * blocks // parts * block, block):",
        "            count = min(block, rows - low)",
        *(["            kept = zero if low == start else one"] if kernel.sums else []),
    ]
    lines += _indented(3, [_declared(matrix) for matrix in _used(kernel)])
    fetches = True
    for number, step in enumerate(kernel.steps):
        if isinstance(step, ProductStep):
            lines += _indented(3, _product(step, kernel))
            continue
        parts = [matrix for matrix in step.operands if matrix.kind == "part"]
        if parts or not fetches:
            lines += _indented(3, [_call(number, step.operands, None)])
            lines += _indented(3, [f"add(sum{one.total}[part], {_name(one)}, low == start)" for one in parts])
        else:
            lines += _indented(3, _call_and_fetch(number, step.operands, kernel.leaves))
            fetches = False
    return "\n".join(lines) + "\n"


def _entry(kernel: LayersKernel, arrays: str) -> str:
    totals = [f"total{number}" for number in range(kernel.sums)]
    given = ", ".join((arrays, *totals))
    lines = [
        f"def {BLOCKS_ENTRY}({given}, scratch, places, gemm, rows, block, parts, fetch, pool, threads):",
        "    in_parallel(",
        f"        pool, threads, parts, 4, {SOME_BLOCKS},",
        f"        ({arrays}, scratch, places, gemm, rows, block, parts, fetch),",
        "    )",
    ]
    for number, total in enumerate(totals):
        lines += [
            "    if parts > 1:",
            "        for part in range(parts):",
            f"            add({total}, sum{number}[part], part == 0)",
        ]
    return "\n".join(lines) + "\n"


def _used(kernel: LayersKernel) -> tuple[Matrix, ...]:
    """The arrays of which a block has a part."""
    found: dict[Matrix, None] = {}
    for step in kernel.steps:
        used = step.operands if isinstance(step, FunctionStep) else (step.left, step.right, step.output)
        found.update((matrix, None) for matrix in used if matrix.kind not in ("other", "sum"))
    return tuple(found)


def _declared(matrix: Matrix) -> str:
    """A line that names what a block has of an array."""
    whole = f"{matrix.kind}{matrix.number}"
    if matrix.kind in ("leaf", "result"):
        return f"{_name(matrix)} = view({whole}[low:], (count, {whole}.shape[1]))"
    first, columns = f"places[{matrix.number}, 0]", f"places[{matrix.number}, 1]"
    sizes = f"(count, {columns})" if matrix.kind == "scratch" else f"({'1, ' * (matrix.rank - 1)}{columns},)"
    return f"{_name(matrix)} = view(work[{first}:], {sizes})"


def _name(matrix: Matrix) -> str:
    """What stands for an array within a block."""
    name = f"{matrix.kind}{matrix.number}"
    if matrix.kind == "sum":
        return f"{name}[part]"
    return f"{name}_block" if matrix.kind in ("leaf", "result") else name


def _packed(kernel: LayersKernel) -> list[str]:
    """Lines that name packed matrices, and pack those that are the same for all rows."""
    lines = []
    for number, step in enumerate(kernel.products if kernel.tiled else ()):
        place, right = kernel.scratch + number, _name(step.right)
        lines.append(f"packed{number} = view(work[places[{place}, 0]:], (places[{place}, 1],))")
        if not step.is_sum:
            transposed = ".T" if step.transposed[1] else ""
            lines += ["if gemm == 0:", f"    pack_columns({right}{transposed}, packed{number})"]
    return lines


def _product(step: ProductStep, kernel: LayersKernel) -> list[str]:
    """Lines for a product."""
    if not kernel.tiled:
        return _blas_product(step)
    left, right, output = map(_name, (step.left, step.right, step.output))
    packed = f"packed{kernel.products.index(step)}"
    in_tiles = [f"multiply_tiles({left}, {packed}, {output})"]
    if step.is_sum:
        total = f"view({output}, ({left}.shape[1], {right}.shape[1]))"
        in_tiles = [f"pack_columns({right}, {packed})", f"add_tiles({left}, {packed}, {total}, low != start)"]
    return ["if gemm == 0:", *_indented(1, in_tiles), "else:", *_indented(1, _blas_product(step))]


def _blas_product(step: ProductStep) -> list[str]:
    """Row-major matrices are the transposed column-major ones that BLAS takes, and ``(AB)' = B'A'``."""
    left, right, output = map(_name, (step.left, step.right, step.output))
    columns, beta = f"{right}.shape[{int(not step.transposed[1])}]", "zero"
    sizes = f"{left}.shape[0], {left}.shape[1]"
    if step.is_sum:
        sizes, beta = f"{left}.shape[1], {left}.shape[0]", "kept"
    return [
        f"call_blas(gemm, ({step.transposed[1]}, {step.transposed[0]}, {columns}, {sizes}, one,",
        f"    {right}, {right}.shape[1], {left}, {left}.shape[1], {beta}, {output}, {columns}))",
    ]


def _call(number: int, operands: Sequence[Matrix], rows: str | None) -> str:
    """A call of a kernel for a block, or for as many rows of it as ``rows`` says, from ``first`` on."""
    names = [
        name if rows is None or matrix.kind == "other" else f"view({name}[first:], ({rows}, {name}.shape[1]))"
        for name, matrix in zip(map(_name, operands), operands, strict=True)
    ]
    return f"{ENTRY}_{number}({', '.join(names)})"


def _call_and_fetch(number: int, operands: Sequence[Matrix], leaves: int) -> list[str]:
    """A call of a kernel, during which the next block's rows are fetched."""
    fetched = [
        f"    prefetch_lines(leaf{leaf}, (low + block + first, 0), some * leaf{leaf}.shape[1])"
        for leaf in range(leaves)
    ]
    return [
        f"at_once = {_AT_ONCE} if fetch else count",
        "for first in range(0, count, at_once):",
        "    some = min(at_once, count - first)",
        f"    {_call(number, operands, 'some')}",
        "    if fetch:",
        *(f"    {line}" for line in fetched),
    ]


def _indented(depth: int, lines: Sequence[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
