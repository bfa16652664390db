"""Op templates as lines of kernel text, which numba compiles for a device and for the CPU alike.

A template names functions (:data:`esat.ops.elementwise.records.code.TEMPLATE_NAMES`). Those of
:data:`DIRECT` are functions of ``math``, which on a device are libdevice's; all others are written out over
them by :data:`FORMULAS`. So a kernel is one function that calls no other.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

import numpy as np

from esat.gpu.kernel_text.formulas import FORMULAS, INTEGER_POWER
from esat.ops.elementwise.records.code import CODE_DTYPES

DIRECT: Mapping[str, str] = MappingProxyType(
    {
        name: name
        for name in (
            *("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "pow", "copysign", "fmod"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc"),
        )
    }
    | {f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")}
    | {"gammaln": "lgamma", "fused_multiply_add": "fma", "multiply_add": "fma"}
)
"""Names in templates of floats -> functions that kernel text calls."""

_NUMBERS: Mapping[str, str] = MappingProxyType({"inf": "math.inf", "nan": "math.nan"})
_TEXT_ONLY = frozenset(["fabs", "fma"])
"""Names that formulas use and templates do not."""


class NoDeviceFormError(Exception):
    """A name in a template has no kernel text for the dtype of its operands."""


def fill(
    template: str, dtype: str, operands: Sequence[str], temporaries: Iterator[str]
) -> tuple[list[str], str]:
    """A template filled with operands: lines that come before, and the text of its value.

    Parameters
    ----------
    template
        As ops have them, with literals as numbers of their dtype.
    dtype
        Of the operands.
    operands
        Their text: names, or elements of arrays.
    temporaries
        New names.

    Returns
    -------
    lines : list of str
    value : str
        Of ``dtype`` or, for a comparison, a bool. Integers may be of a wider type: they wrap around where
        they are converted to their own.

    Raises
    ------
    NoDeviceFormError
        When the template names what has no text for ``dtype``.

    >>> fill("maximum({0}, {1})", "float32", ["a", "b"], iter(["t0"]))
    ([], 'a if a > b or a != a else b')
    >>> fill("sign({0} - {1})", "int32", ["a", "b"], iter(["t0"]))
    (['t0 = a - b'], 'int32(t0 > 0) - int32(t0 < 0)')
    """
    tree = ast.parse(template.format(*operands), mode="eval").body
    lines: list[str] = []
    value = _Expansion(dtype, lines, temporaries).visit(tree)
    return lines, ast.unparse(value)


@functools.cache
def is_fillable(template: str, dtype: str) -> bool:
    """Whether a template has kernel text for operands of ``dtype``.

    >>> is_fillable("exp({0})", "float32"), is_fillable("exp({0})", "int32")
    (True, False)
    """
    try:
        fill(template, dtype, ["a", "b", "c"], (f"t{number}" for number in count()))
    except NoDeviceFormError:
        return False
    return True


class _Expansion(ast.NodeTransformer):
    """Calls in a template, innermost first, as kernel text."""

    def __init__(self, dtype: str, lines: list[str], temporaries: Iterator[str]) -> None:
        self.dtype = dtype
        self.kind = _kind(dtype)
        self.lines = lines
        self.temporaries = temporaries

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _parsed(_NUMBERS.get(node.id, node.id))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        arguments = [self.visit(argument) for argument in node.args]
        if name in CODE_DTYPES or name in _TEXT_ONLY:
            return ast.Call(node.func, arguments, [])
        if name == "integer_power" and self.kind in ("signed", "unsigned"):
            return self._power(arguments)
        formula = FORMULAS.get((name, self.kind))
        if formula is not None:
            return self._written_out(formula, arguments)
        if name not in DIRECT or self.kind != "floating":
            raise NoDeviceFormError(f"{name} of {self.dtype}")
        return ast.Call(ast.Name(DIRECT[name]), arguments, [])

    def _written_out(self, formula: str, arguments: Sequence[ast.expr]) -> ast.expr:
        names = [
            self._named(argument) if formula.count(f"{{{place}}}") > 1 else f"({ast.unparse(argument)})"
            for place, argument in enumerate(arguments)
        ]
        filled = formula.format(*names, **_numbers_of(self.dtype))
        *steps, value = filled.split("; ")
        renamed: dict[str, str] = {}
        for step in steps:
            name, text = step.split(" := ")
            result = self._named(self.visit(_renamed(text, renamed)), always=True)
            renamed[name] = result
        expanded: ast.expr = self.visit(_renamed(value, renamed))
        return expanded

    def _named(self, argument: ast.expr, always: bool = False) -> str:
        """A name for a value, which may be read often; one of its own if it is to be written."""
        text = ast.unparse(argument)
        number = isinstance(argument, ast.Call) and isinstance(argument.args[0], ast.Constant)
        if not always and (number or isinstance(argument, ast.Name | ast.Constant | ast.Subscript)):
            return text
        name = next(self.temporaries)
        self.lines.append(f"{name} = {text}")
        return name

    def _power(self, arguments: Sequence[ast.expr]) -> ast.expr:
        base, exponent = (ast.unparse(argument) for argument in arguments)
        power, square, rest = (next(self.temporaries) for _ in range(3))
        names = {"power": power, "square": square, "rest": rest, "base": base, "exponent": exponent}
        self.lines += INTEGER_POWER.format(T=self.dtype, **names).splitlines()
        return ast.Name(power)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _renamed(text: str, names: Mapping[str, str]) -> ast.expr:
    class Renaming(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Name(names.get(node.id, node.id))

    renamed: ast.expr = Renaming().visit(_parsed(text))
    return renamed


def _kind(dtype: str) -> str:
    if dtype == "bool":
        return "boolean"
    if dtype.startswith("float"):
        return "floating"
    return "unsigned" if dtype.startswith("uint") else "signed"


@functools.cache
def _numbers_of(dtype: str) -> dict[str, object]:
    """What formulas call ``T``, and numbers that differ from dtype to dtype."""
    numbers: dict[str, object] = {"T": dtype}
    if dtype.startswith("float"):
        # Floats from here on have no fraction, and adding this rounds to the nearest whole number.
        numbers["whole"] = f"{dtype}({float(2 ** np.finfo(dtype).nmant)!r})"
        numbers["wide"] = dtype
    elif dtype != "bool":
        limits = np.iinfo(dtype)
        numbers |= {"lowest": f"({limits.min})", "bits": limits.bits}
        # Sums and products of narrower ones fit into the 64 bits numba computes with.
        numbers["wide"] = "uint64" if limits.bits == 64 else dtype
    return numbers


def converted(operand: str, source: str, target: str, temporaries: Iterator[str]) -> tuple[list[str], str]:
    """A value cast as NumPy casts on x86-64: lines that come before, and its text.

    >>> converted("v0", "float32", "float64", iter(()))
    ([], 'float64(v0)')
    >>> lines, text = converted("v0", "float64", "int8", iter(["t0"]))
    >>> lines, text
    (['t0 = int32(v0) if fabs(v0) < float64(2147483648.0) else int32(-2147483648)'], 'int8(t0)')
    """
    if target == "bool":
        return [], operand if source == "bool" else f"{operand} != 0"
    if "int" not in target or not source.startswith("float"):
        return [], f"{target}({operand})"
    bits = 32 if np.iinfo(target).max <= 2**31 - 1 else 64
    whole = next(temporaries)
    if target != "uint64":
        return [f"{whole} = {_whole(operand, source, bits)}"], f"{target}({whole})"
    # What is beyond 63 bits is converted without its highest bit, as C compilers do.
    limit, high = f"{source}({2.0**63!r})", next(temporaries)
    lines = [
        f"{high} = {operand} >= {limit}",
        f"{whole} = {operand} - {limit} if {high} else {operand}",
        f"{whole}w = {_whole(whole, source, 64)}",
    ]
    return lines, f"uint64({whole}w) ^ (uint64({2**63}) if {high} else uint64(0))"


def _whole(operand: str, source: str, bits: int) -> str:
    """A float without its fraction; the least integer for NaN and beyond the range, as processors have it."""
    limit = f"{source}({math.ldexp(1.0, bits - 1)!r})"
    return f"int{bits}({operand}) if fabs({operand}) < {limit} else int{bits}({-(2 ** (bits - 1))})"
