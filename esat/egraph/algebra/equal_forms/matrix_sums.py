"""Sums of products of matrices in fewer steps: expanded where words cancel, with common letters taken out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.algebra.additions import Additions
from esat.egraph.algebra.equal_forms.polynomials import Coefficient, TooLongError, magnitude
from esat.egraph.algebra.equal_forms.polynomials import number as number_of
from esat.egraph.algebra.equal_forms.words import (
    Letter,
    MatrixProduct,
    Plan,
    Planner,
    Total,
    Words,
    combined,
    concatenated,
    transposed,
)
from esat.egraph.algebra.finite_fields.coded import CONTRACT, PRODUCT, SHUFFLE, SUM
from esat.egraph.algebra.finite_fields.coding import ranks_of
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints
from esat.egraph.algebra.finite_fields.reading import UNKNOWN, Integers
from esat.egraph.language.terms import SCALAR
from esat.graph.types import DTYPES
from esat.rules.language.macros import permutation_axes, permutation_word

_MATRIX = 2
_VIEWS_SEEN_THROUGH = 3
_GUESSED_LENGTH = 256.0
_GAIN = 0.95
"""The share of the time that an offer has to stay below."""
_COLUMN, _ROW, _TURNED = (
    permutation_word((0, "x"), 1),
    permutation_word(("x", 0), 1),
    permutation_word((1, 0), 2),
)
_VECTOR = permutation_word((0,), 2)


@record(frozen=True, slots=True)
class MatrixOffer:
    """A way to compute a class.

    Attributes
    ----------
    klass
        The class, a matrix or a vector.
    plan
        The way.
    before, after
        Operations of the chosen tree and of the way: products, and sums of two.
    """

    klass: int
    plan: Plan
    before: int
    after: int


class Matrices:
    """Sums of words that classes are.

    Parameters
    ----------
    found
        The e-graph.
    """

    def __init__(self, found: Fingerprints) -> None:
        self.found = found
        self._words: dict[int, Words] = {}
        self._time: dict[int, tuple[float, int]] = {}
        self.planner = Planner(self.size)

    @cached_property
    def _rank(self) -> list[int]:
        ranks: list[int] = ranks_of(self.found.reading.word).tolist()
        return ranks

    @cached_property
    def classes(self) -> dict[int, int]:
        """The class of each name."""
        return {rank: klass for klass, rank in enumerate(self.found.rank)}

    # ---- sizes

    def ends(self, letter: Letter) -> tuple[int, int]:
        """What the lengths of a letter's axes are called; -1 for those of length 1."""
        name, turned = letter
        klass = self.classes[name]
        rank, lengths = self._rank[klass], self.found.lengths[klass].tolist()
        rows, columns = (lengths[0] if rank else UNKNOWN), (lengths[1] if rank == _MATRIX else UNKNOWN)
        return (columns, rows) if turned else (rows, columns)

    def size(self, letter: Letter) -> tuple[float, float]:
        """Rows and columns of a letter."""
        rows, columns = map(self._length, self.ends(letter))
        return rows, columns

    def _length(self, name: int) -> float:
        if name == UNKNOWN:
            return 1.0
        return float(self.found.known_lengths[name]) or _GUESSED_LENGTH

    # ---- classes as sums of words

    def words(self, klass: int) -> Words:
        """The sum of words that a class with a chosen e-node is."""
        stack = [klass]
        while stack:
            current = stack[-1]
            missing = [below for below in self._parts(current) if below not in self._words]
            if missing:
                stack += missing
                continue
            stack.pop()
            if current not in self._words:
                self._settle(current)
        return self._words[klass]

    def _parts(self, klass: int) -> list[int]:
        """Operands of a class that it is a sum or a product of, if they are looked into."""
        found = self.found
        if self._rank[klass] not in (1, _MATRIX) or found.coded.is_constant[klass]:
            return []
        node = found.chosen_list[klass]
        code, operands = found.code_list[node], found.reading.operands_of(node)
        if code == SUM and all(self._is_like(below, klass) for below in operands):
            return operands
        if code == PRODUCT and found.number_list[node] == len(operands):
            arrays = [operand for operand in operands if not found.coded.is_constant[operand]]
            is_scaled = len(arrays) == 1 and self._is_like(arrays[0], klass)
            return arrays if is_scaled or self._is_outer(arrays) else []
        if code == CONTRACT and found.number_list[node] == _MATRIX:
            return operands if all(self._rank[below] == _MATRIX for below in operands) else []
        is_view = code == SHUFFLE and self._view(node, operands[0]) is not None
        return operands if is_view else []

    def _is_like(self, klass: int, other: int) -> bool:
        shape, dtype = self.found.shape, self.found.reading.dtype
        return bool(shape[klass] == shape[other] and dtype[klass] == dtype[other])

    def _is_outer(self, arrays: list[int]) -> bool:
        """Whether a product is one of a column and a row."""
        if len(arrays) != 2 or any(self._rank[array] != _MATRIX for array in arrays):
            return False
        (rows, inner), (other, columns) = (self.found.lengths[array, :_MATRIX].tolist() for array in arrays)
        return bool(rows != UNKNOWN == inner == other and columns != UNKNOWN)

    def _view(self, node: int, below: int) -> bool | None:
        """Whether a view is the transpose of what it is of, both as matrices; None for other views."""
        axes = permutation_axes(self.found.number_list[node])
        lengths = self.found.lengths[below].tolist()
        match self._rank[below], axes:
            case (2, (1, 0)) | (1, ("x", 0)):
                return True
            case 1, (0, "x"):
                return False
            case 2, (0,) if lengths[1] == UNKNOWN:
                return False
            case 2, (1,) if lengths[0] == UNKNOWN:
                return True
        return None

    def _settle(self, klass: int) -> None:
        parts = self._parts(klass)
        own: Words = {((self.found.rank[klass], False),): 1}
        self._time[klass] = 0.0, 0
        if not parts:
            self._words[klass] = own
            return
        try:
            self._words[klass] = self._combined(klass, parts)
            self._time[klass] = self._counted(klass, parts)
        except TooLongError:
            self._words[klass] = own

    def _combined(self, klass: int, parts: list[int]) -> Words:
        found, words = self.found, [self._words[part] for part in parts]
        node = found.chosen_list[klass]
        code, number = found.code_list[node], found.number_list[node]
        if code == SUM:
            total: Words = {}
            for place, part in enumerate(words):
                total = combined(total, part, 1 if place < number else -1)
            return total
        if code == SHUFFLE:
            return transposed(words[0]) if self._view(node, parts[0]) else words[0]
        if len(parts) == 1:
            return combined({}, words[0], self._factor(node))
        return combined({}, concatenated(*words), self._factor(node) if code == PRODUCT else 1)

    def _factor(self, node: int) -> Coefficient:
        found, factor = self.found, number_of(1.0)
        for operand in found.reading.operands_of(node):
            if found.coded.is_constant[operand]:
                factor *= number_of(float(found.reading.value[operand]))
        return factor

    def _counted(self, klass: int, parts: list[int]) -> tuple[float, int]:
        """Time and operations of the chosen tree."""
        code = self.found.code_list[self.found.chosen_list[klass]]
        time = sum(self._time[part][0] for part in parts)
        count = sum(self._time[part][1] for part in parts)
        rows, columns = self.size((self.found.rank[klass], False))
        if code == SUM:
            return time + self.planner.sum_time(len(parts), rows, columns), count + len(parts) - 1
        if code != SHUFFLE and len(parts) == 2:
            left, right = (self.size((self.found.rank[part], False)) for part in parts)
            return time + self.planner.product_time(left, right), count + 1
        return time, count

    # ---- offers

    def candidates(self) -> list[int]:
        """Loaded sums of several products of matrices, or of views and multiples of such, by their ranks."""
        found, reading = self.found, self.found.reading
        codes, chosen = found.coded.nodes.code, found.chosen[found.order]
        if (codes[chosen] == CONTRACT).sum() < 2:
            return []
        code, klass = codes[chosen], reading.class_of[chosen]
        is_product = np.zeros(reading.classes, np.bool_)
        is_product[klass[code == CONTRACT]] = True
        arrays = self._count(~found.coded.is_constant)[chosen]
        passes = ((code == SHUFFLE) | (code == PRODUCT)) & (arrays == 1)
        for _ in range(_VIEWS_SEEN_THROUGH):
            is_product[klass[passes & (self._count(is_product)[chosen] == 1)]] = True
        kept = klass[(code == SUM) & (self._count(is_product)[chosen] > 1)]
        ranks = ranks_of(reading.word[kept])
        kept = kept[((ranks == 1) | (ranks == _MATRIX)) & (reading.term[kept] != UNKNOWN)]
        return sorted(kept.tolist(), key=found.rank.__getitem__)

    def _count(self, of_classes: NDArray[np.bool_]) -> Integers:
        """How many operands of each e-node are classes of these."""
        reading = self.found.reading
        return np.bincount(reading.owner[of_classes[reading.operands]], minlength=reading.nodes)

    def of(self, klass: int) -> Iterator[MatrixOffer]:
        """The way to compute a class that takes less time than the chosen tree, if there is one."""
        words = self.words(klass)
        kind = np.dtype(DTYPES[int(self.found.reading.dtype[klass])]).kind
        time, count = self._time[klass]
        if not words or not count or kind not in "fc":
            return
        letters = {letter for word in words for letter in word}
        dtypes = {int(self.found.reading.dtype[self.classes[name]]) for name, _ in letters}
        if dtypes != {int(self.found.reading.dtype[klass])}:
            return
        try:
            after, plan = self.planner.plan(words)
        except TooLongError:
            return
        if after < _GAIN * time:
            yield MatrixOffer(klass, plan, count, operations(plan))


