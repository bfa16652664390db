"""The loops of extraction as Python, with arrays that refuse indices which are out of range or negative.

As machine code they would read or write what is not theirs; as Python on NumPy's arrays a negative index
would count from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from esat.base.native import Arrays
from esat.extract.choice.compiled_loops import PYTHON, ExtractionBackend


class CheckedArray:
    """An array of which one element at a time is read or written."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: int) -> float:
        return self._array[self._checked(index)].item()

    def __setitem__(self, index: int, value: float) -> None:
        self._array[self._checked(index)] = value

    def _checked(self, index: int) -> int:
        if not 0 <= index < len(self._array):
            raise IndexError(f"{index} is no index of {len(self._array)} elements")
        return index


def _checked(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return CheckedArray(argument)
    if isinstance(argument, Arrays):
        named = {field.name: CheckedArray(getattr(argument, field.name)) for field in fields(argument)}
        return SimpleNamespace(**named)
    return argument


def checking(loop: Callable[..., Any]) -> Callable[..., Any]:
    """A loop as Python that refuses such indices."""
    return lambda *arguments: loop(*map(_checked, arguments))


CHECKED = ExtractionBackend(
    "checked", *(checking(getattr(PYTHON, field.name)) for field in fields(PYTHON)[1:])
)
