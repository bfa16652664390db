"""Cast: change of dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.types import TensorType, Type, normalize_dtype
from esat.graph.variables import Apply, Constant, Variable


@record(frozen=True, eq=False, repr=False)
class Cast(Op):
    """Convert every element to ``dtype`` as ``numpy.ndarray.astype`` does."""

    dtype: str
    name, constructor, family = "cast", "Cast", Family.ELEMENTWISE
    typing = "cast"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[0].tensor_type.with_dtype(self.dtype),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        with np.errstate(all="ignore"):
            if np.iscomplexobj(array) and np.dtype(self.dtype).kind not in "cb":
                array = array.real
            if array.dtype.kind == "f" and self.dtype == "uint32":
                # Beyond the range NumPy's results depend on the processor and on how the array lies in
                # memory; here they are modulo 2**32, as NumPy's are for a single number.
                array = array.astype("int64")
            return (array.astype(self.dtype),)

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        continuous = node.outputs[0].tensor_type.kind in "fc"
        return [cast(tangents[0], self.dtype) if continuous and tangents[0] is not None else None]

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return (cast(inputs[0], self.dtype),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        source = node.inputs[0].tensor_type
        continuous = source.kind in "fc" and np.dtype(self.dtype).kind in "fc"
        return [cast(cotangent, source.dtype) if continuous and cotangent is not None else None]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        return Work(flops=general.flops, bytes=general.bytes, calls=0)

    def __str__(self) -> str:
        return f"cast{{{self.dtype}}}"


def cast(operand: Any, dtype: Any) -> Variable:
    """``operand`` as ``dtype``; itself when it is that already. A Constant is converted at once."""
    variable = as_variable(operand)
    target = normalize_dtype(dtype)
    if variable.tensor_type.dtype == target:
        return variable
    op = Cast(target)
    if isinstance(variable, Constant):
        (data,) = op.perform([variable.data])
        return Constant(TensorType(target, shape=data.shape), data, variable.name)
    result: Variable = op(variable)
    return result
