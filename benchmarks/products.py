"""Graphs of which products of matrices are most of the time, against SciPy's BLAS alone.

``python -m benchmarks.products [--sizes ...] [--dtypes ...] [--least 0.95]``. A share is the time that
SciPy's ``gemm`` takes for the graph's products alone, without copies and into an array that is there already,
by the time of a call of the compiled graph, with all else that it computes and its result's allocation. The
smaller the matrices, the more time is all else. Calls are interleaved; for one thread, set
``OPENBLAS_NUM_THREADS=1`` and ``NUMBA_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import esat
from benchmarks.operations import measured
from benchmarks.peers.record import geometric_mean
from esat.codegen.ground.blas_library import blas_function

Array = Any
SIZES = (1024, 2048)
CLOSE = {"float32": 1e-3, "float64": 1e-9}
"""Of the largest element of a result."""


@dataclass(frozen=True)
class Case:
    """A graph of square matrices.

    Attributes
    ----------
    function
        Of a namespace of NumPy's names and the matrices.
    operands
        How many matrices there are.
    products
        How many products of two matrices it takes.
    transposed
        Whether the first operand of a product is transposed, and the second.
    """

    name: str
    function: Callable[..., Any]
    operands: int
    products: int = 1
    transposed: tuple[bool, bool] = (False, False)


CASES = (
    Case("x @ y", lambda xp, x, y: x @ y, 2),
    Case("x.T @ y", lambda xp, x, y: x.T @ y, 2, transposed=(True, False)),
    Case("x @ y.T", lambda xp, x, y: x @ y.T, 2, transposed=(False, True)),
    Case("2 (x @ y) - 3 z", lambda xp, x, y, z: 2.0 * (x @ y) - 3.0 * z, 3),
    Case("tanh(x @ y + z)", lambda xp, x, y, z: xp.tanh(x @ y + z), 3),
    Case("tanh(x @ y) @ z", lambda xp, x, y, z: xp.tanh(x @ y) @ z, 3, products=2),
    Case("(x + y) @ (x - z)", lambda xp, x, y, z: (x + y) @ (x - z), 3),
)


def share(case: Case, size: int, dtype: str) -> float:
    """Time of the products alone by time of the compiled graph.

    Raises
    ------
    ValueError
        When the compiled graph's result is not NumPy's.
    """
    generator = np.random.default_rng(size)
    arrays = [generator.standard_normal((size, size)).astype(dtype) for _ in range(case.operands)]
    inputs = [esat.matrix(f"x{place}", dtype=dtype) for place in range(case.operands)]
    function = esat.compile(esat.Graph(inputs, [case.function(esat, *inputs)]))
    expected = case.function(np, *arrays)
    error = np.abs(function(*arrays) - expected).max() / np.abs(expected).max()
    if not error < CLOSE[dtype]:
        raise ValueError(f"{case.name}, {size}, {dtype}: an error of {error:.1e}")
    ours, theirs = measured(partial(function, *arrays), product(case, arrays, dtype))
    return case.products * theirs / ours


def product(case: Case, arrays: Sequence[Array], dtype: str) -> Callable[[], object]:
    """SciPy's ``gemm`` of the first two arrays.

    BLAS thinks in columns: of matrices stored by rows it computes the transposed product, operands exchanged.
    """
    left, right = arrays[:2]
    result = np.empty((len(left), len(left)), dtype).T
    return partial(
        blas_function({"float32": "sgemm", "float64": "dgemm"}[dtype]),
        1.0,
        right.T,
        left.T,
        0.0,
        result,
        trans_a=case.transposed[1],
        trans_b=case.transposed[0],
        overwrite_c=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one share a line; 1 if one is below the least."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--dtypes", nargs="+", choices=tuple(CLOSE), default=tuple(CLOSE))
    parser.add_argument("--least", type=float, default=0.95, help="the least share that is no failure")
    options = parser.parse_args(arguments)
    shares: list[float] = []
    for case in CASES:
        for dtype in options.dtypes:
            for size in options.sizes:
                shares.append(share(case, size, dtype))
                print(f"{shares[-1]:6.2f}  {case.name:20} {size:5} {dtype}", flush=True)
    low = sum(one < options.least for one in shares)
    print(f"mean share {geometric_mean(shares):.3f}; {low} of {len(shares)} below {options.least:g}")
    return int(low > 0)


if __name__ == "__main__":
    sys.exit(main())
