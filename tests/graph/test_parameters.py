"""Calls with parameters that a function does not have."""

import inspect
import pickle

import numpy as np
import pytest

import esat
from esat.ops.contraction import MATMUL
from esat.ops.linalg.normal import NORMAL_PRODUCT

X = esat.matrix("x")
WRONG = {
    "an unknown keyword": (
        lambda: esat.sum(X, foo=1),
        "sum",
        "unexpected keyword argument 'foo'",
        "keepdims",
    ),
    "of an op": (lambda: esat.exp(X, foo=1), "exp", "takes no parameter foo", ""),
    "too few operands": (lambda: esat.add(X), "add", "takes 2 operands, not 1", "x"),
    "too few of a product": (lambda: MATMUL(X), "matmul", "takes 2 operands, not 1", "x"),
    "too many of a product": (
        lambda: NORMAL_PRODUCT(X, X, X),
        "normal_matmul",
        "takes 2 operands, not 3",
        "x",
    ),
    "too many operands": (lambda: esat.exp(X, X), "exp", "takes 1 operand, not 2", "x"),
    "of a stream": (lambda: esat.random.RandomStream(1).normal(foo=1), "normal", "foo", "loc"),
    "of a method": (lambda: X.std(2, foo=1), "std", "unexpected keyword argument 'foo'", "ddof"),
    "of a module": (lambda: esat.linalg.inv(X, foo=1), "inv", "unexpected keyword argument 'foo'", "(a)"),
    "too many": (lambda: esat.linalg.inv(X, 1, 2), "inv", "takes 1 positional argument but 3", "(a)"),
    "too few": (lambda: esat.matmul(X), "matmul", "missing 1 required positional argument", "x2"),
    "a keyword for an operand": (lambda: esat.sum(y=X), "sum", "unexpected keyword argument 'y'", "axis"),
    "sparse": (lambda: esat.sparse.dot(X), "dot", "missing 1 required positional argument", ""),
    "random": (lambda: esat.random.normal(foo=1), "normal", "foo", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_names_the_function_and_the_line(name):
    call, function, reason, known = WRONG[name]
    line = inspect.getsourcelines(call)[1]
    with pytest.raises(esat.EsatError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert message.startswith(f"{function}(")
    assert reason in message
    assert known in message
    assert message.endswith(f"{__file__}:{line}")


def test_errors_from_within_a_function_are_those_it_raises():
    with pytest.raises(esat.AxisError, match=r"^sum\(axis=7\)"):
        esat.sum(X, axis=7)

    def broken(value):
        return value.shape(1)

    with pytest.raises(TypeError) as caught:
        esat.evaluate(broken(X))
    assert not isinstance(caught.value, esat.EsatError)


def test_functions_keep_their_names_and_signatures():
    assert esat.sum.__name__ == "sum"
    assert list(inspect.signature(esat.sum).parameters) == [
        "a",
        "axis",
        "dtype",
        "keepdims",
        "initial",
        "where",
    ]
    assert pickle.loads(pickle.dumps(esat.sum)) is esat.sum
    assert esat.linalg.matmul is esat.matmul
    assert esat.sum(X).eval({X: np.ones((2, 3))}) == 6.0
