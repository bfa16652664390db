"""Products with structured matrices against plain ones: whether the faster one is chosen.

``python -m benchmarks.structured [--dtypes float32 float64] [--worst 1.1]``.

Half the operations are not half the time: a triangular product of small matrices takes longer than a plain
one, and so does the symmetric product of a tall matrix with its own transpose. For each kind of structure and
each size, both routines are timed in turn, and the choice of the cost model is compared with the faster one.
The cost model is that of one thread: set ``OPENBLAS_NUM_THREADS=1``, above all on a machine with other work.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from esat.codegen.ground.host import host_target
from esat.codegen.routines import routine_for
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import machine_profile
from esat.extract.prices.value import Value
from esat.graph import TensorType
from esat.graph.types import DTYPE_NUMBER
from esat.ops.contraction import MATMUL, MatMul
from esat.ops.linalg.structured import STRUCTURED_PRODUCTS, StructuredProduct
from esat.tools.calibration import seconds_of

SHAPES = (
    *((n, n) for n in (8, 16, 32, 64, 128, 256, 512, 1024)),
    *((n, 8) for n in (64, 256, 1024)),
    *((8, n) for n in (64, 256, 1024)),
    *((n, 1) for n in (16, 64, 256, 1024, 2048)),
)
"""Size of the structured matrix, and columns (or rows) of the other operand."""


@dataclass(frozen=True)
class Trial:
    """One product: measured and predicted seconds of the structured routine and of the plain one."""

    op: StructuredProduct
    size: int
    count: int
    dtype: str
    measured: tuple[float, float]
    predicted: tuple[float, float]

    @property
    def loss(self) -> float:
        """Time of what the cost model chooses, by the time of the faster one."""
        chosen = self.measured[0 if self.predicted[0] < self.predicted[1] else 1]
        return chosen / min(self.measured)

    def __str__(self) -> str:
        (ours, plain), (expected, otherwise) = self.measured, self.predicted
        return (
            f"{self.op.name:20} {self.size:5} x {self.count:<5} {self.dtype} "
            f"{ours * 1e6:10.1f} us {ours / plain:6.2f} of plain, predicted {expected / otherwise:6.2f}"
            f"{'' if self.loss == 1.0 else f'   chosen wrongly: {self.loss:.2f}'}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 if no choice costs more than the factor allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.structured", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=["float32", "float64"])
    parser.add_argument("--worst", type=float, default=1.5, help="the largest loss that is no failure")
    options = parser.parse_args(arguments)
    trials = []
    for trial in measured(options.dtypes):
        trials.append(trial)
        print(trial, flush=True)
    slower = sum(trial.measured[0] > trial.measured[1] for trial in trials)
    losses = [trial.loss for trial in trials]
    print(
        f"{len(trials)} products; the structured routine is slower in {slower}; the choice costs "
        f"{np.exp(np.mean(np.log(losses))):.3f} of the best on average, {max(losses):.2f} at worst, "
        f"more than 1.1 in {sum(loss > 1.1 for loss in losses)}"
    )
    return 0 if max(losses) <= options.worst else 1


def measured(dtypes: Sequence[str]) -> Iterator[Trial]:
    """All trials, as they come."""
    model = CostModel(machine_profile())
    for dtype in dtypes:
        for op in STRUCTURED_PRODUCTS:
            for size, count in SHAPES:
                narrow = count == 1
                if narrow != (op.structure == "symmetric") and (op.structure in ("symmetric", "gram")):
                    continue
                yield _trial(model, op, size, count, dtype)


def _trial(model: CostModel, op: StructuredProduct, size: int, count: int, dtype: str) -> Trial:
    left, right = _operands(op, size, count, dtype)
    output = np.empty((left.shape[0], right.shape[1]), dtype)
    ops: tuple[MatMul, MatMul] = (op, MATMUL)
    # A plain product must not see that its operands share memory: NumPy would do the same.
    calls = [
        partial(_routine(op, left, right), left, right, output),
        partial(_routine(MATMUL, left, right), left, right.copy("K"), output),
    ]
    seconds = seconds_of(*calls, samples=12)
    values = [Value(tuple(map(float, one.shape)), DTYPE_NUMBER[dtype]) for one in (left, right, output)]
    predicted = [model.product(one, *values) for one in ops]
    return Trial(op, size, count, dtype, (seconds[0], seconds[1]), (predicted[0], predicted[1]))


def _routine(op: MatMul, *operands: np.ndarray) -> Callable[..., Any]:
    types = [
        TensorType(one.dtype.name, shape=tuple(1 if n == 1 else None for n in one.shape)) for one in operands
    ]
    routine = routine_for(op.make_node(*(type("x") for type in types)), host_target())
    assert routine is not None
    return routine


def _operands(op: StructuredProduct, size: int, count: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(size)
    other = generator.normal(size=(size, count)).astype(dtype)
    if op.structure == "gram":
        return other, other.T
    matrix = generator.normal(size=(size, size)).astype(dtype)
    kept = {
        "lower": np.tril(matrix),
        "upper": np.triu(matrix),
        "diagonal": np.diag(np.diag(matrix)),
        "tridiagonal": np.tril(np.triu(matrix, -1), 1),
        "symmetric": matrix + matrix.T,
    }[op.structure]
    return (kept, other) if op.side == "left" else (np.ascontiguousarray(other.T), kept)


if __name__ == "__main__":
    sys.exit(main())
