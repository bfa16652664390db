"""What steps that are no kernels become in a native function: views, copies, and functions of libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from esat.codegen.ground.blas_library import LETTERS
from esat.codegen.native_functions.native_plan import CheckStep, ChoiceStep, Place, PlaceStep, Step
from esat.graph import Apply, Constant, Variable
from esat.ops.arrays.diagonal import Diagonal, DiagonalOf
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join, Split
from esat.ops.contraction import MatMul
from esat.ops.control import IfElse, SpecifyShape
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Entry, Slice, constant_numbers, with_numbers
from esat.phases.native import NATIVE_FORMS, has_tensors, is_constant
from esat.runtime.native.native_draws import drawn, drawn_integers
from esat.runtime.native.native_factors import (
    eigenvectors,
    orthogonal_factors,
    singular_values,
    triangular_factors,
)
from esat.runtime.native.native_linalg import (
    cholesky,
    cholesky_pulled_back,
    determinant,
    factor_solved,
    inverse,
    packed_factors,
    packed_solved,
    semidefinite_solved,
    solved,
    triangular_inverse,
    triangular_solved,
    whitened,
)
from esat.runtime.native.native_lines import running_lines, searched, sorted_lines
from esat.runtime.native.native_loops import loop
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError
from esat.runtime.native.native_performed import performed
from esat.runtime.native.native_products import product, row_blocks, rows_product
from esat.runtime.native.native_structured import structured_product
from esat.runtime.native.native_systems import small_system
from esat.runtime.native.native_views import NativeView, contiguous
from esat.runtime.program import Program

Form: TypeAlias = Callable[[NativeMemory, Apply], list[Step]]
"""Tells the memory where a node's results are, and gives the steps that make them."""


def form_of(program: Program, node: Apply) -> Form | None:
    """How a node that is no kernel runs in a native function; None for what has values that are no arrays."""
    if not has_tensors(node):
        return None
    if is_constant(node):
        return _known
    name = NATIVE_FORMS.get(type(node.op))
    form = None if name is None else _FORMS[name]
    if form in (product, structured_product, rows_product, row_blocks):
        type_ = node.inputs[0].tensor_type
        known = LETTERS if isinstance(node.op, MatMul) else ("float32", "float64")
        if type_.dtype not in known or node not in program.routines:
            return performed
        return performed if program.needs_check(node) else form
    return form or performed


def form_for(memory: NativeMemory, node: Apply) -> Form | None:
    """:func:`form_of` for known shapes, which decide the results of some ops, as ``eye(x.shape[0])``."""
    known = all(isinstance(one, Constant) or one in memory.values for one in node.inputs)
    is_decided = known and bool(node.inputs) and not node.op.destroy_map
    is_rare = type(node.op) not in NATIVE_FORMS and has_tensors(node)
    return _known if is_decided and is_rare else form_of(memory.program, node)


def _known(memory: NativeMemory, node: Apply) -> list[Step]:
    """Results that are known: a copy for each call, where a step writes over them."""
    given = [one.data if isinstance(one, Constant) else memory.values[one] for one in node.inputs]
    shapes = map(memory.shape, node.inputs)
    values = node.op.perform([np.reshape(one, shape) for one, shape in zip(given, shapes, strict=True)])
    steps = list[Step]()
    for output, value in zip(node.outputs, values, strict=True):
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        view = NativeView(memory.fixed(array), array.shape, contiguous(array.shape), array.itemsize)
        if output in memory.program.written_over:
            steps += memory.move(memory.target(output), view, array.dtype)
        else:
            memory.define(output, view)
    return steps


# ---- views


def _same(memory: NativeMemory, node: Apply) -> list[Step]:
    memory.define(node.outputs[0], memory.view(node.inputs[0]))
    return []


def _shuffled(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, DimShuffle)
    memory.define(node.outputs[0], memory.view(node.inputs[0]).shuffled(node.op))
    return []


def _part(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, Subtensor)
    view, steps = _chosen_part(memory, memory.view(node.inputs[0]), node.op.entries, node.inputs[1:])
    memory.define(node.outputs[0], view)
    return steps


