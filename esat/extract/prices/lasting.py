"""What depends on constants alone: programs compute it once and keep it, so that a call pays a share of it.

So ``A @ (B @ x)`` with constant matrices becomes ``(A @ B) @ x`` where that takes less for each call. Values
of shared variables are kept, too, but may change at any time: they are priced in full.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from esat.base.records import record
from esat.extract.arrays import BoolArray, EGraphArrays, FloatArray
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.value import Value

SMALLEST_SAVING = 2.0e-5
"""Predicted seconds from which on a result is kept."""
READS = 2.0
"""Time of computing over that of reading the result, at least: fused, it might not be written at all."""
LARGEST_BYTES = 1 << 28
"""Bytes of all kept results of one function, at most."""
CALLS = 200
"""Calls that share the time of computing a result once. A function that is called less often than that may
take longer than with results that are cheap to compute."""

_CONSTANTS = ("K", "Array")


@record(frozen=True)
class Repeated:
    """Of the body of a loop: what is the same in all steps, and is computed once.

    Attributes
    ----------
    fixed
        Those inputs, by position.
    steps
        How many steps there are.
    """

    fixed: frozenset[int]
    steps: int


def shares_of_a_step(arrays: EGraphArrays, repeated: Repeated) -> FloatArray:
    """The share of each e-node's time that a step pays, float64 ``(nodes,)``: less than one of what depends
    on nothing that changes."""
    return np.where(_of_constants(arrays, repeated.fixed), 1.0 / max(repeated.steps, 1), 1.0)


def is_worth_keeping(seconds: float, size: float, machine: MachineProfile) -> bool:
    """Whether keeping a result of so many bytes, computed in so many seconds, saves enough."""
    return seconds >= max(SMALLEST_SAVING, READS * size / machine.bandwidth(size))


def shares_of_a_call(
    arrays: EGraphArrays, values: Sequence[Value | None], costs: FloatArray, machine: MachineProfile
) -> FloatArray:
    """The share of each e-node's time that a call pays: one, or less for what is kept.

    Parameters
    ----------
    values
        Shape and dtype of each class.
    costs
        float64 ``(nodes,)``: predicted seconds of each e-node.

    Returns
    -------
    float64 ``(nodes,)``.
    """
    shares = np.ones(arrays.node_count)
    if "Array" not in arrays.operator_names:
        return shares
    dear = np.isfinite(costs) & (costs >= SMALLEST_SAVING)
    classes: dict[int, list[int]] = {}
    for node in np.flatnonzero(dear & _of_constants(arrays)).tolist():
        value = values[int(arrays.class_of[node])]
        if value is not None and is_worth_keeping(float(costs[node]), _bytes(value), machine):
            classes.setdefault(int(arrays.class_of[node]), []).append(node)
    room = float(LARGEST_BYTES)
    sizes = {klass: _bytes(value) for klass in classes if (value := values[klass]) is not None}
    for klass in sorted(sizes, key=sizes.__getitem__):
        room -= sizes[klass]
        if room < 0:
            break
        shares[classes[klass]] = 1.0 / CALLS
    return shares


def _of_constants(arrays: EGraphArrays, inputs: Collection[int] = ()) -> BoolArray:
    """Which e-nodes can be computed from constants alone, and from some inputs."""
    leaves = [name in _CONSTANTS for name in arrays.operator_names]
    found: BoolArray = np.array(leaves, np.bool_)[arrays.operator]
    if inputs:
        taken = [bool(value) and value[0] in inputs for value in arrays.attribute_values]
        are_inputs = np.array([name == "In" for name in arrays.operator_names], np.bool_)[arrays.operator]
        found = found | (are_inputs & np.array(taken, np.bool_)[arrays.attribute])
    inner = arrays.arity > 0
    owner = np.repeat(np.arange(arrays.node_count), arrays.arity)
    while True:
        known = np.zeros(arrays.class_count, np.bool_)
        known[arrays.class_of[found]] = True
        operands = np.bincount(owner, known[arrays.operands], arrays.node_count)
        now = found | (inner & (operands == arrays.arity))
        if np.array_equal(now, found):
            return found
        found = now


def _bytes(value: Value) -> float:
    return value.size * value.itemsize
