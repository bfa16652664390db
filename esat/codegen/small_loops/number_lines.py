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

KINDS: Mapping[str, str] = {"float64": "double", "float32": "float", "int64": "i64", "bool": "i1"}
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
_INTEGERS: Mapping[str, str] = {
    "add": "add i64 {0}, {1}",
    "sub": "sub i64 {0}, {1}",
    "mul": "mul i64 {0}, {1}",
    "neg": "sub i64 0, {0}",
    "sqr": "mul i64 {0}, {0}",
    "lt": "icmp slt i64 {0}, {1}",
    "le": "icmp sle i64 {0}, {1}",
    "gt": "icmp sgt i64 {0}, {1}",
    "ge": "icmp sge i64 {0}, {1}",
    "eq": "icmp eq i64 {0}, {1}",
    "ne": "icmp ne i64 {0}, {1}",
}
_BOOLS: Mapping[str, str] = {
    **dict.fromkeys(("logical_and", "bitwise_and", "mul", "minimum"), "and i1 {0}, {1}"),
    **dict.fromkeys(("logical_or", "bitwise_or", "add", "maximum"), "or i1 {0}, {1}"),
    **dict.fromkeys(("logical_xor", "bitwise_xor", "ne"), "xor i1 {0}, {1}"),
    **dict.fromkeys(("logical_not", "invert"), "xor i1 {0}, true"),
}
_CODE: Mapping[str, Mapping[str, str]] = {
    "float64": _FLOATS, "float32": _FLOATS, "int64": _INTEGERS, "bool": _BOOLS
}  # fmt: skip
"""What an op is in LLVM's text, by the dtype of its operands: ``{k}`` is LLVM's type, ``{m}`` the end of
names of its functions."""
_CONVERSIONS: Mapping[tuple[str, str], str] = {
    ("float32", "float64"): "fpext float {0} to double",
    ("float64", "float32"): "fptrunc double {0} to float",
    ("int64", "float64"): "sitofp i64 {0} to double",
    ("int64", "float32"): "sitofp i64 {0} to float",
    ("bool", "float64"): "uitofp i1 {0} to double",
    ("bool", "float32"): "uitofp i1 {0} to float",
    ("bool", "int64"): "zext i1 {0} to i64",
    ("float64", "bool"): "fcmp une double {0}, 0.0",
    ("float32", "bool"): "fcmp une float {0}, 0.0",
    ("int64", "bool"): "icmp ne i64 {0}, 0",
}
_ONE_FUNCTION = re.compile(r"(\w+)\(\{0\}(?:, \{1\})?\)")
_CALL = re.compile(r"call (\S+) @([\w.]+)\((.*)\)")


class NoCodeError(Exception):
    """There is no text of an operation here."""


def constant(number: Any, dtype: str) -> str:
    """A number in LLVM's text."""
    if dtype == "bool":
        return "true" if number else "false"
    if dtype == "int64":
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
    """A number in another dtype."""
    if dtype == given:
        return operand
    if (given, dtype) not in _CONVERSIONS:
        raise NoCodeError
    return code.value(_CONVERSIONS[given, dtype].format(operand))


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
    if op.name in _CODE.get(dtype, {}):
        return computed(code, op.name, dtype, *operands)
    name = formula_of(op, dtype)
    if name is None:
        raise NoCodeError
    kind = KINDS[dtype]
    given = ", ".join(f"{kind} {one}" for one in operands)
    return code.value(f"call {kind} @esat_{name}_{dtype}({given})")


def declarations(lines: list[str]) -> list[str]:
    """Of all functions that lines call."""
    found = {}
    for line in lines:
        call = _CALL.search(line)
        if call is not None:
            types = ", ".join(one.split()[0] for one in call[3].split(", "))
            found[call[2]] = f"declare {call[1]} @{call[2]}({types})"
    return [*found.values()]


def elements(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The text of each number of an array."""
    found = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        found[place] = constant(array[place], dtype)
    return found
