"""Products of which only a part or a sum is wanted: nothing larger than an operand is computed."""

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

import esat
from esat.graph import Variable

LONG, SHORT = 60, 7
TALL, WIDE = (LONG, SHORT), (SHORT, LONG)
LEFT, RIGHT = (23, 29), (31, 37)

CASES: dict[str, tuple[Callable[..., Variable], Callable[..., np.ndarray], list[tuple[int, ...]]]] = {
    "sum(W @ H)": (lambda w, h: (w @ h).sum(), lambda w, h: (w @ h).sum(), [TALL, WIDE]),
    "mean of rows of W @ H": (lambda w, h: (w @ h).mean(1), lambda w, h: (w @ h).mean(1), [TALL, WIDE]),
    "trace(A @ B)": (lambda a, b: esat.trace(a @ b), lambda a, b: np.trace(a @ b), [TALL, WIDE]),
    "diag(A @ B)": (lambda a, b: esat.diagonal(a @ b), lambda a, b: np.diagonal(a @ b), [TALL, WIDE]),
    "sum((A @ B) * C')": (
        lambda a, b, c: ((a @ b) * (c @ c.T)).sum(),
        lambda a, b, c: ((a @ b) * (c @ c.T)).sum(),
        [TALL, WIDE, TALL],
    ),
    "kron(A, B) @ v": (
        lambda a, b, v: esat.kron(a, b) @ v,
        lambda a, b, v: np.kron(a, b) @ v,
        [LEFT, RIGHT, (LEFT[1] * RIGHT[1],)],
    ),
    "kron(A, B) @ X": (
        lambda a, b, x: esat.kron(a, b) @ x,
        lambda a, b, x: np.kron(a, b) @ x,
        [LEFT, RIGHT, (LEFT[1] * RIGHT[1], 3)],
    ),
    "v @ kron(A, B)'": (
        lambda a, b, v: v @ esat.kron(a, b).T,
        lambda a, b, v: v @ np.kron(a, b).T,
        [LEFT, RIGHT, (LEFT[1] * RIGHT[1],)],
    ),
    "X @ kron(A, B)": (
        lambda a, b, x: x @ esat.kron(a, b),
        lambda a, b, x: x @ np.kron(a, b),
        [LEFT, RIGHT, (3, LEFT[0] * RIGHT[0])],
    ),
    "element of A @ B": (lambda a, b: (a @ b)[2, 5], lambda a, b: (a @ b)[2, 5], [TALL, WIDE]),
    "A @ B @ v": (lambda a, b, v: a @ b @ v, lambda a, b, v: a @ b @ v, [TALL, WIDE, (LONG,)]),
    "squared norm of A @ B": (
        lambda a, b: ((a @ b) ** 2).sum(),
        lambda a, b: ((a @ b) ** 2).sum(),
        [TALL, WIDE],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_intermediate_is_larger_than_the_operands_and_the_result(name: str) -> None:
    build, reference, shapes = CASES[name]
    generator = np.random.default_rng(3)
    arrays = [generator.normal(size=shape) for shape in shapes]
    inputs = [esat.tensor(f"x{place}", shape=shape) for place, shape in enumerate(shapes)]
    output = build(*inputs)
    compiled = esat.compile(esat.Graph(inputs, [output]))
    assert np.allclose(compiled(*arrays), reference(*arrays), rtol=1e-10)
    allowed = max(*map(prod, shapes), reference(*arrays).size)
    sizes = {
        str(node): prod(size for size in variable.tensor_type.shape if size is not None)
        for node in compiled.graph.toposort()
        for variable in node.outputs
    }
    assert not {node: size for node, size in sizes.items() if size > allowed}


def test_a_determinant_of_a_product_with_a_triangular_matrix_needs_no_product() -> None:
    """Of two dense matrices the product is cheaper than a second factorization, and no larger than they."""
    lower, other = (esat.matrix(name, shape=(400, 400)) for name in ("lower", "other"))
    output = esat.linalg.det(esat.assume(lower, "lower_triangular") @ other)
    compiled = esat.compile(esat.Graph([lower, other], [output]))
    names = [node.op.name for node in compiled.graph.toposort()]
    left, right = np.random.default_rng(4).normal(size=(2, 400, 400)) / 20
    left = np.tril(left, -1) + np.eye(400)
    assert np.allclose(compiled(left, right), np.linalg.det(left @ right))
    assert not [name for name in names if "matmul" in name], names
