"""Parts of a graph that their gradient computes anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import toposort
from esat.graph.variables import Constant, Variable
from esat.ops.annotations.checkpoint import Checkpoint, Recomputation


def checkpointed(outputs: Sequence[Variable], given: Mapping[Variable, Variable]) -> list[Variable]:
    """Outputs of which the gradient computes anew what depends on some Variables.

    What does not depend on them is kept for it, as are the Variables themselves.

    Parameters
    ----------
    outputs
        Variables.
    given
        Variable that outputs depend on -> what is put in its place.

    Returns
    -------
    The outputs, with what is given in place.
    """
    inside: set[Variable] = set(given)
    others: dict[Variable, Variable] = {}
    for node in toposort(outputs, stop=given):
        if any(operand in inside for operand in node.inputs):
            inside.update(node.outputs)
            for operand in node.inputs:
                if operand not in inside and not isinstance(operand, Constant):
                    others.setdefault(operand, operand.type.make_variable())
    places = [place for place, output in enumerate(outputs) if output in inside]
    if not places:
        return list(outputs)
    body = clone([outputs[place] for place in places], others)[0]
    again = Recomputation(
        (*given, *others.values()), (True,) * len(given) + (False,) * len(others), tuple(body)
    )
    operands = [*given.values(), *others]
    results = clone(list(outputs), given)[0]
    op = Checkpoint(len(places), len(operands), again)
    made = op.make_node(*(results[place] for place in places), *operands, *operands).outputs
    for place, output in zip(places, made, strict=True):
        results[place] = output
    return results
