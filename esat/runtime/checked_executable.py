"""Executables of debug mode: every call is compared with the graph as it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from esat.errors import DebugError, EsatError
from esat.extract.accuracy.wide_format.wide_values import wide_values
from esat.graph import Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.identity import is_among
from esat.phases.assumptions import check_assumptions
from esat.phases.graph_checker import GraphChecker, difference, guard
from esat.runtime.entry.checks import in_order
from esat.runtime.entry.shape_rules import place_text
from esat.runtime.executable import Executable
from esat.runtime.printed.driver import step_name
from esat.runtime.program import Program


class DebugExecutable(Executable):
    """An Executable that checks each of its calls, at the price of computing everything twice.

    Attributes
    ----------
    checker
        Knows the graph as it was given; set before the first call.

    Raises (when called)
    --------------------
    DebugError
        When a result or the new value of a shared variable is not that of the given graph (naming the first
        step that is wrong, and the user's line), when finite inputs lead to NaN or Inf (naming the first node
        that makes them, and the user's line), or when an argument was changed.
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
        made = [*returned, *(variable.get_value() for variable in self.updated)]
        expected, truths = evaluate(graph.outputs, known), self.checker.truths_at(known)
        try:
            self.checker.compare("driver", made, expected, truths)
        except DebugError as error:
            # Those that were donated may have been overwritten.
            again = [
                kept if is_among(own, self.donated) else argument
                for own, argument, kept in zip(self.graph.inputs, arguments, before, strict=True)
            ]
            raise DebugError(f"{error}{self._wrong_step(again, known, expected)}") from None
        guard(graph, known, returned)
        return results

    def _wrong_step(
        self, arguments: Sequence[Any], known: Mapping[Variable, Any], expected: Sequence[Any]
    ) -> str:
        """What the steps of a call tell that gave wrong results: the first one that is wrong, in words."""
        shared = self.checker.graph.shared_variables
        after = {variable: variable.get_value() for variable in shared}
        try:
            for executable in dict.fromkeys((self, *self.placements.values())):
                for variable in shared:
                    variable.set_value(known[variable])
                watch = _Comparing(executable._program, self.checker.exact)
                results = executable._calls.watched(watch).call(*arguments)
                if watch.found:
                    return watch.found
        finally:
            for variable in shared:
                variable.set_value(after[variable])
        returned = results if isinstance(results, tuple) else (results,)
        if any(map(difference, returned, expected)):
            return "; each step computes what its ops say: the graph was optimized to something else"
        return "; step by step the program is right: what joins its steps to one native function is not"


class _Comparing:
    """Compares the results of each step with what the interpreter makes of the same operands.

    Attributes
    ----------
    found
        The first step that is wrong, in words; empty while none is.
    """

    def __init__(self, program: Program, exact: bool) -> None:
        self._program, self._exact = program, exact
        self._operands: list[Any] = []
        self.found = ""

    def begin(self, operands: Sequence[Any]) -> None:
        self._operands = [one.copy() if hasattr(one, "copy") else one for one in operands]

    def end(self, number: int, results: Sequence[Any]) -> None:
        group = self._program.steps[number]
        if self.found:
            return
        # The results of steps that did not run are None: nothing needs them.
        known = {
            variable: value
            for variable, value in zip(group.inputs, self._operands, strict=True)
            if value is not None
        }
        expected = evaluate(group.outputs, known)
        is_lazy = any(node.op.lazy for node in group.nodes)
        truths = {} if self._exact or is_lazy else wide_values(group.outputs, known)
        for output, result, wanted in zip(group.outputs, results, expected, strict=True):
            reason = difference(result, wanted, self._exact, truths.get(output))
            if reason:
                name, place = step_name(self._program, number), place_text(group.nodes[-1].where)
                self.found = f"\n  {name} is the first step that is wrong, {group}: {reason}{place}"
                return
