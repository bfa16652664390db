"""Factorizations, systems and inverses of small matrices as steps of native functions: code of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from esat.codegen.ground.movement import collapsed
from esat.codegen.matmul.small_systems import LARGEST_ORDER, system_code
from esat.codegen.native_functions.native_plan import Place, RepeatedSteps, RoutineStep, Step
from esat.graph import Apply
from esat.ops.linalg.inverse import Determinant, SignLogDeterminant
from esat.runtime.native.native_lapack import element
from esat.runtime.native.native_memory import NativeMemory
from esat.runtime.native.native_views import NativeView


def small_system(memory: NativeMemory, node: Apply) -> list[Step] | None:
    """The steps of an op on small matrices; None for larger ones."""
    dtype = node.inputs[0].tensor_type.dtype
    if any(one.tensor_type.dtype != dtype for one in (*node.inputs, *node.outputs)):
        return None
    if memory.shape(node.inputs[0])[-1] > LARGEST_ORDER:  # before there is memory for results
        return None
    rank = 0 if isinstance(node.op, Determinant | SignLogDeterminant) else 2
    whole = memory.shape(node.outputs[0])
    batch = whole[: len(whole) - rank]
    operands, results = list(map(memory.view, node.inputs)), list(map(memory.target, node.outputs))
    every = [
        *(_stretched(view, 2, batch) for view in operands),
        *(_stretched(view, rank, batch) for view in results),
    ]
    sizes, *axes = collapsed(batch, *(view.byte_strides[: len(batch)] for view in every))
    elements = [*(element(view, 2) for view in operands), *(element(view, rank) for view in results)]
    system = system_code(
        node.op,
        dtype,
        [view.shape for view in elements],
        [view.strides for view in elements],
        sizes[-1] if sizes else 1,
    )
    if system is None:
        return None
    memory.refuses()
    cursors, places = [], []
    for view, steps in zip(every, axes, strict=True):
        places.append(view.place)
        if any(steps[:-1]):
            cursors.append((memory.choice(), view.place, steps[:-1]))
            places[-1] = Place("chosen", cursors[-1][0])
    integers = (sizes[-1], *(steps[-1] for steps in axes)) if sizes else (1, *(0 for _ in axes))
    step = RoutineStep(system.address(), tuple(places), integers=integers, returns_status=True)
    return [RepeatedSteps(sizes[:-1], tuple(cursors), (step,))] if len(sizes) > 1 else [step]


def _stretched(view: NativeView, rank: int, batch: Sequence[int]) -> NativeView:
    """A view broadcast to a batch."""
    missing = len(batch) + rank - len(view.shape)
    padded = replace(view, shape=(1,) * missing + view.shape, strides=(0,) * missing + view.strides)
    return padded.stretched((*batch, *padded.shape[len(batch) :]))
