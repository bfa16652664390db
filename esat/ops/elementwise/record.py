"""The record of an elementwise op: everything esat knows about it, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.errors import DtypeError, GradientError, describe
from esat.graph.op import Array, Family, Op, Work
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.broadcasting import broadcast_types, equalize_ranks
from esat.ops.cast import cast
from esat.ops.promotion import operand_dtypes, wrap

Gradient = Callable[[Sequence[Variable], Variable, Variable], Sequence[Variable | None]]
"""(inputs, output, cotangent of the output) -> cotangents of the inputs."""


@dataclass(frozen=True, eq=False, repr=False)
class Elementwise(Op):
    """An op that computes each element of its result from the elements at the same place.

    Operands are broadcast against each other as in NumPy. ``make_node`` casts them to the one
    dtype NumPy would compute in and gives them one rank, so that every stage after it can rely
    on operands of equal dtype and rank.

    Attributes
    ----------
    name, arity
        The name in the tensor API and the number of operands.
    numpy
        The NumPy (or SciPy) function that defines the result.
    code
        One expression of numba source with ``{0}``, ``{1}``, ... for the operands, or a function from
        the operand dtype to it (None where that dtype has none). An op without code runs
        through ``numpy``.
    gradient
        Cotangents of the operands; None where the op has no gradient, ``"zero"`` where it is
        zero everywhere (rounding, comparison).
    dtypes
        A NumPy ufunc whose type resolution decides the operand dtype; by default ``numpy`` itself.
    typing
        Dtype of the result: ``same`` as the operands, ``bool``, or ``real`` (the real
        counterpart of a complex operand).
    flops
        Cost of one element in additions.
    constructor
        The name in rules; by default the name in CamelCase.
    """

    name: str
    arity: int
    numpy: Callable[..., Any]
    code: str | Callable[[str], str | None] | None = None
    gradient: Gradient | str | None = None
    dtypes: np.ufunc | None = None
    typing: str = "same"
    flops: float = 1.0
    constructor: str = ""
    family: Family = field(default=Family.ELEMENTWISE, init=False)

    def __post_init__(self) -> None:
        if not self.constructor:
            camel = "".join(part.capitalize() for part in self.name.split("_"))
            object.__setattr__(self, "constructor", camel)

    def source(self, dtype: str) -> str | None:
        """The numba expression for operands of ``dtype``, or None."""
        return self.code(dtype) if callable(self.code) else self.code

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        if len(inputs) != self.arity:
            raise DtypeError(describe(self.name, inputs, f"takes {self.arity} operands, not {len(inputs)}"))
        ufunc = self.dtypes if self.dtypes is not None else self.numpy
        dtypes = operand_dtypes(self.name, ufunc, inputs)
        operands = [cast(wrap(self.name, value, d), d) for value, d in zip(inputs, dtypes, strict=True)]
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if self.typing == "bool":
            dtype = "bool"
        elif self.typing == "real":
            dtype = np.empty(0, types[0].dtype).real.dtype.name
        else:
            dtype = types[-1].dtype
        return (TensorType(dtype, shape=broadcast_types(self.name, types)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.asarray(self.numpy(*inputs)),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if self.gradient == "zero" or cotangent is None:
            return [None] * len(node.inputs)
        if not callable(self.gradient):
            types = [variable.type for variable in node.inputs]
            raise GradientError(describe(self.name, types, "this op has no gradient", node.where))
        return list(self.gradient(node.inputs, node.outputs[0], cotangent))

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=self.flops * size, bytes=general.bytes, calls=0)