def _chosen_part(
    memory: NativeMemory, whole: NativeView, entries: tuple[Entry, ...], operands: Sequence[Variable]
) -> tuple[NativeView, list[Step]]:
    """The part that an index chooses, and the steps that find integers which only a call knows."""
    known = _entries(memory, entries, operands)
    remaining = iter(operands)
    indices: list[tuple[int, Variable]] = []
    for axis, (entry, now) in enumerate(zip(entries, known, strict=True)):
        parts = entry.parts() if isinstance(entry, Slice) else (entry,)
        taken = [next(remaining) for part in parts if part is OPERAND]
        if now is OPERAND:
            indices += [(axis, one) for one in taken]
    part = whole.part([0 if entry is OPERAND else entry for entry in known])
    if part is None:
        raise NoNativeFormError
    if not indices:
        return part, []
    memory.refuses()
    number = memory.choice()
    found = [
        (memory.view(one).place, one.tensor_type.numpy_dtype, whole.shape[axis], whole.byte_strides[axis])
        for axis, one in indices
    ]
    step = PlaceStep(number, part.place, tuple(found))
    return replace(part, place=Place("chosen", number), within=whole.within or whole), [step]


def _entries(
    memory: NativeMemory, entries: tuple[Entry, ...], operands: Sequence[Variable]
) -> tuple[Entry, ...]:
    """The entries of an index with the numbers that the shapes decide."""
    values = [memory.values.get(one) for one in operands]
    constants = constant_numbers(operands)
    known = (
        one if value is None else int(value.item()) for value, one in zip(values, constants, strict=True)
    )
    return with_numbers(entries, known)


def _diagonal(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, Diagonal)
    memory.define(node.outputs[0], memory.view(node.inputs[0]).diagonal(node.op.offset))
    return []


def _reshaped(memory: NativeMemory, node: Apply) -> list[Step]:
    view, steps = memory.in_order(node.inputs[0])
    shape = memory.shape(node.outputs[0])
    if view.size != int(np.prod(shape, dtype=np.int64)):
        raise NoNativeFormError
    memory.define(node.outputs[0], view.reshaped(shape))
    return steps


def _split(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, Split)
    view = memory.view(node.inputs[0])
    for place, output in enumerate(node.outputs):
        size = memory.shape(output)[node.op.axis]
        memory.define(output, view.section(node.op.axis, place * size, size))
    return []


def _specified(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, SpecifyShape)
    sizes = zip(memory.shape(node.inputs[0]), node.op.shape, strict=True)
    if any(wanted not in (None, size) for size, wanted in sizes):
        raise NoNativeFormError
    return _same(memory, node)


def _asserted(memory: NativeMemory, node: Apply) -> list[Step]:
    memory.refuses()
    steps: list[Step] = []
    for condition in node.inputs[1:]:
        view, copies = memory.in_order(condition)
        steps += copies
        if view.size:
            steps.append(CheckStep(view.place, view.size))
    _same(memory, node)
    return steps


def _chosen(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, IfElse)
    condition = memory.view(node.inputs[0]).place
    steps: list[Step] = []
    for output, then, otherwise in zip(node.outputs, *node.op.branches(node.inputs), strict=True):
        views = memory.view(then), memory.view(otherwise)
        if views[0].shape != views[1].shape or not all(view.is_contiguous for view in views):
            raise NoNativeFormError
        number = memory.choice()
        steps.append(ChoiceStep(number, condition, views[0].place, views[1].place))
        view = views[0].reshaped(views[0].shape)
        memory.define(output, type(view)(Place("chosen", number), view.shape, view.strides, view.itemsize))
    return steps


# ---- copies


def _joined(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, Join)
    target, dtype = memory.target(node.outputs[0]), node.outputs[0].tensor_type.numpy_dtype
    steps: list[Step] = []
    start = 0
    for operand in node.inputs:
        view = memory.view(operand)
        size = view.shape[node.op.axis]
        steps += memory.move(target.section(node.op.axis, start, size), view, dtype)
        start += size
    return steps


def _vector(memory: NativeMemory, node: Apply) -> list[Step]:
    target, dtype = memory.target(node.outputs[0]), node.outputs[0].tensor_type.numpy_dtype
    steps: list[Step] = []
    for place, operand in enumerate(node.inputs):
        steps += memory.move(target.section(0, place, 1), memory.view(operand).reshaped((1,)), dtype)
    return steps


