"""Draws of NumPy's random generators in machine code: its own functions, called by address.

NumPy declares them in ``numpy/random/distributions.h``; ``numpy/random/_examples/cffi`` shows how they are
called in its extension module. Where a build hides them, there are no native draws.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
from llvmlite import binding

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction, compiled

_Bound: TypeAlias = Literal["any", "positive", "share", "end of range"]
_INFINITY = "0x7FF0000000000000"


@record(frozen=True)
class _Function:
    """A function of NumPy's: what it draws, and which values of each parameter are right for sure."""

    name: str
    kind: str
    bounds: tuple[_Bound, ...]
    largest: float = inf


_FUNCTIONS = {
    "normal": _Function("random_normal", "double", ("any", "positive")),
    "exponential": _Function("random_exponential", "double", ("positive",)),
    "laplace": _Function("random_laplace", "double", ("any", "positive")),
    "gumbel": _Function("random_gumbel", "double", ("any", "positive")),
    "logistic": _Function("random_logistic", "double", ("any", "positive")),
    "gamma": _Function("random_gamma", "double", ("positive", "positive")),
    "beta": _Function("random_beta", "double", ("positive", "positive")),
    "lognormal": _Function("random_lognormal", "double", ("any", "positive")),
    "rayleigh": _Function("random_rayleigh", "double", ("positive",)),
    "vonmises": _Function("random_vonmises", "double", ("any", "positive")),
    "weibull": _Function("random_weibull", "double", ("positive",)),
    "pareto": _Function("random_pareto", "double", ("positive",)),
    "power": _Function("random_power", "double", ("positive",)),
    "standard_t": _Function("random_standard_t", "double", ("positive",)),
    "chisquare": _Function("random_chisquare", "double", ("positive",)),
    "f": _Function("random_f", "double", ("positive", "positive")),
    "wald": _Function("random_wald", "double", ("positive", "positive")),
    "uniform": _Function("random_uniform", "double", ("any", "end of range")),
    "poisson": _Function("random_poisson", "i64", ("positive",), 1e15),
    "geometric": _Function("random_geometric", "i64", ("share",)),
    "bernoulli": _Function("random_standard_uniform", "i8", ("share",)),
}


@record(frozen=True)
class DrawLine(HostFunction):
    """The function ``(generator, sample, first, second, count, first step, second step)``.

    It draws so many numbers from the bit generator whose address stands at the first pointer. Of each
    parameter it takes the bytes from one to the next; a second one that a distribution does not have is not
    read. It returns 0, or 1 where NumPy might refuse a parameter, before anything is drawn.
    """

    name: str

    @property
    def is_available(self) -> bool:
        """Whether NumPy shows the function."""
        return self.name in _FUNCTIONS and _address(_FUNCTIONS[self.name].name) is not None

    def surely_takes(self, parameters: Sequence[Any]) -> bool:
        """Whether known parameters are none that the function refuses."""
        function, before = _FUNCTIONS[self.name], 0.0
        for bound, parameter in zip(function.bounds, parameters, strict=True):
            value = np.asarray(parameter) - (before if bound == "end of range" else 0.0)
            right = np.isfinite(value) & (np.abs(value) < function.largest)
            if bound != "any":
                right &= (value >= 0) if bound == "end of range" else (value > 0)
            if bound == "share":
                right &= value <= 1
            if not np.all(right):
                return False
            before = parameter
        return True

    def text(self) -> str:
        return "\n".join(_lines(_FUNCTIONS[self.name]))

    def make(self) -> int:
        return _linked(_FUNCTIONS[self.name].name, self.text())


@record(frozen=True)
class IntegersLine(HostFunction):
    """The function ``(generator, sample, count, lowest, range)``.

    It draws integers of 64 bits, up to ``range`` above the lowest one, from the bit generator whose address
    stands at the first pointer.
    """

    @property
    def is_available(self) -> bool:
        """Whether NumPy shows the function."""
        return _address(_BOUNDED) is not None

    def make(self) -> int:
        return _linked(_BOUNDED, self.text())

    def text(self) -> str:
        lines = [
            f"declare void @{_BOUNDED}(ptr, i64, i64, i64, i1 zeroext, ptr)",
            "define void @run(ptr %holder, ptr %sample, i64 %count, i64 %lowest, i64 %range) {",
            "  %generator = load ptr, ptr %holder",
            f"  call void @{_BOUNDED}(ptr %generator, i64 %lowest, i64 %range, i64 %count, i1 zeroext false,"
            " ptr %sample)",
            "  ret void",
            "}",
        ]
        return "\n".join(lines)


