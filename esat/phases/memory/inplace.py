"""Ops in place: nodes that change a copy of an operand change the operand itself, where nobody needs it.

Before: ``y = set_subtensor(h[0], v)``, which copies ``h``. After: the same node, which writes over ``h``, if
nothing that runs later reads ``h`` and no caller has it.

That is about single nodes; what kernels overwrite is found in
``esat.phases.memory.overwrite`` once there are kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Set

from esat.graph import Apply, Family, FunctionGraph, SharedVariable, Variable
from esat.graph.op import Op
from esat.graph.variables import linked
from esat.ops.accumulate import AccumulateProduct
from esat.ops.index.write import PartWrite
from esat.phases.accumulated_products import accumulate_products
from esat.phases.fusing.fusion import KernelRules
from esat.phases.memory.destroy import DestroyPlan
from esat.phases.memory.effects import Permissions, destroyed_positions, effects_of_graph
from esat.phases.shape_values import ShapeFacts

GEMM, SET_SUBTENSOR, BLAS, ELEMWISE, RANDOM = ROWS = (
    "gemm",
    "inplace_setsubtensor",
    "inplace_blas",
    "inplace_elemwise",
    "inplace_random",
)
"""Names of what works in place, by which modes take or leave it; first that of what prepares it for products
that are added."""

_ROW_OF_FAMILY = {Family.INDEX: SET_SUBTENSOR, Family.RANDOM: RANDOM}
_ROUNDS = 3
"""Trials without products that had to be copied, before all are left to BLAS."""


def work_in_place(
    graph: FunctionGraph,
    permissions: Permissions,
    rows: Collection[str] = ROWS,
    rules: KernelRules | None = None,
) -> FunctionGraph:
    """The graph with ops in place wherever some order of its nodes allows it.

    An op has a version in place if it has ``inplace``: an attribute that is False, of a dataclass, or a
    method that gives that version.

    Parameters
    ----------
    graph
        The graph; it is not changed.
    permissions
        Whose memory may be overwritten.
    rows
        Which of :data:`ROWS` take part.
    rules
        What can be lowered to kernels; None for nothing. Kernels find themselves what they overwrite, but for
        shared variables, since they may leave before their end, and parts of donated inputs.

    Raises
    ------
    DestroyError
        When ops in the graph overwrite already what they must not.
    """
    without: set[int] = set()
    for _ in range(_ROUNDS):
        trial, gemms = graph, {}
        if GEMM in rows:
            trial = FunctionGraph(graph.inputs, graph.outputs)
            gemms = accumulate_products(trial, permissions if BLAS in rows else None, without)
        chosen = _choose(trial, permissions, rows, rules)
        # A product that cannot be added in place is as well added by a kernel: faster where it is small.
        copying = {number for result, number in gemms.items() if result.owner not in chosen}
        if not copying or BLAS not in rows:
            return _rebuilt(trial, chosen) if chosen or gemms else graph
        without |= copying
    return work_in_place(graph, permissions, set(rows) - {GEMM}, rules)


def _choose(
    graph: FunctionGraph,
    permissions: Permissions,
    rows: Collection[str],
    rules: KernelRules | None,
) -> dict[Apply, Op]:
    """Nodes that can work in place, with the ops that do."""
    chosen: dict[Apply, Op] = {}
    if not any(_version(node.op, rows) for node in graph.apply_nodes):
        return chosen
    nodes, effects = effects_of_graph(graph, ShapeFacts(graph))
    versions = {number: _version(node.op, rows) for number, node in enumerate(nodes)}
    given = {one for place, one in enumerate(graph.inputs) if place in permissions.donated}
    candidates = {
        number: op
        for number, op in versions.items()
        if op is not None
        and (rules is None or _changes_one_of(given, nodes[number]) or not rules.supported(nodes[number]))
    }
    plan = DestroyPlan(effects, graph.inputs, graph.outputs, permissions, candidates)
    for number, op in candidates.items():
        positions = destroyed_positions(op)
        if len(positions) == 1 and plan.destroy(number, positions[0]) is None:
            chosen[nodes[number]] = op
    return chosen


def _changes_one_of(given: Set[Variable], node: Apply) -> bool:
    """Whether a node writes to a shared variable or a donated input, or to what such nodes made of one."""
    array = node.inputs[0]
    while array.owner is not None and isinstance(array.owner.op, PartWrite):
        array = array.owner.inputs[0]
    return isinstance(array, SharedVariable) or array in given


def _version(op: Op, rows: Collection[str]) -> Op | None:
    """The version of an op that works in place, if it has one and its row takes part."""
    row = BLAS if isinstance(op, AccumulateProduct) else _ROW_OF_FAMILY.get(op.family)
    if row not in rows or op.destroy_map:
        return None
    inplace = getattr(op, "inplace", None)
    if callable(inplace):
        found: Op = inplace()
        return found
    if inplace is False and dataclasses.is_dataclass(op):
        return dataclasses.replace(op, inplace=True)
    return None


def _rebuilt(graph: FunctionGraph, ops: Mapping[Apply, Op]) -> FunctionGraph:
    """A copy of a graph in which some nodes have other ops."""
    copies: dict[Variable, Variable] = {variable: variable.clone() for variable in graph.inputs}
    for node in graph.toposort():
        operands = [copies.get(variable, variable) for variable in node.inputs]
        outputs = [Variable(output.type, name=output.name) for output in node.outputs]
        linked(ops.get(node, node.op), operands, outputs, node.where)
        for old, new in zip(node.outputs, outputs, strict=True):
            copies.setdefault(old, new)
    outputs = [copies.get(output, output) for output in graph.outputs]
    return FunctionGraph([copies[variable] for variable in graph.inputs], outputs, clone=False)
