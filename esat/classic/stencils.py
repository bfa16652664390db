"""Stencils: what is read through shifted windows is computed in the loops of its readers.

``d = f(x); g(d[1:], d[:-1])`` becomes ``g(f(x[1:]), f(x[:-1]))``, which is one kernel that writes nothing in
between. Elements of ``d`` are computed once for each window then, so this is for functions that are cheaper
than writing an array and reading it again.
"""

from __future__ import annotations

import heapq

from esat.classic.rewriting.indices.parts import WHOLE, Item, chosen, part_of, within
from esat.classic.rewriting.indices.subtensor_merge import merge
from esat.errors import UserLine
from esat.extract.prices.cost import CostModel, flops_of
from esat.graph import Apply, Family, FunctionGraph, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.phases.fusing.fusion import KernelRules, fuse
from esat.phases.fusing.price import NATIVE_SECONDS, expected_bytes, expected_value, plan_seconds
from esat.phases.memory.effects import Permissions

MOST_NODES = 64
"""Nodes of a function that is computed for each window, at most."""
MOST_COPIES = 16
"""Windows for which a function is computed, at most."""

Region = tuple[Item, ...]
"""What a window shows of an array: one item an axis."""


def fuse_stencils(
    graph: FunctionGraph, rules: KernelRules, model: CostModel, permissions: Permissions
) -> FunctionGraph:
    """The graph with elementwise functions of windows in the place of windows of their results.

    Parameters
    ----------
    graph
        The graph; it is not changed.
    rules
        What can be lowered to kernels.
    model
        Prices of recomputing, and of writing and reading.
    permissions
        Whose memory nodes may overwrite.
    """
    if not any(_is_window(node) and _is_computed(graph, node.inputs[0], rules) for node in graph.apply_nodes):
        return graph
    joined = FunctionGraph(graph.inputs, graph.outputs)
    if not _Stencils(joined, rules, model).join():
        return graph
    before, after = (
        plan_seconds(fuse(one, rules, permissions=permissions).groups, model) for one in (graph, joined)
    )
    return joined if after < before else graph


def _is_window(node: Apply) -> bool:
    """Whether a node shows a part of an array that is the same in each call."""
    return isinstance(node.op, Subtensor) and all(
        isinstance(entry, Slice) and entry.is_static for entry in node.op.entries
    )


def _is_elementwise(node: Apply, rules: KernelRules) -> bool:
    return (node.op.family is Family.ELEMENTWISE or isinstance(node.op, DimShuffle)) and rules.supported(node)


def _is_computed(graph: FunctionGraph, variable: Variable, rules: KernelRules) -> bool:
    node = variable.owner
    return node in graph.apply_nodes and variable not in graph.input_set and _is_elementwise(node, rules)


class _Stencils:
    """The state of one call of :func:`fuse_stencils`."""

    def __init__(self, graph: FunctionGraph, rules: KernelRules, model: CostModel) -> None:
        self.graph = graph
        self.rules = rules
        self.model = model
        self.windows: dict[tuple[Variable, Region], Variable] = {}

    def join(self) -> bool:
        """Replace windows of results, those that are computed last first; whether there are any."""
        nodes = self.graph.toposort()
        self.number = {node: number for number, node in enumerate(nodes)}
        for node in nodes:
            if _is_window(node):
                self._name(node)
        found = False
        for node in reversed(nodes):
            if node in self.graph.apply_nodes and _is_elementwise(node, self.rules):
                found |= self._replace(node)
        return found

    def _name(self, node: Apply) -> None:
        """Let equal windows of an array be one variable."""
        result = node.outputs[0]
        known = self.window(node.inputs[0], chosen(node), node.where)
        if known is not result and known.type == result.type:
            self.graph.replace(result, known, "stencils")

    def window(self, variable: Variable, region: Region, where: UserLine | None) -> Variable:
        """What a region shows of a variable, and the line that errors name."""
        source = variable.owner
        if source is not None and variable not in self.graph.input_set and _is_window(source):
            inner = source.inputs[0]
            pairs = zip(chosen(source), region, inner.tensor_type.shape, strict=True)
            merged = tuple(item for item in (merge(*pair) for pair in pairs) if item is not None)
            if len(merged) == len(region):
                variable, region = inner, merged
        region = tuple(map(_normal, region, variable.tensor_type.shape))
        known = self.windows.get((variable, region))
        if known is None:
            known = part_of(variable, region)
            if known.owner is not None and known is not variable:
                known.owner.where = where
            self.windows[variable, region] = known
        return known

    def _replace(self, node: Apply) -> bool:
        """Compute a result for each of its windows, if it is read through such alone and that pays."""
        (result,) = node.outputs
        users = [user for user, _ in self.graph.clients[result]]
        shown = [user for user in users if user != "output" and _is_window(user)]
        if len(shown) < len(users) or len(shown) > MOST_COPIES or not all(map(self._is_read_by_loops, shown)):
            return False
        function = self._function(node)
        if len(function) > MOST_NODES or not _compares_sizes(function, shown):
            return False
        copies = _Copies(self, function, node.where)
        made = [
            copies.of(result, tuple(map(_normal, chosen(user), result.tensor_type.shape))) for user in shown
        ]
        if any(one.type != user.outputs[0].type for one, user in zip(made, shown, strict=True)):
            return False
        if not self._pays(result, function, copies, len(shown)):
            return False
        for one, user in zip(made, shown, strict=True):
            self.graph.replace(user.outputs[0], one, "stencils")
        return True

    def _is_read_by_loops(self, window: Apply) -> bool:
        """Whether all that reads a window are loops over its elements."""
        return all(
            user != "output"
            and user.op.family in (Family.ELEMENTWISE, Family.REDUCTION)
            and self.rules.supported(user)
            for user, _ in self.graph.clients[window.outputs[0]]
        )

    def _function(self, node: Apply) -> dict[Apply, None]:
        """The elementwise nodes that are there for the result of a node alone."""
        found: dict[Apply, None] = {}
        offered = {node}
        pending = [(-self.number[node], node)]
        while pending and len(found) <= MOST_NODES:
            _, one = heapq.heappop(pending)
            found[one] = None
            for operand in one.inputs:
                before = operand.owner
                if before in offered or not _is_computed(self.graph, operand, self.rules):
                    continue
                assert before is not None
                # Those that read it come later, and have been looked at.
                if all(user in found for user, _ in self.graph.clients[operand]):
                    offered.add(before)
                    heapq.heappush(pending, (-self.number[before], before))
        return found

    def _pays(self, result: Variable, function: dict[Apply, None], copies: _Copies, windows: int) -> bool:
        """Whether computing a function for each window takes less than a kernel that writes its result."""
        machine = self.model.machine
        moved = 2.0 * expected_bytes(result)
        reads = max(len(copies.read) - windows, 0)
        again = sum(map(self._seconds, copies.nodes)) - sum(map(self._seconds, function))
        again += reads * self.model.arithmetic(1.0, expected_value(result))
        return again < moved / machine.bandwidth(moved) + NATIVE_SECONDS

    def _seconds(self, node: Apply) -> float:
        if isinstance(node.op, DimShuffle):
            return 0.0
        return self.model.arithmetic(flops_of(node.op), expected_value(node.outputs[0]))


