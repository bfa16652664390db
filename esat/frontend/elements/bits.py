"""Integers as bits, under NumPy's names."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.frontend.arrays.assembling import pad
from esat.frontend.arrays.shaping import atleast_1d, ravel
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.view import expand_dims, moveaxis, reshape
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axis

__all__ = ["bitwise_count", "packbits", "unpackbits"]

BitOrder = Literal["big", "little"]


def bitwise_count(x: Any) -> Variable:
    """How many bits of the absolute value of each integer are 1, as uint8.

    Raises
    ------
    DtypeError
        For other numbers than integers.

    Examples
    --------
    >>> esat.bitwise_count([7, -8, 0]).eval()
    array([3, 1, 0], dtype=uint8)
    """
    variable = as_variable(x)
    if variable.tensor_type.kind not in "biu":
        raise DtypeError(describe("bitwise_count", [variable.type], "takes integers"))
    signed = cast(variable, "int8") if variable.tensor_type.kind == "b" else variable
    width = signed.tensor_type.numpy_dtype.itemsize * 8
    unsigned = np.dtype(f"uint{width}")
    bits = cast(op_named("abs")(signed), unsigned)
    # Pairs, then fours, then eights of bits, and so on, hold the number of their ones.
    for shift in (1 << power for power in range(width.bit_length() - 1)):
        mask = unsigned.type((1 << width) // ((1 << shift) + 1))
        bits = (bits & mask) + (op_named("right_shift")(bits, unsigned.type(shift)) & mask)
    return cast(bits, "uint8")


def _weights(name: str, bitorder: BitOrder) -> Any:
    if bitorder not in ("big", "little"):
        raise ParameterError(describe(name, [f"bitorder={bitorder!r}"], 'an order is "big" or "little"'))
    powers = np.arange(8, dtype=np.uint8)
    return powers[::-1].copy() if bitorder == "big" else powers


def _last(name: str, variable: Variable, axis: Any) -> tuple[Variable, int]:
    """The variable with an axis at the end, whose size is known."""
    if axis is None:
        variable, place = ravel(variable), 0
    else:
        variable = atleast_1d(variable)
        place = normalize_axis(name, axis, variable.tensor_type.ndim)
    moved = moveaxis(variable, place, -1)
    if moved.tensor_type.shape[-1] is None:
        raise ShapeError(describe(name, [variable.type], "takes an axis of known size"))
    return moved, place


def packbits(a: Any, axis: int | None = None, bitorder: BitOrder = "big") -> Variable:
    """Eight elements along an axis, those that are not zero being ones, as the bits of one uint8.

    Parameters
    ----------
    a
        Booleans or integers; the size of the axis is known.
    axis
        By default all elements in order.
    bitorder
        Whether the first of eight is the highest bit ("big") or the lowest ("little").

    Raises
    ------
    DtypeError
        For other numbers.
    ShapeError
        When the size is not known.
    """
    variable = as_variable(a)
    if variable.tensor_type.kind not in "biu":
        raise DtypeError(describe("packbits", [variable.type], "takes booleans or integers"))
    shifts = _weights("packbits", bitorder)
    moved, place = _last("packbits", cast(variable, "bool"), axis)
    size = int(moved.tensor_type.shape[-1] or 0)
    rank = moved.tensor_type.ndim
    whole = pad(moved, [*[(0, 0)] * (rank - 1), (0, -size % 8)])
    eights = reshape(whole, (*(whole.shape[axis] for axis in range(rank - 1)), -(-size // 8), 8))
    bits = op_named("left_shift")(cast(eights, "uint8"), shifts)
    return moveaxis(cast(bits.sum(axis=-1), "uint8"), -1, place)


def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: BitOrder = "big"
) -> Variable:
    """The bits of uint8 along an axis, eight for each, as uint8.

    Parameters
    ----------
    a
        Of uint8; the size of the axis is known.
    axis
        By default all elements in order.
    count
        How many bits to give, zeros where there are no more; a negative number leaves out so many.
    bitorder
        As for :func:`packbits`.

    Raises
    ------
    DtypeError
        For other numbers.
    ShapeError
        When the size is not known.
    ParameterError
        When there are not so many bits to be left out.
    """
    variable = as_variable(a)
    if variable.tensor_type.dtype != "uint8":
        raise DtypeError(describe("unpackbits", [variable.type], "takes uint8"))
    shifts = _weights("unpackbits", bitorder)
    moved, place = _last("unpackbits", variable, axis)
    size = 8 * int(moved.tensor_type.shape[-1] or 0)
    bits = op_named("right_shift")(expand_dims(moved, -1), shifts) & np.uint8(1)
    rank = moved.tensor_type.ndim
    flat = reshape(bits, (*(moved.shape[axis] for axis in range(rank - 1)), size))
    if count is not None:
        wanted = int(count) if count >= 0 else size + int(count)
        if wanted < 0:
            raise ParameterError(describe("unpackbits", [f"count={count}"], f"there are {size} bits"))
        flat = pad(flat[..., :wanted], [*[(0, 0)] * (rank - 1), (0, max(wanted - size, 0))])
    return moveaxis(flat, -1, place)
