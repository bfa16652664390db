"""Functions of BLAS, with their arguments, as steps of native functions."""

from __future__ import annotations

import numpy as np

from esat.codegen.matmul.small_products import RoutineNumbers, order_of
from esat.codegen.native_functions.native_plan import Place, RoutineStep, Step
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError
from esat.runtime.native.native_triangles import Triangle
from esat.runtime.native.native_views import NativeView


class BlasNumbers:
    """Arguments of functions of SciPy's BLAS, which all are pointers."""

    def __init__(self, memory: NativeMemory, view: NativeView) -> None:
        self.numbers = RoutineNumbers(f"float{8 * view.itemsize}", "scipy")
        memory.kept.append(self.numbers)

    def step(self, name: str, letters: str, *arguments: Place | int | float) -> RoutineStep:
        address = self.numbers.address(name)
        if address is None:
            raise NoNativeFormError
        places = [Place("fixed", self.numbers.letter(letter)) for letter in letters]
        for one in arguments:
            if isinstance(one, Place):
                places.append(one)
            else:
                number = self.numbers.integer if isinstance(one, int) else self.numbers.scalar
                places.append(Place("fixed", number(one)))  # type: ignore[arg-type]
        return RoutineStep(address, tuple(places))


def dtype_of(view: NativeView) -> np.dtype[np.generic]:
    """The floating-point dtype of elements."""
    return np.dtype(f"float{8 * view.itemsize}")


def stored(memory: NativeMemory, matrix: NativeView) -> tuple[NativeView, bool, int, list[Step]]:
    """A matrix whose rows or columns lie in one piece each, whether rows do, and their distance."""
    order = order_of(matrix.shape, matrix.strides)
    if order is not None:
        return matrix, order[0] == "C", order[1], []
    copy = memory.scratch(matrix.shape, dtype_of(matrix))
    return copy, True, matrix.shape[1], memory.move(copy, matrix, dtype_of(matrix))


def gram_triangle(
    memory: NativeMemory,
    left: NativeView,
    output: NativeView,
    triangle: Triangle,
    scales: tuple[float, float] = (1.0, 0.0),
) -> list[Step]:
    """A triangle of ``alpha * left @ left.T + beta * output``; the other one stays as it is.

    A matrix by rows is the transpose of one by columns, which is how BLAS sees both.
    """
    left, by_rows, distance, steps = stored(memory, left)
    rows, inner = left.shape
    form = ("L" if triangle == "upper" else "U") + ("T" if by_rows else "N")
    arguments = (rows, inner, scales[0], left.place, distance, scales[1], output.place, rows)
    return [*steps, BlasNumbers(memory, output).step("syrk", form, *arguments)]
