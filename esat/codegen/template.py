"""Names in op templates: what they stand for in kernel source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from numba.core import types

from esat.codegen import vector_math
from esat.codegen.llvm import scalar
from esat.codegen.llvm.scipy_calls import scipy_function
from esat.ops.elementwise.records.code import KERNEL_DTYPES, SCALAR_HELPERS, SCIPY_FUNCTIONS, VECTOR_MATH

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_PYTHON = frozenset(["and", "or", "not", "True", "False"])
_NUMBERS = MappingProxyType({"inf": float("inf"), "nan": float("nan")})
_INVERSE = re.compile("^arc")
"""NumPy spells inverse functions ``arcsin``, the vector functions ``asin``."""

NUMBA_TYPES: MappingProxyType[str, Any] = MappingProxyType(
    {name: types.boolean if name == "bool" else getattr(types, name) for name in KERNEL_DTYPES}
)
"""The numba type of each dtype that has kernel code."""


def resolve(template: str, dtype: str) -> tuple[str, dict[str, object]]:
    """A template for operands of ``dtype`` as source text, and the objects that text names.

    Raises
    ------
    KeyError
        For a name that means nothing for ``dtype``.
    """
    environment: dict[str, object] = {}

    def name_of(match: re.Match[str]) -> str:
        name = match.group()
        if name in _PYTHON:
            return name
        text, environment_value = _meaning(name, dtype)
        environment[text] = environment_value
        return text

    return _NAME.sub(name_of, template), environment


def _meaning(name: str, dtype: str) -> tuple[str, object]:
    if name in VECTOR_MATH:
        if not dtype.startswith("float"):
            raise KeyError(name)
        return f"{name}_{dtype}", vector_math.function(_INVERSE.sub("a", name), int(dtype[-2:]))
    if name in SCIPY_FUNCTIONS:
        if not dtype.startswith("float"):
            raise KeyError(name)
        return f"{name}_{dtype}", scipy_function(name, int(dtype[-2:]))
    if name in SCALAR_HELPERS:
        return name, getattr(scalar, name)
    if name == "complex":
        return name, complex
    if name in _NUMBERS:
        return name, _NUMBERS[name]
    return name, NUMBA_TYPES[name]


def is_resolvable(template: str, dtype: str) -> bool:
    """Whether every name of a template means something for operands of ``dtype``."""
    try:
        resolve(template, dtype)
    except KeyError:
        return False
    return True


def placeholders(template: str) -> Iterator[int]:
    """Positions of the operands that a template names."""
    return (int(match) for match in re.findall(r"\{(\d+)\}", template))
