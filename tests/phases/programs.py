"""Programs that run with NumPy's names and with esat's: their graphs, and their results compared."""

from collections.abc import Callable
from typing import Any

import numpy as np

import esat
from esat.graph import FunctionGraph

Program = Callable[..., Any]


def graph_of(program: Program, inputs: list[Any]) -> tuple[list[int], esat.Graph]:
    """The graph of a program and, since a graph has no inputs that nothing reads, which of them it has."""
    results = program(esat, *inputs)
    outputs = list(results) if isinstance(results, tuple) else [results]
    used = FunctionGraph(inputs, outputs)
    places = [place for place, variable in enumerate(used.inputs) if used.clients[variable]]
    return places, esat.Graph([inputs[place] for place in places], outputs)


def assert_results(found: Any, wanted: Any, tolerance: float) -> None:
    """One array or several are NumPy's but for so much, of an element or of the largest one."""
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for array, other in pairs:
        scale = max(np.abs(other).max(), 1.0)
        assert array.shape == np.shape(other)
        np.testing.assert_allclose(array, other, rtol=tolerance, atol=tolerance * scale)
