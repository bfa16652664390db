"""Sums of products of matrices: polynomials whose factors have an order, and the ways to compute them.

A letter is a matrix, or a transposed one; vectors are matrices of one column. A word is a product of letters,
and a sum of words has a coefficient for each. What has more words, or longer ones, than are looked at is a
letter itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

from esat.base.records import record
from esat.egraph.algebra.equal_forms.polynomials import Coefficient, TooLongError

Letter = tuple[int, bool]
"""The name of a class, and whether it is transposed."""
Word = tuple[Letter, ...]
Words = dict[Word, Coefficient]
Size = Callable[[Letter], tuple[float, float]]
"""Rows and columns of a letter."""

MOST_WORDS = 16
LONGEST_WORD = 6

_FLOPS = 4.0
"""Operations of a product of matrices in the time of a byte of memory."""
_BYTES = 8.0


def transposed(words: Words) -> Words:
    """The transpose of a sum."""
    return {tuple((name, not turned) for name, turned in word[::-1]): value for word, value in words.items()}


def combined(left: Words, right: Words, factor: Coefficient = 1) -> Words:
    """``left + factor * right``; raises TooLongError."""
    total = dict(left)
    for word, coefficient in right.items():
        value = total.pop(word, 0) + factor * coefficient
        if value:
            total[word] = value
    return limited(total)


def concatenated(left: Words, right: Words) -> Words:
    """The product of two sums; raises TooLongError."""
    if len(left) * len(right) > MOST_WORDS:
        raise TooLongError
    total: Words = {}
    for one, coefficient in left.items():
        for other, factor in right.items():
            total = combined(total, {one + other: coefficient * factor})
    return limited(total)


def limited(words: Words) -> Words:
    """A sum within the limits; raises TooLongError."""
    if len(words) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in words):
        raise TooLongError
    return words


@record(frozen=True, slots=True)
class MatrixProduct:
    """The product of two matrices."""

    left: Plan
    right: Plan


@record(frozen=True, slots=True)
class Total:
    """A sum of matrices with their coefficients."""

    parts: tuple[tuple[Coefficient, Plan], ...]


Plan = Letter | MatrixProduct | Total
"""A way to compute a matrix."""


class Planner:
    """Finds ways to compute sums of words.

    Parameters
    ----------
    size
        Of letters, as far as it is known or guessed.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._chain = cache(self._chained)

    def plan(self, words: Words) -> tuple[float, Plan]:
        """The cheapest way that is found, and its time: common letters are taken out at either end."""
        parts = [(coefficient, *self._chain(word)) for word, coefficient in sorted(words.items())]
        if len(parts) == 1 and parts[0][0] == 1:
            return parts[0][1:]
        rows, columns = self.shape(next(iter(words)))
        best: tuple[float, Plan] = (
            sum(part[1] for part in parts) + self.sum_time(len(parts), rows, columns),
            Total(tuple((coefficient, plan) for coefficient, _, plan in parts)),
        )
        for end in (0, -1):
            ends = Counter(word[end] for word in words if len(word) > 1)
            letter, count = max(ends.items(), key=lambda item: (item[1], item[0]), default=((0, False), 0))
            if count > 1:
                best = min(best, self._taken_out(words, letter, end), key=lambda found: found[0])
        return best

    def _taken_out(self, words: Words, letter: Letter, end: int) -> tuple[float, Plan]:
        """The way in which a letter at one end of several words is a factor of their sum."""
        having = {word: c for word, c in words.items() if len(word) > 1 and word[end] == letter}
        inner = {(word[1:] if end == 0 else word[:-1]): c for word, c in having.items()}
        time, plan = self.plan(inner)
        own, other = self._size(letter), self.shape(next(iter(inner)))
        shapes = (own, other) if end == 0 else (other, own)
        time += self.product_time(*shapes)
        product = MatrixProduct(letter, plan) if end == 0 else MatrixProduct(plan, letter)
        rest = {word: c for word, c in words.items() if word not in having}
        if not rest:
            return time, product
        further, others = self.plan(rest)
        parts = others.parts if isinstance(others, Total) else ((1, others),)
        rows, columns = self.shape(next(iter(words)))
        return time + further + self.sum_time(2, rows, columns), Total((*parts, (1, product)))

    def _chained(self, word: Word) -> tuple[float, Plan]:
        """The best order of the products of a word (Godbole, "On efficient computation of matrix chain
        products", 1973), without numbers in between: these have no axes.
        """
        if len(word) == 1:
            return 0.0, word[0]
        best: tuple[float, Plan] | None = None
        for place in range(1, len(word)):
            parts = word[:place], word[place:]
            shapes = self.shape(parts[0]), self.shape(parts[1])
            if (1.0, 1.0) in shapes:
                continue
            (first, left), (second, right) = map(self._chain, parts)
            time = first + second + self.product_time(*shapes)
            if best is None or time < best[0]:
                best = time, MatrixProduct(left, right)
        if best is None:
            raise TooLongError
        return best

    def shape(self, word: Word) -> tuple[float, float]:
        """Rows and columns of a product."""
        return self._size(word[0])[0], self._size(word[-1])[1]

    def product_time(self, left: tuple[float, float], right: tuple[float, float]) -> float:
        """Of a product of matrices: by what it computes, or what it reads and writes."""
        (rows, inner), columns = left, right[1]
        memory = _BYTES * (rows * inner + inner * columns + rows * columns)
        return max(2 * rows * inner * columns / _FLOPS, memory)

    def sum_time(self, count: int, rows: float, columns: float) -> float:
        """Of a sum of so many matrices in one pass."""
        return _BYTES * (count + 1) * rows * columns if count > 1 else 0.0