_BOUNDED = "random_bounded_uint64_fill"


def _linked(name: str, text: str) -> int:
    """The address of the function of a module that calls one of NumPy's."""
    address = _address(name)
    assert address is not None
    binding.add_symbol(name, address)
    return compiled(text)


@functools.cache
def _address(name: str) -> int | None:
    """The address of a function of NumPy's; None where it is hidden."""
    path = importlib.import_module("numpy.random._generator").__file__
    try:
        return ctypes.cast(getattr(ctypes.CDLL(path), name), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def _lines(function: _Function) -> Iterator[str]:
    is_share = function.kind == "i8"  # a number is drawn, and compared with the parameter
    parameters = [] if is_share else [f"%d{k}" for k in range(len(function.bounds))]
    drawn = "double" if is_share else function.kind
    width = {"double": 8, "i64": 8, "i8": 1}[function.kind]
    yield f"declare {drawn} @{function.name}(ptr{', double' * len(parameters)})"
    yield "declare double @llvm.fabs.f64(double)"
    places, numbers = (
        "ptr %holder, ptr %sample, ptr %first0, ptr %first1",
        "i64 %count, i64 %step0, i64 %step1",
    )
    yield f"define i32 @run({places}, {numbers}) {{"
    yield "entry:"
    yield "  %generator = load ptr, ptr %holder"
    yield "  br label %c"
    yield "c:"
    yield "  %c_i = phi i64 [ 0, %entry ], [ %c_next, %c_on ]"
    yield from _loaded("c", function)
    right = "true"
    for k, bound in enumerate(function.bounds):
        yield from _right(f"c{k}", bound, function.largest)
        yield f"  %right{k} = and i1 {right}, %c{k}_right"
        right = f"%right{k}"
    yield f"  br i1 {right}, label %c_on, label %wrong"
    yield "c_on:"
    yield from _next("c", "d_entry", "c")
    yield "d_entry:"
    yield "  br label %d"
    yield "d:"
    yield "  %d_i = phi i64 [ 0, %d_entry ], [ %d_next, %d ]"
    yield from _loaded("d", function)
    operands = "".join(f", double {name}" for name in parameters)
    yield f"  %drawn = call {drawn} @{function.name}(ptr %generator{operands})"
    if is_share:
        yield "  %less = fcmp olt double %drawn, %d0"
        yield "  %number = zext i1 %less to i8"
    yield f"  %place_bytes = mul i64 %d_i, {width}"
    yield "  %place = getelementptr i8, ptr %sample, i64 %place_bytes"
    yield f"  store {function.kind} {'%number' if is_share else '%drawn'}, ptr %place"
    yield from _next("d", "done", "d")
    yield "done:"
    yield "  ret i32 0"
    yield "wrong:"
    yield "  ret i32 1"
    yield "}"


def _loaded(loop: str, function: _Function) -> Iterator[str]:
    """The parameters of the number that a loop is at; of a range the first one and the length."""
    for k, bound in enumerate(function.bounds):
        name = f"%{loop}{k}"
        yield f"  {name}_bytes = mul i64 %{loop}_i, %step{k}"
        yield f"  {name}_place = getelementptr i8, ptr %first{k}, i64 {name}_bytes"
        if bound == "end of range":
            yield f"  {name}_end = load double, ptr {name}_place"
            yield f"  {name} = fsub double {name}_end, %{loop}0"
        else:
            yield f"  {name} = load double, ptr {name}_place"


def _right(name: str, bound: _Bound, largest: float) -> Iterator[str]:
    """A bit: whether a parameter is right for sure. None is infinite."""
    yield f"  %{name}_size = call double @llvm.fabs.f64(double %{name})"
    yield f"  %{name}_finite = fcmp olt double %{name}_size, {_INFINITY if largest == inf else largest}"
    if bound == "any":
        yield f"  %{name}_right = and i1 %{name}_finite, true"
        return
    yield f"  %{name}_above = fcmp {'oge' if bound == 'end of range' else 'ogt'} double %{name}, 0.0"
    yield f"  %{name}_below = fcmp ole double %{name}, {1.0 if bound == 'share' else _INFINITY}"
    yield f"  %{name}_within = and i1 %{name}_above, %{name}_below"
    yield f"  %{name}_right = and i1 %{name}_within, %{name}_finite"


def _next(loop: str, after: str, again: str) -> Iterator[str]:
    yield f"  %{loop}_next = add nuw i64 %{loop}_i, 1"
    yield f"  %{loop}_ends = icmp eq i64 %{loop}_next, %count"
    yield f"  br i1 %{loop}_ends, label %{after}, label %{again}"
