"""Matrix products added to another array: ``beta * c + alpha * (a @ b)`` becomes one call.

It pays where ``c`` dies there and its memory holds the sum. Over a copy it takes as long as a product and a
kernel that adds. Neither pays where a kernel reads the sum, or makes ``c``: there the addition costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite

from esat.base.records import record
from esat.graph import Apply, Constant, Family, FunctionGraph, TensorType, Variable
from esat.graph.registry import op_named
from esat.ops.accumulate import DTYPES, AccumulateProduct
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.contraction import MatMul
from esat.phases.memory.effects import Permissions

SMALL_ORDER = 32
"""Rows and columns of matrices up to which a call of BLAS takes longer than a product and a sum."""
_IN_LOOPS = (Family.ELEMENTWISE, Family.REDUCTION)


@record(frozen=True, slots=True)
class _Term:
    """A variable times scalars, divided by scalars, with a sign."""

    variable: Variable
    factors: tuple[Variable, ...] = ()
    divisors: tuple[Variable, ...] = ()
    negative: bool = False


def accumulate_products(
    graph: FunctionGraph, permissions: Permissions | None, without: Collection[int] = ()
) -> dict[Variable, int]:
    """Put ``gemm`` in the place of sums that it can compute; the graph is changed.

    Parameters
    ----------
    graph
        The graph.
    permissions
        Whose memory may be overwritten; None where sums are to be computed over copies.
    without
        Sums to leave alone, by their number in topological order.

    Returns
    -------
    The result of each ``gemm``, with the number of the sum it replaced.
    """
    inputs = {variable: position for position, variable in enumerate(graph.inputs)}
    found: dict[Variable, int] = {}
    nodes = graph.toposort()
    sums = _sums(graph, nodes)
    for number, node in enumerate(nodes):
        if number in without or node not in sums:
            continue
        gemm = _accumulated(graph, node)
        if gemm is None:
            continue
        if _is_allowed(gemm, permissions, inputs):
            graph.replace(node.outputs[0], gemm, "gemm")
            found[gemm] = number
    return found


def _is_allowed(gemm: Variable, permissions: Permissions | None, inputs: Mapping[Variable, int]) -> bool:
    """Whether the addend may be overwritten, where the sum is not computed over a copy of it."""
    assert gemm.owner is not None
    held = gemm.owner.inputs[0]
    if permissions is None:
        return True
    return held.owner is not None or permissions.refusal(held, inputs) is None


def _sums(graph: FunctionGraph, nodes: Sequence[Apply]) -> set[Apply]:
    """Nodes that add vectors or matrices for readers that are no kernels, or for one such node that adds a
    product to the sum."""
    found: set[Apply] = set()
    for node in reversed(nodes):
        total = node.outputs[0]
        if node.op.name not in ("add", "sub") or total.tensor_type.dtype not in DTYPES:
            continue
        readers = [user for user, _ in graph.clients[total]]
        one = readers[0] if len(readers) == 1 else "output"
        is_next = one != "output" and one in found and _adds_product(graph, one, total)
        others = all(reader == "output" or reader.op.family not in _IN_LOOPS for reader in readers)
        if total.tensor_type.ndim in (1, 2) and (is_next or others):
            found.add(node)
    return found


def _adds_product(graph: FunctionGraph, node: Apply, total: Variable) -> bool:
    """Whether an operand of a sum, besides a total, is a product."""
    return any(
        other is not total and _product(graph, _term(graph, other).variable) is not None
        for other in node.inputs
    )


def _accumulated(graph: FunctionGraph, node: Apply) -> Variable | None:
    """The ``gemm`` that computes a sum; None where neither operand is a product and the other can hold it."""
    terms = [_term(graph, variable) for variable in node.inputs]
    turned = (False, node.op.name == "sub")
    for place in (1, 0):
        product, held = terms[place], terms[1 - place]
        matmul = _product(graph, product.variable)
        if matmul is None or _is_small(matmul) or not _can_hold(held.variable, node.outputs[0].tensor_type):
            continue
        alpha = _scale(product, turned[place])
        beta = _scale(held, turned[1 - place])
        if alpha is not None and beta is not None:
            op = AccumulateProduct(_dropped_axis(product.variable))
            gemm = op.make_node(held.variable, alpha, *matmul.inputs, beta)
            gemm.where = node.where
            return gemm.outputs[0]
    return None


def _is_small(product: Apply) -> bool:
    """Whether a product is known to be one that has code of its own, without a call of BLAS."""
    (rows, inner), columns = product.inputs[0].tensor_type.shape, product.inputs[1].tensor_type.shape[1]
    return None not in (rows, inner, columns) and max(rows or 0, inner or 0, columns or 0) <= SMALL_ORDER


def _term(graph: FunctionGraph, variable: Variable) -> _Term:
    """What a variable is a multiple of, through nodes that nobody else reads."""
    term = _Term(variable)
    while True:
        node = term.variable.owner
        if node is None or len(graph.clients[term.variable]) != 1 or term.variable in graph.input_set:
            return term
        name = node.op.name
        if name == "neg":
            term = _Term(node.inputs[0], term.factors, term.divisors, not term.negative)
        elif name == "mul" and _is_uniform(node.inputs[0]):
            term = _Term(node.inputs[1], (*term.factors, _bare(node.inputs[0])), term.divisors, term.negative)
        elif name == "mul" and _is_uniform(node.inputs[1]):
            term = _Term(node.inputs[0], (*term.factors, _bare(node.inputs[1])), term.divisors, term.negative)
        elif name == "div" and _is_uniform(node.inputs[1]):
            term = _Term(node.inputs[0], term.factors, (*term.divisors, _bare(node.inputs[1])), term.negative)
        else:
            return term


def _is_uniform(variable: Variable) -> bool:
    return all(variable.tensor_type.broadcastable)


def _bare(scalar: Variable) -> Variable:
    """A scalar without the axes of size 1 that it was given."""
    while scalar.owner is not None and isinstance(scalar.owner.op, DimShuffle):
        scalar = scalar.owner.inputs[0]
    return scalar


def _product(graph: FunctionGraph, variable: Variable) -> Apply | None:
    """The product of two matrices that a variable is, maybe without an axis, if nobody else reads it."""
    node = variable.owner
    if node is None or variable in graph.input_set or len(graph.clients[variable]) != 1:
        return None
    if _dropped_axis(variable) is not None:
        return _product(graph, node.inputs[0])
    return node if type(node.op) is MatMul and node.inputs[0].tensor_type.ndim == 2 else None


def _dropped_axis(variable: Variable) -> int | None:
    """The one axis of a matrix that is dropped to give a variable."""
    op = variable.owner.op if variable.owner is not None else None
    if isinstance(op, DimShuffle) and op.input_rank == 2 and op.order in ((0,), (1,)):
        return op.dropped[0]
    return None


def _can_hold(variable: Variable, total: TensorType) -> bool:
    """Whether a sum fits the place of an operand that no kernel makes."""
    type = variable.tensor_type
    if isinstance(variable, Constant) or type.broadcastable != total.broadcastable:
        return False
    return variable.owner is None or variable.owner.op.family not in _IN_LOOPS


def _scale(term: _Term, turned: bool) -> Variable | None:
    """The scale of a term as a variable of rank 0; None for 0 and for what is not finite."""
    dtype = term.variable.tensor_type.dtype
    number = -1.0 if term.negative != turned else 1.0
    for factor in _constants(term.factors):
        number *= float(factor.data.reshape(()))
    for divisor in _constants(term.divisors):
        value = float(divisor.data.reshape(()))
        number = number / value if value else float("inf")
    type = TensorType(dtype, shape=())
    if not isfinite(number) or number == 0.0:
        return None
    one: Variable = Constant(type, type.filter(number))
    scale = one
    for name, variables in (("mul", term.factors), ("div", term.divisors)):
        for variable in variables:
            if isinstance(variable, Constant):
                continue
            scalar = dimshuffle(variable, ())
            first = scale is one and number == 1.0 and name == "mul" and scalar.type == type
            scale = scalar if first else op_named(name)(scale, scalar)
    return scale


def _constants(variables: Iterable[Variable]) -> list[Constant]:
    return [variable for variable in variables if isinstance(variable, Constant)]
