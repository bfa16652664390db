"""PatternSub: a local optimizer written as two patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.classic.optimizers.local import LocalOptimizer, Tracked, Transformed
from esat.classic.rules.graph_terms import same
from esat.egraph.analyses.uniform import bare
from esat.errors import OptimizerError
from esat.graph import Apply, Constant, Op, TensorType, Variable
from esat.graph.op import as_variable

Pattern = Any
"""A string (a pattern variable), a number (a constant of that value, of any rank), a Variable (itself), a
tuple ``(op, pattern, ...)``, or ``{"pattern": pattern, "constraint": function of the matched Variable}``."""


class PatternSub(LocalOptimizer):
    """Replaces what matches the first pattern by the second.

    A pattern variable that stands in the first pattern twice must match the same Variable (or
    equal Constants) both times.

    Parameters
    ----------
    in_pattern, out_pattern
        See :data:`Pattern`.
    allow_multiple_clients
        Whether inner nodes of the first pattern may be used elsewhere, too.

    Raises
    ------
    OptimizerError
        For a malformed pattern, or a variable of the second that the first does not bind.
    """

    def __init__(
        self,
        in_pattern: Pattern,
        out_pattern: Pattern,
        allow_multiple_clients: bool = True,
        name: str = "",
    ) -> None:
        if not (isinstance(in_pattern, tuple) and in_pattern and isinstance(in_pattern[0], Op)):
            raise OptimizerError(f"the first pattern is a tuple (op, ...), not {in_pattern!r}")
        unbound = _variables(out_pattern) - _variables(in_pattern)
        if unbound:
            raise OptimizerError(f"the second pattern uses {sorted(unbound)}, which the first does not bind")
        self.in_pattern, self.out_pattern = in_pattern, out_pattern
        self.allow_multiple_clients = allow_multiple_clients
        self.name = name or f"{_text(in_pattern)} -> {_text(out_pattern)}"

    def tracks(self) -> Sequence[Tracked]:
        return [self.in_pattern[0]]

    def transform(self, node: Apply) -> Transformed:
        if len(node.outputs) != 1:
            return False
        bound: dict[str, Variable] = {}
        if not self._match(self.in_pattern, node.outputs[0], bound, top=True):
            return False
        built = _build(self.out_pattern, bound)
        return [built if isinstance(built, Variable) else as_variable(_of_type(built, node.outputs[0]))]

    def _match(self, pattern: Pattern, variable: Variable, bound: dict[str, Variable], top: bool) -> bool:
        if isinstance(pattern, dict):
            constraint: Callable[[Variable], bool] = pattern["constraint"]
            return self._match(pattern["pattern"], variable, bound, top) and bool(constraint(variable))
        if isinstance(pattern, str):
            return same(bound.setdefault(pattern, variable), variable)
        if isinstance(pattern, Variable):
            return same(pattern, variable)
        if not isinstance(pattern, tuple):
            constant = bare(variable)
            return isinstance(constant, Constant) and bool((constant.data == pattern).all())
        node = variable.owner
        if node is None or node.op != pattern[0] or len(node.inputs) != len(pattern) - 1:
            return False
        if not top and not self.allow_multiple_clients and len(variable.clients or ()) > 1:
            return False
        return all(
            self._match(part, operand, bound, top=False)
            for part, operand in zip(pattern[1:], node.inputs, strict=True)
        )


def _build(pattern: Pattern, bound: dict[str, Variable]) -> Any:
    """What a pattern stands for. Numbers stay numbers, whose dtype is that of what they stand beside."""
    if isinstance(pattern, str):
        return bound[pattern]
    if isinstance(pattern, tuple):
        op: Op = pattern[0]
        return op.make_node(*(_build(part, bound) for part in pattern[1:])).outputs[0]
    return pattern


def _of_type(number: Any, variable: Variable) -> Any:
    """A number in the dtype of a Variable."""
    type = variable.type
    return np.asarray(number, type.dtype) if isinstance(type, TensorType) else number


def _variables(pattern: Pattern) -> set[str]:
    if isinstance(pattern, str):
        return {pattern}
    if isinstance(pattern, dict):
        if set(pattern) != {"pattern", "constraint"}:
            raise OptimizerError(f"a constrained pattern has the keys pattern and constraint: {pattern!r}")
        return _variables(pattern["pattern"])
    if isinstance(pattern, tuple):
        if not pattern or not isinstance(pattern[0], Op):
            raise OptimizerError(f"a pattern tuple begins with an op: {pattern!r}")
        return set().union(*(_variables(part) for part in pattern[1:]))
    return set()


def _text(pattern: Pattern) -> str:
    if isinstance(pattern, dict):
        constraint = getattr(pattern["constraint"], "__name__", "a constraint")
        return f"{_text(pattern['pattern'])} subject to {constraint}"
    if isinstance(pattern, tuple):
        return f"{pattern[0]}({', '.join(map(_text, pattern[1:]))})"
    return str(pattern)
