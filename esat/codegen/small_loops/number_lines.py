"""Elementwise operations on single numbers in LLVM's text."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from esat.codegen.matmul.straight_line import StraightLine
from esat.ops.elementwise.records.code import VECTOR_MATH
from esat.ops.elementwise.records.record import Elementwise

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
KINDS: Mapping[str, str] = {
    **{"float64": "double", "float32": "float", "bool": "i1"},
    **{dtype: f"i{dtype.split('int')[1]}" for dtype in INTEGERS},
}
"""LLVM's types of the numbers that there is code for."""
FORMULA_LINES = 24
"""Lines that take as long as a function of :data:`VECTOR_MATH`: an exponential 6 ns, an addition 0.25."""
QUOTIENT_LINES = 4
"""The same of a quotient."""

_FLOATS: Mapping[str, str] = {
    "add": "fadd {k} {0}, {1}",
    "sub": "fsub {k} {0}, {1}",
    "mul": "fmul {k} {0}, {1}",
    "div": "fdiv {k} {0}, {1}",
    "neg": "fneg {k} {0}",
    "sqr": "fmul {k} {0}, {0}",
    "reciprocal": "fdiv {k} 1.0, {0}",
    "sqrt": "call {k} @llvm.sqrt.{m}({k} {0})",
    "abs": "call {k} @llvm.fabs.{m}({k} {0})",
    "floor": "call {k} @llvm.floor.{m}({k} {0})",
    "ceil": "call {k} @llvm.ceil.{m}({k} {0})",
    "trunc": "call {k} @llvm.trunc.{m}({k} {0})",
    "copysign": "call {k} @llvm.copysign.{m}({k} {0}, {k} {1})",
    "maximum": "call {k} @llvm.maximum.{m}({k} {0}, {k} {1})",
    "minimum": "call {k} @llvm.minimum.{m}({k} {0}, {k} {1})",
    "exp": "call {k} @llvm.exp.{m}({k} {0})",
    "log": "call {k} @llvm.log.{m}({k} {0})",
    "sin": "call {k} @llvm.sin.{m}({k} {0})",
    "cos": "call {k} @llvm.cos.{m}({k} {0})",
    "multiply_add": "call {k} @llvm.fmuladd.{m}({k} {0}, {k} {1}, {k} {2})",
    "lt": "fcmp olt {k} {0}, {1}",
    "le": "fcmp ole {k} {0}, {1}",
    "gt": "fcmp ogt {k} {0}, {1}",
    "ge": "fcmp oge {k} {0}, {1}",
    "eq": "fcmp oeq {k} {0}, {1}",
    "ne": "fcmp une {k} {0}, {1}",
    "isnan": "fcmp uno {k} {0}, {0}",
}


def _of_integers(sign: str) -> dict[str, str]:
    """Of integers that are signed, ``s``, or not, ``u``; results wrap around."""
    return {
        **{name: f"{name} {{k}} {{0}}, {{1}}" for name in ("add", "sub", "mul")},
        **{f"bitwise_{name}": f"{name} {{k}} {{0}}, {{1}}" for name in ("and", "or", "xor")},
        "invert": "xor {k} {0}, -1",
        "neg": "sub {k} 0, {0}",
        "sqr": "mul {k} {0}, {0}",
        "abs": "call {k} @llvm.abs.{k}({k} {0}, i1 false)" if sign == "s" else "add {k} {0}, 0",
        "maximum": f"call {{k}} @llvm.{sign}max.{{k}}({{k}} {{0}}, {{k}} {{1}})",
        "minimum": f"call {{k}} @llvm.{sign}min.{{k}}({{k}} {{0}}, {{k}} {{1}})",
        **{name: f"icmp {sign}{name} {{k}} {{0}}, {{1}}" for name in ("lt", "le", "gt", "ge")},
        **{name: f"icmp {name} {{k}} {{0}}, {{1}}" for name in ("eq", "ne")},
    }


_BOOLS: Mapping[str, str] = {
    **dict.fromkeys(("logical_and", "bitwise_and", "mul", "minimum"), "and i1 {0}, {1}"),
    **dict.fromkeys(("logical_or", "bitwise_or", "add", "maximum"), "or i1 {0}, {1}"),
    **dict.fromkeys(("logical_xor", "bitwise_xor", "ne"), "xor i1 {0}, {1}"),
    **dict.fromkeys(("logical_not", "invert"), "xor i1 {0}, true"),
}
_CODE: Mapping[str, Mapping[str, str]] = {
    "float64": _FLOATS,
    "float32": _FLOATS,
    "bool": _BOOLS,
    **{dtype: _of_integers("u" if dtype.startswith("u") else "s") for dtype in INTEGERS},
}
"""What an op is in LLVM's text, by the dtype of its operands: ``{k}`` is LLVM's type, ``{m}`` the end of
names of its functions."""
_ONE_FUNCTION = re.compile(r"(\w+)\(\{0\}(?:, \{1\})?\)")
_CALL = re.compile(r"call (\S+) @([\w.]+)\((.*)\)")


class NoCodeError(Exception):
    """There is no text of an operation here."""


def constant(number: Any, dtype: str) -> str:
    """A number in LLVM's text."""
    if dtype == "bool":
        return "true" if number else "false"
    if dtype in INTEGERS:
        return str(int(number))
    (bits,) = struct.unpack("<Q", struct.pack("<d", float(number)))
    return f"0x{bits:016X}"  # of float32, too


