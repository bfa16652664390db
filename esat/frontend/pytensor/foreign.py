"""Ops of PyTensor's without a form here: their code runs as steps of a program, and a report names them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from pytensor.graph.op import Op as PyTensorOp
from pytensor.tensor.random.type import RandomGeneratorType

from esat.base.records import record
from esat.errors import StatedShapeError, UserLine, describe
from esat.frontend.pytensor.steps import PyTensorStep, label
from esat.frontend.pytensor.types import as_pytensor, type_of
from esat.graph.op import Family, Op
from esat.graph.random_type import RandomType
from esat.graph.types import TensorType, Type
from esat.graph.variables import Variable


@record(frozen=True)
class TranslationReport:
    """Which ops of a graph PyTensor runs.

    Attributes
    ----------
    count
        Of nodes, those of inner graphs among them.
    foreign
        What PyTensor runs: name of an op -> how many nodes.
    reasons
        Name of an op -> why, for the first of its nodes.
    """

    count: int
    foreign: Mapping[str, int]
    reasons: Mapping[str, str]

    def __str__(self) -> str:
        total = sum(self.foreign.values())
        if not total:
            return f"0 of {self.count} ops by PyTensor"
        names = [name if times == 1 else f"{name} ({times})" for name, times in sorted(self.foreign.items())]
        return f"{total} of {self.count} ops by PyTensor: {', '.join(names)}"


@record(frozen=True, eq=False, repr=False)
class Foreign(Op):
    """A node of PyTensor's, which computes as its op does.

    Attributes
    ----------
    call
        The node with what it is compared by.
    name
        Of the op.
    """

    call: ForeignCall
    name: str = ""
    constructor: str = field(default="PyTensorOp", init=False)
    family: Family = field(default=Family.LIBRARY, init=False)
    host_only: str = field(default="PyTensor runs it", init=False)

    def properties(self) -> tuple[object, ...]:
        return (self.call,)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return self.call.results

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        return self.call(inputs)


class ForeignCall:
    """Runs a node of PyTensor's on values of esat's. Two are equal where op, types and constants are.

    Parameters
    ----------
    node
        PyTensor's.
    places
        Of its inputs, those whose values are given; others are constants, or None.
    sized
        Whether results have the sizes that the op declares, which users' ops may do wrong: PyTensor compares
        them with none.
    where
        The user's line, for errors.
    """

    def __init__(
        self, node: Any, places: Sequence[int], sized: bool = True, where: UserLine | None = None
    ) -> None:
        self.node, self.where = node, where
        self.places = tuple(places)
        types = [type_of(variable) for variable in node.outputs]
        self.results = tuple(types if sized else map(_without_sizes, types))
        self._fixed = [getattr(variable, "data", None) for variable in node.inputs]
        overwritten = {place for places in node.op.destroy_map.values() for place in places}
        self._overwritten = tuple(sorted(overwritten & set(self.places)))
        self._lock = threading.Lock()
        self._thunk: Any = None
        fixed = tuple(variable for place, variable in enumerate(node.inputs) if place not in set(self.places))
        self._key = (node.op, tuple(variable.type for variable in node.inputs), self.places, fixed, sized)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignCall) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        values = list(self._fixed)
        for place, value in zip(self.places, inputs, strict=True):
            values[place] = self._given(place, value)
        try:
            results = self._performed(values)
        except Exception as error:
            error.pytensor_node = self.node  # type: ignore[attr-defined] # the linker names it
            raise
        given = [value for value in values if isinstance(value, np.ndarray)]
        found = tuple(_taken(*pair, given) for pair in zip(results, self.results, strict=True))
        for value, type in zip(found, self.results, strict=True):
            if isinstance(type, TensorType) and not _fits(value.shape, type.shape):
                types = [variable.type for variable in self.node.inputs]
                reason = f"perform gives shape {value.shape}, where {type} is declared"
                raise StatedShapeError(describe(label(self.node.op), types, reason, self.where))
        return found

    def _given(self, place: int, value: Any) -> Any:
        variable = self.node.inputs[place]
        if isinstance(variable.type, RandomGeneratorType):
            return np.random.Generator(value.copy().bit_generator)
        if place in self._overwritten:
            value = value.copy()
        return as_pytensor(variable, value)

    def _performed(self, values: Sequence[Any]) -> list[Any]:
        node = self.node
        if _has_perform(node.op):
            storage: list[list[Any]] = [[None] for _ in node.outputs]
            node.op.perform(node, list(values), storage)
            return [cell[0] for cell in storage]
        with self._lock:  # there is one place for each value
            if self._thunk is None:
                cells = {variable: [None] for variable in (*node.inputs, *node.outputs)}
                computed = {variable: [variable.owner is None] for variable in cells}
                op = copy.copy(node.op)  # of its own, as what it compiles is kept in it
                if hasattr(op, "mode"):
                    op.mode = None  # what it compiles its steps in, whatever its own loop needs
                self._thunk = op.make_thunk(node, cells, computed, [], impl="py"), cells
            thunk, cells = self._thunk
            for variable, value in zip(node.inputs, values, strict=True):
                cells[variable][0] = value
            thunk()
            results = [cells[variable][0] for variable in node.outputs]
            for cell in cells.values():
                cell[0] = None
        return results


def _has_perform(op: Any) -> bool:
    """Whether an op computes by its ``perform`` alone; loops and inner functions are compiled first."""
    own = type(op).make_thunk is PyTensorOp.make_thunk or not hasattr(op, "fgraph")
    return own and type(op).perform is not PyTensorOp.perform


def _taken(value: Any, type: Type, given: Sequence[Any]) -> Any:
    """A result as a value of esat's that shares no memory with an operand."""
    if isinstance(type, RandomType):
        return type.filter(value)
    if not isinstance(type, TensorType):
        return type.filter(value)
    array = np.asarray(value, dtype=type.dtype)
    return array.copy() if any(np.shares_memory(array, one) for one in given) else array


def _fits(shape: Sequence[int], declared: Sequence[int | None]) -> bool:
    """Whether sizes are those of a type; for another number of axes there is an error of its own."""
    return len(shape) != len(declared) or all(
        wanted in (size, None) for size, wanted in zip(shape, declared, strict=True)
    )


def _without_sizes(type: Type) -> Type:
    """A type without sizes but those that are 1."""
    if not isinstance(type, TensorType):
        return type
    return type.with_shape(tuple(1 if size == 1 else None for size in type.shape))


def foreign(step: PyTensorStep) -> list[Variable]:
    """The results of a node that PyTensor runs.

    Raises
    ------
    NoRuleError
        Where a result, or an operand, has no type in esat.
    """
    places = [place for place, operand in enumerate(step.operands) if operand is not None]
    for place in places:
        type_of(step.node.inputs[place])
    op = Foreign(ForeignCall(step.node, places, not step.careful, step.where), f"pytensor.{label(step.op)}")
    return list(op.make_node(*(step.operands[place] for place in places)).outputs)
