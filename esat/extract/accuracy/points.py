"""Sample points at which programs go wrong: of every magnitude, near one, near each other.

A batch of points is the leading axis of every value. Its first part is *moderate*; the last quarter has
magnitudes near the ends of the format's range too, where a form need be no better than the one that was
written. At the last twelfth all inputs are of one size and sign, such that they, their squares or their
products with smaller numbers are just below the largest number, which is what weights and means are written
for. An input depends on its dtype, its position and the inputs before it, not on what is computed of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from math import log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record

Array = NDArray[Any]

POINTS = 96
"""Points of graphs without axes."""
POINTS_OF_ARRAYS = 48
"""Points of others, whose elements differ."""
SEED = 20
_TOPMOST = 12
"""At one in so many points all inputs are large, and of one size and sign."""
_TOPMOST_LEVELS = (1.0, 0.5, 0.65)
"""Which powers of the largest number they are: two numbers of 0.75 and more of it have no sum, nor have the
squares of those of its root."""
_TWINS_OF = 2
"""Inputs before it that one is close to at some points."""
_TWINS = (1.001, 1 + 1e-8, 1.001, -1 - 1e-9, 1 + 1e-15, -1.0, 1.0)


@record(frozen=True)
class Magnitudes:
    """Sizes of numbers of a format.

    Attributes
    ----------
    moderate
        Those whose third power is in range, 0 among them.
    all
        Those and extreme ones.
    largest
        The largest that is moderate; its inverse is the smallest.
    near
        What numbers near one differ from it by.
    """

    moderate: tuple[float, ...]
    all: tuple[float, ...]
    largest: float
    near: tuple[float, ...]


@cache
def magnitudes_of(dtype: np.dtype[Any]) -> Magnitudes:
    """The magnitudes for a real floating dtype, from its precision and its range.

    Of float64: 1e-17, 1e-9 and 1e-5, where a number, its square or its third power is lost beside one;
    40, where exp(-x) is; 90 and 400, where exp(x) is large, and has no square; 800, where exp(-x) is zero.
    """
    info = np.finfo(dtype)
    eps, last, least = float(info.eps), log(float(info.max)), -log(float(info.smallest_subnormal))
    largest = float(info.max) ** (1 / 3)
    digits = -log(eps)
    sizes = (
        0.0, eps / 20, eps**0.5 / 15, eps ** (1 / 3), 0.01, 0.3, 0.9, 1.0, 1.0, 1.7, 3.0, digits / 3,
        1.1 * digits, last / 8, 0.56 * last, 1.08 * least, eps**-0.25, eps**-0.38, 0.07 * eps**-0.5,
        eps**-0.57, 20 / eps,
    )  # fmt: skip
    moderate = tuple(size for size in sizes if size == 0 or 1 / largest < size < largest)
    most = float(info.max)
    extreme = (float(info.tiny) * 1e3, most**-0.52, most**0.49, most**0.65)
    middle = (eps**0.57, -(eps**0.57), eps**0.25)
    near = (0.0, eps, -eps / 2, 7 * eps, -7 * eps, *middle, *middle, *middle)
    return Magnitudes(moderate, (*moderate, *extreme), largest, near)


class Points:
    """Draws inputs, one after the other.

    Parameters
    ----------
    batch
        Number of points.
    seed
        Other points for other numbers.
    """

    def __init__(self, batch: int, seed: int = SEED) -> None:
        self.batch, self._seed = batch, seed
        self._count = 0
        self._latest: dict[tuple[tuple[int, ...], np.dtype[Any]], deque[Array]] = {}

    @property
    def calm(self) -> int:
        """Number of points without extremes."""
        return self.batch - self.batch // 4

    @property
    def topmost(self) -> int:
        """Number of points, the last ones, at which all inputs are large, and of one size."""
        return self.batch // _TOPMOST

    def draw(self, dtype: np.dtype[Any], shape: tuple[int, ...], signs: Collection[str] = ()) -> Array:
        """The values of an input at all points.

        Parameters
        ----------
        signs
            What is known of them: names of relations (``positive``, ``integral``, ...).

        Returns
        -------
        ``(batch, *shape)``
        """
        random = np.random.default_rng([self._seed, self._count])
        full = (self.batch, *shape)
        if dtype.kind == "b":
            value: Array = random.random(full) < 0.5
        elif dtype.kind in "iu":
            value = random.integers(0 if dtype.kind == "u" else -4, 9, full).astype(dtype)
            value = signed(value, signs)
        elif dtype.kind == "c":
            part = np.empty(0, dtype).real.dtype
            value = np.empty(full, dtype)
            value.real, value.imag = self._real(random, part, shape), self._real(random, part, shape)
            value[::4].imag, value[1::8].real = 0, 0
        else:
            value = signed(self._real(random, dtype, shape), signs)
        self._count += 1
        self._latest.setdefault((full, value.dtype), deque(maxlen=_TWINS_OF)).append(value)
        return value

    def _real(self, random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        sizes = magnitudes_of(dtype)
        batch, calm, full = self.batch, self.calm, (self.batch, *shape)
        column = (batch, *[1] * len(shape))
        levels = np.concatenate(
            [
                random.permutation(np.resize(sizes.moderate, calm)),
                random.permutation(np.resize(sizes.all[::-1], batch - calm)),
            ]
        ).reshape(column)
        is_calm = np.arange(batch).reshape(column) < calm
        own = np.where(is_calm, random.choice(sizes.moderate, full), random.choice(sizes.all, full))
        sides = (_sides(levels) if prod(shape) > 1 else np.zeros(batch)).reshape(column)
        is_level = (random.random(column) < 0.75) | (sides != 0)
        level = np.where(is_level, levels * np.exp2(random.uniform(-1, 1, full)), own)
        value = level * np.where(sides == 0, np.where(random.random(full) < 0.5, -1.0, 1.0), sides)
        near = (random.random(full) < 0.13) & (level != 0) & (sides == 0)
        value = np.where(near, np.sign(value) * (1 + random.choice(sizes.near, full)), value)
        for other in self._latest.get((full, dtype), ()):
            value = self._twins(random, value, other)
        value = self._topmost(random, value, float(np.finfo(dtype).max))
        with np.errstate(over="ignore"):
            value = value.astype(dtype)
        # The sign of a zero makes infinities of either sign, which no form is to be judged by.
        unsigned: Array = np.where(np.isfinite(value), value, dtype.type(1)) + dtype.type(0)
        return unsigned

    def _twins(self, random: np.random.Generator, value: Array, other: Array) -> Array:
        """Values of which every third is close to another input or its opposite, at each magnitude."""
        sizes = np.abs(other.astype(np.float64).reshape(self.batch, -1)).max(axis=1)
        places = np.argsort(sizes, kind="stable")[int(random.integers(3)) :: 3]
        twin, close = np.zeros(self.batch, bool), np.ones(self.batch)
        twin[places] = True
        close[places] = np.resize(_TWINS, len(places))
        column = (self.batch, *[1] * (value.ndim - 1))
        return np.where(twin.reshape(column), other * close.reshape(column), value)

    def _topmost(self, random: np.random.Generator, value: Array, most: float) -> Array:
        """Values of which those at the last points are near a power of the largest number.

        All are positive or all negative: a difference of such numbers of either sign is out of range in most
        forms that do not cancel where the written one does.
        """
        count, column = self.topmost, (-1, *[1] * (value.ndim - 1))
        levels = np.resize(_TOPMOST_LEVELS, count).reshape(column)
        parts = random.uniform(0.75, 0.99, (count, *value.shape[1:]))
        # At every other pair of points seven quarters of a number are out of range, and three halves are not.
        lower = (np.arange(count) // 2 % 2 == 1).reshape(column)
        top = most**levels * np.where(lower, 0.58 + parts / 12, parts)
        sides = np.resize([1.0, -1.0], count).reshape(column)
        return np.concatenate([value[: self.batch - count], top * sides])


def _sides(levels: Array) -> Array:
    """The sign of all elements of a point: one and the other at half of the points, of every magnitude.

    What is summed over an axis vanishes or overflows only where all of its terms do.
    """
    sides = np.zeros(levels.size)
    places = np.argsort(levels, axis=None, kind="stable")
    sides[places[0::4]], sides[places[1::4]] = 1.0, -1.0
    return sides


def signed(value: Array, signs: Collection[str]) -> Array:
    """Values made to have the signs that are known of them."""
    if "positive" in signs or "nonnegative" in signs:
        value = np.abs(value)
    if "negative" in signs or "nonpositive" in signs:
        value = -np.abs(value)
    if "positive" in signs or "negative" in signs:
        value = np.where(value == 0, value.dtype.type(1 if "positive" in signs else -1), value)
    return np.rint(value) if "integral" in signs and value.dtype.kind == "f" else value


def extreme_points(leaves: Mapping[int, Array], batch: int) -> NDArray[np.bool_]:
    """At which points an input is extreme, bool ``(batch,)``."""
    found = np.zeros(batch, np.bool_)
    for leaf in leaves.values():
        if leaf.dtype.kind in "fc":
            largest = magnitudes_of(np.empty(0, leaf.dtype).real.dtype).largest
            size = np.abs(leaf.reshape(batch, -1)).astype(np.float64)
            found |= ((size > largest) | ((size < 1 / largest) & (size > 0))).any(axis=1)
    return found


def known_signs(facts: Sequence[tuple[int, str]], term: int) -> list[str]:
    """Relations that are assumed of a term."""
    return [fact for number, fact in facts if number == term]
