"""Shape functions under NumPy's names: views, joining, splitting, repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import AxisError, DtypeError, EsatError, ShapeError, describe
from esat.frontend.arrays.indexing import getitem
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.join import Join, check_parts, join, split
from esat.ops.arrays.repeat import RepeatedPlaces
from esat.ops.arrays.shape import as_size, size_of, sizes_of
from esat.ops.arrays.view import expand_dims, flatten, moveaxis, reshape, squeeze, swapaxes, transpose
from esat.ops.cast import cast
from esat.ops.control import assert_, specify_shape
from esat.ops.index.advanced import advanced_subtensor
from esat.ops.index.basic import Subtensor, subtensor
from esat.ops.index.entries import Slice
from esat.ops.inference.axes import normalize_axes, normalize_axis, ordered_axes
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks
from esat.ops.inference.vectors import as_sizes

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "concatenate",
    "dimshuffle",
    "dsplit",
    "dstack",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "join",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "vsplit",
    "vstack",
]  # fmt: skip


def ravel(a: Any) -> Variable:
    """All elements as a vector, in C order."""
    return flatten(a)


def matrix_transpose(x: Any) -> Variable:
    """The matrices in the last two axes, transposed."""
    return swapaxes(x, -1, -2)


def broadcast_to(array: Any, shape: Any) -> Variable:
    """A new array of ``shape``, along whose axes those of size 1 are repeated.

    Raises
    ------
    ShapeError
        When an axis has neither size 1 nor the size asked for.
    """
    return alloc(array, *as_sizes("broadcast_to", shape))


def broadcast_arrays(*args: Any) -> tuple[Variable, ...]:
    """The operands, repeated along axes of size 1 until all have one shape."""
    if not args:
        return ()
    variables = equalize_ranks([as_variable(operand) for operand in args])
    broadcast_types("broadcast_arrays", [variable.tensor_type for variable in variables])
    sizes = [_common_size(variables, axis) for axis in range(variables[0].tensor_type.ndim)]
    return tuple(alloc(variable, *sizes) for variable in variables)


def _common_size(variables: Sequence[Variable], axis: int) -> Variable:
    sizes = [
        size_of(variable, axis) for variable in variables if not variable.tensor_type.broadcastable[axis]
    ]
    known = [size for size in sizes if isinstance(size, Constant)]
    size, *_ = known or sizes or [as_size("broadcast_arrays", 1)]
    others = [other for other in sizes if not isinstance(other, Constant) and other is not size]
    equal = [op_named("eq")(size, other) for other in others]
    message = (
        f"broadcast_arrays: sizes of axis {axis} do not match; an axis of unknown size does not broadcast"
    )
    return assert_(size, *equal, message=message, error=ShapeError) if equal else size


def _atleast(operands: Sequence[Any], order: dict[int, tuple[int | str, ...]], rank: int) -> Any:
    variables = [as_variable(operand) for operand in operands]
    lifted = tuple(
        variable
        if variable.tensor_type.ndim >= rank
        else dimshuffle(variable, order[variable.tensor_type.ndim])
        for variable in variables
    )
    return lifted[0] if len(lifted) == 1 else lifted


def atleast_1d(*arys: Any) -> Any:
    """Scalars as vectors of one element; a list when several operands are given."""
    return _atleast(arys, {0: ("x",)}, 1)


def atleast_2d(*arys: Any) -> Any:
    """Vectors as matrices of one row; a list when several operands are given."""
    return _atleast(arys, {0: ("x", "x"), 1: ("x", 0)}, 2)


def atleast_3d(*arys: Any) -> Any:
    """Matrices with a last axis of size 1; a list when several operands are given."""
    return _atleast(arys, {0: ("x", "x", "x"), 1: ("x", 0, "x"), 2: (0, 1, "x")}, 3)


def concatenate(arrays: Sequence[Any], axis: Any = 0, *, dtype: Any = None) -> Variable:
    """The arrays one after the other along ``axis``; with None, all of their elements as a vector.

    They are cast to ``dtype`` if it is given.
    """
    variables = _listed("concatenate", arrays, dtype)
    if axis is None:
        return join([flatten(variable) for variable in variables], 0)
    return join(variables, axis)


def _listed(name: str, tensors: Any, dtype: Any = None) -> list[Variable]:
    """The arrays of a sequence, or those along the first axis of one array."""
    if isinstance(tensors, Variable) and tensors.tensor_type.shape[:1] in ((), (None,)):
        raise ShapeError(describe(name, [tensors.type], "takes a sequence of arrays, not a Variable"))
    try:
        variables = [as_variable(tensor) for tensor in tensors]
    except TypeError as error:
        if isinstance(error, EsatError):
            raise
        raise DtypeError(describe(name, [tensors], "takes a sequence of arrays")) from error
    if not variables:
        raise ShapeError(describe(name, [], "there are no arrays"))
    if dtype is None:
        return variables
    for variable in variables:
        if not np.can_cast(variable.tensor_type.numpy_dtype, normalize_dtype(dtype), "same_kind"):
            reason = f"{variable.tensor_type.dtype} cast to {normalize_dtype(dtype)} would lose its kind"
            raise DtypeError(describe(name, [v.type for v in variables], reason))
    return [cast(variable, dtype) for variable in variables]


def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None) -> Variable:
    """Arrays of one shape put one after the other along a new axis, cast to ``dtype`` if it is given.

    Raises
    ------
    ShapeError
        When ranks or known sizes differ.
    """
    variables = _listed("stack", arrays, dtype)
    ranks = {variable.tensor_type.ndim for variable in variables}
    if len(ranks) != 1:
        types = [variable.type for variable in variables]
        raise ShapeError(describe("stack", types, "arrays of one rank are needed"))
    index = normalize_axis("stack", axis, ranks.pop() + 1)
    known = list(
        dict.fromkeys(one.tensor_type.shape for one in variables if None not in one.tensor_type.shape)
    )
    if len(known) > 1:
        types = [variable.type for variable in variables]
        raise ShapeError(
            describe("stack", types, f"the arrays have different shapes: {known[0]}, {known[1]}")
        )
    if index == 0 and len(variables) >= _RUN:
        columns = _columns(variables)
        return join(_runs(variables), 0) if columns is None else stack(columns, 1)
    return join([expand_dims(variable, index) for variable in variables], index)


_RUN = 4
"""Rows of one array that are stacked in their order from which they are taken in one piece."""


def _runs(variables: Sequence[Variable]) -> list[Variable]:
    """What is stacked along the first axis, where rows that follow each other in an array are one part of it:
    what a loop kept of each step in a list is a part of its trace."""
    runs: list[list[tuple[Variable, int] | Variable]] = []
    for variable in variables:
        row = _row(variable)
        last = runs[-1][-1] if runs else None
        if row is not None and isinstance(last, tuple) and last[0] is row[0] and last[1] + 1 == row[1]:
            runs[-1].append(row)
        else:
            runs.append([variable if row is None else row])
    parts: list[Variable] = []
    remaining = iter(variables)
    for run in runs:
        own = [next(remaining) for _ in run]
        first, last = run[0], run[-1]
        if len(run) < _RUN or not isinstance(first, tuple) or not isinstance(last, tuple):
            parts += [expand_dims(variable, 0) for variable in own]
            continue
        source, begin, end = first[0], first[1], last[1] + 1
        whole = begin == 0 and source.tensor_type.shape[0] == end
        parts.append(source if whole else getitem(source, slice(begin, end)))
    return parts


def _columns(variables: Sequence[Variable]) -> list[Variable] | None:
    """Arrays to be stacked along the second axis, of some that are stacks themselves, where this takes rows
    in one piece: of what a loop kept of each step as a list of several values."""
    rows = list(map(_stacked, variables))
    if any(len(row) != len(rows[0]) for row in rows) or not rows[0]:
        return None
    if len({one.tensor_type.dtype for row in rows for one in row}) > 1:
        return None
    parts = [_runs(column) for column in zip(*rows, strict=True)]
    if all(len(one) == len(variables) for one in parts):
        return None
    return [join(one, 0) for one in parts]


def _stacked(variable: Variable) -> list[Variable]:
    """The variables that one is the stack of, along the first axis; none of others."""
    node = variable.owner
    if node is None or not isinstance(node.op, Join) or node.op.axis:
        return []
    found = list[Variable]()
    for one in node.inputs:
        above = one.owner
        if isinstance(one, Constant) and one.tensor_type.shape[0] == 1:
            found.append(constant(one.data[0]))
        elif above is not None and isinstance(above.op, DimShuffle) and _leads(above.op):
            found.append(above.inputs[0])
        else:
            return []
    return found


def _leads(op: DimShuffle) -> bool:
    """Whether all that an op does is a new first axis."""
    return op.order == ("x", *range(op.input_rank))


def _row(variable: Variable) -> tuple[Variable, int] | None:
    """The array and the place of which a variable is a row, where that is known to be there."""
    op = None if variable.owner is None else variable.owner.op
    if not isinstance(op, Subtensor) or type(op.entries[0]) is not int:
        return None
    (source,), place = variable.owner.inputs[:1], op.entries[0]  # type: ignore[union-attr]
    is_row = all(isinstance(one, Slice) and one.is_full for one in op.entries[1:])
    size = source.tensor_type.shape[0]
    return (source, place) if is_row and size is not None and 0 <= place < size else None


def hstack(tup: Sequence[Any], *, dtype: Any = None) -> Variable:
    """Arrays one after the other along the second axis, vectors along their only one; see
    :func:`concatenate`."""
    lifted = [atleast_1d(tensor) for tensor in _listed("hstack", tup, dtype)]
    return join(lifted, 0 if lifted[0].tensor_type.ndim == 1 else 1)


def vstack(tup: Sequence[Any], *, dtype: Any = None) -> Variable:
    """Arrays one after the other along the first axis, vectors as rows; cast to ``dtype`` if it is given."""
    return join([atleast_2d(tensor) for tensor in _listed("vstack", tup, dtype)], 0)


def dstack(tup: Sequence[Any]) -> Variable:
    """Arrays one after the other along the third axis."""
    return join([atleast_3d(tensor) for tensor in _listed("dstack", tup)], 2)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """Parts along the second axis, or the only one; see :func:`split`."""
    variable = as_variable(ary)
    return split(variable, indices_or_sections, 0 if variable.tensor_type.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """Parts along the first axis; see :func:`split`."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """Parts along the third axis; see :func:`split`."""
    return split(ary, indices_or_sections, 2)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Variable]:
    """Parts along ``axis`` as by :func:`split`, of sizes that may differ by one."""
    variable = as_variable(ary)
    index = normalize_axis("array_split", axis, variable.tensor_type.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return split(variable, indices_or_sections, index)
    parts = check_parts("array_split", indices_or_sections, variable)
    size = size_of(variable, index)
    add, mul, minimum = (op_named(name) for name in ("add", "mul", "minimum"))
    if isinstance(size, Constant):
        whole, rest = divmod(int(size.data), max(parts, 1))
        return split(variable, [part * whole + min(part, rest) for part in range(1, parts)], index)
    whole_part, extra = op_named("floor_div")(size, parts), op_named("mod")(size, parts)
    cuts = [add(mul(whole_part, part), minimum(extra, part)) for part in range(1, parts)]
    return split(variable, cuts, index)


concat = concatenate
permute_dims = transpose


def tile(A: Any, reps: Any) -> Variable:  # noqa: N803
    """The array repeated as a whole, so many times along each axis; ``numpy.tile``."""
    variable = as_variable(A)
    counts = list(as_sizes("tile", reps))
    missing = len(counts) - variable.tensor_type.ndim
    if missing > 0:
        variable = expand_dims(variable, tuple(range(missing)))
    for axis, count in zip(range(-len(counts), 0), counts, strict=True):
        index = normalize_axis("tile", axis, variable.tensor_type.ndim)
        variable = _repeated(variable, index, count, index)
    return variable


def _repeated(variable: Variable, axis: int, count: Variable, place: int) -> Variable:
    """``count`` copies along a new axis at ``place``, which is then merged with ``axis``."""
    if isinstance(count, Constant) and count.data == 1:
        return variable
    sizes = list(sizes_of(variable))
    spread = alloc(expand_dims(variable, place), *sizes[:place], count, *sizes[place:])
    return reshape(spread, [*sizes[:axis], op_named("mul")(count, sizes[axis]), *sizes[axis + 1 :]])


def repeat(a: Any, repeats: Any, axis: Any = None) -> Variable:
    """Each element, or each place along ``axis``, repeated; ``numpy.repeat``.

    Parameters
    ----------
    a
        A Variable or array; flattened when ``axis`` is None.
    repeats
        How often: an integer scalar, or a vector with one integer for each place.
    axis
        The axis along which to repeat.

    Raises
    ------
    ShapeError
        For counts of rank 2 or more, or as many as do not fit the axis.
    """
    variable, counts = as_variable(a), as_variable(repeats)
    if axis is None:
        variable, axis = flatten(variable), 0
    variable = atleast_1d(variable)
    index = normalize_axis("repeat", axis, variable.tensor_type.ndim)
    if counts.tensor_type.broadcastable == (True,):
        counts = dimshuffle(counts, ())
    if counts.tensor_type.ndim == 0:
        return _repeated(variable, index, as_size("repeat", counts), index + 1)
    if counts.tensor_type.ndim > 1:
        raise ShapeError(describe("repeat", [variable.type, counts.type], "counts are a number or a vector"))
    size, number = variable.tensor_type.shape[index], counts.tensor_type.shape[0]
    if None not in (size, number) and size != number:
        types = [variable.type, counts.type]
        raise ShapeError(describe("repeat", types, f"{number} counts for {size} places"))
    if size is not None:
        counts = specify_shape(counts, (size,))
    elif number is not None:
        before, after = (None,) * index, (None,) * (variable.tensor_type.ndim - index - 1)
        variable = specify_shape(variable, (*before, number, *after))
    else:
        fits = op_named("eq")(size_of(variable, index), size_of(counts, 0))
        message = "repeat: there are not as many counts as places"
        counts = assert_(counts, fits, message=message, error=ShapeError)
    places = RepeatedPlaces()(counts)
    return advanced_subtensor(variable, (*[slice(None)] * index, places))


def roll(a: Any, shift: Any, axis: Any = None) -> Variable:
    """Elements moved by ``shift`` places along ``axis`` (or in the flattened array); the last come first.

    Parameters
    ----------
    a
        A Variable or array.
    shift
        An integer or integer scalar; a sequence of them for several axes.
    axis
        An axis, a sequence of axes, or None.
    """
    variable = as_variable(a)
    if axis is None:
        return reshape(roll(flatten(atleast_1d(variable)), shift, 0), sizes_of(variable))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if 1 in (len(shifts), len(axes)):
        shifts, axes = shifts * len(axes), axes * len(shifts)
    if len(shifts) != len(axes):
        raise AxisError(describe("roll", [variable.type], f"{len(shifts)} shifts for {len(axes)} axes"))
    for distance, place in zip(shifts, axes, strict=True):
        variable = _rolled(variable, distance, normalize_axis("roll", place, variable.tensor_type.ndim))
    return variable


def _rolled(variable: Variable, distance: Any, axis: int) -> Variable:
    size = size_of(variable, axis)
    if isinstance(size, Constant) and isinstance(distance, (int, np.integer)):
        known = int(size.data)
        cut: Any = known - int(distance) % known if known else 0
    else:
        cut = op_named("sub")(size, op_named("mod")(as_size("roll", distance), size))
    before = (slice(None),) * axis
    return join(
        [subtensor(variable, (*before, slice(cut, None))), subtensor(variable, (*before, slice(0, cut)))],
        axis,
    )


def flip(m: Any, axis: Any = None) -> Variable:
    """A view with the order of elements reversed along ``axis`` (an int, a tuple, or None for all)."""
    variable = as_variable(m)
    axes = normalize_axes("flip", axis, variable.tensor_type.ndim)
    backwards = slice(None, None, -1)
    return subtensor(
        variable,
        tuple(backwards if index in axes else slice(None) for index in range(variable.tensor_type.ndim)),
    )


def fliplr(m: Any) -> Variable:
    """A view with the second axis reversed."""
    return flip(m, 1)


def flipud(m: Any) -> Variable:
    """A view with the first axis reversed."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Variable:
    """The array turned by ``k`` right angles, from the first of ``axes`` towards the second."""
    variable = as_variable(m)
    if len(axes) != 2:
        raise ShapeError(describe("rot90", [variable.type, f"axes={axes}"], "takes two axes"))
    ordered_axes("rot90", axes, variable.tensor_type.ndim)
    turns = k % 4
    if turns == 0:
        return variable
    if turns == 2:
        return flip(m, axes)
    if turns == 1:
        return swapaxes(flip(m, axes[1]), *axes)
    return flip(swapaxes(m, *axes), axes[1])
