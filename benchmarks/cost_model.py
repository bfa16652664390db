"""The cost model against the clock: predicted and measured seconds of some 250 programs.

Run ``python -m benchmarks.cost_model``; ``--calibrate`` measures the machine first instead of using the
stored profile, ``--rows`` prints every program. Programs are kernels and library calls of all sizes. What
counts is that the model ranks them as the clock does: Spearman's correlation of all, and for each family how
far a prediction is off by median.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse

import esat
from esat import codegen, sparse
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import machine_profile
from esat.graph import Op
from esat.ops.linalg.structured import STRUCTURED_PRODUCTS
from esat.ops.sparse.record import EXPECTED_DENSITY
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.price import plan_seconds
from esat.tools.calibration import calibrate, seconds_of

Shape = tuple[int, ...]
TARGET = 0.95
LENGTHS = (32, 1_000, 8_000, 100_000, 1_000_000)
SIDES = (8, 64, 256, 1000)


@dataclass(frozen=True)
class Program:
    """One output of some inputs, to be run at several shapes."""

    family: str
    name: str
    build: Callable[..., esat.Variable]
    shapes: tuple[tuple[Shape, ...], ...]
    dtype: str = "float64"


@dataclass(frozen=True)
class Row:
    """A program at one shape: seconds predicted and measured."""

    program: Program
    shapes: tuple[Shape, ...]
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Factor by which the prediction is off, at least 1."""
        return math.exp(abs(math.log(self.predicted / self.measured)))


def programs() -> Iterator[Program]:
    """All programs, by family."""
    vectors = tuple(((n,),) for n in LENGTHS)
    pairs = tuple(((n,), (n,)) for n in LENGTHS)
    squares = tuple(((n, n),) for n in SIDES)
    for dtype in ("float64", "float32"):
        for name in ("sqrt", "exp", "log", "tanh", "sigmoid"):
            yield Program("elementwise", name, getattr(esat, name), vectors, dtype)
        yield Program("elementwise", "add", lambda x, y: x + y, pairs, dtype)
        yield Program("elementwise", "divide", lambda x, y: x / (y + 1.0), pairs, dtype)
        yield Program("fused", "gauss", lambda x, y: esat.exp(-((x - y) ** 2)) * x + y, pairs, dtype)
        yield Program("reduction", "sum of rows", lambda x: x.sum(axis=1), squares, dtype)
        yield Program("reduction", "sum of columns", lambda x: x.sum(axis=0), squares, dtype)
        yield Program("product", "square", lambda x, y: x @ y, tuple(((n, n),) * 2 for n in SIDES), dtype)
    yield Program("fused", "polynomial", lambda x: ((x * 2.0 + 1.0) * x - 3.0) * x + 0.5, vectors)
    yield Program("fused", "norm", lambda x, y: esat.sqrt(((x - y) ** 2).sum()), pairs)
    yield Program("reduction", "maximum", lambda x: x.max(), vectors)
    yield Program("reduction", "softmax", lambda x: esat.softmax(x, axis=1), squares)
    yield Program("reduction", "total of exp", lambda x: esat.exp(x).sum(axis=1), squares)
    yield Program("transposed", "add", lambda x, y: x + y.T, tuple(((n, n),) * 2 for n in SIDES[1:]))
    skinny = tuple(((n, n), (n, 4)) for n in SIDES)
    yield Program("product", "skinny", lambda x, y: x @ y, skinny)
    yield Program("product", "outer", lambda x, y: x.T @ y, tuple(((4, n), (4, n)) for n in SIDES))
    yield Program("product", "vector", lambda x, y: x @ y, tuple(((n, n), (n,)) for n in SIDES))
    yield Program("product", "transposed", lambda x, y: x.T @ y, tuple(((n, n),) * 2 for n in SIDES))
    batches = tuple(((b, n, n),) * 2 for b, n in ((10, 8), (100, 16), (20, 64)))
    yield Program("product", "batch", lambda x, y: x @ y, batches)
    layers = tuple(((64, n), (n, n), (n,)) for n in SIDES)
    yield Program("mixed", "layer", lambda x, w, b: esat.tanh(x @ w + b), layers)
    yield Program("mixed", "two layers", lambda x, w, b: esat.tanh(esat.tanh(x @ w + b) @ w + b), layers)
    stages = tuple(((n, n), (n, n)) for n in SIDES)
    yield Program("mixed", "scaled product", lambda x, y: 2.0 * (x @ y) + x, stages)
    yield Program("mixed", "squared distances", lambda x, y: ((x @ y - x) ** 2).sum(axis=1), stages)
    yield Program("mixed", "centred", lambda x: x - x.mean(axis=0), squares)
    yield Program("mixed", "standardized", lambda x: (x - x.mean(axis=0)) / (x.std(axis=0) + 1.0), squares)
    yield Program("library", "sort", esat.sort, vectors[:4])
    yield Program("library", "solve", esat.linalg.solve, tuple(((n, n), (n, 4)) for n in SIDES[:3]))
    yield Program("library", "take", lambda x: esat.take(x, [0, 3, 5, 3], axis=0), squares)
    yield Program("library", "joined", lambda x, y: esat.concatenate([x, y]), pairs)
    yield Program("library", "cumulative sum", esat.cumsum, vectors)
    yield Program("library", "sort of rows", lambda x: esat.sort(x, axis=1), squares)
    yield Program("library", "order", esat.argsort, vectors[:4])
    yield Program("library", "inverse", esat.linalg.inv, squares[:3])
    yield Program("library", "factor", lambda x: esat.linalg.cholesky(x @ x.T), squares[:3])
    yield Program("gather", "reversed", lambda x: x[::-1] + 0.0, vectors)
    yield Program("gather", "every other row", lambda x: esat.take(x, np.arange(0, 8, 2), axis=0), squares)
    yield Program("gather", "by order", lambda x, y: esat.take(x, esat.argsort(y)), pairs[:4])
    yield from structured_programs()
    yield from sparse_programs()


