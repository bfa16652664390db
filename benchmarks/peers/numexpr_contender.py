"""numexpr: elementwise parts as its programs, reductions and matrix products between them by NumPy.

The case is traced once. Elementwise arithmetic grows one expression until a reduction, a product or an
index needs its value; there it becomes a step of its own, as a user would split it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numexpr
import numpy as np
from numexpr.necompiler import NumExpr, double

from benchmarks.peers.cases import Case

VERSION = numexpr.__version__

_NUMEXPR_KIND = {"float32": float, "float64": double}  # its own names of the two


@dataclass(frozen=True)
class Step:
    """``target = function(*operands)``, all named by their places in the list of values."""

    function: Callable[..., Any]
    operands: tuple[int, ...]


class Trace:
    """Steps recorded so far.

    Attributes
    ----------
    values
        What is known at the start, by place: inputs (None) and constants.
    """

    def __init__(self, inputs: int, dtype: str) -> None:
        self.dtype = dtype
        self.values: list[Any] = [None] * inputs
        self.steps: dict[int, Step] = {}
        self._constants: dict[float, int] = {}

    def constant(self, value: float) -> Traced:
        """A constant goes in as an array of rank 0: written into the text it would be a float64."""
        if value not in self._constants:
            self._constants[value] = len(self.values)
            self.values.append(np.array(value, self.dtype))
        return Traced.leaf(self, self._constants[value])

    def step(self, function: Callable[..., Any], *operands: int) -> Traced:
        place = len(self.values)
        self.values.append(None)
        self.steps[place] = Step(function, operands)
        return Traced.leaf(self, place)


class Traced:
    """An elementwise expression over places."""

    __array_ufunc__ = None

    def __init__(self, trace: Trace, text: str, places: Sequence[int]) -> None:
        self.trace = trace
        self.text = text
        self.places = tuple(dict.fromkeys(places))
        self._place: int | None = None

    @classmethod
    def leaf(cls, trace: Trace, place: int) -> Traced:
        leaf = cls(trace, f"v{place}", (place,))
        leaf._place = place
        return leaf

    def place(self) -> int:
        """Where the value stands; makes the expression a step the first time."""
        if self._place is None:
            dtype = _NUMEXPR_KIND[self.trace.dtype]
            program = NumExpr(self.text, signature=[(f"v{place}", dtype) for place in self.places])
            step = self.trace.step(program, *self.places)
            self._place, self.text, self.places = step._place, step.text, step.places
        assert self._place is not None
        return self._place

    def _binary(self, symbol: str, other: Any, swapped: bool = False) -> Traced:
        if symbol == "**" and other == 2:
            return self * self
        other = other if isinstance(other, Traced) else self.trace.constant(float(other))
        left, right = (other, self) if swapped else (self, other)
        for operand in (left, right):
            # A large expression used twice would be computed twice.
            if len(operand.text) > 40:
                operand.place()
        return Traced(self.trace, f"({left.text} {symbol} {right.text})", (*left.places, *right.places))

    def call(self, name: str) -> Traced:
        return Traced(self.trace, f"{name}({self.text})", self.places)

    def __neg__(self) -> Traced:
        return Traced(self.trace, f"(-{self.text})", self.places)

    def __getitem__(self, index: Any) -> Traced:
        return self.trace.step(lambda array: array[index], self.place())

    @property
    def T(self) -> Traced:  # noqa: N802 (NumPy's name)
        return self.trace.step(np.transpose, self.place())


def _operator(symbol: str, swapped: bool) -> Callable[[Traced, Any], Traced]:
    return lambda self, other: self._binary(symbol, other, swapped)


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("pow", "**")):
    setattr(Traced, f"__{_name}__", _operator(_symbol, False))
    setattr(Traced, f"__r{_name}__", _operator(_symbol, True))


def _elementwise(name: str) -> Callable[[Traced], Traced]:
    return lambda x: x.call(name)


def _reduction(function: Callable[..., Any]) -> Callable[..., Traced]:
    def reduced(x: Traced, axis: int | None = None, keepdims: bool = False) -> Traced:
        return x.trace.step(functools.partial(function, axis=axis, keepdims=keepdims), x.place())

    return reduced


class Namespace:
    """numexpr's functions by name; NumPy's and SciPy's for what it lacks."""

    exp, log, sqrt, tanh = map(_elementwise, ("exp", "log", "sqrt", "tanh"))
    sum, mean, max = map(_reduction, (np.sum, np.mean, np.max))

    @staticmethod
    def matmul(left: Traced, right: Traced) -> Traced:
        return left.trace.step(np.matmul, left.place(), right.place())

    @staticmethod
    def erf(x: Traced) -> Traced:
        from scipy.special import erf

        return x.trace.step(erf, x.place())


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    trace = Trace(len(case.inputs), dtype)
    results = case.function(Namespace, *(Traced.leaf(trace, place) for place in range(len(case.inputs))))
    outputs = [one.place() for one in (results if isinstance(results, tuple) else (results,))]
    names: dict[str, Any] = {
        f"v{place}": value for place, value in enumerate(trace.values) if value is not None
    }
    lines = []
    for place, step in sorted(trace.steps.items()):
        names[f"f{place}"] = step.function
        lines.append(f"v{place} = f{place}({', '.join(f'v{operand}' for operand in step.operands)})")
    arguments = ", ".join(f"v{place}" for place in range(len(case.inputs)))
    returned = ", ".join(f"v{place}" for place in outputs)
    body = "\n    ".join([*lines, f"return {returned}"])
    exec(f"def call({arguments}):\n    {body}\n", names)
    return names["call"]
