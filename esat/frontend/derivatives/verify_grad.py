"""Gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.errors import GradientError
from esat.frontend.derivatives.gradient import grad
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.constants import constant
from esat.graph.op import Array
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Variable
from esat.ops.reduction import SUM, reduce

_STEPS = {"float16": 2.0**-4, "float32": 2.0**-8, "float64": 2.0**-18}
"""Steps near the cube root of the rounding error, where a central difference is best."""

_TOLERANCES = {"float16": 2e-1, "float32": 2e-3, "float64": 1e-6}


def verify_grad(
    function: Callable[..., Variable],
    points: Sequence[Any],
    rng: np.random.Generator | None = None,
    step: float | None = None,
    tolerance: float | None = None,
) -> None:
    """Compare the gradient of ``function`` with central differences.

    The outputs are projected on a random direction, so that one gradient checks all of them.

    Parameters
    ----------
    function
        Takes one Variable for each point and returns a float or complex Variable of any rank.
    points
        Arrays of float or complex dtype where to differentiate; no kink may be within ``step``.
    rng
        Source of the projection; by default one with a fixed seed.
    step
        Half the distance of the two evaluations; by default chosen for the dtype.
    tolerance
        Largest error allowed, relative to the larger of 1 and the derivative.

    Raises
    ------
    GradientError
        Where the two differ; the message gives the input, the place and both values.

    Examples
    --------
    >>> esat.verify_grad(esat.tanh, [[0.5, -1.0]])
    """
    rng = rng if rng is not None else np.random.default_rng(20090)
    arrays = [np.array(point) for point in points]
    variables = [
        Variable(TensorType(array.dtype, shape=array.shape), name=f"point{number}")
        for number, array in enumerate(arrays)
    ]
    cost = _projected(function(*variables), dict(zip(variables, arrays, strict=True)), rng)
    gradients = evaluate(grad(cost, variables), dict(zip(variables, arrays, strict=True)))
    for number, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        real = array.real.dtype.name
        half = step if step is not None else _STEPS[real]
        allowed = tolerance if tolerance is not None else _TOLERANCES[real]
        if gradient.shape != array.shape or gradient.dtype != array.dtype:
            found = f"shape {gradient.shape} and dtype {gradient.dtype}"
            raise GradientError(f"verify_grad: the gradient of input {number} has {found}")
        for place in np.ndindex(array.shape):
            for direction in (1, 1j) if np.iscomplexobj(array) else (1,):

                def moved(distance: complex, number: int = number, place: Any = place) -> float:
                    return _cost_at(cost, variables, arrays, number, place, distance)

                expected = (moved(half * direction) - moved(-half * direction)) / (2 * half)
                actual = float(np.real(gradient[place] * direction))
                if not abs(actual - expected) <= allowed * max(1.0, abs(expected)):
                    raise GradientError(
                        f"verify_grad: the derivative by input {number} at {place} is {actual}, "
                        f"but the difference quotient is {expected}"
                    )


def _projected(output: Variable, values: dict[Variable, Array], rng: np.random.Generator) -> Variable:
    shape = evaluate(output, values).shape
    direction = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
    if output.tensor_type.kind == "c":
        direction = direction * np.exp(1j * rng.uniform(0, 6, shape))
    weights = constant(direction.astype(output.tensor_type.dtype))
    cost = reduce(SUM, op_named("mul")(output, weights))
    real: Variable = op_named("real")(cost) if cost.tensor_type.kind == "c" else cost
    return real


def _cost_at(
    cost: Variable,
    variables: Sequence[Variable],
    arrays: Sequence[Array],
    number: int,
    place: tuple[int, ...],
    distance: complex,
) -> float:
    moved = [array.copy() for array in arrays]
    moved[number][place] += distance if np.iscomplexobj(moved[number]) else distance.real
    return float(evaluate(cost, dict(zip(variables, moved, strict=True))))
