"""NumPy's constants and dtypes under the names they have there."""

from __future__ import annotations

from numpy import (
    bool,
    bool_,
    complex64,
    complex128,
    e,
    euler_gamma,
    float16,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "bool", "bool_", "complex64", "complex128", "e", "euler_gamma", "float16", "float32", "float64", "inf",
    "int8", "int16", "int32", "int64", "nan", "newaxis", "pi", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
