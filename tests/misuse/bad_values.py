"""Values of forty kinds that hardly any parameter means."""

import decimal
import fractions
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import esat


def _contains_itself() -> list[Any]:
    values: list[Any] = [1.0]
    values.append(values)
    return values


def _deep() -> list[Any]:
    values: list[Any] = [1.0]
    for _ in range(5000):
        values = [values]
    return values


MAKERS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "object": object,
    "text": lambda: "a",
    "no text": lambda: "",
    "bytes": lambda: b"a",
    "lone surrogate": lambda: "\ud800",
    "long text": lambda: "(" * 50_000,
    "-1": lambda: -1,
    "2**31": lambda: 2**31,
    "2**62": lambda: 2**62,
    "-2**62": lambda: -(2**62),
    "10**400": lambda: 10**400,
    "1.5": lambda: 1.5,
    "nan": lambda: math.nan,
    "-inf": lambda: -math.inf,
    "1j": lambda: 1j,
    "fraction": lambda: fractions.Fraction(1, 3),
    "decimal": lambda: decimal.Decimal(2),
    "numpy 2**62": lambda: np.int64(2**62),
    "numpy uint64": lambda: np.uint64(2**64 - 1),
    "no elements": lambda: np.array([]),
    "array of text": lambda: np.array(["a", "b"]),
    "array of objects": lambda: np.array([None, 1], dtype=object),
    "array of times": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "structured array": lambda: np.zeros(2, dtype=[("a", "f8")]),
    "masked array": lambda: np.ma.array([1.0, 2.0], mask=[True, False]),
    "array of rank 9": lambda: np.zeros((1,) * 9),
    "large sizes": lambda: (2**40, 2**40),
    "no list": list,
    "no tuple": tuple,
    "ragged": lambda: [[1], [1, 2]],
    "list of None": lambda: [None],
    "contains itself": _contains_itself,
    "deep": _deep,
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "generator": lambda: (number for number in (1, 2)),
    "slice": lambda: slice(None),
    "Ellipsis": lambda: ...,
    "class": lambda: int,
    "function": lambda: lambda x: x,
    "module": lambda: math,
    "op": lambda: esat.exp,
    "type": lambda: esat.dvector,
    "apply": lambda: (esat.vector() + 1).owner,
    "Variable of integers": lambda: esat.ivector("bad"),
    "Variable of complex numbers": lambda: esat.matrix("bad", dtype="complex64"),
    "Variable of rank 8": lambda: esat.tensor("bad", shape=(None,) * 8),
    "empty Variable": lambda: esat.tensor("bad", shape=(0,)),
    "sparse Variable": lambda: esat.sparse.csr_matrix("bad"),
    "state of a generator": lambda: esat.random.state("bad"),
    "list of Variables": lambda: [esat.vector("bad"), esat.matrix("bad")],
}