def computed(code: StraightLine, name: str, dtype: str, *operands: str) -> str:
    """The result of an op on numbers of a dtype. Raises NoCodeError where there is no text of it."""
    template = _CODE.get(dtype, {}).get(name)
    if template is None:
        raise NoCodeError
    return code.value(template.format(*operands, k=KINDS[dtype], m=f"f{dtype[-2:]}"))


def converted(code: StraightLine, dtype: str, given: str, operand: str) -> str:
    """A number in another dtype. Raises NoCodeError from floats to integers, which need not fit."""
    if dtype == given:
        return operand
    source, target = KINDS[given], KINDS[dtype]
    extends = "uint" in given or given == "bool"
    if dtype == "bool":
        zero = "fcmp une {k} {0}, 0.0" if given.startswith("float") else "icmp ne {k} {0}, 0"
        return code.value(zero.format(operand, k=source))
    if given.startswith("float"):
        if not dtype.startswith("float"):
            raise NoCodeError
        name = "fpext" if dtype == "float64" else "fptrunc"
    elif dtype.startswith("float"):
        name = "uitofp" if extends else "sitofp"
    elif int(source[1:]) == int(target[1:]):
        return operand
    else:
        name = "trunc" if int(source[1:]) > int(target[1:]) else "zext" if extends else "sext"
    return code.value(f"{name} {source} {operand} to {target}")


def divided(code: StraightLine, name: str, dtype: str, number: str, divisor: str) -> str:
    """The quotient of integers, rounded down, or its remainder, of the divisor's sign; 0 where that is 0."""
    kind, floors = KINDS[dtype], name == "floor_div"
    is_known = divisor.lstrip("-").isdigit()
    if is_known and int(divisor) > 0 and int(divisor) & (int(divisor) - 1) == 0:
        shift = "lshr" if dtype.startswith("u") else "ashr"
        bits = int(divisor).bit_length() - 1
        text = f"{shift} {kind} {number}, {bits}" if floors else f"and {kind} {number}, {int(divisor) - 1}"
        return code.value(text)
    is_safe = is_known and int(divisor) not in (0, -1)
    zero = "false" if is_safe else code.value(f"icmp eq {kind} {divisor}, 0")
    if dtype.startswith("u"):
        safe = divisor if is_safe else code.value(f"select i1 {zero}, {kind} 1, {kind} {divisor}")
        found = code.value(f"{'udiv' if floors else 'urem'} {kind} {number}, {safe}")
    else:
        safe, negative = divisor, "false"
        if not is_safe:  # the least integer has no quotient by -1
            negative = code.value(f"icmp eq {kind} {divisor}, -1")
            refused = code.value(f"or i1 {zero}, {negative}")
            safe = code.value(f"select i1 {refused}, {kind} 1, {kind} {divisor}")
        rest = code.value(f"srem {kind} {number}, {safe}")
        signs = code.value(f"xor {kind} {rest}, {safe}")
        differ = code.value(f"icmp slt {kind} {signs}, 0")
        some = code.value(f"icmp ne {kind} {rest}, 0")
        adjusts = code.value(f"and i1 {differ}, {some}")
        if floors:
            quotient = code.value(f"sdiv {kind} {number}, {safe}")
            less = code.value(f"sub {kind} {quotient}, 1")
            found = code.value(f"select i1 {adjusts}, {kind} {less}, {kind} {quotient}")
            if not is_safe:
                turned = code.value(f"sub {kind} 0, {number}")
                found = code.value(f"select i1 {negative}, {kind} {turned}, {kind} {found}")
        else:
            moved = code.value(f"add {kind} {rest}, {safe}")
            found = code.value(f"select i1 {adjusts}, {kind} {moved}, {kind} {rest}")
    return found if is_safe else code.value(f"select i1 {zero}, {kind} 0, {kind} {found}")


def formula_of(op: Elementwise, dtype: str) -> str | None:
    """The name of the one function of floats that an op is; None of other ops."""
    template = None if op.code is None or isinstance(op.code, str) else op.code.template(dtype)
    found = _ONE_FUNCTION.fullmatch(template or "")
    if found is None or found[1] not in VECTOR_MATH or not dtype.startswith("float"):
        return None
    return re.sub("^arc", "a", found[1])


def elementwise(code: StraightLine, op: Elementwise, dtypes: list[str], operands: list[str]) -> str:
    """The result of an elementwise op on numbers."""
    dtype = dtypes[-1]
    if op.name == "switch":
        return code.value(
            f"select i1 {operands[0]}, {KINDS[dtype]} {operands[1]}, {KINDS[dtype]} {operands[2]}"
        )
    if op.name in ("floor_div", "mod") and dtype in INTEGERS:
        return divided(code, op.name, dtype, *operands)
    if op.name in _CODE.get(dtype, {}):
        return computed(code, op.name, dtype, *operands)
    name = formula_of(op, dtype)
    if name is None:
        raise NoCodeError
    kind = KINDS[dtype]
    given = ", ".join(f"{kind} {one}" for one in operands)
    return code.value(f"call {kind} @esat_{name}_{dtype}({given})")


def cost_of(line: str) -> int:
    """About how many lines take as long."""
    if "@esat_" in line:
        return FORMULA_LINES
    return QUOTIENT_LINES if "div " in line or "rem " in line else 1


def declarations(lines: list[str]) -> list[str]:
    """Of all functions that lines call."""
    found = {}
    for line in lines:
        call = _CALL.search(line)
        if call is not None and call[2] != "asks":
            types = ", ".join(one.split()[0] for one in call[3].split(", ") if one)
            found[call[2]] = f"declare {call[1]} @{call[2]}({types})"
    return [*found.values()]


def elements(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The text of each number of an array."""
    found = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        found[place] = constant(array[place], dtype)
    return found
