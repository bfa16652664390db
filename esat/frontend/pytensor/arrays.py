"""Rules of shapes, of arrays that are made, and of arrays that are joined and split."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

from esat.errors import AssertionFailed, ShapeError
from esat.frontend.arrays.creation import empty
from esat.frontend.arrays.shaping import repeat
from esat.frontend.elements import elementwise as own
from esat.frontend.elements.sequences import convolve
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule, number_of
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc, arange, eye
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import reshape
from esat.ops.cast import cast
from esat.ops.control import assert_, specify_shape
from esat.ops.inference.vectors import as_sizes, make_vector, shape_vector


def _arange(step: PyTensorStep) -> Variable:
    start, stop, length = (cast(one, step.op.dtype) for one in step.operands)
    return arange(start, stop, length, dtype=step.op.dtype)


def _eye(step: PyTensorStep) -> Variable:
    rows, columns, place = step.operands
    return eye(rows, columns, place, dtype=step.op.dtype)


def _specified(step: PyTensorStep) -> Variable:
    """Sizes that are constants stand in types; those that are computed are compared when it runs."""
    x, *sizes = step.operands
    known = [None if size is None else number_of(size) for size in sizes]
    computed = [
        own.eq(size_of(x, axis), size)
        for axis, size in enumerate(sizes)
        if size is not None and known[axis] is None
    ]
    if computed:
        x = assert_(
            x, *computed, message="SpecifyShape: a size is not the one specified", error=AssertionFailed
        )
    return specify_shape(x, known)


def _joined(step: PyTensorStep) -> Variable:
    axis, operands = getattr(step.op, "axis", None), list(step.operands)
    if axis is None:
        axis = number_of(operands.pop(0))
        if axis is None:
            raise NoRuleError("an axis that is computed")
    operands = [cast(one, step.dtype) for one in operands]
    return operands[0] if len(operands) == 1 else join(operands, axis=axis)


def _split(step: PyTensorStep) -> list[Variable]:
    """Parts one after the other; all sizes together are that of the axis."""
    axis, x, sizes = getattr(step.op, "axis", None), step.operands[0], step.operands[-1]
    if axis is None:
        axis = number_of(step.operands[1])
        if axis is None:
            raise NoRuleError("an axis that is computed")
    lengths = as_sizes("split", sizes, step.op.len_splits)
    wanted = [one.type.shape[axis] for one in step.node.outputs]
    known = [number_of(one) if size is None else size for one, size in zip(lengths, wanted, strict=True)]
    whole = [one for one in known if one is not None]
    if len(whole) == len(known) and all(size >= 0 for size in whole):
        ends: list[Any] = list(accumulate(whole))
        right = [own.eq(length, size) for length, size in zip(lengths, whole, strict=True)]
    else:
        ends = list(accumulate(lengths, own.add))
        right = [own.ge(length, 0) for length in lengths]
    message = "Split sizes do not sum to the size of the axis"
    x = assert_(x, own.eq(ends[-1], size_of(x, axis)), *right, message=message, error=ShapeError)
    before = [slice(None)] * axis
    return [x[(*before, slice(begin, end))] for begin, end in pairwise([0, *ends])]


def _joined_axes(step: PyTensorStep) -> Variable:
    x, begin, count = step.first, step.op.start_axis, step.op.n_axes
    sizes = [size_of(x, axis) for axis in range(x.tensor_type.ndim)]
    together: Any = 1
    for size in sizes[begin : begin + count]:
        together = own.mul(together, size)
    return reshape(x, (*sizes[:begin], together, *sizes[begin + count :]))


def _split_axis(step: PyTensorStep) -> Variable:
    x, shape = step.operands
    axis = step.op.axis
    sizes = [size_of(x, place) for place in range(x.tensor_type.ndim)]
    count = step.node.outputs[0].type.ndim - (len(sizes) - 1)
    return reshape(x, (*sizes[:axis], *as_sizes("split_dims", shape, count), *sizes[axis + 1 :]))


def _vector(step: PyTensorStep) -> Variable:
    return make_vector([cast(one, step.op.dtype) for one in step.operands], step.op.dtype)


def _repeated(step: PyTensorStep) -> Variable:
    x, times = step.operands
    return repeat(x, times, axis=step.op.axis)


def _convolved(step: PyTensorStep) -> Variable:
    """In gradients sizes tell which part it is: where they are not known, a choice at run time."""
    left, right, full = step.operands
    known = number_of(full)
    if known is not None:
        return convolve(left, right, mode="full" if known else "valid")
    whole, sizes = convolve(left, right), (size_of(left, 0), size_of(right, 0))
    full = cast(full, "bool")
    begin = own.switch(full, 0, own.sub(own.minimum(*sizes), 1))
    end = own.switch(full, size_of(whole, 0), own.maximum(*sizes))
    return whole[begin:end]


RULES: dict[str, Rule] = {
    "ARange": _arange,
    "Alloc": lambda step: alloc(*step.operands),
    "AllocEmpty": lambda step: empty(tuple(step.operands), dtype=step.op.dtype),
    "Convolve1d": _convolved,
    "DimShuffle": lambda step: dimshuffle(step.first, tuple(step.op.new_order)),
    "Eye": _eye,
    "Join": _joined,
    "JoinDims": _joined_axes,
    "MakeVector": _vector,
    "Repeat": _repeated,
    "Reshape": lambda step: reshape(step.first, step.operands[1], ndim=step.op.ndim),
    "Shape": lambda step: shape_vector(step.first),
    "Shape_i": lambda step: size_of(step.first, step.op.i),
    "SpecifyShape": _specified,
    "Split": _split,
    "SplitDims": _split_axis,
}
