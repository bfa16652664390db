"""Layers over the rows of matrices become one op, which block after block of rows passes through.

Products with matrices of weights, and what is elementwise between them, each read and write all rows: what
lies between two of them goes to memory and comes back, unless there are few rows. A block of rows stays in
the core's own cache from its first layer to its last, and threads share the blocks of all layers at once.

Before: ``h = tanh(x @ w + b)`` and ``y = h @ v``, with all of ``h`` in memory. After: one node that computes
``y`` of ``x``, ``w``, ``b`` and ``v``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from esat.graph import Apply, Constant, Family, FunctionGraph, TensorType, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.contraction import MatMul
from esat.ops.linalg.row_blocks import TURNED, RowBlocks, is_turned
from esat.ops.linalg.rows_product import DTYPES
from esat.ops.reduction import Reduction
from esat.phases.fusing.fusion import KernelRules
from esat.phases.fusing.group import Guard
from esat.phases.fusing.laziness import find_guards

MAXIMUM_NODES = 200
"""Nodes of a body at most."""
FEWEST_PRODUCTS = 2
"""Products of rows with other matrices that make a part worth it."""
LARGEST_WEIGHTS = 1 << 15
"""Elements of a matrix of weights whose type tells its sizes, at most: blocks of rows are for less."""
MOST_ATTEMPTS = 32
"""Products from which layers are looked for: each time all nodes behind it are."""

Role: TypeAlias = Literal["row", "turned row", "other", "constant"]
"""What an operand is to layers: a matrix of their rows, transposed or not, another matrix, or a number."""


def join_row_blocks(graph: FunctionGraph, rules: KernelRules) -> FunctionGraph:
    """The graph with :class:`RowBlocks` in the place of layers over the same rows.

    Parameters
    ----------
    graph
        The graph; it is not changed.
    rules
        What can be lowered to kernels.
    """
    if sum(map(_is_product, graph.apply_nodes)) < FEWEST_PRODUCTS:
        return graph
    joined = FunctionGraph(graph.inputs, graph.outputs)
    tried: set[Apply] = set()
    found = False
    while (layers := _next_layers(joined, rules, tried)) is not None:
        layers.replace_in(joined)
        found = True
    return joined if found else graph


def _next_layers(graph: FunctionGraph, rules: KernelRules, tried: set[Apply]) -> _Layers | None:
    """The first layers that are worth it, but for those that begin with a product that was tried."""
    nodes = graph.toposort()
    guards = find_guards(nodes, graph.outputs)
    for place, node in enumerate(nodes):
        if node in tried or not _is_product(node):
            continue
        if len(tried) == MOST_ATTEMPTS:
            break
        tried.add(node)
        layers = _Layers(rules, guards, node)
        for other in nodes[place:]:
            layers.offer(other)
        if layers.products >= FEWEST_PRODUCTS and layers.has_functions:
            return layers
    return None


def _is_product(node: Apply) -> bool:
    """Whether a node is a product of two matrices; those with a column or a row have faster ways."""
    return (
        type(node.op) is MatMul
        and all(operand.tensor_type.broadcastable == (False, False) for operand in node.inputs)
        and node.inputs[0].tensor_type.dtype in DTYPES
    )


@dataclass
class _Layers:
    """Nodes that treat rows alike.

    Attributes
    ----------
    first
        The product that they begin with.
    nodes
        The nodes, each after those that feed it, and what their operands are to them.
    rows
        The results that have the rows.
    after
        All that depends on the nodes.
    products
        How many of the nodes are products of rows with another matrix.
    """

    rules: KernelRules
    guards: Mapping[Apply, Guard]
    first: Apply
    nodes: dict[Apply, tuple[Role, ...]] = field(default_factory=dict)
    rows: set[Variable] = field(default_factory=set)
    after: set[Variable] = field(default_factory=set)
    products: int = 0

    def offer(self, node: Apply) -> None:
        """Take a node in if it can be one of the layers; nodes come each after those that feed it."""
        depends = not self.after.isdisjoint(node.inputs)
        if not depends and node is not self.first:
            return
        self.after.update(node.outputs)
        if len(self.nodes) == MAXIMUM_NODES or self.guards.get(node) != self.guards.get(self.first):
            return
        roles = self._roles(node)
        if roles is None:
            return
        self.nodes[node] = roles
        if _is_product(node) and roles == ("row", "other"):
            self.products += 1
        if "turned row" not in roles and not isinstance(node.op, Reduction):
            self.rows.update(node.outputs)

    @property
    def has_functions(self) -> bool:
        """Whether anything but products of matrices is among the nodes: these alone keep their own order."""
        return any(node.op.family is Family.ELEMENTWISE for node in self.nodes)

    def _roles(self, node: Apply) -> tuple[Role, ...] | None:
        """What the operands of a node are; None where it is none of the layers."""
        if _is_product(node):
            left, right = node.inputs
            if self._may_be_row(left) and right not in self.after and not _is_large(right):
                return "row", "other"
            if is_turned(left) and self._may_be_row(_source(left)) and self._may_be_row(right):
                return "turned row", "row"
            return None
        if not self.rules.supported(node):
            return None
        if isinstance(node.op, Reduction):
            adds = node.op.reducer.constructor == "ReduceSum" and node.op.axes == (0,)
            return ("row",) if adds and node.inputs[0] in self.rows else None
        if node.op.family is not Family.ELEMENTWISE or not self._is_of_rows(node.outputs[0]):
            return None
        roles = [self._role(operand) for operand in node.inputs]
        return tuple(role for role in roles if role is not None) if None not in roles else None

    def _role(self, operand: Variable) -> Role | None:
        """What an operand of an elementwise node is."""
        kind = operand.tensor_type
        if isinstance(operand, Constant) and all(kind.broadcastable):
            return "constant"
        if self._may_be_row(operand):
            return "row"
        is_other = kind.dtype == self._dtype and kind.broadcastable[0] and operand not in self.after
        return "other" if is_other else None

    def _may_be_row(self, variable: Variable) -> bool:
        """Whether a variable has the rows of the layers, or comes from elsewhere and may have them."""
        if variable in self.rows:
            return True
        return self._is_of_rows(variable) and variable not in self.after and not is_turned(variable)

    def _is_of_rows(self, variable: Variable) -> bool:
        kind = variable.type
        return (
            isinstance(kind, TensorType)
            and kind.dtype == self._dtype
            and kind.ndim == 2
            and not kind.broadcastable[0]
        )

    @property
    def _dtype(self) -> str:
        return self.first.inputs[0].tensor_type.dtype

    def replace_in(self, graph: FunctionGraph) -> None:
        """Put one op in the place of the nodes."""
        wanted = [
            output for node in self.nodes for output in node.outputs if self._is_read_elsewhere(graph, output)
        ]
        body = _Body()
        for node, roles in self.nodes.items():
            body.add(node, roles)
        inputs = [*body.leaves.values(), *body.others.values()]
        results = [body.computed[variable] for variable in wanted]
        op = RowBlocks(FunctionGraph(inputs, results, clone=False), len(body.leaves))
        joined = op.make_node(*body.leaves, *body.others)
        joined.where = self.first.where
        for variable, result in zip(wanted, joined.outputs, strict=True):
            graph.replace(variable, result, "row blocks")

    def _is_read_elsewhere(self, graph: FunctionGraph, variable: Variable) -> bool:
        """Whether anything but the nodes reads a variable, looking through its transposition."""
        return any(
            user == "output"
            or (
                user not in self.nodes
                and not (is_turned(user.outputs[0]) and not self._is_read_elsewhere(graph, user.outputs[0]))
            )
            for user, _ in graph.clients[variable]
        )


@dataclass
class _Body:
    """Copies of nodes, that read inputs of their own.

    Attributes
    ----------
    leaves, others
        Inputs by the variables of the graph they stand for, which can be both.
    computed
        What the copies compute, by what it stands for.
    """

    leaves: dict[Variable, Variable] = field(default_factory=dict)
    others: dict[Variable, Variable] = field(default_factory=dict)
    computed: dict[Variable, Variable] = field(default_factory=dict)

    def add(self, node: Apply, roles: Sequence[Role]) -> None:
        operands = [self._operand(variable, role) for variable, role in zip(node.inputs, roles, strict=True)]
        copied = node.clone_with(operands)
        self.computed.update(zip(node.outputs, copied.outputs, strict=True))

    def _operand(self, variable: Variable, role: Role) -> Variable:
        """What stands for an operand: a kernel reads matrices as they are stored, or turned once."""
        while role == "other" and is_turned(variable) and is_turned(_source(variable)):
            variable = _source(_source(variable))
        if role == "constant":
            return variable
        if role == "turned row" or (role == "other" and is_turned(variable)):
            inner = self._operand(_source(variable), "row" if role == "turned row" else "other")
            return dimshuffle(inner, TURNED)
        if variable in self.computed:
            return self.computed[variable]
        known = self.leaves if role == "row" else self.others
        if variable not in known:
            known[variable] = Variable(variable.type, name=variable.name)
        return known[variable]


def _is_large(matrix: Variable) -> bool:
    """Whether a type says that a matrix is too large for blocks of rows that go through it."""
    rows, columns = matrix.tensor_type.shape
    return rows is not None and columns is not None and rows * columns > LARGEST_WEIGHTS


def _source(variable: Variable) -> Variable:
    """What a transposed matrix is the transpose of."""
    assert variable.owner is not None
    return variable.owner.inputs[0]
