"""Op: the record of one operation, and the closed set of families that stages match on."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, SupportsIndex

import numpy as np

from esat.base.records import record
from esat.errors import CallError, GradientError, GraphError, ShapeError, describe, sizes_differ
from esat.graph.calls.callers import user_line
from esat.graph.registry import function_named, is_registered, op_named
from esat.graph.tracing import Traced
from esat.graph.types import Type
from esat.graph.variables import Apply, Constant, Variable, linked

Array = np.ndarray[Any, np.dtype[Any]]
Shapes = Sequence[tuple[int, ...]]


class Family(enum.Enum):
    """What the stages after the graph know an op by. Ops are open, families are closed."""

    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    VIEW = "view"
    INDEX = "index"
    CREATION = "creation"
    LIBRARY = "library"
    RANDOM = "random"
    SPARSE = "sparse"
    CONTROL = "control"


@record(frozen=True, slots=True)
class Work:
    """What one application of an op costs the machine.

    Attributes
    ----------
    flops
        Floating-point operations, transcendental functions counted by their measured cost in adds.
    bytes
        Bytes that must move between memory and the processor.
    calls
        Calls into a library or the interpreter, each with its own overhead.
    share
        Share of the rate of kernels that the operations reach, where a routine was measured against that; 0
        for the rates of libraries.
    """

    flops: float
    bytes: float
    calls: int = 0
    share: float = 0.0


@cache
def _parameters(kind: Any) -> Callable[[Any], tuple[object, ...]]:
    """What reads the fields that records of a class are made of, but for their names."""
    made_of = [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else []
    names = [name for name in made_of if name not in ("name", "constructor")]
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda op: (getattr(op, names[0]),)) if names else lambda op: ()


class Op:
    """One operation on Variables.

    Subclasses are the families' records (see ``esat.ops``). Ops compare by what they compute:
    two instances of one class with the same :meth:`properties` are equal.

    Attributes
    ----------
    name
        For the tensor API, printing and the registry.
    constructor
        The op's name in rules and in the e-graph.
    family
        The closed family the op belongs to.
    typing
        The rule by which the e-graph types the op's results: ``same`` (as the first operand),
        ``bool``, ``real``, ``cast``, ``dimshuffle``, ``reduce``, ``argreduce``, ``matmul``,
        ``fill``, or ``opaque`` (typed by Python only).
    view_map
        Output position -> positions of the inputs it may share memory with.
    destroy_map
        Output position -> positions of the inputs it overwrites.
    lazy
        Whether values of some inputs tell that others are not needed; see :meth:`needed`.
    is_free
        Whether it costs nothing: its result is a view, or known without looking at elements.
    host_only
        Why it has no form on a device, where that is so for a reason.
    variants
        Constructor -> name, of a class whose ops have one of several.
    """

    name: str
    constructor: str
    family: Family
    typing: str = "opaque"
    view_map: Mapping[int, tuple[int, ...]] = {}
    destroy_map: Mapping[int, tuple[int, ...]] = {}
    lazy: bool = False
    is_free: bool = False
    host_only: str = ""
    variants: Mapping[str, str] = {}

    def properties(self) -> tuple[object, ...]:
        """The attributes that, with the class and name, say what the op computes. Hashable.

        By default the fields of a dataclass, and nothing of another class.
        """
        kind: Any = type(self)
        return _parameters(kind)(self)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        """Types of the outputs. Raises DtypeError or ShapeError for operands the op does not take."""
        raise NotImplementedError

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        """Turn arguments into operands: wrap constants, promote dtypes, equalize ranks."""
        return tuple(as_variable(value) for value in inputs)

    def make_node(self, *inputs: Any) -> Apply:
        """An Apply of this op on ``inputs``, with outputs of the inferred types."""
        operands = self.prepare(inputs)
        outputs = [type.make_variable() for type in self.infer_types(operands)]
        return linked(self, operands, outputs)

    def __call__(self, *inputs: Any, **unknown: Any) -> Any:
        """The output of :meth:`make_node`, or a tuple of them when there are several."""
        if unknown:
            reason = f"takes no parameter {', '.join(unknown)}"
            raise CallError(describe(self.name, inputs, reason, user_line()))
        outputs = self.make_node(*inputs).outputs
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Compute the outputs with NumPy. This defines what the op means."""
        raise NotImplementedError

    def needed(self, inputs: Sequence[Variable], values: Mapping[Variable, Any]) -> Sequence[Variable]:
        """The inputs that must be computed, as far as the values of some tell; :meth:`perform` may be given
        None for the others."""
        return inputs

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        """Raise ShapeError when run-time sizes break what the types of the inputs promised.

        Elementwise operands must have equal sizes along each axis, except those whose type says 1
        there: an axis of unknown size never broadcasts.
        """
        if self.family is not Family.ELEMENTWISE or len(operands) < 2:
            return
        flags = [variable.tensor_type.broadcastable for variable in node.inputs]
        for axis in range(len(flags[0])):
            sizes = {array.shape[axis] for array, flag in zip(operands, flags, strict=True) if not flag[axis]}
            if len(sizes) > 1:
                reason = sizes_differ(sizes, axis)
                if 1 in sizes:
                    reason += "; an axis broadcasts only if its type says that its size is 1"
                raise ShapeError(describe(self.name, shapes_given(node, operands), reason, node.where))

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Cotangents of the inputs, given those of the outputs; None where an input has none.

        Raises
        ------
        GradientError
            When the op has no gradient.
        """
        types = [variable.type for variable in node.inputs]
        raise GradientError(describe(self.name, types, "this op has no gradient", node.where))

    def require_slopes(self, node: Apply, wanted: Sequence[bool]) -> None:
        """Check that derivatives are known by all inputs that are wanted.

        Raises
        ------
        GradientError
            Where one is neither known nor zero.
        """

    def linear_in(self, count: int) -> range:
        """The positions of inputs, of so many, in which the op is linear together while others are fixed."""
        return range(0)

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Tangents of the outputs, given those of the inputs; None stands for zero.

        By default that of a linear op is the op itself, and that of others the transpose of :meth:`vjp`.

        Raises
        ------
        GradientError
            When the op has no gradient.
        """
        if all(tangent is None for tangent in tangents):
            return [None] * len(node.outputs)
        linear = self.linear_in(len(node.inputs))
        if any(tangent is not None and place not in linear for place, tangent in enumerate(tangents)):
            return list(function_named("transposed_vjp")(node, tangents))
        zeros = function_named("zero_tangent")
        operands = [
            (zeros(operand) if tangent is None else tangent) if place in linear else operand
            for place, (operand, tangent) in enumerate(zip(node.inputs, tangents, strict=True))
        ]
        return list(self.make_node(*operands).outputs)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        """The outputs of a node for a batch of its inputs, with the batch's axis in front.

        By default the op is applied to each element of the batch.

        Parameters
        ----------
        node
            The node of one element.
        inputs
            Its operands, of which some have the batch's axis in front.
        batched
            Which.

        Raises
        ------
        EsatError
            When the op cannot be applied so.
        """
        results: tuple[Variable, ...] = function_named("batch_by_element")(self, node, inputs, batched)
        return results

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        """Cost for operands and results of these shapes; ``itemsizes`` in bytes, inputs then outputs.

        The default suits a library call that reads and writes everything once.
        """
        if self.is_free:
            return Work(flops=0.0, bytes=0.0, calls=0)
        sizes = [float(np.prod(shape, dtype=np.float64)) for shape in (*inputs, *outputs)]
        moved = sum(size * itemsize for size, itemsize in zip(sizes, itemsizes, strict=True))
        return Work(flops=sum(sizes[len(inputs) :]), bytes=moved, calls=1)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and isinstance(other, Op)
            and self.name == other.name
            and self.properties() == other.properties()
        )

    def __hash__(self) -> int:
        properties = self.properties()
        try:
            return hash((type(self), self.name, properties))
        except TypeError as error:
            types = ", ".join(type(one).__name__ for one in properties)
            reason = f"ops are told apart by their parameters, of types {types}: {error}"
            remedy = "give the class a method `properties` with what can be hashed"
            raise GraphError(f"{self.name}: {reason}; {remedy}") from None

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """A registered op is pickled by its name: it holds functions, and a process has it only once.

        Other records are made anew from their parameters.
        """
        if is_registered(self):
            return op_named, (self.name,)
        if is_dataclass(self):
            given = {part.name: getattr(self, part.name) for part in fields(self) if part.init}
            return partial(type(self), **given), ()
        return super().__reduce_ex__(protocol)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.family.value} op {self}>"


