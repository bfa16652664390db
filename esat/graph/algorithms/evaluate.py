"""The reference interpreter: what a graph means, node by node, without any optimization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from esat.errors import EsatError, GraphError, InputError, describe
from esat.graph.algorithms.traversal import toposort
from esat.graph.calls.arguments import mapping_of, sequence_of
from esat.graph.op import Array
from esat.graph.variables import Apply, Constant, SharedVariable, Variable


def evaluate(outputs: Variable | Sequence[Variable], values: Mapping[Variable, Any] | None = None) -> Any:
    """The values of ``outputs``, computed by each op's own ``perform``.

    Parameters
    ----------
    outputs
        One Variable, or a sequence of them.
    values
        Values of the free Variables, and of any others that shall not be computed. Shared variables
        have values of their own.

    Returns
    -------
    An array, or a list of arrays when ``outputs`` is a sequence.

    Raises
    ------
    GraphError
        When a free Variable has no value, or something else than a Variable is given one.
    InputError
        When a value does not fit the type of its Variable.
    ShapeError
        When sizes met at an op that do not fit; the message names the op and the user's line.

    Examples
    --------
    >>> import esat
    >>> x = esat.vector("x")
    >>> esat.evaluate(x * 2.0, {x: [1.0, 2.0]})
    array([2., 4.])
    """
    single = isinstance(outputs, Variable)
    wanted: Sequence[Variable] = (
        [outputs] if isinstance(outputs, Variable) else sequence_of("evaluate", "outputs", outputs, Variable)
    )
    known = computed(wanted, values)
    results = [_value_of(variable, known) for variable in wanted]
    return results[0] if single else results


def computed(wanted: Sequence[Variable], values: Mapping[Variable, Any] | None = None) -> dict[Variable, Any]:
    """The values given, and those of all that was computed on the way to what is wanted.

    Of choices the side that is chosen is computed alone. Parameters and errors are those of :func:`evaluate`.
    """
    given = mapping_of("evaluate", "values", values)
    known = {variable: _filtered(variable, value) for variable, value in given.items()}
    nodes = toposort(wanted, stop=known)
    if any(node.op.lazy for node in nodes):
        _evaluate_lazily(wanted, known)
        return known
    for node in nodes:
        operands = [_value_of(variable, known) for variable in node.inputs]
        for output, result in zip(node.outputs, apply_node(node, operands), strict=True):
            known.setdefault(output, result)
    return known


def _evaluate_lazily(wanted: Sequence[Variable], known: dict[Variable, Any]) -> None:
    """Add what is wanted to what is known, and of choices compute the side that is chosen alone."""
    pending = list(wanted)
    while pending:
        node = pending[-1].owner
        if node is None or pending[-1] in known:
            pending.pop()
            continue
        shared = [variable for variable in node.inputs if isinstance(variable, SharedVariable)]
        known.update((variable, variable.look()) for variable in shared if variable not in known)
        needed = node.op.needed(node.inputs, known)
        missing = [variable for variable in needed if variable.owner is not None and variable not in known]
        if missing:
            pending += missing
            continue
        pending.pop()
        chosen = dict.fromkeys(needed)
        operands: list[Any] = [
            _value_of(variable, known) if variable in chosen else None for variable in node.inputs
        ]
        for output, result in zip(node.outputs, apply_node(node, operands), strict=True):
            known.setdefault(output, result)


def apply_node(node: Apply, operands: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of one node for values of its inputs.

    Inputs the op would overwrite are copied first. An error says where the user built the node.
    """
    overwritten = {position for inputs in node.op.destroy_map.values() for position in inputs}
    operands = [array.copy() if i in overwritten else array for i, array in enumerate(operands)]
    try:
        node.op.check_operands(node, operands)
        return node.op.perform(operands)
    except EsatError as error:
        place = f"\n  at {node.where[0]}:{node.where[1]}" if node.where is not None else ""
        if place in str(error):
            raise
        raise type(error)(f"{error}{place}") from error


def _filtered(variable: Variable, value: Any) -> Any:
    if not isinstance(variable, Variable):
        raise GraphError(f"values are given for Variables, not for {variable!r}")
    try:
        return variable.type.filter(value)
    except EsatError as error:
        raise InputError(f"the value given for {variable} does not fit: {error}") from error


def _value_of(variable: Variable, known: Mapping[Variable, Any]) -> Any:
    if variable in known:
        return known[variable]
    if isinstance(variable, Constant):
        return variable.data
    if isinstance(variable, SharedVariable):
        return variable.look()
    raise GraphError(describe("evaluate", [variable.type], f"no value was given for {variable}"))
