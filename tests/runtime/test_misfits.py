"""Sizes that do not fit, found when a function runs: the message names what the user called, and where."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import esat
from esat import Variable
from esat.errors import EsatError, ShapeError
from esat.mode import mode_names

X, Y, V, W = esat.matrix("x"), esat.matrix("y"), esat.vector("v"), esat.vector("w")
VALUES = {X: np.ones((3, 4)), Y: np.ones((5, 7)), V: np.ones(2), W: np.ones(9)}

PROGRAMS: dict[str, Callable[[], Variable]] = {
    "lifted": lambda: esat.exp(X + Y)[1],
    "sliced": lambda: (X + Y)[0:2],
    "backwards": lambda: (X + Y)[::-1],
    "a row of a product": lambda: (X @ Y)[0],
    "sums of a product": lambda: (X @ Y).sum(0),
    "exponentials": lambda: esat.exp(X) * esat.exp(Y),
    "quotient": lambda: X / Y * 2,
    "sum of products": lambda: X * Y + X * 3,
    "gradient": lambda: esat.grad(((X - Y) ** 2).sum(), X),
    "scaled": lambda: (2 * X) @ (3 * Y),
    "mean": lambda: (X + Y).mean(1),
    "softmax": lambda: esat.softmax(X + Y, 1),
    "part": lambda: (V[1:] + W[1:]) * 2,
    "row": lambda: (X * V).sum(1),
    "taken": lambda: esat.take(X + Y, [0, 1], 0),
    "running": lambda: esat.cumsum(X + Y, 0),
}


@pytest.mark.parametrize("mode", [name for name in mode_names() if name not in ("o1", "o4", "debug")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_is_that_of_the_op(name: str, mode: str) -> None:
    """Also of nodes that optimization made; it may leave out what no result needs."""
    program = PROGRAMS[name]
    result = program()
    needed = set(esat.graph.ancestors([result]))
    used = {variable: value for variable, value in VALUES.items() if variable in needed}
    function = esat.compile(esat.Graph(list(used), result), mode)
    with pytest.raises(EsatError) as caught:
        function(*used.values())
    assert str(caught.value).endswith(f"{__file__}:{program.__code__.co_firstlineno}")
    assert "compile" not in str(caught.value)


CALLED = {
    "einsum of vectors": (
        lambda x, y: esat.einsum("i,i", x, y), (2,), (1,),
        "einsum: matmul(shape (2,), shape (1,)): inner sizes 2 and 1",
    ),
    "einsum": (
        lambda x, y: esat.einsum("ij,jk", x, y), (2, 3), (4, 2),
        "einsum: matmul(shape (2, 3), shape (4, 2)): inner sizes 3 and 4",
    ),
    "einsum by element": (
        lambda x, y: esat.einsum("i,i->i", x, y), (2,), (3,),
        "einsum: mul(shape (2,), shape (3,)): sizes 2 and 3",
    ),
    "a batch": (
        lambda x, y: x @ y, (2, 3, 4), (3, 4, 2),
        "matmul(shape (2, 3, 4), shape (3, 4, 2)): sizes (2,) and (3,) of the axes before",
    ),
    "a vector": (lambda x, y: x @ y, (3, 4), (5,), "matmul(shape (3, 4), shape (5,)): inner sizes 4 and 5"),
    "two vectors": (lambda x, y: x @ y, (4,), (5,), "matmul(shape (4,), shape (5,)): inner sizes 4 and 5"),
    "dot": (esat.dot, (3, 4), (5, 2), "dot: matmul(shape (3, 4), shape (5, 2)): inner sizes 4 and 5"),
    "inner": (esat.inner, (3, 4), (2, 5), "inner: matmul(shape (3, 4), shape (5, 2)): inner sizes 4 and 5"),
    "vecdot": (esat.vecdot, (3, 4), (3, 5), "vecdot: mul(shape (3, 4), shape (3, 5)): sizes 4 and 5"),
    "a row": (lambda x, y: x + y, (3, 4), (5,), "add(shape (3, 4), shape (5,)): sizes 4 and 5"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLED)
def test_the_name_is_that_of_the_function_called(name: str) -> None:
    build, one, other, message = CALLED[name]
    x, y = esat.tensor("x", ndim=len(one)), esat.tensor("y", ndim=len(other))
    result = build(x, y)
    with pytest.raises(ShapeError, match=re.escape(message)):
        esat.evaluate(result, {x: np.ones(one), y: np.ones(other)})
    with pytest.raises(ShapeError, match=re.escape(message)):
        esat.compile(esat.Graph([x, y], result), "fast_compile")(np.ones(one), np.ones(other))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda v, w, x: v @ w, r"^matmul\(vector.*4.*, vector.*5.*inner sizes 4 and 5"),
        (lambda v, w, x: esat.dot(v, w), r"^dot\(vector.*, vector.*inner sizes 4 and 5"),
        (lambda v, w, x: x @ w, r"^matmul\(matrix.*, vector.*inner sizes 4 and 5"),
        (lambda v, w, x: esat.einsum("i,i", v, w), r"^einsum\(vector.*, vector.*sizes 4 and 5 of 'i'"),
        (lambda v, w, x: esat.einsum("ii", x), r"^einsum\(matrix.*sizes 3 and 4 of 'i'"),
        (lambda v, w, x: esat.vecdot(x, [1.0]), r"^vecdot\(matrix.*vectors of 4 and 1 elements"),
    ],
)
def test_known_sizes_that_do_not_fit(build: Callable[..., Variable], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        build(esat.vector(shape=(4,)), esat.vector(shape=(5,)), esat.matrix(shape=(3, 4)))


def test_a_diagonal_of_two_sizes_is_no_trace() -> None:
    x = esat.matrix("x")
    trace = esat.einsum("ii", x)
    assert esat.evaluate(trace, {x: np.eye(3)}) == 3
    with pytest.raises(EsatError, match="einsum: sizes of 'i' in one operand differ"):
        esat.evaluate(trace, {x: np.ones((3, 4))})


def test_vectors_of_one_element_do_not_broadcast() -> None:
    x = esat.vector("x")
    for one, other in ((x, np.ones(1)), (np.ones(1), x)):
        with pytest.raises(ShapeError):
            esat.evaluate(esat.vecdot(one, other), {x: np.ones(3)})
        assert esat.evaluate(esat.vecdot(one, other), {x: np.full(1, 3.0)}) == 3
