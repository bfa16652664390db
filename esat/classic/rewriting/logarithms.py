"""Logarithms of what views show of exponentials: rules do not look into what an index makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, used_once
from esat.egraph.analyses.known import LOGARITHMS, has_fact, is_exponential, is_view
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Family, Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join
from esat.ops.elementwise.records.record import Elementwise

_DEPTH = 8


@local_optimizer([Elementwise])
def local_log_through_views(node: Apply) -> Transformed:
    """In log(2 * p[i]): p[i] -> exp(log(p)[i]), so that rules make log(2) + log(p)[i].

    So for every index inside the logarithm of what over- or underflows, or of one less that; and
    log((1 - p)[i]) becomes log(1 - p[i]). What rules made of log(1 - exp(p[i])) sees p behind the index.
    """
    if node.op.name == "log1mexp":
        return _before_view(node)
    if node.op.name not in LOGARITHMS:
        return False
    operand = node.inputs[0]
    inner = _inwards(operand)
    if inner is not None:
        return fitting(node, node.op.make_node(inner).outputs[0])
    if not is_exponential(_less_one(operand)):
        return False
    written = {view: _as_exponential(view) for view in _views(operand, _DEPTH)}
    if not written:
        return False
    if all(used_once(view) for view in written):
        return dict(written)
    # Who else uses a view has no use for an exponential of a logarithm.
    return fitting(node, node.op.make_node(_with(operand, written)).outputs[0])


def _before_view(node: Apply) -> Transformed:
    """log1mexp(p[i]) -> log1mexp(p)[i]."""
    view = node.inputs[0].owner
    if view is None or not _is_index(view) or not used_once(node.inputs[0]):
        return False
    whole, *indices = view.inputs
    return fitting(node, view.op.make_node(node.op(whole), *indices).outputs[0])


@local_optimizer([Elementwise])
def local_log_of_join(node: Apply) -> Transformed:
    """log(join(p, q)) -> join(log(p), log(q)) where one of them over- or underflows."""
    joined = node.inputs[0].owner
    if node.op.name not in LOGARITHMS or joined is None or not isinstance(joined.op, Join):
        return False
    if not is_exponential(node.inputs[0]):
        return False
    return fitting(node, joined.op(*(node.op(part) for part in joined.inputs)))


def is_stabilized(node: Apply) -> bool:
    """Whether a node is a logarithm that rules write otherwise: a part of it is better than one of a part.

    The part of a sigmoid or exponential is one itself.
    """
    if node.op.name not in LOGARITHMS or not is_exponential(_less_one(node.inputs[0])):
        return False
    inner = node.inputs[0].owner
    return inner is None or inner.op.name not in ("sigmoid", "exp")


def _less_one(variable: Variable) -> Variable:
    """``x`` of ``1 - x`` and ``-x``; the Variable itself where it is neither."""
    node = variable.owner
    if node is not None and node.op.name == "neg":
        return node.inputs[0]
    if node is not None and node.op.name == "sub" and value_of(node.inputs[0]) == 1:
        return node.inputs[1]
    return variable


def _inwards(variable: Variable) -> Variable | None:
    """``1 - p[i]`` for ``(1 - p)[i]``, through any views, where ``p`` is an exponential; else None."""
    views: list[Apply] = []
    whole = variable
    while whole.owner is not None and (_is_index(whole.owner) or isinstance(whole.owner.op, DimShuffle)):
        views.append(whole.owner)
        whole = whole.owner.inputs[0]
    part = _less_one(whole)
    if part is whole or not any(map(_is_index, views)) or not is_exponential(part):
        return None
    if part.tensor_type.broadcastable != whole.tensor_type.broadcastable:
        return None
    for view in reversed(views):
        part = view.op.make_node(part, *view.inputs[1:]).outputs[0]
    assert whole.owner is not None
    *ones, _ = whole.owner.inputs
    inner: Variable = whole.owner.op(*(constant(np.ones((), one.tensor_type.dtype)) for one in ones), part)
    return inner


def _views(variable: Variable, depth: int) -> Iterator[Variable]:
    """The indices of exponentials that a Variable is computed from, element by element.

    Such a number may be negative, as ``-a / exp(b)`` is, and has no logarithm then.
    """
    node = variable.owner
    if node is None or depth == 0:
        return
    if _is_index(node):
        if is_exponential(variable) and has_fact(variable, "nonnegative"):
            yield variable
    elif _is_looked_through(node):
        for operand in node.inputs:
            yield from _views(operand, depth - 1)


def _is_index(node: Apply) -> bool:
    family = node.op.family
    return family in (Family.VIEW, Family.INDEX) and not isinstance(node.op, DimShuffle) and is_view(node)


def _is_looked_through(node: Apply) -> bool:
    return node.op.family in (Family.ELEMENTWISE, Family.REDUCTION) or isinstance(node.op, DimShuffle)


def _as_exponential(view: Variable) -> Variable:
    """``exp(log(x)[i])`` for ``x[i]``."""
    node = view.owner
    assert node is not None
    whole, *indices = node.inputs
    logarithm = node.op.make_node(op_named("log")(whole), *indices).outputs[0]
    return op_named("exp").make_node(logarithm).outputs[0]


def _with(variable: Variable, written: Mapping[Variable, Variable]) -> Variable:
    """The Variable computed from others in the place of some."""
    node = variable.owner
    if variable in written or node is None or not _is_looked_through(node):
        return written.get(variable, variable)
    return node.op.make_node(*(_with(operand, written) for operand in node.inputs)).outputs[0]
