"""Points at which one or two inputs are near an end of the format's range, and all others near one.

What is multiplied with what decides there whether a product that was written within the range leaves it on
the way: ``a / b / c`` is a number where ``a / (b * c)`` is none. Where all inputs are drawn from all sizes,
few points are such, for most values are then out of range as they were written.
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
POWERS = (0.0, 0.52, -0.52, 0.97, -0.97)
"""Of the largest number: near one, those whose squares are out of range, and those near the ends."""


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
        Points that are taken, of all that there are: four inputs have 144.

    Returns
    -------
    Input -> values, ``(pairs, ...)``: none where no input is a float.
    """
    floats = [number for number, values in inputs.items() if values.dtype.kind == "f"]
    random = np.random.default_rng(11)
    places = list(combinations(range(min(len(floats), MOST_INPUTS)), 2)) or [(0, 0)] * len(floats)
    alone = len(floats) == 1
    powers = [pair for pair in product(POWERS, POWERS) if any(pair) and (pair[0] == pair[1] or not alone)]
    kinds = [(*place, *power) for place in places for power in powers]
    if not kinds:
        return {}
    chosen = np.array(kinds)[np.sort(random.permutation(len(kinds))[:most])]
    count = len(chosen)
    # Densities are judged where their parameters are positive, sums where their terms differ in sign.
    mixed = np.arange(count) % 2 == 1
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
        sizes = np.minimum(random.uniform(0.3, 3.0, full) * (largest**power).reshape(column), largest)
        found[number] = signed((sizes * sides.reshape(column)).astype(values.dtype), signs[number])
    return found
