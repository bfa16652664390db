"""Parts of complex numbers. Real numbers are complex ones with an imaginary part of zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.graph.op import Array, as_variable
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.elementwise import complex_forms
from esat.ops.elementwise.records.code import anything, floats, numbers
from esat.ops.elementwise.records.facts import KEEPS_SIGN, Facts
from esat.ops.elementwise.records.record import Elementwise

Cotangents = Sequence[Variable | None]
_SAME = Facts(idempotent=True, parity="odd", monotone="increasing", signs=KEEPS_SIGN)


def _real(x: Array) -> Array:
    return np.array(x.real)


def _imag(x: Array) -> Array:
    return np.array(x.imag)


def _real_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    return [cast(cotangent, inputs[0].tensor_type.dtype)]


def _imag_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    return [cotangent * -1j if inputs[0].tensor_type.kind == "c" else None]


def _angle_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    return [cotangent * -1j / inputs[0] if inputs[0].tensor_type.kind == "c" else None]


real = Elementwise(
    "real", 1, _real, anything("{0}"), _real_gradient, typing="real", flops=0.0, facts=_SAME,
    formula="The real part", complex_form=complex_forms.real_part,
)  # fmt: skip

imag = Elementwise(
    "imag", 1, _imag, anything("const(0)"), _imag_gradient, typing="real", flops=0.0,
    facts=Facts(lowest=0, highest=0, integral=True),
    formula="The imaginary part",
    complex_form=complex_forms.imaginary_part,
)  # fmt: skip

conj: Elementwise = Elementwise(
    "conj", 1, np.conjugate, numbers("{0}"),
    gradient=lambda inputs, output, cotangent: [conj(cotangent)],
    facts=Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="The complex conjugate",
    complex_form=complex_forms.conj,
)  # fmt: skip


class Angle(Elementwise):
    """The angle of a number in the complex plane, in radians; 0 or pi for a real one."""

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        # NumPy takes the angle of (x, 0), where the Python number 0 makes an integer of a bool.
        operand = as_variable(inputs[0])
        return super().promote([cast(operand, "int64") if operand.tensor_type.kind == "b" else operand])


angle = Angle(
    "angle", 1, np.angle, floats("arctan2(const(0), {0})"), _angle_gradient, np.arctan, typing="real",
    flops=24.0, facts=Facts(monotone="decreasing", lowest=0, highest=math.pi),
    formula="The angle of complex numbers, in radians",
    complex_form=complex_forms.angle,
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (real, imag, conj, angle)
