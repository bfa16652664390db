"""Executables of debug mode: every call is compared with the graph as it was given."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from esat.errors import DebugError, EsatError
from esat.graph.evaluate import evaluate
from esat.graph.identity import is_among
from esat.phases.assumptions import check_assumptions
from esat.phases.graph_checker import GraphChecker, difference, guard
from esat.runtime.checks import in_order
from esat.runtime.executable import Executable


class DebugExecutable(Executable):
    """An Executable that checks each of its calls, at the price of computing everything twice.

    Attributes
    ----------
    checker
        Knows the graph as it was given; set before the first call.

    Raises (when called)
    --------------------
    DebugError
        When a result is not that of the given graph, when finite inputs lead to NaN or Inf (naming the first
        node that makes them, and the user's line), or when an argument was changed.
    AssertionFailed
        When something assumed is not true of a value; it names the user's line.
    """

    checker: GraphChecker

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        graph = self.checker.graph
        arguments = in_order(graph.inputs, arguments, named)
        if len(arguments) != len(graph.inputs):
            return super().__call__(*arguments, out=out)  # which says what is wrong
        try:
            known = {
                variable: copy(variable.type.filter(argument))
                for variable, argument in zip(graph.inputs, arguments, strict=True)
            }
        except EsatError:
            return super().__call__(*arguments, out=out)
        # The call may change shared variables.
        known |= {variable: variable.get_value() for variable in graph.shared_variables}
        check_assumptions(graph, known)
        before = [copy(argument) for argument in arguments]
        results = super().__call__(*arguments, out=out)
        for own, variable, argument, kept in zip(
            self.graph.inputs, graph.inputs, arguments, before, strict=True
        ):
            if is_among(own, self.donated):
                continue
            if isinstance(argument, np.ndarray) and difference(argument, kept, exact=True):
                raise DebugError(f"debug mode: the program changed its argument {variable}")
        returned = results if isinstance(results, tuple) else (results,)
        expected = evaluate(graph.outputs, known)
        truths = self.checker.truths_at(known)[: len(returned)]
        self.checker.compare("code generation", returned, expected[: len(returned)], truths)
        guard(graph, known, returned)
        return results
