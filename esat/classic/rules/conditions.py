"""Conditions of rules, evaluated on Variables of a FunctionGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from esat.classic.rules.graph_terms import Literal
from esat.egraph.analyses.facts import lossless
from esat.egraph.analyses.known import has_fact, is_exponential, overflows, vanishes
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.analyses.uniform import broadcast_of, dtype_of, value_of
from esat.egraph.language.op_parameters import Parameter
from esat.egraph.language.signature import Signature
from esat.graph import Variable
from esat.graph.types import DTYPES
from esat.ops.inference.structure import NUMBERS, RANGES
from esat.rules.language.macros import expand, permutation_axes, permutation_input_rank
from esat.rules.language.reader import Sexp, is_number

Value = Parameter
"""A Variable, or a parameter."""
Bindings = Mapping[str, Value]

Reading = Callable[[Bindings], Literal]
"""Finds the value of an expression under bindings; raises Unknown where it has none."""

_ARITHMETIC: Mapping[str, Callable[[Sequence[Literal]], Literal]] = {
    "+": partial(reduce, operator.add),
    "-": partial(reduce, operator.sub),
    "*": partial(reduce, operator.mul),
    "&": partial(reduce, operator.and_),
    "|": partial(reduce, operator.or_),
    ">>": partial(reduce, operator.rshift),
    "min": min,
    "max": max,
    "<<": lambda numbers: _signed(int(numbers[0]) << int(numbers[1]) if numbers[1] < _BITS else 0),
    "not-i64": lambda numbers: ~int(numbers[0]),
    "to-f64": lambda numbers: float(numbers[0]),
    "to-i64": lambda numbers: int(numbers[0]),
    "log2": lambda numbers: int(numbers[0]).bit_length() - 1,
}
_COMPARISONS: Mapping[str, Callable[[Literal, Literal], bool]] = {
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BITS = 64
_RANGES: Mapping[str, Callable[[Variable], bool]] = {
    "overflows": overflows,
    "vanishes": vanishes,
    "exponential": is_exponential,
}


class Unknown(Exception):  # noqa: N818 - a condition that cannot be decided is no error
    """A condition asks for what is not known of a Variable."""


class Conditions:
    """Evaluates literals, type functions and facts under bindings of rule variables.

    Parameters
    ----------
    signature
        Constructors of the term language.
    has_structure
        Whether a fact about matrices is known of a Variable.
    """

    def __init__(
        self, signature: Signature, has_structure: Callable[[Variable, str], bool] = lambda *_: False
    ) -> None:
        self.operators = signature.operators
        self.has_structure = has_structure
        self._readings: dict[Sexp, Reading] = {}

    # ---- expressions

    def literal(self, expression: Sexp, bindings: Bindings) -> Literal:
        """The value of an expression of sort i64 or f64. Raises Unknown where it has none."""
        reading = self._readings.get(expression)
        if reading is None:
            reading = self._readings[expression] = self._reading(expand(expression))
        return reading(bindings)

    def _reading(self, expression: Sexp) -> Reading:
        """What finds an expression's value: taken apart once, for conditions are asked often."""
        if isinstance(expression, str):
            if not is_number(expression):
                return partial(_bound, expression)
            return _constant(
                float(expression) if any(mark in expression for mark in ".en") else int(expression)
            )
        name = str(expression[0])
        if name in ("dt", "bp", "val"):
            return partial(self._type_function, name, expression[1])
        operands = tuple(map(self._reading, expression[1:]))
        operation = _ARITHMETIC.get(name)
        return partial(_unknown, name) if operation is None else partial(_computed, operation, operands)

    def _type_function(self, name: str, of: Sexp, bindings: Bindings) -> Literal:
        variable = bindings.get(of) if isinstance(of, str) else None
        if isinstance(variable, Variable):
            if name == "val":
                value = value_of(variable)
                if value is None:
                    raise Unknown("val")
                return value
            return dtype_of(variable) if name == "dt" else broadcast_of(variable)
        if isinstance(of, str) or name == "val":
            raise Unknown(name)
        return self._type_of_term(name, of, bindings)

    def _type_of_term(self, name: str, term: tuple[Sexp, ...], bindings: Bindings) -> Literal:
        """Dt or bp of a term that is written out, by the typing of its constructor."""
        record = self.operators.get(str(term[0]))
        if record is None:
            raise Unknown(str(term[0]))
        if name == "dt":
            if record.dtype == "bool":
                return 0
            if record.dtype.startswith("#"):
                return self.literal(term[1 + int(record.dtype[1:])], bindings)
            return self._type_function("dt", term[1 + record.tensor_operands[-1]], bindings)
        words: dict[str, Value] = {}
        for index, operand in enumerate(term[1:]):
            tensor = index in record.tensor_operands
            words[f"#{index}"] = (
                self._type_function("bp", operand, bindings) if tensor else self.literal(operand, bindings)
            )
        if not record.broadcast:
            raise Unknown(str(term[0]))
        return self.literal(record.broadcast_expression, words)

    # ---- facts

    def holds(self, condition: Sexp, bindings: dict[str, Value]) -> bool:
        """Whether a condition that matches no term holds; ``(= x expression)`` binds an unbound ``x``."""
        assert not isinstance(condition, str)
        name, operands = str(condition[0]), list(condition[1:])
        try:
            if name == "=":
                return self._equal(operands[0], operands[1], bindings)
            if name in _COMPARISONS:
                left, right = (self.literal(operand, bindings) for operand in operands)
                return _COMPARISONS[name](left, right)
            return self._fact(name, operands, bindings)
        except Unknown:
            return False

    def _equal(self, left: Sexp, right: Sexp, bindings: dict[str, Value]) -> bool:
        for target, source in ((left, right), (right, left)):
            if isinstance(target, str) and not is_number(target) and target not in bindings:
                bindings[target] = self.literal(source, bindings)
                return True
        return self.literal(left, bindings) == self.literal(right, bindings)

    def _fact(self, name: str, operands: list[Sexp], bindings: Bindings) -> bool:
        if name in (*NUMBERS, "integral"):
            variable = bindings.get(str(operands[0]))
            return isinstance(variable, Variable) and has_fact(variable, name)
        if name in RANGES:
            variable = bindings.get(str(operands[0]))
            return isinstance(variable, Variable) and _RANGES[name](variable)
        if name in RELATIONS:
            variable = bindings.get(str(operands[0]))
            return isinstance(variable, Variable) and self.has_structure(variable, name)
        numbers = [int(self.literal(operand, bindings)) for operand in operands]
        if name == "lossless":
            return lossless(DTYPES[numbers[0]], DTYPES[numbers[1]])
        if name == "identity-word":
            axes = permutation_axes(numbers[0])
            return axes == tuple(range(permutation_input_rank(numbers[0])))
        kinds = {"float-dtype": "f", "complex-dtype": "c", "integer-dtype": "iu"}
        if name in kinds:
            return _kind(numbers[0]) in kinds[name]
        raise Unknown(name)


def _bound(name: str, bindings: Bindings) -> Literal:
    value = bindings.get(name)
    if not isinstance(value, int | float):
        raise Unknown(name)
    return value


def _constant(number: Literal) -> Reading:
    return lambda bindings: number


def _computed(
    operation: Callable[[Sequence[Literal]], Literal], operands: Sequence[Reading], bindings: Bindings
) -> Literal:
    return operation([operand(bindings) for operand in operands])


def _unknown(name: str, bindings: Bindings) -> Literal:
    raise Unknown(name)


def _kind(dtype: int) -> str:
    name = DTYPES[dtype]
    return name[0] if name[0] != "b" else "b"


def _signed(number: int) -> int:
    """As a 64-bit two's complement, which is what i64 holds."""
    number &= (1 << _BITS) - 1
    return number - (1 << _BITS) if number >> (_BITS - 1) else number
