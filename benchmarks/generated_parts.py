"""Random identities of arrays that are put together of parts, for :mod:`benchmarks.generated_identities`.

An expression of joins, slices and reversed arrays, sums and products is written in another way: arrays as
joins of their parts, slices of sums as sums of slices, slices of joins as joins of slices. A pair that is not
equal has one slice moved by an element, one variable taken for another, or one part twice.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

VECTORS = {"p": 2, "q": 3, "r": 3, "s": 5, "t": 5, "u": 6}
"""Names of vectors, and their lengths."""
UNKNOWN = {"f": 3, "g": 3, "h": 4, "k": 4}
"""Names of vectors of lengths that are not told; those of one length are added to each other."""
SQUARE = ("S", 5)
"""A matrix, and its rows and columns."""

Tree: TypeAlias = tuple[Any, ...]
"""``("name", n, name)``, ``("join", n, *trees)``, ``("slice", n, tree, begin)``, ``("flip", n, tree)``,
``("+", n, tree, tree)``, ``("*", n, tree, tree)``: always with the length.
"""


class Parts:
    """Draws expressions, and other ways to write them."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def vector(self, length: int, depth: int) -> Tree:
        """An expression of known length."""
        names = [name for name, size in VECTORS.items() if size == length]
        kinds = ["name"] * bool(names)
        if depth > 0:
            kinds += ["slice"] * (length < 6) + ["join"] * (length > 1) + ["flip", "+", "*"]
        match self.draw.choice(kinds or ["slice"]):
            case "name":
                return "name", length, self.draw.choice(names)
            case "slice":
                longer = self.draw.randint(length + 1, 6)
                begin = self.draw.randint(0, longer - length)
                return "slice", length, self.vector(longer, depth - 1), begin
            case "join":
                cut = self.draw.randint(1, length - 1)
                return "join", length, self.vector(cut, depth - 1), self.vector(length - cut, depth - 1)
            case "flip":
                return "flip", length, self.vector(length, depth - 1)
            case kind:
                return kind, length, self.vector(length, depth - 1), self.vector(length, depth - 1)

    def rewritten(self, tree: Tree) -> Tree:
        """The same in another way."""
        kind, length, *rest = tree
        if kind == "slice":
            rest = [self.rewritten(rest[0]), rest[1]]
            if self.draw.random() < 0.7:
                return self.part(rest[0], rest[1], length)
        elif kind != "name":
            rest = [self.rewritten(one) for one in rest]
            if kind == "flip" and self.draw.random() < 0.6:
                return self.flipped(rest[0])
        result = kind, length, *rest
        match self.draw.randrange(6):
            case 0 if length > 1:
                cut = self.draw.randint(1, length - 1)
                return "join", length, self.part(result, 0, cut), self.part(result, cut, length - cut)
            case 1:
                return "flip", length, self.flipped(result)
            case _:
                return result

    def part(self, tree: Tree, begin: int, length: int) -> Tree:
        """A slice, taken of what an expression is made of."""
        kind, whole, *rest = tree
        if length == whole:
            return tree
        if kind in "+*":
            return kind, length, *(self.part(one, begin, length) for one in rest)
        if kind == "slice":
            return self.part(rest[0], rest[1] + begin, length)
        if kind == "flip":
            return "flip", length, self.part(rest[0], whole - begin - length, length)
        if kind == "name":
            return "slice", length, tree, begin
        parts, place = [], 0
        for one in rest:
            first, last = max(begin, place), min(begin + length, place + one[1])
            if first < last:
                parts.append(self.part(one, first - place, last - first))
            place += one[1]
        return parts[0] if len(parts) == 1 else ("join", length, *parts)

    def flipped(self, tree: Tree) -> Tree:
        """An expression read from its end."""
        kind, length, *rest = tree
        if kind == "flip":
            result: Tree = rest[0]
            return result
        if kind == "join":
            return kind, length, *(self.flipped(one) for one in reversed(rest))
        if kind in "+*":
            return kind, length, *map(self.flipped, rest)
        if kind == "slice":
            return kind, length, self.flipped(rest[0]), rest[0][1] - rest[1] - length
        return "flip", length, tree

    def perturbed(self, tree: Tree) -> Tree:
        """Something else of the same length."""
        kind, length, *rest = tree
        if kind == "name":
            others = [name for name, size in VECTORS.items() if size == length and name != rest[0]]
            return ("name", length, self.draw.choice(others)) if others else ("flip", length, tree)
        if kind == "slice" and self.draw.random() < 0.6:
            last = rest[0][1] - length
            return kind, length, rest[0], rest[1] + 1 if rest[1] < last else rest[1] - 1
        if kind == "join" and self.draw.random() < 0.3:
            return kind, length, *reversed(rest)
        place = 0 if kind in ("slice", "flip") else self.draw.randrange(len(rest))
        rest[place] = self.perturbed(rest[place])
        return kind, length, *rest

    def pair(self, equal: bool) -> tuple[str, str]:
        """Two expressions as text; where they are not meant to be equal, they may be nevertheless."""
        length = self.draw.choice((3, 4, 5, 6))
        tree = self.vector(length, 3)
        other = self.rewritten(self.rewritten(tree))
        if not equal:
            other = self.perturbed(other)
        left, right = text(tree), text(other)
        match self.draw.randrange(4):
            case 0:
                return left, right
            case 1:
                return f"({left}).sum()", " + ".join(f"({text(one)}).sum()" for one in self._cut(other))
            case 2:
                weights = self.vector(length, 1)
                return (
                    f"({left}) @ ({text(weights)})",
                    self._dot(other, self.rewritten(weights), length),
                )
            case _:
                return self._product(tree, other)

    def _cut(self, tree: Tree) -> tuple[Tree, ...]:
        cut = self.draw.randint(1, tree[1] - 1)
        return self.part(tree, 0, cut), self.part(tree, cut, tree[1] - cut)

    def _dot(self, left: Tree, right: Tree, length: int) -> str:
        cut = self.draw.randint(1, length - 1)
        places = (0, cut), (cut, length - cut)
        return " + ".join(
            f"({text(self.part(left, *at))}) @ ({text(self.part(right, *at))})" for at in places
        )

    def _product(self, tree: Tree, other: Tree) -> tuple[str, str]:
        """Products with columns of a matrix, and joins with vectors of lengths that are not told."""
        name, size = SQUARE
        if tree[1] == size:
            cut = self.draw.randint(1, size - 1)
            first, second = text(self.part(other, 0, cut)), text(self.part(other, cut, size - cut))
            split = f"{name}[:, :{cut}] @ ({first}) + {name}[:, {cut}:] @ ({second})"
            return f"{name} @ ({text(tree)})", split
        before, behind = self.draw.choice("fh"), self.draw.choice("gk")
        joined, again = (f"join([{before}, {text(one)}, {behind}])" for one in (tree, other))
        if self.draw.random() < 0.5:
            return f"({joined}).sum()", f"({behind}).sum() + ({text(other)}).sum() + ({before}).sum()"
        rest = f"{again}[{before}.shape[0]:] * 2.0"
        return f"2.0 * {joined}", f"join([2.0 * {before}, {rest}])"


def text(tree: Tree) -> str:
    """An expression as Python text."""
    kind, length, *rest = tree
    match kind:
        case "name":
            return str(rest[0])
        case "join":
            return f"join([{', '.join(map(text, rest))}])"
        case "slice":
            return f"({text(rest[0])})[{rest[1]}:{rest[1] + length}]"
        case "flip":
            return f"({text(rest[0])})[::-1]"
        case _:
            return f"({text(rest[0])} {kind} {text(rest[1])})"
