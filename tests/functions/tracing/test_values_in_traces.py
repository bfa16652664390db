"""What a traced function's values are: their types as in NumPy, and nothing once the trace has ended."""

import math

import numpy as np
import pytest

import esat
from esat.errors import EsatError, GraphError

X = np.array([1.0, -2.0, 3.0])

ASKED = {
    "type is": lambda x, n: type(x) is np.ndarray,
    "type of a part": lambda x, n: type(x[:2]) is np.ndarray and type(x[x > 0]) is np.ndarray,
    "type ==": lambda x, n: type(x) == np.ndarray,  # noqa: E721
    "type in": lambda x, n: type(x) in (list, np.ndarray),
    "type in a dict": lambda x, n: {np.ndarray: 1, list: 2}[type(x)],
    "its name": lambda x, n: type(x).__name__,
    "a subclass": lambda x, n: issubclass(type(x), np.ndarray),
    "scalars": lambda x, n: type(x.sum()) is np.float64 and type(x[0]) is np.float64,
    "scalars are no arrays": lambda x, n: isinstance(x.sum(), np.ndarray) or isinstance(x[0], np.ndarray),
    "scalars are floats": lambda x, n: isinstance(x.sum(), np.floating) and isinstance(x[0], float),
    "of rank 0": lambda x, n: type(np.array(x.sum())) is np.ndarray,
    "integers": lambda x, n: type(x.argmax()) is np.int64 and not isinstance(x.argmax(), int),
    "comparisons": lambda x, n: type(x[0] > 1.0) is np.bool_,
    "numbers": lambda x, n: type(n) is float and type(n * 2) is float and isinstance(n, float),
    "class": lambda x, n: x.__class__ is np.ndarray,
    "of types": lambda x, n: (type(type(x)) is type, type is type, isinstance(type(x), type)),
    "of others": lambda x, n: (type(x.ndim) is int, type(x.dtype).__name__, type("a" * x.ndim) is str),
    "makes a class": lambda x, n: type("Made", (), {"number": 3})().number,
    "within": lambda x, n: [kind(x) for kind in (type, id)][0] is np.ndarray,  # noqa: RUF015,
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("shapes", ["static", "symbolic"])
def test_types_are_numpys(name, shapes):
    asked = ASKED[name]
    answers = []

    def f(x, n):
        answers.append(asked(x, n))
        return x * n

    f(X, 2.0)
    esat.jit(f, shapes=shapes)(X, 2.0)
    assert len(answers) == 2
    assert answers[0] == answers[1]


def test_the_branch_of_arrays_is_taken():
    def f(x):
        return np.exp(x) if type(x) is np.ndarray else math.nan

    np.testing.assert_allclose(esat.jit(f)(X), f(X), rtol=1e-15)
    np.testing.assert_allclose(esat.grad(lambda x: f(x).sum())(X), np.exp(X), rtol=1e-15)
    np.testing.assert_allclose(esat.vmap(f)(np.stack([X, X])), np.stack([f(X)] * 2), rtol=1e-15)


def write(x):
    x[0] = 1.0


def write_in_place(x):
    x += 1.0


USES = {
    "sum of arrays": lambda x: np.ones(3) + x,
    "sum with a number": lambda x: x + 1.0,
    "number first": lambda x: 1.0 - x,
    "negative": lambda x: -x,
    "comparison": lambda x: x < 2.0,
    "ufunc": np.exp,
    "esat's": esat.exp,
    "function": np.sum,
    "method": lambda x: x.sum(),
    "element": lambda x: x[0],
    "part": lambda x: x[1:],
    "write": write,
    "in place": write_in_place,
    "out": lambda x: np.add(np.ones(3), 1.0, out=x),
    "copyto": lambda x: np.copyto(x, 1.0),
    "float": float,
    "len": len,
    "bool": bool,
    "array": np.asarray,
    "copy": lambda x: x.copy(),
    "transposed": lambda x: x.T,
    "a graph": lambda x: esat.Graph([], [esat.exp(x)]),
    "another function": lambda x: 1.0 * esat.jit(lambda y: y * x)(X),
    "an argument": lambda x: 1.0 * esat.jit(lambda y: y + 1.0)(x),
    "an argument of grad": lambda x: 1.0 * esat.grad(lambda y: (y * y).sum())(x),
}


def leaked(shapes):
    """What is left of a traced function: an array, a view, a scalar, a result and a number."""
    left = []

    @esat.jit(shapes=shapes)
    def f(x, n):
        made = x * n
        left.extend([x, x[1:], x.sum(), made, np.zeros(3), n])
        return made

    f(X, 2.0)
    return left


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("shapes", ["static", "symbolic"])
def test_what_has_leaked_from_a_trace_is_refused(name, shapes):
    array, view, scalar, made, zeros, number = leaked(shapes)
    for one in (array, view, made, zeros):
        with pytest.raises(EsatError):
            USES[name](one)
    if name.startswith(
        ("sum", "number", "negative", "comparison", "ufunc", "esat", "float", "another", "an ")
    ):
        for one in (scalar, number):
            with pytest.raises(EsatError):
                USES[name](one)


def test_the_message_names_function_and_line():
    array = leaked("static")[0]
    with pytest.raises(
        GraphError, match=r"an array of leaked\.f .* return it from leaked\.f.*\n.*test_values_in"
    ):
        array + 1.0
    assert "ended" in repr(array)
    assert isinstance(array, np.ndarray)


def test_arrays_of_an_outer_trace_are_used_within():
    @esat.jit
    def f(x):
        inner = esat.grad(lambda y: (y * x * x[0]).sum())
        return inner(x) + esat.vmap(lambda y: y * x[1])(x) + esat.jit(lambda y: y + x)(x)

    np.testing.assert_allclose(f(X), X * X[0] + X * X[1] + 2.0 * X, rtol=1e-14)


def test_a_failed_trace_leaves_nothing_that_is_used():
    left = []

    @esat.jit
    def f(x):
        left.append(x)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        f(X)
    with pytest.raises(EsatError):
        left[0] + 1.0
