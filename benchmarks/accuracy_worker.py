"""Computes formulas with one contender: ``python accuracy_worker.py NAME TASK RESULT``.

Runs in the contender's own environment, with nothing but that and NumPy. The task is a JSON list of formulas
as text with the values of their variables; the result has values, and seconds of a call, for each.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LETTERS = "xyz"
ELEMENTS = 10_000
"""Elements of the arrays that calls are timed with."""
_REPEATS = 7
_FUNCTIONS = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "arccos", "arctan", "sinh", "cosh", "tanh", "maximum", "where",
)  # fmt: skip

Function = Callable[..., Any]
Compile = Callable[[str, int], Function]


def _numpy() -> Compile:
    from scipy import special

    names = {name: getattr(np, name) for name in _FUNCTIONS}
    names |= {"erf": special.erf, "erfc": special.erfc, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}

    def build(text: str, count: int) -> Function:
        return eval(f"lambda {', '.join(LETTERS[:count])}: {text}", names)

    return build


def _esat() -> Compile:
    import esat

    names = {name: getattr(esat, name) for name in [*_FUNCTIONS, "erf", "erfc", "sigmoid"]}

    def build(text: str, count: int) -> Function:
        inputs = [esat.vector(letter) for letter in LETTERS[:count]]
        output = eval(text, {**names, **dict(zip(LETTERS, inputs, strict=False))})
        function: Function = esat.compile(esat.Graph(inputs, [output]))
        return function

    return build


def _jax() -> Compile:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    names = {name: getattr(jnp, name) for name in _FUNCTIONS}
    names |= {"erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc, "sigmoid": jax.nn.sigmoid}

    def build(text: str, count: int) -> Function:
        plain = eval(f"lambda {', '.join(LETTERS[:count])}: {text}", names)
        fast = jax.jit(plain)
        return lambda *arrays: np.asarray(fast(*arrays))

    return build


def _pytensor() -> Compile:
    import pytensor
    import pytensor.tensor as pt

    names = {name: getattr(pt, name) for name in [*_FUNCTIONS, "erf", "erfc", "sigmoid"]}

    def build(text: str, count: int) -> Function:
        inputs = [pt.dvector(letter) for letter in LETTERS[:count]]
        output = eval(text, {**names, **dict(zip(LETTERS, inputs, strict=False))})
        function: Function = pytensor.function(inputs, output)
        return function

    return build


CONTENDERS: dict[str, Callable[[], Compile]] = {
    "numpy": _numpy,
    "esat": _esat,
    "pytensor": _pytensor,
    "jax": _jax,
}


def seconds_of(function: Function, values: Sequence[Any]) -> float:
    """The least time of a call with :data:`ELEMENTS` elements."""
    arrays = [np.resize(value, ELEMENTS) for value in values]
    function(*arrays)
    best = float("inf")
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        function(*arrays)
        best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    """Compute the task of the command line."""
    name, task, target = sys.argv[1:]
    build = CONTENDERS[name]()
    with open(task) as file:
        formulas = json.load(file)
    results = []
    with np.errstate(all="ignore"):
        for formula in formulas:
            values = [np.array(column) for column in formula["values"]]
            try:
                function = build(formula["text"], len(values))
                found = np.asarray(function(*values), np.float64)
            except Exception as error:  # a peer's own errors are part of the result
                results.append({"error": f"{type(error).__name__}: {error}"})
            else:
                seconds = seconds_of(function, values)
                results.append({"values": [float(value).hex() for value in found], "seconds": seconds})
            print(f"{name}: {formula['name']}", file=sys.stderr, flush=True)
    with open(target, "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
