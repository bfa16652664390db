"""``esat.compile``: from a graph to an Executable, by what is recorded of it or by the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esat.base.forks import GATE
from esat.base.interrupts import handlers_reach_the_caller
from esat.compilation.recorded.executables import import_compiler, recorded, requested
from esat.frontend.graph import Graph
from esat.graph import FunctionGraph, Variable
from esat.graph.calls.callers import user_line
from esat.runtime import Executable

if TYPE_CHECKING:
    from esat.mode import Mode

RuleSources = str | Path | Iterable[str | Path]


def compile(
    graph: Graph | FunctionGraph,
    mode: str | Mode = "fast_run",
    *,
    rules: RuleSources = (),
    shapes: Mapping[Variable, Sequence[int]] | None = None,
    donate: Iterable[Variable] = (),
) -> Executable:
    """Compile a graph into a function of NumPy arrays.

    Parameters
    ----------
    graph
        What to compute: an ``esat.Graph`` (inputs, outputs, updates, givens) or a FunctionGraph. It
        is not changed.
    mode
        How hard to optimize: the name of a mode, or a :class:`Mode`.
    rules
        Further rules for this compilation: paths of files, or texts, in egglog syntax.
    shapes
        Input -> the shape its values will mostly have. The program is chosen for these shapes, and right
        for all. Sizes that neither types, this, nor the values of shared variables tell count 256.
    donate
        Inputs of the graph whose arrays each call may overwrite, and outputs live in; the caller must not
        use them afterwards. An array that cannot be overwritten, or shares memory with another argument, is
        copied.

    Returns
    -------
    An Executable: called with one array an input it returns the output, or a tuple of outputs. Its
    ``report`` tells what the optimizer did, its ``profile`` how long each stage took.

    Raises
    ------
    EsatError
        A subclass that says what is wrong with the graph, the mode or a rule.
    """
    message = "{}:{}".format(*(user_line() or ("<unknown>", 0)))
    return compile_called(message, graph, mode, rules=rules, shapes=shapes, donate=donate)


def compile_called(
    message: str,
    graph: Graph | FunctionGraph,
    mode: str | Mode,
    *,
    rules: RuleSources = (),
    shapes: Mapping[Variable, Sequence[int]] | None = None,
    donate: Iterable[Variable] = (),
) -> Executable:
    """The same, under the name ``message`` in profiles."""
    plain = type(rules) is tuple and type(donate) is tuple and not (rules or donate)
    request = requested(graph, mode, shapes or {}, message) if plain else None
    if request is not None:
        with handlers_reach_the_caller(), GATE.busy():
            found = recorded(request)
        if found is not None:
            return found
    import_compiler()
    if request is not None:
        return request.compiled()
    from esat.compilation.pipeline import compile as compile_graph

    return compile_graph(graph, mode, rules=rules, shapes=shapes, donate=donate, message=message)