def shapes_given(node: Apply, operands: Sequence[Array]) -> list[str]:
    """Shapes of operands for messages, without the new axes by which ops equalize ranks."""
    shown = []
    for variable, array in zip(node.inputs, operands, strict=True):
        order = getattr(None if variable.owner is None else variable.owner.op, "order", None)
        if order is None or len(order) != array.ndim:
            order = range(array.ndim)
        kept = tuple(size for size, axis in zip(array.shape, order, strict=True) if axis != "x")
        shown.append(f"shape {kept}")
    return shown


def as_variable(value: Any) -> Variable:
    """``value`` itself if it is a Variable, the one it stands for, or else a Constant that holds it; lists
    with Variables in them are stacked."""
    if isinstance(value, Variable):
        return value
    if isinstance(value, Traced):
        return value.variable
    from esat.graph.constants import constant, holds_variable

    if isinstance(value, (list, tuple)) and holds_variable(value):
        stacked: Variable = function_named("as_tensor")(value)
        return stacked
    return constant(value)


def check_count(name: str, operands: Sequence[Any], wanted: int) -> None:
    """See that an op is given as many operands as it takes.

    Raises
    ------
    CallError
        When it is not; the message names the op, the operands and the user's line.
    """
    if len(operands) != wanted:
        reason = f"takes {wanted} operand{'' if wanted == 1 else 's'}, not {len(operands)}"
        raise CallError(describe(name, operands, reason, user_line()))


def is_constant(variable: Variable) -> bool:
    """Whether the variable's value is fixed at compile time."""
    return isinstance(variable, Constant)