def _filled(memory: NativeMemory, node: Apply) -> list[Step]:
    """Broadcast to the shape that further operands, which shapes decide, say."""
    target, dtype = memory.target(node.outputs[0]), node.outputs[0].tensor_type.numpy_dtype
    view = memory.view(node.inputs[0])
    missing = len(target.shape) - len(view.shape)
    if missing < 0 or any(a not in (1, b) for a, b in zip(view.shape, target.shape[missing:], strict=True)):
        raise NoNativeFormError
    padded = type(view)(view.place, (1,) * missing + view.shape, (0,) * missing + view.strides, view.itemsize)
    return memory.move(target, padded.stretched(target.shape), dtype)


def _on_diagonal(memory: NativeMemory, node: Apply) -> list[Step]:
    assert isinstance(node.op, DiagonalOf)
    target, dtype = memory.target(node.outputs[0]), node.outputs[0].tensor_type.numpy_dtype
    moved = memory.move(target.diagonal(node.op.offset), memory.view(node.inputs[0]), dtype)
    return [*_zeros(memory, node, target), *moved]


def _blocks(memory: NativeMemory, node: Apply) -> list[Step]:
    """Blocks along the diagonal; vectors are rows."""
    target, dtype = memory.target(node.outputs[0]), node.outputs[0].tensor_type.numpy_dtype
    steps = _zeros(memory, node, target)
    row = column = 0
    for operand in node.inputs:
        view = memory.view(operand)
        rows, columns = view.shape
        block = target.section(0, row, rows).section(1, column, columns)
        steps += memory.move(block, view, dtype)
        row, column = row + rows, column + columns
    return steps


def _zeros(memory: NativeMemory, node: Apply, target: NativeView) -> list[Step]:
    dtype = node.outputs[0].tensor_type.numpy_dtype
    zero = NativeView(memory.fixed(np.zeros(1, dtype)), (1,) * len(target.shape), (), dtype.itemsize)
    zero = zero.reshaped(zero.shape)
    return memory.move(target, zero.stretched(target.shape), dtype)


def _written(memory: NativeMemory, node: Apply) -> list[Step]:
    op, (array, value, *numbers) = node.op, node.inputs
    assert isinstance(op, SetSubtensor)
    dtype = array.tensor_type.numpy_dtype
    if op.inplace:
        target, steps = memory.overwritable(array)
        memory.define(node.outputs[0], target)
    else:
        target = memory.target(node.outputs[0])
        steps = memory.move(target, memory.view(array), dtype)
    source = memory.view(value)
    part, finding = _chosen_part(memory, target, op.entries, numbers)
    steps += finding
    if len(part.shape) != len(source.shape):
        raise NoNativeFormError
    if any(given not in (1, wanted) for given, wanted in zip(source.shape, part.shape, strict=True)):
        raise NoNativeFormError
    flags = value.tensor_type.broadcastable
    if any(g != w and not flag for g, w, flag in zip(source.shape, part.shape, flags, strict=True)):
        raise NoNativeFormError
    return [*steps, *memory.move(part, source.stretched(part.shape), dtype, isinstance(op, IncSubtensor))]


def _system(by_library: Form, memory: NativeMemory, node: Apply) -> list[Step]:
    """Code of its own for small matrices, a library's for others."""
    steps = small_system(memory, node)
    return by_library(memory, node) if steps is None else steps


_SYSTEMS = (
    *(cholesky, solved, semidefinite_solved, triangular_solved, factor_solved, packed_solved),
    *(inverse, determinant),
)
_FORMS: Mapping[str, Form] = MappingProxyType(
    {form.__name__: partial(_system, form) for form in _SYSTEMS}
    | {
        form.__name__.removeprefix("_"): form
        for form in (
            *(_shuffled, _part, _diagonal, _reshaped, _split, _specified, _same, _asserted, _chosen),
            *(_joined, _vector, _filled, _on_diagonal, _blocks, _written),
            *(product, structured_product, rows_product, row_blocks, whitened, cholesky_pulled_back),
            *(packed_factors, triangular_inverse, eigenvectors, singular_values),
            *(orthogonal_factors, triangular_factors, sorted_lines, running_lines, searched),
            *(drawn, drawn_integers, loop),
        )
    }
)
"""By their names in :data:`esat.phases.native.NATIVE_FORMS`."""
