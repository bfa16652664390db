"""Points at which one or two inputs are near an end of the format's range, and all others near one or zero.

What is multiplied with what decides there whether a product that was written within the range leaves it on
the way: ``a / b / c`` is a number where ``a / (b * c)`` is none, and so is ``0 * a * b``, but not
``0 * (a * b)``. Where all inputs are drawn from all sizes, few points are such, for most values are then out
of range as they were written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.extract.accuracy.points import signed

Array = NDArray[Any]

MOST_INPUTS = 12
"""Inputs of which all pairs are looked at: the first ones."""
POWERS = (0.52, -0.52, 0.97, -0.97)
"""Of the largest number: those whose squares are out of range, and those near the ends."""
_ZEROS = 0.15
"""Share of the inputs beside a single one that are zero: beside two, only the written order of a product of
three is a number, and no factor would cancel in it."""
_TOP = 1.0
"""Power of an input alone whose double is out of range, with all others close to one: ``-2*z/(1 + z*z)`` of a
quotient ``z`` is a number where ``z`` is one, but ``(-2*z)/(1 + z*z)`` need not be."""


def paired_extremes(
    inputs: Mapping[int, Array], signs: Mapping[int, Collection[str]], most: int
) -> dict[int, Array]:
    """Values of the inputs at such points.

    Parameters
    ----------
    inputs
        Values at other points, ``(points, ...)``: the others are taken from the first of them.
    signs
        Of each input, names of the relations that are known of it.
    most
        Points that are taken, of all that there are: four inputs have 112.

    Returns
    -------
    Input -> values, ``(pairs, ...)``: none where no input is a float.
    """
    floats = [number for number, values in inputs.items() if values.dtype.kind == "f"]
    random = np.random.default_rng(11)
    places = range(min(len(floats), MOST_INPUTS))
    alone = [(place, place, power, power) for power in (*POWERS, _TOP) for place in places]
    pairs = [(*pair, *powers) for pair in combinations(places, 2) for powers in product(POWERS, POWERS)]
    if not alone:
        return {}
    chosen = np.array([*alone, *(pairs[place] for place in random.permutation(len(pairs)))][:most])
    count = len(chosen)
    # Densities are judged where their parameters are positive, sums where their terms differ in sign.
    mixed = random.random(count) < 0.5
    found = {}
    for number, values in inputs.items():
        if number not in floats:
            found[number] = values[np.arange(count) % len(values)]
            continue
        column, full = (count, *[1] * (values.ndim - 1)), (count, *values.shape[1:])
        place, largest = floats.index(number), float(np.finfo(values.dtype).max)
        power = np.where(
            chosen[:, 0] == place, chosen[:, 2], np.where(chosen[:, 1] == place, chosen[:, 3], 0)
        )
        sides = np.where(mixed & (random.random(count) < 0.5), -1.0, 1.0)
        is_top = chosen[:, 2] == _TOP
        zero = (power == 0) & (chosen[:, 0] == chosen[:, 1]) & ~is_top & (random.random(count) < _ZEROS)
        sides = np.where(zero, 0.0, sides)
        spread = random.uniform(0.3, 3.0, full)
        spread = np.where(is_top.reshape(column), 0.7 + spread / 12, spread)
        sizes = np.minimum(spread * (largest**power).reshape(column), largest)
        found[number] = signed((sizes * sides.reshape(column)).astype(values.dtype), signs[number])
    return found
