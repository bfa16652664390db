"""``compare_times``: what compilation gained, measured and not only predicted."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from esat.compilation.pipeline import compile_again
from esat.errors import CallError, OptimizerError
from esat.frontend.graph import own_graph
from esat.functions import Jitted
from esat.graph.algorithms.evaluate import apply_node
from esat.graph.calls.arguments import index_of
from esat.graph.function_graph import FunctionGraph
from esat.graph.variables import Constant, SharedVariable
from esat.mode import Mode
from esat.optimize.equality.report import Measured
from esat.runtime import Executable

WRITTEN = "as written"
NUMPY = "op by op with NumPy"
_SHORTEST = 2e-4
"""Seconds that the calls of one measurement take together, at least."""


def compare_times(function: Any, *arguments: Any, rounds: int = 15) -> Measured:
    """Time a compiled function beside the same graph as it was written.

    Three contenders take turns: the function; its graph with no rewrites but fused into kernels (mode
    ``fast_compile``); and the graph node by node with NumPy and SciPy, each result an array. From then on
    ``print(function.report)`` begins with the times. Copies run, so that shared variables keep their values.

    Parameters
    ----------
    function
        A compiled function; of one that ``esat.jit`` made, the program that was compiled last.
    arguments
        Of a call.
    rounds
        Measurements of each, of which the medians are taken.

    Returns
    -------
    The times in seconds; printed it is text.

    Raises
    ------
    CallError
        For what is no compiled function, or less than one round.
    OptimizerError
        For a function that was not compiled from a graph.

    Examples
    --------
    >>> import numpy as np
    >>> x = esat.vector("x")
    >>> f = esat.compile(esat.Graph([x], [esat.log(esat.exp(x).sum())]))
    >>> times = esat.compare_times(f, np.linspace(0.0, 1.0, 1000), rounds=3)
    >>> sorted(times.others)
    ['as written', 'op by op with NumPy']
    >>> str(f.report).splitlines()[0] == str(times)
    True
    """
    executable = function.latest if isinstance(function, Jitted) else function
    if not isinstance(executable, Executable):
        raise CallError(f"compare_times: a compiled function is wanted, not {executable!r}")
    if index_of("compare_times", "rounds", rounds) < 1:
        raise CallError(f"compare_times: rounds is a number from 1 on, not {rounds}")
    if executable.again is None or executable.again[0] is not compile_again:
        raise OptimizerError(f"{executable!r} was not compiled from a graph as written")
    if executable.donated:
        raise CallError("compare_times: calls would overwrite the donated arguments of each other")
    graph, mode, *others = executable.again[1]
    threads = mode.threads if isinstance(mode, Mode) else None
    contenders: dict[str, Callable[..., Any]] = {
        "": copy.deepcopy(executable),
        WRITTEN: copy.deepcopy(compile_again(graph, Mode("fast_compile", threads=threads), *others)),
        NUMPY: _interpreted(own_graph(graph)[0]),
    }
    seconds = _medians(contenders, arguments, rounds)
    executable.measured = Measured(rounds, seconds.pop(""), seconds)
    return executable.measured


def _interpreted(graph: FunctionGraph) -> Callable[..., Any]:
    """A function that computes a graph node by node; it leaves shared variables as they are."""
    nodes = graph.toposort()
    known: dict[Any, Any] = {}
    for node in nodes:
        for variable in node.inputs:
            if isinstance(variable, Constant):
                known[variable] = variable.data
            elif isinstance(variable, SharedVariable):
                known[variable] = variable.look()

    def call(*arguments: Any) -> list[Any]:
        values = dict(known)
        for variable, value in zip(graph.inputs, arguments, strict=False):
            values[variable] = variable.type.filter(value)
        for node in nodes:
            values.update(
                zip(node.outputs, apply_node(node, [values[one] for one in node.inputs]), strict=True)
            )
        return [values[output] for output in graph.outputs]

    return call


def _medians(
    contenders: Mapping[str, Callable[..., Any]], arguments: tuple[Any, ...], rounds: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    repeats = {}
    for name, call in contenders.items():
        call(*arguments)
        begin = time.perf_counter()
        call(*arguments)
        repeats[name] = max(1, int(_SHORTEST / (time.perf_counter() - begin)))
    for _ in range(rounds):
        for name, call in contenders.items():
            begin = time.perf_counter()
            for _ in range(repeats[name]):
                call(*arguments)
            times[name].append((time.perf_counter() - begin) / repeats[name])
    return {name: median(values) for name, values in times.items()}
