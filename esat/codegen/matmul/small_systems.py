"""Ops of linear algebra on small matrices, which are code of their own: which ones, and calls with arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import isqrt, prod
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.array_call import array_call
from esat.codegen.ground.builtin_function import is_available
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.ground.movement import collapsed
from esat.codegen.matmul.looped_systems import LANES, LoopedSystem
from esat.codegen.matmul.straight_line import Rows, StraightLine
from esat.codegen.matmul.systems import SystemName
from esat.codegen.matmul.unrolled_systems import UnrolledSystem
from esat.graph.op import Array, Op
from esat.ops.linalg.factor import CholeskyFactor
from esat.ops.linalg.inverse import Determinant, Inverse, SignLogDeterminant
from esat.ops.linalg.packed_factors import PackedSolve
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, Solve, SolveTriangular

MOST_OPERATIONS = 450
"""About how many operations on a matrix are a straight line: LLVM takes 10 to 40 ms for it, once a machine,
and more than in proportion beyond. LAPACK takes two to ten times as long for such matrices."""
LARGEST_ROOM = 80 << 10
LARGEST_FACTOR = 24
"""Bytes of the elements of as many matrices as are computed at once, and the order of Cholesky's factors, up
to which batches of others are loops: LAPACK takes two to five times as long, and as long beyond."""
LARGEST_ORDER = isqrt(LARGEST_ROOM // (8 * LANES))
"""The order up to which there may be code: beyond, the elements of the matrices alone are too many."""


_BY_FACTORS = ("solve_triangular", "cho_solve", "packed_solve", "packed_solve_transposed")


@record(frozen=True)
class _Form:
    """By which function an op is computed, and whether the transpose is its matrix, and its factor."""

    name: SystemName
    transposed: bool = False
    lower: bool = True
    unit_diagonal: bool = False

    def operations(self, order: int, columns: int) -> float:
        """About how many operations a matrix takes, exchanges of elements among them."""
        elimination = {"cholesky": order**3 / 3, "solve_semidefinite": order**3 / 3}.get(self.name, order**3)
        if self.name in _BY_FACTORS:
            elimination = 0
        return elimination + (1 if self.name == "solve_triangular" else 2) * order**2 * columns


def _form(op: Op) -> _Form | None:
    if isinstance(op, CholeskyFactor):
        return _Form("cholesky", op.upper)
    if isinstance(op, SolveTriangular):
        lower = op.lower != op.transpose
        return _Form("solve_triangular", op.transpose, lower, op.unit_diagonal)
    if isinstance(op, CholeskySolve):
        return _Form("cho_solve", not op.lower)
    if isinstance(op, PackedSolve):
        return _Form("packed_solve_transposed" if op.transpose else "packed_solve")
    # Exactly these: others of their classes compute something else.
    forms: dict[type[Op], _Form] = {
        Solve: _Form("solve"),
        SemidefiniteSolve: _Form("solve_semidefinite", transposed=True),  # which triangle is read
        Inverse: _Form("inv"),
        SignLogDeterminant: _Form("slogdet"),
        Determinant: _Form("det"),
    }
    return forms.get(type(op))


def system_code(
    op: Op, dtype: str, shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]], count: int
) -> UnrolledSystem | LoopedSystem | None:
    """The code of an op for matrices that are small enough; None of others, and of other ops.

    Parameters
    ----------
    dtype
        Of all operands and results.
    shapes, strides
        Of the last axes of each operand and each result, strides in elements; numbers have none.
    count
        How many matrices a call has; there is no code for none.
    """
    form = _form(op)
    if form is None or not count or dtype not in ("float32", "float64") or len(shapes[0]) != 2:
        return None
    is_packed = form.name.startswith("packed")
    order, columns = shapes[0][0] - is_packed, 0
    if form.name in _BY_FACTORS or form.name.startswith("solve"):
        if len(shapes[1]) != 2 or shapes[1][0] != order:
            return None
        columns = shapes[1][1]
    if shapes[0][1] != order or not order or any(0 in shape for shape in shapes):
        return None
    pairs = [(down, across) for down, across in (one if one else (1, 1) for one in strides)]
    turned = (0, 1) if form.name == "cholesky" else (0,)
    if form.transposed:
        pairs = [pair[::-1] if place in turned else pair for place, pair in enumerate(pairs)]
    described = (form.name, dtype, order, columns, tuple(pairs), form.lower, form.unit_diagonal)
    if form.operations(order, order if form.name == "inv" else columns) <= MOST_OPERATIONS:
        return UnrolledSystem(*described, LANES if count >= LANES and form.name != "solve_triangular" else 1)
    if is_packed:
        return None
    loops = LoopedSystem(*described)
    is_small = loops.room <= LARGEST_ROOM and (form.name != "cholesky" or order <= LARGEST_FACTOR)
    return loops if count >= LANES and is_small else None


def straight_system(op: Op, code: StraightLine, matrices: Sequence[Rows]) -> list[Rows] | None:
    """Write the lines that compute an op on float64 matrices whose elements are given; its results.

    None for other ops, and for matrices that are not small enough.
    """
    form = _form(op)
    if form is None or form.name.startswith("packed"):
        return None
    order, columns = len(matrices[0]), len(matrices[1][0]) if len(matrices) > 1 else 0
    if form.operations(order, order if form.name == "inv" else columns) > MOST_OPERATIONS:
        return None
    first = _transposed(matrices[0]) if form.transposed else [[*row] for row in matrices[0]]
    system = UnrolledSystem(form.name, "float64", order, columns, (), form.lower, form.unit_diagonal)
    found = system.write(code, first, *([[*row] for row in one] for one in matrices[1:]))
    return [*map(_transposed, found)] if form.transposed and form.name == "cholesky" else found


def _transposed(matrix: Rows) -> Rows:
    return [list(row) for row in zip(*matrix, strict=True)]


def small_results(op: Op, operands: Sequence[Any]) -> tuple[Array, ...] | None:
    """The results of an op on small matrices, or on batches of them, as the op itself would give them.

    None where it has to compute them: for other ops and larger matrices, and for what it may refuse.
    """
    plan = _plan(op, *[(one.dtype, one.shape, one.strides) for one in operands])
    if plan is None:
        return None
    _, call, results = plan
    made = [np.empty(shape, operands[0].dtype) for shape in results]
    return tuple(made) if call(*operands, *made) else None


def small_code(op: Op, dtype: np.dtype[Any], shapes: Sequence[Sequence[int]]) -> HostFunction | None:
    """The code that computes :func:`small_results` of operands of these shapes in C order, if any does."""
    plan = _plan(op, *[(dtype, tuple(shape), _dense(shape, dtype.itemsize)) for shape in shapes])
    return None if plan is None else plan[0]


def _dense(shape: Sequence[int], width: int) -> tuple[int, ...]:
    """Strides in bytes of elements in C order."""
    return tuple(width * prod(shape[axis + 1 :]) for axis in range(len(shape)))


_Layout = tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...]]
"""Dtype, shape and strides in bytes."""


@functools.lru_cache(maxsize=1024)
def _plan(
    op: Op, *operands: _Layout
) -> tuple[HostFunction, Callable[..., bool], list[tuple[int, ...]]] | None:
    """The code, what calls it with operands and results, and the shapes of results."""
    dtypes, shapes, strides = zip(*operands, strict=True)
    dtype, width = dtypes[0], dtypes[0].itemsize
    if len(shapes[0]) < 2 or shapes[0][-1] > LARGEST_ORDER or set(dtypes) != {dtype} or not is_available():
        return None
    if _form(op) is None or any(step % width for steps in strides for step in steps):
        return None
    try:
        batch = np.broadcast_shapes(*(shape[:-2] for shape in shapes))
    except ValueError:
        return None
    last = [shape[-2:] for shape in shapes]
    numbers = isinstance(op, SignLogDeterminant | Determinant)
    result = () if numbers else last[-1]
    results = [(*batch, *result)] * (2 if isinstance(op, SignLogDeterminant) else 1)
    dense = [_dense(shape, width) for shape in results]
    every = [
        *(_stretched(shape, steps, batch) for shape, steps in zip(shapes, strides, strict=True)),
        *(steps[: len(batch)] for steps in dense),
    ]
    sizes, *axes = collapsed(batch, *every)
    count = sizes[-1] if sizes else 1
    elements = [*(steps[-2:] for steps in strides), *(steps[len(batch) :] for steps in dense)]
    system = system_code(
        op,
        dtype.name,
        [*last, *(result for _ in results)],
        [tuple(step // width for step in steps) for steps in elements],
        count,
    )
    if system is None:
        return None
    starts = [
        [sum(index * step for index, step in zip(place, one, strict=False)) for one in axes]
        for place in np.ndindex(*sizes[:-1])
    ]
    steps = [one[-1] if one else 0 for one in axes]
    order = [*range(len(steps)), None, *(None for _ in steps)]
    call = array_call(system.address(), order, [count, *steps], starts, count, returns_status=True)
    return system, call, results


def _stretched(shape: Sequence[int], strides: Sequence[int], batch: Sequence[int]) -> tuple[int, ...]:
    """Bytes along the axes of a batch, of an operand that is broadcast to it."""
    own = [0 if size == 1 else step for size, step in zip(shape[:-2], strides, strict=False)]
    return (*[0] * (len(batch) - len(own)), *own)
