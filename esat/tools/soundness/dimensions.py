"""Shapes of a rule's terms before sizes are chosen: which axes must have one size.

An axis has size 1, or a symbol (a negative number). Symbols that terms need to be equal are merged; then
each gets a size of its own, so that a rule that mixes up its axes is found out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

from esat.base.union_find import UnionFind
from esat.egraph.language.result_shapes import broadcast, product
from esat.rules.language.macros import INSERTED, Axis, permutation_axes, permutation_input_rank

Shape = tuple[int, ...]
"""An entry an axis: 1, or a symbol. A value whose axes all have size 1 has no axes here."""

SCALAR: Shape = ()


class UnfitError(Exception):
    """The shapes or literals that were drawn do not fit the patterns: another draw may."""


class Dimensions:
    """Symbols of sizes, and which of them are equal."""

    def __init__(self) -> None:
        self._equal = UnionFind[int]()
        self.find = self._equal.find
        self._products: dict[int, Shape] = {}
        self._count = 0

    def new(self) -> int:
        """A symbol unlike any other."""
        self._count += 1
        return -self._count

    def product(self, factors: Shape) -> int:
        """The size of several axes merged into one."""
        if len(factors) == 1:
            return factors[0]
        symbol = self.new()
        self._products[symbol] = factors
        return symbol

    def merge(self, one: int, other: int) -> int:
        """Make two sizes equal. Raises UnfitError where one is 1, or a product."""
        one, other = self.find(one), self.find(other)
        if one == other:
            return one
        if 1 in (one, other) or one in self._products or other in self._products:
            raise UnfitError
        self._equal.unite(one, other)
        return one

    def sizes(self, available: Sequence[int]) -> dict[int, int]:
        """A size for every symbol: those available in turn, products as they follow."""
        sizes: dict[int, int] = {1: 1}
        free = [-number for number in range(1, self._count + 1) if -number not in self._products]
        for place, symbol in enumerate(dict.fromkeys(map(self.find, free))):
            sizes[symbol] = available[place % len(available)]
        for symbol in free:
            sizes[symbol] = sizes[self.find(symbol)]
        for symbol, factors in self._products.items():
            sizes[symbol] = prod(sizes[factor] for factor in factors)
        return sizes

    def contract(self, left: int, right: int) -> int:
        """Make the sizes equal that a product sums over."""
        return self.merge(left, right)

    def square(self, shape: Sequence[int]) -> int:
        """Give the last two axes of a matrix, or of a scalar, one size."""
        if len(shape) == 1:
            raise UnfitError
        return self.merge(shape[-1], shape[-2]) if shape else 1

    # ---- shapes of results

    def elementwise(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of an elementwise result; scalars fit any rank."""
        if len({len(shape) for shape in shapes if shape}) > 1:
            raise UnfitError
        return normalized(broadcast(shapes, self))

    def matmul(self, left: Shape, right: Shape, rank: int) -> Shape:
        """The shape of a matrix product of this rank."""
        if not {len(left), len(right)} <= {0, rank} or rank < 2:
            raise UnfitError
        return normalized(product(left, right, rank, self))


def normalized(shape: Sequence[int]) -> Shape:
    """A shape, or that of a scalar where all axes have size 1."""
    return SCALAR if all(size == 1 for size in shape) else tuple(shape)


def reduced(shape: Shape, mask: int) -> Shape:
    """The shape after the axes of a mask have shrunk to size 1."""
    if not shape or mask <= 0 or mask >> len(shape):
        raise UnfitError
    return normalized([1 if mask >> axis & 1 else size for axis, size in enumerate(shape)])


def permuted(shape: Shape, word: int) -> Shape:
    """The shape after a permutation."""
    rank = permutation_input_rank(word)
    shape = shape or (1,) * rank
    axes = permutation_axes(word)
    if len(shape) != rank or any(shape[axis] != 1 for axis in range(rank) if axis not in axes):
        raise UnfitError
    return normalized([1 if axis == "x" else shape[axis] for axis in axes])


def random_mask(shape: Shape, random: Random, *, index: bool) -> int:
    """A mask of axes to reduce; an index reduction takes one axis, or all of them."""
    if not shape:
        raise UnfitError
    everything = (1 << len(shape)) - 1
    if index:
        return random.choice([everything, *(1 << axis for axis in range(len(shape)))])
    return random.randint(1, everything)


def random_axes(shape: Shape, random: Random) -> tuple[tuple[Axis, ...], int]:
    """Axes of a random view of a shape, and its rank: permuted, with some axes inserted and dropped."""
    rank = len(shape) or random.randint(0, 3)
    shape = shape or (1,) * rank
    kept: list[Axis] = [axis for axis in range(rank) if shape[axis] != 1 or random.random() < 0.6]
    kind = random.random()
    if kind < 0.75:
        random.shuffle(kept)
    elif kind < 0.9:
        kept = list(range(rank))
    while len(kept) < min(INSERTED - 1, 4) and random.random() < 0.3:
        kept.insert(random.randint(0, len(kept)), "x")
    return tuple(kept), rank
