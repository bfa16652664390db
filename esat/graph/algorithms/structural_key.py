"""What a graph computes as a value that can be compared: equal for graphs that are copies of each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from esat.graph.algorithms.traversal import toposort
from esat.graph.variables import Constant, Variable


def structural_key(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> tuple[Hashable, ...]:
    """A key that two graphs share where they have the same ops on the same operands, node by node.

    Names and lines do not take part. Shared variables, and other leaves that are no inputs, are equal to
    themselves alone.

    Parameters
    ----------
    inputs, outputs
        Of the graph; its results are numbered in topological order.
    """
    numbers: dict[Variable, int] = {}
    lines: list[Hashable] = []

    def add(variable: Variable, line: Hashable) -> int:
        numbers[variable] = number = len(numbers)
        lines.append(line)
        return number

    def number_of(variable: Variable) -> int:
        known = numbers.get(variable)
        return add(variable, _leaf(variable)) if known is None else known

    for variable in inputs:
        add(variable, variable.type)
    for node in toposort(outputs, stop=frozenset(inputs)):
        operands = tuple(map(number_of, node.inputs))
        for place, output in enumerate(node.outputs):
            add(output, (node.op, operands, place, output.type))
    lines.append(tuple(map(number_of, outputs)))
    return tuple(lines)


def _leaf(variable: Variable) -> Hashable:
    return variable.content if isinstance(variable, Constant) else variable
