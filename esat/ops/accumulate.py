"""``gemm``: a scaled matrix product added to a scaled array, as BLAS computes it in one call."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable, check_count
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable

DTYPES = ("float32", "float64")


@record(frozen=True, eq=False, repr=False)
class AccumulateProduct(Op):
    """``beta * c + alpha * (left @ right)``: operands ``(c, alpha, left, right, beta)``.

    ``left`` and ``right`` are matrices, ``alpha`` and ``beta`` have rank 0, and all have one dtype, float32
    or float64. The result has the shape of ``c``: that of the product, or without one of its axes that
    has size 1.

    Attributes
    ----------
    dropped
        The axis of the product that ``c`` lacks, or None.
    inplace
        Whether to overwrite ``c``.
    """

    dropped: int | None = None
    inplace: bool = False
    name, constructor, family = "gemm", "Gemm", Family.CONTRACTION
    typing = "same"

    def __post_init__(self) -> None:
        if self.inplace:
            object.__setattr__(self, "destroy_map", MappingProxyType({0: (0,)}))

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 5)
        return tuple(map(as_variable, inputs))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if len({type.dtype for type in types}) > 1 or types[0].dtype not in DTYPES:
            raise DtypeError(describe(self.name, types, f"operands have one dtype of {', '.join(DTYPES)}"))
        ranks = [type.ndim for type in types]
        if ranks != [2 - (self.dropped is not None), 0, 2, 2, 0]:
            raise ShapeError(describe(self.name, types, "ranks do not fit a product of two matrices"))
        return (types[0],)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        target, alpha, left, right, beta = inputs
        with np.errstate(all="ignore"):
            product = np.matmul(left, right).reshape(target.shape)
            result = beta * target + alpha * product
            if not self.inplace:
                return (result,)
            target[...] = result
        return (target,)

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        target, _, left, right, _ = operands
        shape = self.kept((left.shape[0], right.shape[1]))
        if left.shape[1] != right.shape[0] or shape != target.shape:
            reason = "the sizes of the product and of what it is added to do not match"
            shown = [f"shape {array.shape}" for array in (target, left, right)]
            raise ShapeError(describe(self.name, shown, reason, node.where))

    def kept(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result, for the shape of a product."""
        return tuple(size for axis, size in enumerate(shape) if axis != self.dropped)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=2.0 * size * (inputs[2][1] + 1), bytes=general.bytes, calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{inplace}}" if self.inplace else self.name
