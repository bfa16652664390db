"""The record of an elementwise op: everything esat knows about it, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, GradientError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, check_count
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.annotations.masks import through
from esat.ops.cast import cast
from esat.ops.elementwise.complex_forms import ComplexForm
from esat.ops.elementwise.records.code import Code, anything, expression
from esat.ops.elementwise.records.description import Documentation, OperandSignature
from esat.ops.elementwise.records.facts import ANY, FINITE, NO_FACTS, Facts, SignRule
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks
from esat.ops.inference.promotion import Loops, SciPyLoops, operand_dtypes, resolve_dtype, wrap

Gradient = Callable[[Sequence[Variable], Variable, Variable], Sequence[Variable | None]]
"""(inputs, output, cotangent of the output) -> cotangents of the inputs, in the output's shape."""

ZERO = "zero"
"""The gradient of an op whose derivative is zero wherever it is defined (rounding, comparison)."""


@record(frozen=True, eq=False, repr=False)
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
        The NumPy (or SciPy) function that defines the result. It returns a new array.
    code
        Templates of numba source, see :class:`~esat.ops.elementwise.records.code.Code`; a plain string is one
        template for all dtypes. Where there is none the op runs through ``numpy``.
    gradient
        Cotangents of the operands; ``"zero"`` where they are zero everywhere, None where the op has no
        gradient. It need not sum over axes that were broadcast: :meth:`vjp` does. Complex numbers follow
        JAX: a real cost changes by ``Re(cotangent * dx)``, so functions with a complex derivative need
        no conjugation.
    dtypes
        How the dtype of the operands is chosen; by default as ``numpy`` chooses if that is a ufunc, else
        their common dtype.
    typing
        Dtype of the result: ``same`` as the operands, ``bool``, ``real`` (the real counterpart of a
        complex operand), or ``fill`` (that of the last operand).
    operand_typing
        Per operand: ``same`` for those that share one dtype, ``bool``, or empty for any dtype. Empty as a
        whole means ``same`` for all.
    flops
        Cost of one element in additions.
    facts
        Algebraic facts.
    constructor
        The name in rules; by default the name in CamelCase.
    formula
        What an element is, for ``help``: an expression of ``x``, or of ``x1`` and further, or a phrase.
    complex_form
        What kernels compute of complex operands, by their parts; None where the op runs through ``numpy``.
    parameters
        How many of the first operands have no known derivative: their cotangents are None.
    wide
        The function for NumPy's ``longdouble`` and ``clongdouble``, where ``numpy`` has no loop for these or
        is less accurate there. Without it such ops are judged by their float64 values.
    """

    name: str
    arity: int
    numpy: Callable[..., Any]
    code: Code | str | None = None
    gradient: Gradient | str | None = None
    dtypes: Loops = None
    typing: str = "same"
    operand_typing: tuple[str, ...] = ()
    flops: float = 1.0
    facts: Facts = NO_FACTS
    constructor: str = ""
    formula: str = ""
    wide: Callable[..., Any] | None = None
    complex_form: ComplexForm | None = None
    parameters: int = 0
    family = Family.ELEMENTWISE
    __signature__ = OperandSignature()

    if TYPE_CHECKING:

        def __call__(self, *inputs: Any, **unknown: Any) -> Variable: ...

    def __init_subclass__(cls) -> None:
        cls.__doc__ = Documentation(cls.__doc__, cls.__doc__ or "")  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not self.constructor:
            camel = "".join(part.capitalize() for part in self.name.split("_"))
            object.__setattr__(self, "constructor", camel)
        if self.dtypes is None and isinstance(self.numpy, np.ufunc):
            object.__setattr__(self, "dtypes", self.numpy)
        if isinstance(self.code, str):
            object.__setattr__(self, "code", anything(self.code))
        if not self.operand_typing:
            object.__setattr__(self, "operand_typing", ("same",) * self.arity)

    # ---- types

    def admits(self, dtype: str) -> str | None:
        """The dtype operands that all have ``dtype`` are cast to; None where the op does not take them."""
        given = tuple(
            np.dtype("bool" if typing == "bool" else dtype)
            for typing in self.operand_typing
            if typing != "bool"
        )
        try:
            return resolve_dtype(self.name, self.dtypes, given, self.typing == "same")
        except DtypeError:
            return None

    @property
    def needs_floats(self) -> bool:
        """Whether operands are floats or complex numbers always, integers being cast first."""
        if isinstance(self.dtypes, SciPyLoops):
            return True
        return self.admits("int64") not in (None, "int64") and self.admits("bool") != "bool"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, self.arity)
        return equalize_ranks(self.promote(inputs))

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        """Operands of the dtype the op computes in, from Variables, arrays and Python numbers."""
        dtypes = operand_dtypes(self.name, self.dtypes, inputs, by_result=self.typing == "same")
        return [cast(wrap(self.name, value, d), d) for value, d in zip(inputs, dtypes, strict=True)]

    def properties(self) -> tuple[object, ...]:
        return ()  # its name says all

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        dtype = types[-1].dtype
        if self.typing == "bool":
            dtype = "bool"
        elif self.typing == "real":
            dtype = np.empty(0, dtype).real.dtype.name
        return (TensorType(dtype, shape=broadcast_types(self.name, types)),)

    @property
    def sign_rules(self) -> tuple[SignRule, ...]:
        """What the signs of operands, and their being finite, say about the result."""
        if not self.facts.keeps_finite:
            return self.facts.signs
        operands = tuple(FINITE if typing == "same" else ANY for typing in self.operand_typing)
        return (*self.facts.signs, (operands, FINITE))

    # ---- values

    def source(self, dtype: str) -> str | None:
        """The numba expression for operands of ``dtype``, or None."""
        if not isinstance(self.code, Code):
            return None
        template = self.code.template(dtype)
        return None if template is None else expression(template, dtype)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        try:
            with np.errstate(all="ignore"):
                return (np.asarray(self.numpy(*inputs)),)
        except (ValueError, TypeError) as error:
            shown = [f"{array.dtype.name} of shape {array.shape}" for array in inputs]
            try:
                np.broadcast_shapes(*(array.shape for array in inputs))
            except ValueError:
                raise ShapeError(describe(self.name, shown, "the shapes do not broadcast")) from error
            raise DtypeError(describe(self.name, shown, str(error))) from error

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=self.flops * size, bytes=general.bytes, calls=0)

    # ---- forward derivatives, batches

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        """The tangent of the result: the sum of what the gradient makes of each operand's."""
        output = node.outputs[0]
        if self.gradient == ZERO or output.tensor_type.kind not in "fc":
            return [None]
        kinds = {variable.tensor_type.kind for variable in (*node.inputs, output)}
        if not callable(self.gradient) or "c" in kinds:
            return super().jvp(node, tangents)
        self.require_slopes(node, [tangent is not None for tangent in tangents])
        total: Variable | None = None
        for place, tangent in enumerate(tangents):
            part = None if tangent is None else self._pushed(node, tangent, place)
            if part is not None:
                total = part if total is None else total + part
        # Of several operands, one with an undeclared size of 1 must not pass for the result.
        sizes = output.tensor_type.shape if total is None else total.tensor_type.shape
        is_whole = sizes == output.tensor_type.shape and (None not in sizes or len(node.inputs) == 1)
        if total is None or is_whole:
            return [total]
        spread: Variable = op_named("fill")(output, total)
        return [spread]

    def _pushed(self, node: Apply, tangent: Variable, place: int) -> Variable | None:
        """What the tangent of one operand adds to that of the result."""
        gradient, output = self.gradient, node.outputs[0]
        assert callable(gradient)
        operands = (*node.inputs, output)
        (part,) = through(tangent, operands, lambda value: [gradient(node.inputs, output, value)[place]])
        return part

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*inputs).outputs)  # operands have one rank: those without the axis get it

    # ---- gradient

    def require_slopes(self, node: Apply, wanted: Sequence[bool]) -> None:
        for place in range(self.parameters):
            operand = node.inputs[place]
            if wanted[place] and operand.tensor_type.kind in "fc":
                reason = (
                    f"its derivative by operand {place + 1} is not known; where that shall count as a "
                    "constant, give esat.stop_gradient of it"
                )
                raise no_gradient(self.name, node.inputs, reason, node)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Cotangents of the operands in their own shapes; None for integers and where it is zero."""
        (cotangent,) = cotangents
        none: list[Variable | None] = [None] * len(node.inputs)
        if cotangent is None or self.gradient == ZERO or node.outputs[0].tensor_type.kind not in "fc":
            return none
        if not callable(self.gradient):
            raise no_gradient(self.name, node.inputs, "this op has no gradient", node)
        gradient, output = self.gradient, node.outputs[0]
        parts = through(cotangent, (*node.inputs, output), lambda value: gradient(node.inputs, output, value))
        return [
            unbroadcast(part, operand) if part is not None and operand.tensor_type.kind in "fc" else None
            for part, operand in zip(parts, node.inputs, strict=True)
        ]


Elementwise.__doc__ = Documentation(Elementwise.__doc__)  # type: ignore[assignment]


def no_gradient(name: str, inputs: Sequence[Variable], reason: str, node: Apply | None) -> GradientError:
    """The error of an op that has no gradient for these operands."""
    types = [variable.type for variable in inputs]
    return GradientError(describe(name, types, reason, None if node is None else node.where))


def unbroadcast(cotangent: Variable, operand: Variable) -> Variable:
    """``cotangent`` summed over the axes along which ``operand`` was stretched."""
    wanted = operand.tensor_type.broadcastable
    if wanted == cotangent.tensor_type.broadcastable:
        return cotangent
    # Reductions have gradients in terms of elementwise ops, so their module cannot come first.
    from esat.ops.reduction import sum_to

    return sum_to(cotangent, wanted)


def slope(derivative: Callable[[Variable, Variable], Variable]) -> Gradient:
    """The gradient of a function of one operand from its derivative, a function of operand and result."""

    def gradient(
        inputs: Sequence[Variable], output: Variable, cotangent: Variable
    ) -> Sequence[Variable | None]:
        return [cotangent * derivative(inputs[0], output)]

    return gradient
