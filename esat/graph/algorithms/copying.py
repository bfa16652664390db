"""Copies of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.graph.algorithms.traversal import ancestors
from esat.graph.variables import Constant, SharedVariable, Variable


def clone(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], copy_inputs: bool = False
) -> tuple[list[Variable], dict[Variable, Variable]]:
    """Copy the graph below ``outputs``, with some Variables replaced.

    Parameters
    ----------
    outputs
        What to copy.
    replace
        Variable -> what stands in its place in the copy.
    copy_inputs
        Whether to copy free inputs as well; Constants and shared variables are never copied.

    Returns
    -------
    The copied outputs, and the map from each Variable to its copy.
    """
    copies: dict[Variable, Variable] = dict(replace)
    for variable in ancestors(outputs, stop=replace):
        if variable in copies:
            continue
        if variable.owner is None:
            free = not isinstance(variable, (Constant, SharedVariable))
            copies[variable] = variable.clone() if copy_inputs and free else variable
            continue
        node = variable.owner
        fresh = node.clone_with([copies[operand] for operand in node.inputs])
        for old, new in zip(node.outputs, fresh.outputs, strict=True):
            copies.setdefault(old, new)
    return [copies[output] for output in outputs], copies
