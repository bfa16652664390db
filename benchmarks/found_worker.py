"""What PyTensor's default rewrites find: its part of :mod:`benchmarks.found`, in an environment that has it.

``python -m benchmarks.found_worker`` prints a line of JSON for each expression and kind of sizes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, get_default_mode
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import CAReduce

from benchmarks.found_cases import FINDABLES, KINDS, Findable
from benchmarks.found_work import work

pytensor.config.floatX = "float64"
MODE = Mode(linker="py", optimizer=get_default_mode().excluding("fusion", "inplace").provided_optimizer)


class Namespace:
    """The functions of the expressions."""

    exp, log, sqrt, tanh, abs, erf = pt.exp, pt.log, pt.sqrt, pt.tanh, pt.abs, pt.erf
    expm1, log1p, sinh, arcsinh, sigmoid = pt.expm1, pt.log1p, pt.sinh, pt.arcsinh, pt.sigmoid
    where, concatenate, stack, matmul = pt.where, pt.concatenate, pt.stack, pt.matmul
    zeros_like, ones_like, full_like = pt.zeros_like, pt.ones_like, pt.full_like
    set_subtensor, softmax, grad = pt.set_subtensor, pt.special.softmax, pytensor.grad
    inv, solve, det, cholesky = pt.linalg.inv, pt.linalg.solve, pt.linalg.det, pt.linalg.cholesky
    kron, diag, diagonal = pt.linalg.kron, pt.diag, pt.diagonal


def found(case: Findable, kind: str) -> tuple[float, list[str]]:
    """Operations of what is left, and the names of what computes."""
    shapes = case.shapes(kind)
    static = [shape if kind != "unknown" else (None,) * len(shape) for shape in shapes]
    inputs = [pt.tensor(f"x{place}", shape=shape, dtype="float64") for place, shape in enumerate(static)]
    function = pytensor.function(inputs, case.build(Namespace, *inputs), mode=MODE, on_unused_input="ignore")
    graph = function.maker.fgraph
    generator = np.random.default_rng(0)
    values: dict[Any, Any] = dict(
        zip(graph.inputs, (generator.uniform(0.5, 1.5, shape) for shape in shapes), strict=True)
    )
    total, names = 0.0, []
    for node in graph.toposort():
        operands = [values.get(one, getattr(one, "data", None)) for one in node.inputs]
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        node.op.prepare_node(node, None, None, "py")
        arrays = [np.asarray(one) if isinstance(one, np.generic) else one for one in operands]
        node.op.perform(node, arrays, storage)
        results = [cell[0] for cell in storage]
        values.update(zip(node.outputs, results, strict=True))
        own = sum(work(name, _shapes(operands), _shapes(results)) for name in scalar_names(node))
        total += own
        names += [name_of(node)] if own else []
    return total, names


def _shapes(values: Sequence[Any]) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in values if isinstance(value, np.ndarray | np.generic | float | int)]


def scalar_names(node: Any) -> list[str]:
    """The names of what a node computes: those within, where it is composed of several."""
    scalar = getattr(node.op, "scalar_op", None)
    if not isinstance(scalar, Composite):
        return [name_of(node)]
    return [type(inner.op).__name__.lower() for inner in scalar.fgraph.toposort()]


def name_of(node: Any) -> str:
    """What an op is called, in lower case; that of what it applies to elements or to batches."""
    op = getattr(node.op, "core_op", node.op)
    scalar = getattr(op, "scalar_op", None)
    own = op if scalar is None or isinstance(op, CAReduce) else scalar
    name: str = type(own).__name__
    return name.lower()


def main() -> None:
    """Print a line for each expression and kind of sizes."""
    for case in FINDABLES:
        for kind in KINDS:
            print(json.dumps([case.family, case.name, kind, *found(case, kind)]), flush=True)


if __name__ == "__main__":
    main()
