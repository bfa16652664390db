"""What mypy makes of a user's program; ``make lint`` runs it over this file, which is never imported."""

from typing import Any, assert_type

import numpy as np

import esat
from esat import Executable, Variable

Array = np.ndarray[Any, np.dtype[Any]]

x = esat.vector("x")
assert_type(esat.exp(x), Variable)
assert_type(esat.exp(x) * 2, Variable)
assert_type(2 / x, Variable)
assert_type(x.sum(), Variable)
assert_type(esat.sum(x), Variable)
assert_type(x[1:], Variable)
assert_type(x @ x, Variable)
assert_type(esat.where(x > 0, x, 0.0), Variable)
assert_type(esat.softmax(x), Variable)

f = esat.compile(esat.Graph([x], esat.exp(x)))
assert_type(f, Executable)
assert_type(f(np.ones(3)), Array)
first, second = esat.compile(esat.Graph([x], [x.sum(), x.mean()]))(np.ones(3))


@esat.jit
def double(values: Array, times: float = 2.0) -> Array:
    return values * times


assert_type(double(np.ones(3)), Array)
assert_type(double(np.ones(3), times=1.0), Array)
assert_type(double.explain(), Any)
double("text")  # type: ignore[arg-type]


@esat.jit(static_argnames="n")
def power(values: Array, n: int) -> Array:
    return values**n


assert_type(power(np.ones(3), 2), Array)
assert_type(esat.__version__, str)


def cost(values: Array, rate: float) -> float:
    return float((values * rate).sum())


value, slope = esat.value_and_grad(cost)(np.ones(3), 2.0)
esat.grad(cost)(np.ones(3), "2")  # type: ignore[arg-type]
assert_type(esat.grad(x.sum(), x), Variable)
assert_type(esat.grad(x.sum(), [x, x]), list[Variable])
assert_type(esat.vmap(cost)(np.ones((3, 2)), 1.0), float)
print(esat.grad(cost).explain())
esat.Mode("fast_run", node_limit=10_000)
esat.Mode("fast_run", node_limt=10_000)  # type: ignore[call-arg]
