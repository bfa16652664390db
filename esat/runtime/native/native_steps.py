"""The steps of a program as a native function runs them: for known shapes all is an address, or a place."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from esat.codegen.native_functions.native_call import NativeRecipe
from esat.codegen.native_functions.native_plan import ArraySpecification, GuardedSteps, KernelStep, Step
from esat.codegen.threads import pool_address
from esat.graph import Apply, Constant, TensorType, Variable
from esat.phases.fusing.group import Group
from esat.runtime.buffers import ScratchFrames
from esat.runtime.entry.signatures import SignatureTable
from esat.runtime.native.native_forms import form_for, form_of
from esat.runtime.native.native_memory import Inside, NativeMemory, NoNativeFormError, returned
from esat.runtime.native.native_performed import performed
from esat.runtime.native.native_views import NativeView, Shape
from esat.runtime.printed.kernel_calls import FittedVariants, LaterVariants, likeness
from esat.runtime.program import Program
from esat.runtime.threads import CallsOfShapes

LARGEST_OWN = 1 << 26
"""Bytes of memory that a native function may have besides the scratch arrays of the program."""


def may_be_step(program: Program, group: Group) -> bool:
    """Whether a step can be part of a native function, for some shapes at least."""
    return group.kind == "kernel" or form_of(program, group.nodes[0]) is not None


class NativeSteps:
    """The steps of a program for one combination of shapes.

    Parameters
    ----------
    shapes, values
        The shapes of all variables, and the values of those that shapes decide.
    frame
        Scratch arrays, which are the function's from now on.
    kept
        For each result the bases in which it may be made, see :func:`native_call`; None where it is new.
    unlocked
        Whether other Python threads run while steps do.
    large
        First result of a kernel -> its calls, where several threads could share its work.
    threads
        How many share the work of large kernels.
    inside
        Of a program that is a step of a loop: where it runs.
    """

    def __init__(
        self,
        program: Program,
        shapes: Mapping[Variable, Shape],
        values: Mapping[Variable, Any],
        frame: Sequence[np.ndarray[Any, Any]],
        kept: Sequence[np.ndarray[Any, Any] | None],
        unlocked: bool = False,
        large: Mapping[Variable, CallsOfShapes] | None = None,
        threads: int = 1,
        inside: Inside | None = None,
    ) -> None:
        self.program = program
        self.large, self.threads = large or {}, threads
        self.bases = tuple(kept)
        self.memory = NativeMemory(program, shapes, values, frame, unlocked, inside)
        self.memory.steps_inside = self._steps_inside

    def recipe(self) -> NativeRecipe | None:
        """What the native function does; None where a step needs more than its kernel or routine.

        It takes the inputs, and the values of shared variables.
        """
        memory = self.memory
        try:
            parts = [self._steps(group) for group in self.program.steps]
            steps = [*itertools.chain(*parts), *self._returns()]
        except NoNativeFormError:
            return None
        if memory.own_bytes > LARGEST_OWN:
            return None
        inputs = [memory.specification(variable) for variable in memory.leaves]
        outputs = [
            replace(memory.specification(variable), bases=bases)
            for variable, bases in zip(returned(self.program), self.bases, strict=True)
        ]
        return NativeRecipe(
            tuple(inputs),
            tuple(outputs),
            tuple(steps),
            tuple(memory.kept),
            tuple(memory.libraries),
            memory.unlocked,
            tuple(memory.changing),
            tuple(map(len, parts)),
        )

    def _steps_inside(
        self, program: Program, table: SignatureTable, key: tuple[Shape, ...], inside: Inside
    ) -> list[Step]:
        """What a step of a loop does: a program for the shapes of a key, in one thread."""
        known = table.records[key]
        facts = dict(zip(program.record_facts, known, strict=False))
        shapes = table.shapes(key)
        has_error = any(value for (kind, _), value in facts.items() if kind == "error")
        if has_error or program.shared or not are_known(program, shapes):
            raise NoNativeFormError
        values = {variable: value for (kind, variable), value in facts.items() if kind == "value"}
        inner = NativeSteps(
            program, shapes, values, taken(known[-1]), (), self.memory.unlocked, inside=inside
        )
        steps = itertools.chain(*(inner._steps(group) for group in program.steps))
        found = [*steps, *inner._returns()]
        self.memory.take(inner.memory)
        return found

    def _steps(self, group: Group) -> list[Step]:
        steps = self._kernel(group) if group.kind == "kernel" else self._library(group.nodes[0])
        if self.program.overwrites_lasting(group):
            self.memory.changes_lasting()
        if not group.guard or not steps:
            return steps
        alternatives = tuple(
            tuple((self.memory.view(one.scalar).place, one.value) for one in path) for path in group.guard
        )
        return [GuardedSteps(alternatives, tuple(steps))]

    def _library(self, node: Apply) -> list[Step]:
        form = form_for(self.memory, node)
        if form is None:
            raise NoNativeFormError
        try:
            return form(self.memory, node)
        except NoNativeFormError:
            return performed(self.memory, node)

    def _returns(self) -> list[Step]:
        """Copies of what is returned and stands elsewhere. New values must stand where the old ones did."""
        memory, steps = self.memory, list[Step]()
        for number, output in enumerate(returned(self.program)):
            view = memory.view(output)
            place = memory.outputs[number]
            if view.place != place or not view.is_contiguous:
                target = memory.specification(output)
                whole = NativeView(place, target.shape, (), target.dtype.itemsize).reshaped(target.shape)
                whole = replace(whole, alone=place.kind == "chosen" and view.place != place)
                steps += memory.move(whole, view, target.dtype)
        values = self.program.graph.outputs[len(returned(self.program)) :]
        for variable, value in zip(self.program.updated, values, strict=True):
            if memory.view(value).place != memory.view(variable).place:
                raise NoNativeFormError
        return steps

    def _kernel(self, group: Group) -> list[Step]:
        memory, call = self.memory, self.program.kernels[group]
        steps, code = list[Step](), None
        if call.code is None:
            raise NoNativeFormError
        if call.instead is not None:
            memory.refuses()
        views = [memory.view(variable) for variable in call.inputs]
        outputs = [memory.view(output) for output in group.outputs]
        if not all(view.is_contiguous for view in outputs):
            raise NoNativeFormError
        large = self.large.get(group.outputs[0])
        in_threads = large is not None and (self.threads > 1 or large.is_alone_shared)
        shared = large.shared if large is not None and in_threads else None
        if not all(view.is_contiguous for view in views):
            if large is not None and shared is not None:
                kinds = [variable.tensor_type.numpy_dtype for variable in call.inputs]
                like = [
                    likeness(view.shape, kind, _strides(view))
                    for view, kind in zip(views, kinds, strict=True)
                ]
                shared = large.strided(like)
            if shared is None:
                if not isinstance(call.strided, LaterVariants):
                    raise NoNativeFormError
                every = (*outputs, *views)
                variant = call.strided.variant([one.shape for one in every], list(map(_strides, every)))
                if variant is None:
                    ordered = [memory.in_order(variable) for variable in call.inputs]
                    views = [view for view, _ in ordered]
                    steps = [step for _, copies in ordered for step in copies]
                else:
                    code = variant
        elif shared is None and isinstance(call.fitted, FittedVariants):
            code = call.fitted.code([view.shape for view in (*outputs, *views)])
        arrays = [
            (view.place, replace(memory.specification(variable), strides=_strides(view)))
            for variable, view in zip((*group.outputs, *call.inputs), (*outputs, *views), strict=True)
        ]
        if shared is None:
            code = code or call.code()
            memory.kept.append(code)
            return [*steps, KernelStep(code.address, tuple(arrays))]
        for size, dtype in shared.partial_results([array.shape for _, array in arrays]):
            partial = ArraySpecification(dtype, (size,))
            arrays.append((memory.written(np.empty(size, dtype)), partial))
        memory.kept.append(shared.code)
        numbers = (pool_address(self.threads), self.threads)
        return [KernelStep(shared.code.address, tuple(arrays), numbers)]


def _strides(view: NativeView) -> tuple[int, ...] | None:
    """Bytes, of a view that is not contiguous."""
    return None if view.is_contiguous else view.byte_strides


def are_known(program: Program, shapes: Mapping[Variable, Shape]) -> bool:
    """Whether the shapes of the arguments decide all others, which they do not for ``x[:n]``."""
    return all(
        isinstance(variable, Constant) or not isinstance(variable.type, TensorType) or variable in shapes
        for group in program.steps
        for variable in (*group.reads, *group.outputs)
    )


def taken(frames: ScratchFrames) -> tuple[np.ndarray[Any, Any], ...]:
    """A frame that is no longer the driver's."""
    try:
        return frames.idle.pop()
    except IndexError:
        return frames.make()
