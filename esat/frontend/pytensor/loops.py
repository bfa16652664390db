"""The rule of Scan: loops of a number of steps whose states are arrays, as loops of esat's.

PyTensor runs those that end by a condition, whose states are random generators, or that write at several
places of their states, as its gradients of loops do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule
from esat.frontend.pytensor.types import type_of
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import as_size, known_size, size_of
from esat.ops.cast import cast
from esat.ops.loops.parts import LoopParts


def _scan(step: PyTensorStep) -> list[Variable]:
    op, info = step.op, step.op.info
    for refused, what in (
        (info.as_while, "a loop that ends by a condition"),
        (info.n_mit_mot, "a loop that writes at several places of its states"),
        (info.n_untraced_sit_sot, "a loop whose state is no array"),
    ):
        if refused:
            raise NoRuleError(what)
    inner, outer = op.fgraph, step.operands
    steps = cast(outer[0], "int64")
    lags = [tuple(taps) for taps in (*info.mit_sot_in_slices, *info.sit_sot_in_slices)]
    if any(tap >= 0 for taps in lags for tap in taps):
        raise NoRuleError("a loop whose states are read before they are computed")
    buffers = [*op.outer_mitsot(outer), *op.outer_sitsot(outer)]
    sequences = {
        _stand_in(own): one
        for own, one in zip(op.inner_seqs(inner.inputs), op.outer_seqs(outer), strict=True)
    }
    constants = op.outer_non_seqs(outer)
    if not all(isinstance(one.type, TensorType) for one in (*sequences.values(), *constants)):
        raise NoRuleError("a loop over what is no array")
    groups = [*op.inner_mitsot_grouped(inner.inputs), *([own] for own in op.inner_sitsot(inner.inputs))]
    states = [_state(group, taps, buffer) for group, taps, buffer in zip(groups, lags, buffers, strict=True)]
    read = [
        state[tap - min(taps)] for state, taps in zip(map(list, states), lags, strict=True) for tap in taps
    ]
    results = step.inline(inner, [*sequences, *read, *constants])
    parts = LoopParts(
        steps,
        {own: first for state in states for own, first in state.items()},
        [after for state, new in zip(states, results, strict=False) for after in (*list(state)[1:], new)],
        results,
        {own: one[:steps] for own, one in sequences.items()},
    )
    parts.close()
    traces = parts.node().outputs[parts.count_of_results() :]
    lengths = [as_size("scan", one) for one in op.outer_nitsot(outer)]
    return [
        *(
            _kept([buffer[: len(state)]], trace, size_of(buffer, 0))
            for buffer, state, trace in zip(buffers, states, traces, strict=False)
        ),
        *(_kept([], trace, length) for trace, length in zip(traces[len(states) :], lengths, strict=True)),
    ]


def _stand_in(variable: Any) -> Variable:
    """A variable of the loop's body for one of PyTensor's."""
    return type_of(variable).make_variable(variable.name)


def _state(group: Sequence[Any], taps: Sequence[int], buffer: Variable) -> dict[Variable, Variable]:
    """The latest values of a state, the oldest first, as variables of the body, with their first values."""
    return {_stand_in(group[0]): buffer[place] for place in range(-min(taps))}


def _kept(first: Sequence[Variable], trace: Variable, length: Variable) -> Variable:
    """What PyTensor keeps of a state: its first values and those of all steps. The last of them stay where
    fewer are wanted, and zeros follow where more are.

    Parameters
    ----------
    first
        Nothing, or an array of the first values.
    trace
        The values of all steps.
    length
        How many are wanted.
    """
    whole = join([*first, trace], 0) if first else trace
    count, wanted = known_size(size_of(whole, 0)), known_size(length)
    if count is not None and count == wanted:
        return whole
    if count is None or wanted is None or count < wanted:
        missing = op_named("maximum")(op_named("sub")(length, size_of(whole, 0)), 0)
        sizes = (size_of(trace, axis) for axis in range(1, trace.tensor_type.ndim))
        whole = join([whole, alloc(constant(0, trace.tensor_type.dtype), missing, *sizes)], 0)
    return whole[size_of(whole, 0) - length :]


RULES: dict[str, Rule] = {"Scan": _scan}
