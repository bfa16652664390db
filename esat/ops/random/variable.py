"""RandomVariable: what all draws have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, GradientError, ParameterError, ShapeError, describe
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.random_type import RandomState, RandomType
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.shape import as_size, known_size
from esat.ops.cast import cast
from esat.ops.inference.broadcasting import broadcast_types, pad_rank

Shape = tuple[int | None, ...]
Kind = Literal["real", "integer"]


@record(frozen=True, eq=False, repr=False)
class RandomVariable(Op):
    """A draw: ``(state, *parameters, *sizes)`` gives the state after it and the sample.

    The same state and parameters give the same sample, always: equal draws are one. Draws differ when
    each takes the state that the one before it left.

    Attributes
    ----------
    size_rank
        How many sizes follow the parameters: the axes of independent draws, to which the parameters are
        broadcast. None: no sizes; as many draws as the parameters, broadcast, have.
    in_place
        Whether the state may be advanced itself instead of a copy.
    """

    size_rank: int | None = None
    in_place: bool = False
    family = Family.RANDOM
    host_only = "states of random generators are the host's"

    def __post_init__(self) -> None:
        if self.in_place:
            object.__setattr__(self, "destroy_map", MappingProxyType({0: (0,)}))

    # ---- what a distribution says

    @property
    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]:
        """Of each parameter: real ones are float64, integers int64."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """Of the sample."""

    @property
    def parameter_ranks(self) -> tuple[int, ...]:
        """How many axes at the end of each parameter belong to one draw."""
        return (0,) * len(self.kinds)

    def event_shape(self, parameters: Sequence[TensorType]) -> Shape:
        """The shape of one draw."""
        return ()

    @abstractmethod
    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        """A sample of ``size`` independent draws, from a generator that is advanced."""

    # ---- what follows

    def inplace(self) -> RandomVariable:
        """The same draw, advancing the state it is given."""
        return replace(self, in_place=True)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        count = len(self.kinds)
        state, parameters, sizes = inputs[0], inputs[1 : 1 + count], inputs[1 + count :]
        if not isinstance(state, Variable) or not isinstance(state.type, RandomType):
            raise DtypeError(describe(self.name, inputs, "the first operand is the state of a generator"))
        if len(parameters) < count or len(sizes) != (self.size_rank or 0):
            reason = f"takes a state, {count} parameters and {self.size_rank or 0} sizes"
            raise DtypeError(describe(self.name, inputs, reason))
        prepared = [self._parameter(kind, value) for kind, value in zip(self.kinds, parameters, strict=True)]
        rank = max(self._batch_ranks(prepared), default=0)
        padded = [
            pad_rank(variable, rank + core)
            for variable, core in zip(prepared, self.parameter_ranks, strict=True)
        ]
        return (state, *padded, *(as_size(self.name, size) for size in sizes))

    def _parameter(self, kind: Kind, value: Any) -> Variable:
        variable = as_variable(value)
        given = variable.tensor_type.kind
        if given == "c" or (kind == "integer" and given == "f"):
            reason = f"parameters are {', '.join(self.kinds)} numbers"
            raise DtypeError(describe(self.name, [variable.type], reason))
        return cast(variable, "float64" if kind == "real" else "int64")

    def _batch_ranks(self, parameters: Sequence[Variable]) -> list[int]:
        ranks = []
        for variable, core in zip(parameters, self.parameter_ranks, strict=True):
            if variable.tensor_type.ndim < core:
                reason = f"a parameter needs {core} axes"
                raise ShapeError(describe(self.name, [variable.type], reason))
            ranks.append(variable.tensor_type.ndim - core)
        return ranks

    def split(self, inputs: Sequence[Any]) -> tuple[Any, list[Any], list[Any]]:
        """State, parameters and sizes among the operands."""
        count = 1 + len(self.kinds)
        return inputs[0], list(inputs[1:count]), list(inputs[count:])

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        state, parameters, sizes = self.split(inputs)
        types = [variable.tensor_type for variable in parameters]
        batches = [
            type.with_shape(type.shape[: type.ndim - core])
            for type, core in zip(types, self.parameter_ranks, strict=True)
        ]
        batch = broadcast_types(self.name, batches) if batches else ()
        if self.size_rank is not None:
            batch = self._sized(batch, [known_size(size) for size in sizes], types)
        return (state.type, TensorType(self.dtype, shape=(*batch, *self.event_shape(types))))

    def _sized(self, batch: Shape, sizes: Sequence[int | None], types: Sequence[TensorType]) -> Shape:
        """``sizes``, to which parameters of shape ``batch`` must broadcast."""
        last = list(sizes)[len(sizes) - len(batch) :]
        fits = len(batch) <= len(sizes) and all(
            given in (1, None, wanted) or wanted is None for given, wanted in zip(batch, last, strict=True)
        )
        if any(size is not None and size < 0 for size in sizes):
            raise ShapeError(describe(self.name, types, f"size {tuple(sizes)} has a negative number"))
        if not fits:
            reason = f"parameters do not broadcast to size {tuple(sizes)}"
            raise ShapeError(describe(self.name, types, reason))
        return tuple(sizes)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        state, parameters, sizes = self.split(inputs)
        generator: RandomState = state if self.in_place else state.copy()
        size = None if self.size_rank is None else tuple(int(number) for number in sizes)
        try:
            sample = self.draw(generator, parameters, size)
        except (ValueError, TypeError) as error:
            shown = [f"{np.asarray(value).dtype} of shape {np.shape(value)}" for value in parameters]
            raise ParameterError(describe(str(self), shown, str(error))) from error
        return generator, np.asarray(sample).astype(self.dtype, copy=False)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Derivatives along the path: how the sample moves with a parameter while the state stays."""
        none: list[Variable | None] = [None] * len(node.inputs)
        cotangent = cotangents[1]
        if cotangent is None or self.dtype != "float64":
            return none
        sizes = self.split(node.inputs)[2]
        slopes = self.pathwise(node, cotangent)
        return [None, *slopes, *[None] * len(sizes)]

    def pathwise(self, node: Apply, cotangent: Variable) -> list[Variable | None]:
        """The cotangents of the parameters.

        Raises
        ------
        GradientError
            For a parameter that is not constant and by which the sample has no derivative.
        """
        return [self.undifferentiable(node, place) for place in range(len(self.kinds))]

    def undifferentiable(self, node: Apply, place: int) -> Variable | None:
        """No cotangent, for a parameter that depends on Constants only; else an error."""
        if any(not isinstance(leaf, Constant) for leaf in inputs_of([node.inputs[1 + place]])):
            reason = f"the sample has no derivative by parameter {place}, which must be a constant"
            raise GradientError(
                describe(self.name, [variable.type for variable in node.inputs], reason, node.where)
            )
        return None

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        size = float(np.prod(outputs[-1], dtype=np.float64))
        return Work(flops=20.0 * size, bytes=size * itemsizes[-1], calls=1)
