"""Graphs of one element as graphs of a batch of them, op by op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.errors import ShapeError, describe
from esat.graph.algorithms.traversal import toposort
from esat.graph.registry import register_functions
from esat.graph.variables import Variable
from esat.ops.arrays.shape import ShapeI, size_of
from esat.ops.control import After
from esat.ops.index import batches as _registered  # noqa: F401
from esat.ops.inference.batching import by_element, repeated


def vectorize(
    outputs: Sequence[Variable], batches: Mapping[Variable, Variable]
) -> list[tuple[Variable, bool]]:
    """Outputs for batches of some Variables.

    Parameters
    ----------
    outputs
        Variables.
    batches
        Variable -> one of its dtype that has one more axis in front, the batch's.

    Returns
    -------
    For each output, what it is for the batch, and whether it has the batch's axis: it has none where it does
    not depend on the batch.

    Raises
    ------
    ShapeError
        For a batch of another rank or dtype, or an op that cannot be applied to batches.
    """
    for variable, batch in batches.items():
        wanted, given = variable.tensor_type, batch.tensor_type
        if given.ndim != wanted.ndim + 1 or given.dtype != wanted.dtype:
            reason = "a batch has the dtype of its elements, and one axis more"
            raise ShapeError(describe("vectorize", [wanted, given], reason))
    found = dict(batches)
    batched = set(batches)
    for node in toposort(outputs, stop=batched):
        operands = [found.get(operand, operand) for operand in node.inputs]
        flags = [operand in batched for operand in node.inputs]
        if all(operand is own for operand, own in zip(operands, node.inputs, strict=True)):
            continue
        if isinstance(node.op, ShapeI) and flags[0]:
            found[node.outputs[0]] = ShapeI(node.op.axis + 1)(operands[0])
            continue
        if not any(flags) or (isinstance(node.op, After) and not flags[0]):
            found.update(zip(node.outputs, node.op.make_node(*operands).outputs, strict=True))
            continue
        for output, result in zip(node.outputs, node.op.batch(node, operands, flags), strict=True):
            if output not in batched:
                found[output] = result
                batched.add(output)
    return [(found.get(output, output), output in batched) for output in outputs]


def vectorize_graph(
    outputs: Variable | Sequence[Variable], replace: Mapping[Variable, Variable]
) -> Variable | list[Variable]:
    """Outputs for batches of some Variables, each with the batch's axis in front.

    Parameters
    ----------
    outputs
        A Variable, or several.
    replace
        Variable -> one of its dtype that has one more axis in front, the batch's.

    Returns
    -------
    A Variable, or a list; those that do not depend on the batch are repeated.

    Raises
    ------
    ShapeError
        For a batch of another rank or dtype, or an op that cannot be applied to batches.

    Examples
    --------
    >>> x, batch = esat.vector("x"), esat.matrix("batch")
    >>> esat.vectorize_graph(x / x.sum(), {x: batch}).eval({batch: [[1.0, 3.0], [2.0, 2.0]]})
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    wanted = [outputs] if isinstance(outputs, Variable) else list(outputs)
    if not replace:
        raise ShapeError("vectorize_graph: there is nothing to replace")
    size = size_of(next(iter(replace.values())), 0)
    results = [value if flag else repeated(value, size) for value, flag in vectorize(wanted, replace)]
    return results[0] if isinstance(outputs, Variable) else results


register_functions({"batch_by_element": by_element, "vectorize": vectorize})

__all__ = ["vectorize_graph"]