def _compares_sizes(function: dict[Apply, None], windows: list[Apply]) -> bool:
    """Whether arrays that do not fit are found out by their windows, unless these are empty."""
    results = {node.outputs[0] for node in function}
    arrays = {
        operand
        for node in function
        for operand in node.inputs
        if operand not in results and not all(operand.tensor_type.broadcastable)
    }
    fixed = all(None not in array.tensor_type.shape for array in arrays)
    return len(arrays) == 1 or fixed or all(_leaves_ends(item) for node in windows for item in chosen(node))


def _leaves_ends(item: Item) -> bool:
    """Whether a window along an axis is shorter than that by a certain number of elements."""
    assert isinstance(item.entry, Slice)
    start, stop, step = (part if isinstance(part, int) else None for part in item.entry.parts())
    return (start or 0) >= 0 and (stop is None or stop < 0) and step in (1, None)


class _Copies:
    """A function computed for regions of its result.

    Attributes
    ----------
    nodes
        All that are computed.
    read
        The arrays they read.
    """

    def __init__(self, stencils: _Stencils, function: dict[Apply, None], where: UserLine | None) -> None:
        self.stencils = stencils
        self.where = where
        self.function = function
        self.nodes: list[Apply] = []
        self.read: set[Variable] = set()
        self._made: dict[tuple[Variable, Region], Variable] = {}

    def of(self, variable: Variable, region: Region) -> Variable:
        """A region of a variable."""
        key = variable, region
        if key not in self._made:
            self._made[key] = self._new(variable, region)
        return self._made[key]

    def _new(self, variable: Variable, region: Region) -> Variable:
        node = variable.owner
        if all(item.is_full for item in region):
            if not all(variable.tensor_type.broadcastable):
                self.read.add(variable)
            return variable
        if node is not None and node in self.function:
            operands = self._operands(node, region)
            if operands is not None:
                made = node.op.make_node(*operands)
                made.where = node.where
                self.nodes.append(made)
                result: Variable = made.outputs[0]
                return result
        shown = self.stencils.window(variable, region, self.where)
        self.read.add(shown)
        return shown

    def _operands(self, node: Apply, region: Region) -> list[Variable] | None:
        if not isinstance(node.op, DimShuffle):
            whole = node.outputs[0].tensor_type.broadcastable
            return [self.of(operand, tuple(within(region, operand, whole))) for operand in node.inputs]
        before = [WHOLE] * node.op.input_rank
        for axis, item in zip(node.op.order, region, strict=True):
            if axis != "x":
                before[int(axis)] = item
            elif not item.is_full:
                return None
        return [self.of(node.inputs[0], tuple(before))]


def _normal(item: Item, size: int | None) -> Item:
    """The one item for all that show the same of an axis."""
    entry = item.entry
    if not isinstance(entry, Slice) or not entry.is_static:
        return item
    start, stop, step = (part if isinstance(part, int) else None for part in entry.parts())
    if step is not None and step < 0:
        return item
    if size is not None:
        shown = range(size)[slice(start, stop, step)]
        start, stop, step = shown.start, shown.stop if shown.stop < size else None, shown.step
    return Item(Slice(start or None, stop, None if step == 1 else step))