def structured_programs() -> Iterator[Program]:
    """Products with matrices of which a part is read, by the routine for it."""
    for op in STRUCTURED_PRODUCTS:
        if op.side == "left" and op.structure in ("lower", "diagonal", "tridiagonal"):
            whole = tuple(((n, n), (n, n)) for n in SIDES[1:])
            yield Program("structured", op.name, _applied(op), whole)
        if op.side == "left" and op.structure in ("lower", "symmetric"):
            column = tuple(((n, n), (n, 1)) for n in SIDES[1:])
            yield Program("structured", f"{op.name}, column", _applied(op), column)


def _applied(op: Op) -> Callable[..., esat.Variable]:
    return lambda x, y: op.make_node(x, y).outputs[0]


def sparse_programs() -> Iterator[Program]:
    """Products and sums with a sparse matrix, the first operand, that stores 1 % of its elements."""
    sizes = (100, 1000, 4000)
    with_matrix = tuple(((n, n), (n, 16)) for n in sizes)
    yield Program("sparse", "product", sparse.dot, with_matrix)
    yield Program("sparse", "product, column", sparse.dot, tuple(((n, n), (n, 1)) for n in sizes))
    yield Program("sparse", "sum of rows", lambda x: sparse.sum(x, axis=1), tuple(((n, n),) for n in sizes))
    yield Program("sparse", "scaled", sparse.columns_scaled, tuple(((n, n), (n,)) for n in sizes))


def rows(model: CostModel) -> Iterator[Row]:
    """Every program at every shape, predicted and measured."""
    rng = np.random.default_rng(0)
    for program in programs():
        open_shapes = [tuple(1 if size == 1 else None for size in shape) for shape in program.shapes[0]]
        function = esat.compile(_graph(program, open_shapes), "o2")
        for shapes in program.shapes:
            values: list[Any] = [rng.uniform(0.2, 1.0, shape).astype(program.dtype) for shape in shapes]
            if program.family == "sparse":
                height, width = shapes[0]
                values[0] = scipy.sparse.random(height, width, EXPECTED_DENSITY, "csr", random_state=0)
            large = sum(value.size for value in values) > 500_000
            (measured,) = seconds_of(partial(function, *values), samples=6 if large else 20)
            plan = fuse(_graph(program, shapes).function_graph(), codegen)
            yield Row(program, shapes, plan_seconds(plan.groups, model), measured)


def _graph(program: Program, shapes: Sequence[tuple[int | None, ...]]) -> esat.Graph:
    inputs = [esat.tensor(f"x{n}", dtype=program.dtype, shape=shape) for n, shape in enumerate(shapes)]
    if program.family == "sparse":
        height, width = shapes[0]
        inputs[0] = sparse.csr_matrix("x0", program.dtype, (height, width))
    return esat.Graph(inputs, [program.build(*inputs)])


def spearman(rows: list[Row]) -> float:
    """Rank correlation of predicted and measured seconds."""
    predicted, measured = (
        np.argsort(np.argsort([getattr(row, name) for row in rows])).astype(np.float64)
        for name in ("predicted", "measured")
    )
    return float(np.corrcoef(predicted, measured)[0, 1])


def report(found: list[Row], every: bool) -> float:
    """Print the tables; Spearman's correlation of all."""
    if every:
        for row in sorted(found, key=lambda row: -row.error):
            shapes = " ".join("x".join(map(str, shape)) for shape in row.shapes)
            print(
                f"{row.program.family:12s} {row.program.name:16s} {row.program.dtype} {shapes:22s}"
                f" predicted {row.predicted * 1e6:10.2f} us, measured {row.measured * 1e6:10.2f} us"
                f" ({row.error:.2f} x)"
            )
    print(
        f"\n{'family':12s} {'programs':>8s} {'Spearman':>9s} {'median error':>13s} {'worst':>7s} {'bias':>7s}"
    )
    for family in dict.fromkeys(row.program.family for row in found):
        part = [row for row in found if row.program.family == family]
        errors = [row.error for row in part]
        bias = math.exp(float(np.mean([math.log(row.predicted / row.measured) for row in part])))
        print(
            f"{family:12s} {len(part):8d} {spearman(part):9.3f} {median(errors):11.2f} x {max(errors):5.1f} x"
            f" {bias:5.2f} x"
        )
    total = spearman(found)
    middle = median(row.error for row in found)
    print(f"{'all':12s} {len(found):8d} {total:9.3f} {middle:11.2f} x   (target: {TARGET})")
    return total


def main() -> int:
    """Print the comparison; 1 if the rank correlation misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true", help="measure the machine first, store nothing")
    parser.add_argument("--rows", action="store_true", help="print every program")
    options = parser.parse_args()
    profile = calibrate(store=False) if options.calibrate else machine_profile()
    if options.calibrate:
        print(profile.to_json())
    return int(report(list(rows(CostModel(profile))), options.rows) < TARGET)


if __name__ == "__main__":
    sys.exit(main())
