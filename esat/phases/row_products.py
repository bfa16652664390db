"""``a' f(a x)`` in one pass over the matrix: two products and the function between them become one op.

Two products with a vector read a matrix twice, and large ones come from memory at each. The gradient of a
model that is linear in its parameters is of this form: of least squares, of logistic and Poisson regression,
with weights or without; so are products with their Hessians.

Before: ``p = a @ x``, ``r = f(p)``, ``g = a.T @ r``. After: one node that computes ``g`` of ``a`` and ``x``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from esat.graph import Apply, Constant, Family, FunctionGraph, TensorType, Variable
from esat.graph.algorithms.traversal import postorder_of
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.contraction import MatMul
from esat.ops.linalg.rows_product import DTYPES, RowsProduct
from esat.phases.fusing.fusion import KernelRules
from esat.phases.fusing.group import Guard
from esat.phases.fusing.laziness import find_guards

MAXIMUM_NODES = 64
"""Nodes of the function between the products at most."""

MAXIMUM_WALK = 4 * MAXIMUM_NODES
"""Elementwise nodes that are looked at before a product: what the function reads may be elementwise too."""


def join_row_products(graph: FunctionGraph, rules: KernelRules) -> FunctionGraph:
    """The graph with :class:`RowsProduct` in the place of two products with one matrix.

    The first one multiplies the matrix by a column, the second one the transposed matrix by what an
    elementwise function makes of that. What else reads the first product, or what the function computes on
    the way, reads further results of the op. Where there is no such function, rules have chosen already
    (``structured_products.egg``).

    Parameters
    ----------
    graph
        The graph; it is not changed.
    rules
        What can be lowered to kernels.
    """
    if sum(_is_product(node) for node in graph.apply_nodes) < 2:
        return graph
    joined = FunctionGraph(graph.inputs, graph.outputs)
    nodes = joined.toposort()
    guards = find_guards(nodes, joined.outputs)
    found = False
    for node in nodes:
        if node in joined.apply_nodes and _is_product(node):
            found |= _join(joined, node, rules, guards)
    return joined if found else graph


def _is_product(node: Apply) -> bool:
    return (
        type(node.op) is MatMul
        and node.inputs[0].tensor_type.ndim == 2
        and node.inputs[0].tensor_type.dtype in DTYPES
    )


def _join(graph: FunctionGraph, node: Apply, rules: KernelRules, guards: Mapping[Apply, Guard]) -> bool:
    """Put the op in the place of a product with a transposed matrix; whether it can stand there."""
    left, right = node.inputs
    result = node.outputs[0]
    if right.tensor_type.broadcastable == (False, True):
        matrix, factors, turned = _transposed(graph, left), right, False
    elif left.tensor_type.broadcastable == (True, False):
        matrix, factors, turned = right, left, True
    else:
        return False
    if matrix is None or not _is_matrix(matrix):
        return False
    before = _elementwise_before(graph, factors, rules)
    if before is None:
        return False
    for product in _products(graph, before, matrix):
        if guards.get(product) != guards.get(node):
            continue
        middle = _middle(graph, product.outputs[0], before)
        if middle is None:
            continue
        column = product.inputs[1] if product.inputs[0] is matrix else _turned(graph, product.inputs[0])
        function, kept = middle.function(factors, middle.read_by_others(node))
        joined = RowsProduct(function).make_node(matrix, column, *middle.others)
        joined.where = node.where
        first, *vectors = joined.outputs
        graph.replace(result, dimshuffle(first, (1, 0)) if turned else first, "rows product")
        for variable, place in kept.items():
            graph.replace(variable, _with_axes_of(variable, vectors[place]), "rows product")
        return True
    return False


def _is_matrix(variable: Variable) -> bool:
    return variable.tensor_type.broadcastable == (False, False)


def _transposed(graph: FunctionGraph, variable: Variable) -> Variable | None:
    """The matrix whose transpose a variable is."""
    node = variable.owner
    if node not in graph.apply_nodes or not isinstance(node.op, DimShuffle) or not node.op.is_transpose:
        return None
    return node.inputs[0]


def _turned(graph: FunctionGraph, variable: Variable) -> Variable:
    """The transpose of a matrix, without turning it twice."""
    matrix = _transposed(graph, variable)
    return dimshuffle(variable, (1, 0)) if matrix is None else matrix


def _elementwise_before(
    graph: FunctionGraph, variable: Variable, rules: KernelRules
) -> dict[Apply, None] | None:
    """The elementwise nodes over vectors that a variable is computed by, each after those that feed it.

    They end where anything else begins. None where there are more than :data:`MAXIMUM_WALK`.
    """
    found: set[Apply] = set()

    def feeding(node: Apply) -> list[Apply]:
        before = [operand.owner for operand in node.inputs if operand not in graph.input_set]
        return [one for one in before if one is not None and is_wanted(one)]

    def is_wanted(node: Apply) -> bool:
        if len(found) > MAXIMUM_WALK or not _is_elementwise(node, rules):
            return False
        found.add(node)
        return True

    start = variable.owner
    if start is None or variable in graph.input_set or not is_wanted(start):
        return None
    ordered = postorder_of([start], feeding)
    return None if len(found) > MAXIMUM_WALK else dict.fromkeys(ordered)


def _is_elementwise(node: Apply, rules: KernelRules) -> bool:
    if not rules.supported(node) or not _is_vector(node.outputs[0]):
        return False
    return node.op.family is Family.ELEMENTWISE or isinstance(node.op, DimShuffle)


def _products(graph: FunctionGraph, before: Iterable[Apply], matrix: Variable) -> list[Apply]:
    """The products that nodes read: of a matrix with columns, or of rows with the transposed matrix."""
    operands = (operand for node in before for operand in node.inputs if operand not in graph.input_set)
    found = dict.fromkeys(operand.owner for operand in operands)
    return [node for node in found if node is not None and _is_product_of(graph, node, matrix)]


def _is_product_of(graph: FunctionGraph, node: Apply, matrix: Variable) -> bool:
    if not _is_product(node):
        return False
    left, right = node.inputs
    if left is matrix:
        return right.tensor_type.broadcastable[1]
    return _transposed(graph, right) is matrix and left.tensor_type.broadcastable[0]


def _middle(graph: FunctionGraph, products: Variable, before: Mapping[Apply, None]) -> _Middle | None:
    """Those of the nodes before a variable that depend on products; None if anything else between does."""
    after = {products}
    nodes: dict[Apply, None] = {}
    for node in before:
        if not after.isdisjoint(node.inputs):
            after.update(node.outputs)
            nodes[node] = None
    operands = {operand for node in nodes for operand in node.inputs}
    if len(nodes) > MAXIMUM_NODES or not all(map(_is_vector, operands)):
        return None
    others = [operand for node in before for operand in node.inputs if operand.owner not in before]
    if _depends(graph, [other for other in others if other is not products], products):
        return None
    return _Middle(graph, products, nodes)


def _depends(graph: FunctionGraph, variables: Iterable[Variable], source: Variable) -> bool:
    """Whether one of some variables is computed from another one.

    Looked for from both ends in turns, which takes as long as the shorter of both ways: what else is computed
    from the source, and from what the variables are, may be most of the graph.
    """
    above, below = set(variables), {source}
    if source in above:
        return True
    upwards, downwards = deque(above), deque(below)
    while upwards and downwards:
        variable = upwards.popleft()
        node = None if variable in graph.input_set else variable.owner
        operands = [] if node is None else [one for one in node.inputs if one not in above]
        users = [user for user, _ in graph.clients[downwards.popleft()] if user != "output"]
        outputs = [one for user in users for one in user.outputs if one not in below]
        if not below.isdisjoint(operands) or not above.isdisjoint(outputs):
            return True
        above.update(operands)
        below.update(outputs)
        upwards.extend(operands)
        downwards.extend(outputs)
    return False


@dataclass
class _Middle:
    """What is elementwise between a product and a variable that depends on it.

    Attributes
    ----------
    nodes
        The nodes from the one to the other, in order.
    others
        What they read besides, as vectors and scalars.
    """

    graph: FunctionGraph
    products: Variable
    nodes: Mapping[Apply, None]
    others: list[Variable] = field(default_factory=list)
    _inputs: dict[Variable, Variable] = field(default_factory=dict)

    def read_by_others(self, last: Apply) -> list[Variable]:
        """The products, and what the nodes compute, as far as it is read elsewhere than in ``last``."""
        own = {*self.nodes, last}
        candidates = [self.products, *(output for node in self.nodes for output in node.outputs)]
        return [
            variable
            for variable in candidates
            if any(user == "output" or user not in own for user, _ in self.graph.clients[variable])
        ]

    def function(
        self, factors: Variable, wanted: Sequence[Variable]
    ) -> tuple[FunctionGraph, dict[Variable, int]]:
        """The nodes as a function of vectors and scalars, and which further result each wanted variable is.

        Variables that differ in axes of size 1 only are one result.
        """
        dtype = self.products.tensor_type.dtype
        products = Variable(TensorType(dtype, shape=(None,)), name="products")
        known: dict[Variable, Variable] = {self.products: products}
        for node in self.nodes:
            if isinstance(node.op, DimShuffle):
                known[node.outputs[0]] = self._vector(node.inputs[0], known)
                continue
            made = node.op.make_node(*(self._vector(operand, known) for operand in node.inputs))
            made.where = node.where
            known[node.outputs[0]] = made.outputs[0]
        kept = {vector: place for place, vector in enumerate(dict.fromkeys(known[one] for one in wanted))}
        function = FunctionGraph([products, *self._inputs.values()], [known[factors], *kept], clone=False)
        return function, {variable: kept[known[variable]] for variable in wanted}

    def _vector(self, variable: Variable, known: dict[Variable, Variable]) -> Variable:
        """A vector, or a scalar, in the place of a variable."""
        if variable in known:
            return known[variable]
        kind = variable.tensor_type
        if isinstance(variable, Constant) and all(kind.broadcastable):
            return Constant(TensorType(kind.dtype, shape=()), variable.data.reshape(()))
        source = variable
        while (node := source.owner) in self.graph.apply_nodes and isinstance(node.op, DimShuffle):
            source = node.inputs[0]
        if source not in self._inputs:
            axes = [axis for axis, flag in enumerate(source.tensor_type.broadcastable) if not flag]
            shape = (None,) * len(axes)
            self._inputs[source] = Variable(TensorType(kind.dtype, shape=shape), name=source.name)
            self.others.append(dimshuffle(source, axes))
        return self._inputs[source]


def _is_vector(variable: Variable) -> bool:
    """Whether a variable has at most one axis along which it can have several elements."""
    return isinstance(variable.type, TensorType) and variable.type.broadcastable.count(False) <= 1


def _with_axes_of(variable: Variable, vector: Variable) -> Variable:
    """A vector with the axes of size 1 that a variable has."""
    return dimshuffle(vector, ["x" if flag else 0 for flag in variable.tensor_type.broadcastable])
