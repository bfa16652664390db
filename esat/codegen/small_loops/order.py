"""The order of a step: what reads an array comes before what writes over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from esat.codegen.small_loops.number_lines import NoCodeError
from esat.graph import Apply, Constant, TensorType, Variable
from esat.graph.algorithms.traversal import postorder_of, toposort
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.view import Reshape
from esat.ops.control import IfElse
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.basic import Subtensor
from esat.ops.index.write import PartWrite
from esat.ops.loops.record import LoopOp


def is_array(variable: Variable) -> bool:
    """Whether a variable may be in memory."""
    return isinstance(variable.type, TensorType) and variable.type.ndim > 0


def is_choice(node: Apply) -> bool:
    """Whether what a node needs after its first operand may be left out."""
    return isinstance(node.op, IfElse) or (_is_switch(node) and any(map(_reads, node.inputs[1:])))


def _is_switch(node: Apply) -> bool:
    op = node.op
    is_switch = isinstance(op, Elementwise) and op.name == "switch"
    return is_switch and not any(one.tensor_type.ndim for one in node.inputs)


def _reads(variable: Variable) -> bool:
    """Whether a number is an element that is read, or computed of some."""
    return any(
        isinstance(node.op, Subtensor) and is_array(node.inputs[0]) and not is_array(node.outputs[0])
        for node in toposort([variable])
    )


def handed_on(outputs: Iterable[Variable]) -> set[Variable]:
    """The arrays that a write, or a loop within, makes of others, and that are handed on: they are made in
    their place. Of others only elements are read."""
    found: set[Variable] = set()
    pending = list(filter(is_array, outputs))
    while pending:
        one = pending.pop()
        node = one.owner
        if one in found or node is None:
            continue
        found.add(one)
        if isinstance(node.op, LoopOp):
            pending += filter(is_array, node.inputs[1:])
        elif isinstance(node.op, PartWrite | IfElse | Subtensor | DimShuffle | Reshape):
            pending += filter(is_array, node.inputs)
    return found


def in_order(
    targets: Sequence[Variable], known: Mapping[Variable, object], handed: Set[Variable]
) -> list[Apply]:
    """The nodes that targets need whatever conditions say, each after what it needs, and after all that reads
    what it writes over. Raises NoCodeError where there is no such order."""

    def unknown(variables: Iterable[Variable]) -> list[Apply]:
        return [one.owner for one in variables if one.owner is not None and one not in known]

    def always(node: Apply) -> list[Apply]:
        return unknown(node.inputs[:1] if is_choice(node) else node.inputs)

    nodes = postorder_of(unknown(targets), always)
    if not any(is_array(one) for node in nodes for one in (*node.inputs, *node.outputs)):
        return nodes
    own = set(nodes)
    reads: dict[Apply, set[Variable]] = {}
    writes: dict[Apply, set[Variable]] = {}
    needs: dict[Apply, set[Apply]] = {}
    for node in nodes:
        inner = [node]
        if is_choice(node):
            lazily = postorder_of(unknown(node.inputs), lambda one: unknown(one.inputs))
            needs[node] = own & set(lazily)
            inner += [one for one in lazily if one not in own]
        else:
            needs[node] = set(unknown(node.inputs))
        reads[node] = {_base(one, handed) for each in inner for one in each.inputs if is_array(one)}
        writes[node] = {_base(one, handed) for each in inner for one in _written(each, handed)}
    after = _following(nodes, needs)
    for node in nodes:
        for other in nodes:
            if other is not node and other not in after[node] and writes[node] & reads[other]:
                needs[node].add(other)
    found: dict[Apply, None] = {}
    pending = list(nodes)
    while pending:
        ready = [node for node in pending if needs[node] <= found.keys()]
        if not ready:
            raise NoCodeError
        found.update(dict.fromkeys(ready[:1]))
        pending.remove(ready[0])
    return list(found)


def _following(nodes: Sequence[Apply], needs: dict[Apply, set[Apply]]) -> dict[Apply, set[Apply]]:
    """The nodes that need each."""
    before: dict[Apply, set[Apply]] = {}
    after: dict[Apply, set[Apply]] = {node: set() for node in nodes}
    pending = list(nodes)
    while pending:
        node = pending.pop(0)
        if not needs[node] <= before.keys():
            pending.append(node)
            continue
        before[node] = {*needs[node], *(one for other in needs[node] for one in before[other])}
        for one in before[node]:
            after[one].add(node)
    return after


def _written(node: Apply, handed: Set[Variable]) -> list[Variable]:
    if isinstance(node.op, PartWrite):
        return [node.inputs[0]] if node.outputs[0] in handed else []
    if isinstance(node.op, LoopOp):
        return list(filter(is_array, node.inputs[1 : 1 + node.op.carries]))
    return []


def _base(variable: Variable, handed: Set[Variable]) -> Variable:
    """What an array is a part of."""
    while (node := variable.owner) is not None and not isinstance(variable, Constant):
        op = node.op
        is_patched = isinstance(op, PartWrite) and variable not in handed
        if not (is_patched or isinstance(op, Subtensor | DimShuffle | Reshape)):
            break
        variable = node.inputs[0]
    return variable