def operations(plan: Plan) -> int:
    """Products of matrices and sums of two in a plan."""
    match plan:
        case MatrixProduct(left, right):
            return 1 + operations(left) + operations(right)
        case Total(parts):
            return len(parts) - 1 + sum(operations(part) for _, part in parts)
        case _:
            return 0


class MatrixTerms:
    """Tells the engine of plans.

    Parameters
    ----------
    matrices
        Whose letters the plans have.
    additions
        What collects the rows.
    """

    def __init__(self, matrices: Matrices, additions: Additions) -> None:
        self._matrices, self._additions = matrices, additions

    def add(self, offer: MatrixOffer, finding: int) -> None:
        """A class is computed by a plan, too; raises UnnamedError."""
        found, klass = self._matrices.found, offer.klass
        dtype, word = int(found.reading.dtype[klass]), int(found.reading.word[klass])
        number, _ = self._term(offer.plan, dtype)
        if ranks_of(found.reading.word[[klass]])[0] == 1:
            number = self._additions.term("DimShuffle", [number], (_VECTOR,), dtype, word)
        self._additions.same(klass, number, finding)

    def _term(self, plan: Plan, dtype: int) -> tuple[int, tuple[int, int]]:
        """The number of a matrix, and what the lengths of its axes are called."""
        additions = self._additions
        match plan:
            case MatrixProduct(left, right):
                (first, (rows, _)), (second, (_, columns)) = self._term(left, dtype), self._term(right, dtype)
                word = _word(rows, columns)
                return additions.term("MatMul", [first, second], (_MATRIX,), dtype, word), (rows, columns)
            case Total(parts):
                terms = [self._term(part, dtype) for _, part in parts]
                ends = terms[0][1]
                word = _word(*ends)
                sides: tuple[list[int], list[int]] = [], []
                for (coefficient, _), (number, _) in zip(parts, terms, strict=True):
                    sides[coefficient < 0].append(
                        additions.scaled(magnitude(coefficient), number, dtype, word)
                    )
                return additions.sum(sides[0], sides[1], dtype, word), ends
        name, turned = plan
        return self._letter(self._matrices.classes[name], turned, dtype), self._matrices.ends(plan)

    def _letter(self, klass: int, turned: bool, dtype: int) -> int:
        number = self._additions.number(klass)
        is_vector = ranks_of(self._matrices.found.reading.word[[klass]])[0] == 1
        if not is_vector and not turned:
            return number
        view = _TURNED if not is_vector else _ROW if turned else _COLUMN
        word = _word(*self._matrices.ends((self._matrices.found.rank[klass], turned)))
        return self._additions.term("DimShuffle", [number], (view,), dtype, word)


def _word(rows: int, columns: int) -> int:
    """The broadcast word of a matrix, whose axes of size 1 have no length of a name."""
    if rows == columns == UNKNOWN:
        return SCALAR
    return 1 << _MATRIX | (rows == UNKNOWN) | (columns == UNKNOWN) << 1
