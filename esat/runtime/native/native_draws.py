"""Draws from streams of random numbers as steps of native functions: NumPy's functions, and so its numbers.

A stream's state is the value of a shared variable, which draws advance in place. A native function takes the
address of its bit generator for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from esat.codegen.ground.draws import DrawLine, IntegersLine
from esat.codegen.native_functions.native_plan import Place, RoutineStep, Step
from esat.graph import Apply, Constant
from esat.ops.random.distributions import Integers, NumberVariable
from esat.ops.random.variable import RandomVariable
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError
from esat.runtime.native.native_views import NativeView, Shape


def drawn(memory: NativeMemory, node: Apply) -> list[Step]:
    """A sample, in C order as NumPy draws it."""
    op = node.op
    assert isinstance(op, NumberVariable)
    function = DrawLine(op.name)
    _, parameters, _ = op.split(node.inputs)
    generator, sample = _generator_and_sample(memory, node)
    if not function.is_available:
        raise NoNativeFormError
    if not sample.size:
        return []
    if not all(isinstance(one, Constant) for one in parameters):
        memory.refuses()
    elif not function.surely_takes([one.data for one in parameters]):
        raise NoNativeFormError
    steps, places, widths = list[Step](), [generator, sample.place], list[int]()
    for parameter in parameters:
        view, copies = _stretched(memory, memory.view(parameter), sample.shape)
        steps += copies
        places.append(view.place)
        widths.append(0 if view.size == 1 else view.itemsize)
    if len(parameters) == 1:
        places.append(places[-1])
        widths.append(0)
    integers = (sample.size, *widths)
    return [*steps, RoutineStep(function.address(), tuple(places), integers=integers, returns_status=True)]


def drawn_integers(memory: NativeMemory, node: Apply) -> list[Step]:
    """Integers of 64 bits between bounds that are known."""
    op = node.op
    assert isinstance(op, Integers)
    function = IntegersLine()
    bounds = [one.data for one in op.split(node.inputs)[1] if isinstance(one, Constant)]
    generator, sample = _generator_and_sample(memory, node)
    if not function.is_available or op.dtype != "int64" or [one.size for one in bounds] != [1, 1]:
        raise NoNativeFormError
    low, high = (one.item() for one in bounds)
    if low >= high:
        raise NoNativeFormError
    integers = (sample.size, low, high - 1 - low)
    step = RoutineStep(function.address(), (generator, sample.place), integers=integers)
    return [step] if sample.size else []


def _generator_and_sample(memory: NativeMemory, node: Apply) -> tuple[Place, NativeView]:
    """Where the address of the bit generator stands, and where the sample goes."""
    assert isinstance(node.op, RandomVariable)
    if not node.op.in_place:
        raise NoNativeFormError
    return memory.view(node.inputs[0]).place, memory.target(node.outputs[1])


def _stretched(memory: NativeMemory, view: NativeView, shape: Shape) -> tuple[NativeView, list[Step]]:
    """A parameter that is one number, or one a draw in C order; and the steps that copy it if need be."""
    missing = len(shape) - len(view.shape)
    if view.size == 1:
        return view, []
    whole = replace(view, shape=(1,) * missing + view.shape, strides=(0,) * missing + view.strides)
    whole = whole.stretched(shape)
    if whole.is_contiguous:
        return whole, []
    dtype = np.dtype("float64")
    copy = memory.scratch(shape, dtype)
    return copy, memory.move(copy, whole, dtype)
