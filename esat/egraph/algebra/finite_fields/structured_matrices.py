"""Matrices of which the structure is known: what is unknown of them is drawn so that they have it.

Symmetric, diagonal and orthogonal matrices that are no sums or products of others, and identity matrices. Of
other facts, and of several that do not go together, no use is made: then fewer equalities hold, and none that
does not. (Triangular ones that are small are no picture of others: their commutators have powers that are 0.)

A sum over an axis is one with weights W, so that a matrix A stands for A W. The identity is then 1 / W, and Q
is orthogonal if Q' W Q = 1 / W: by Cayley's transform, Q = (1 - S)^-1 (1 + S) / W for S = K / W with a K that
is minus its transpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.algebra.finite_fields.coded import OPAQUE
from esat.egraph.algebra.finite_fields.coding import Coded
from esat.egraph.algebra.finite_fields.fields import Field
from esat.egraph.algebra.finite_fields.modular import mixed
from esat.egraph.algebra.finite_fields.reading import Integers, Reading
from esat.egraph.analyses.structure import relation_of
from esat.ops.inference.structure import SQUARE_STRUCTURES

SYMMETRIC, ORTHOGONAL, IDENTITY = "symmetric", "orthogonal", "identity"
DIAGONAL = "diagonal"
FACTS = (SYMMETRIC, ORTHOGONAL, DIAGONAL)
"""The relations that are made use of."""
SQUARE = tuple(relation_of(fact) for fact in sorted(SQUARE_STRUCTURES))
"""Relations that only square matrices have."""
EYE = "Eye"


@record(frozen=True)
class Structured:
    """A class of matrices whose structure is known.

    Attributes
    ----------
    node
        The e-node that stands for it.
    klass
        The class.
    name
        A hash of what it is.
    rank
        Its axes.
    facts
        Its relations, or :data:`IDENTITY`.
    """

    node: int
    klass: int
    name: int
    rank: int
    facts: frozenset[str]

    @property
    def is_singular(self) -> bool:
        """Whether there is something else on its diagonal than beside it."""
        return self.facts != {SYMMETRIC}

    def elements(self, field: Field, sizes: Integers, weights: Integers) -> Integers:
        """int64: all elements.

        Parameters
        ----------
        field
            Where they are from.
        sizes
            int64 by axis: sizes of the small array.
        weights
            int64: those of the last axis, which has the length of the one before.
        """
        shape = tuple(sizes[: self.rank].tolist())
        word: Any = np.arange(int(np.prod(shape)))
        drawn: Any = mixed(mixed(self.name ^ field.seed) ^ word)
        matrices: Integers = (drawn % field.prime).reshape(-1, *shape[-2:])
        for number, matrix in enumerate(matrices):
            matrices[number] = self._structured(matrix, weights, field.prime)
        return matrices.reshape(-1)

    def _structured(self, matrix: Integers, weights: Integers, prime: int) -> Integers:
        if IDENTITY in self.facts:
            inverses = [pow(weight, -1, prime) for weight in weights.tolist()]
            return np.diag(np.array(inverses, np.int64))
        if DIAGONAL in self.facts:
            return np.diag(np.diag(matrix))
        if SYMMETRIC in self.facts:
            return np.tril(matrix) + np.tril(matrix, -1).T
        return orthogonal(matrix.tolist(), weights.tolist(), prime)


def orthogonal(drawn: Sequence[Sequence[int]], weights: Sequence[int], prime: int) -> Integers:
    """int64: a ``Q`` with ``Q.T @ W @ Q = 1 / W`` modulo a prime, of what is drawn below a diagonal."""
    size = len(weights)
    inverses = [pow(weight, -1, prime) for weight in weights]
    rows: list[list[int]] = []
    for row in range(size):
        skew = [drawn[row][column] if column < row else -drawn[column][row] for column in range(size)]
        skew[row] = 0
        same = [int(column == row) for column in range(size)]
        scaled = [inverses[row] * element for element in skew]
        left = [one - element for one, element in zip(same, scaled, strict=True)]
        right = [
            (one + element) * inverse for one, element, inverse in zip(same, scaled, inverses, strict=True)
        ]
        rows.append([element % prime for element in left + right])
    for pivot in range(size):
        place = next(row for row in range(pivot, size) if rows[row][pivot])
        rows[pivot], rows[place] = rows[place], rows[pivot]
        factor = pow(rows[pivot][pivot], -1, prime)
        rows[pivot] = [element * factor % prime for element in rows[pivot]]
        for row in range(size):
            if row != pivot and (factor := rows[row][pivot]):
                rows[row] = [
                    (one - factor * other) % prime for one, other in zip(rows[row], rows[pivot], strict=True)
                ]
    return np.array([row[size:] for row in rows], np.int64)


def structured(
    reading: Reading,
    coded: Coded,
    chosen: Integers,
    names: Integers,
    lengths: Integers,
    whole: NDArray[np.bool_],
) -> tuple[Structured, ...]:
    """The classes whose structure is known and that are nothing else that is.

    Parameters
    ----------
    reading, coded
        The e-graph.
    chosen, names
        By class, the e-node that stands for it, and a hash of what it is.
    lengths
        int64 ``(classes, ranks)``: equal numbers, equal lengths; -1 for axes of length 1.
    whole
        bool by such a number: whether such axes are in one piece.
    """
    facts: dict[int, set[str]] = {}
    for fact in FACTS:
        for klass in reading.facts.get(fact, ()):
            facts.setdefault(int(klass), set()).add(fact)
    for node in identities(reading, coded):
        facts[int(reading.class_of[node])] = {IDENTITY}
    found = []
    for klass in sorted(facts):
        node, rank = int(chosen[klass]), int(reading.word[klass]).bit_length() - 1
        is_matrix = reading.word[klass] > 0 and rank >= 2
        if node < 0 or not is_matrix or coded.nodes.code[node] != OPAQUE or coded.is_doubled[klass]:
            continue
        own = facts[klass]
        first, second = lengths[klass, rank - 2 : rank].tolist()
        if first != second or first < 0 or (own == {ORTHOGONAL} and not whole[first]):
            continue
        found.append(Structured(node, klass, int(names[klass]), rank, frozenset(own)))
    return tuple(found)


def identities(reading: Reading, coded: Coded) -> Iterator[int]:
    """E-nodes that are ones on the main diagonal of what has as many rows as columns."""
    if EYE not in reading.names:
        return
    for node in np.flatnonzero(reading.operator == reading.names.index(EYE)).tolist():
        rows, columns, shift = reading.operands_of(node)
        if rows == columns and coded.is_constant[shift] and reading.value[shift] == 0:
            yield node
