"""The cost model: predicted seconds of each e-node, by the roofline of the machine.

A node's time is the work it does over the measured throughput plus the bytes it moves over the
measured bandwidth plus the overhead of calling it (Williams, Waterman, Patterson, "Roofline: an
insightful visual performance model", CACM 52(4), 2009; summed rather than maximized, which ranks
fused work of unknown overlap better). Elementwise work is expected to be fused: it pays its
arithmetic in full, and of its memory traffic the share that survives fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from esat.egraph.terms import OpaqueOp
from esat.extract.nary import Shape, plan_product, plan_sum
from esat.graph import Family, Op
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES

UNKNOWN_SIZE = 256.0
"""Assumed size of an axis that neither the types nor a hint tell."""


@dataclass(frozen=True, slots=True)
class MachineProfile:
    """Throughputs and overheads the cost model divides by.

    Attributes
    ----------
    element_rate
        Fused elementwise additions a second, in float64; float32 does twice as many.
    bandwidth
        Bytes a second between memory and one core.
    matrix_rate
        Floating-point operations a second of a large float64 matrix product.
    library_call, kernel_call
        Seconds to enter a library routine, and a generated kernel.
    fused_traffic
        Share of an elementwise result's bytes that reach memory in spite of fusion.
    """

    element_rate: float = 4.0e9
    bandwidth: float = 2.0e10
    matrix_rate: float = 4.0e10
    library_call: float = 2.0e-6
    kernel_call: float = 4.0e-7
    fused_traffic: float = 0.35


@dataclass(frozen=True, slots=True)
class Value:
    """Shape and dtype number of an e-class, as far as costs need them. A scalar has no axes."""

    shape: Shape
    dtype: int

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(np.dtype(DTYPES[self.dtype]).itemsize)

    @property
    def size(self) -> float:
        """Number of elements."""
        return prod(self.shape)


_VIEW_SECONDS = 2.0e-8
_LEAF_SECONDS = 0.0
IMPOSSIBLE = float("inf")
_REDUCTIONS = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceAny", "ReduceAll")
_NORMALIZATIONS = ("Softmax", "LogSoftmax", "LogSumExp")
# Passes over the operand, in additions an element, of a normalization's two or three loops.
_NORMALIZATION_FLOPS = 14.0


class CostModel:
    """Prices e-nodes for one machine and one table of opaque ops.

    Parameters
    ----------
    machine
        The machine's profile.
    opaque
        The op instances that the last attribute of an opaque term refers to.
    """

    def __init__(self, machine: MachineProfile, opaque: Sequence[OpaqueOp] = ()) -> None:
        self.machine = machine
        self.opaque = opaque
        self._memo: dict[object, float] = {}

    @cached_property
    def _ops(self) -> dict[str, Op]:
        return {op.constructor: op for op in registered_ops()}

    def price(
        self,
        constructor: str,
        attributes: Sequence[int | float],
        operands: Sequence[Value],
        result: Value,
        identities: Sequence[int] = (),
    ) -> float:
        """Predicted seconds of one e-node, its operands given.

        Parameters
        ----------
        constructor, attributes
            As in the term language.
        operands, result
            Shapes and dtypes.
        identities
            For n-ary products: which operands are the same class.
        """
        if constructor in ("NarySum", "NaryProd"):
            return self._nary(constructor, int(attributes[0]), operands, result, identities)
        key = (constructor, tuple(attributes), tuple(operands), result)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self._price(constructor, attributes, operands, result)
        return known

    def _price(
        self,
        constructor: str,
        attributes: Sequence[int | float],
        operands: Sequence[Value],
        result: Value,
    ) -> float:
        if constructor in ("In", "K", "Array"):
            return _LEAF_SECONDS
        if constructor in ("DimShuffle", "Output"):
            return _VIEW_SECONDS
        if constructor == "Cast":
            return self._elementwise(1.0, result)
        if constructor in _REDUCTIONS:
            return self._reduction(operands[0], result, 1.0)
        if constructor in ("ArgMax", "ArgMin"):
            return self._reduction(operands[0], result, 3.0)
        if constructor in _NORMALIZATIONS:
            return self._reduction(operands[0], result, _NORMALIZATION_FLOPS)
        if constructor == "MatMul":
            return self._matmul(operands[0], operands[1], result)
        op = self._ops.get(constructor)
        if op is not None and op.family is Family.ELEMENTWISE:
            return self.elementwise(op, result)
        return self._library(attributes, operands, result)

    def elementwise(self, op: Op, result: Value) -> float:
        """Seconds of a fused elementwise op."""
        return self._elementwise(
            0.25 if op.constructor == "Fill" else float(getattr(op, "flops", 1.0)), result
        )

    def _elementwise(self, flops: float, result: Value) -> float:
        speedup = 8.0 / max(result.itemsize, 1)
        arithmetic = result.size * flops / (self.machine.element_rate * min(speedup, 8.0))
        traffic = self.machine.fused_traffic * result.size * result.itemsize / self.machine.bandwidth
        return _VIEW_SECONDS + arithmetic + traffic

    def _reduction(self, operand: Value, result: Value, flops: float) -> float:
        arithmetic = operand.size * flops / (self.machine.element_rate * 8.0 / operand.itemsize)
        moved = (self.machine.fused_traffic * operand.size + result.size) * operand.itemsize
        return self.machine.kernel_call + arithmetic + moved / self.machine.bandwidth

    def _matmul(self, left: Value, right: Value, result: Value) -> float:
        inner = left.shape[-1] if left.shape else right.shape[-2] if right.shape else 1.0
        flops = 2.0 * result.size * inner
        rate = self.machine.matrix_rate * 8.0 / max(result.itemsize, 4)
        if DTYPES[result.dtype] not in ("float32", "float64", "complex64", "complex128"):
            rate = self.machine.element_rate / 2
        moved = (left.size + right.size + result.size) * result.itemsize
        return self.machine.library_call + flops / rate + moved / self.machine.bandwidth

    def _library(self, attributes: Sequence[int | float], operands: Sequence[Value], result: Value) -> float:
        number = int(attributes[-1]) if attributes else -1
        if not 0 <= number < len(self.opaque):
            return IMPOSSIBLE
        instance = self.opaque[number].op
        shapes = [tuple(int(size) for size in operand.shape) for operand in operands]
        sizes = [operand.itemsize for operand in operands] + [result.itemsize]
        work = instance.work(shapes, [tuple(int(size) for size in result.shape)], sizes)
        return (
            _VIEW_SECONDS
            + work.calls * self.machine.library_call
            + work.flops / self.machine.element_rate
            + work.bytes / self.machine.bandwidth
        )

    def _nary(
        self,
        constructor: str,
        positives: int,
        operands: Sequence[Value],
        result: Value,
        identities: Sequence[int],
    ) -> float:
        if not operands:
            return IMPOSSIBLE
        shapes = [operand.shape for operand in operands]
        if constructor == "NarySum":
            steps = plan_sum(shapes, positives)
        else:
            same = identities if identities else range(len(operands))
            steps = plan_product(same, shapes, positives)
        ops = self._named
        return sum(self.elementwise(ops[step.op], Value(step.shape, result.dtype)) for step in steps)

    @cached_property
    def _named(self) -> dict[str, Op]:
        return {op.name: op for op in registered_ops()}
