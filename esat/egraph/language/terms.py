"""The term DAG: a graph in the e-graph's own language, before it is loaded.

Terms are hash-consed and numbered in topological order, so merging common sub-expressions is
already done here. Broadcast words and dtype numbers are those of the rules (see
``esat/rules/README.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from esat.base.records import record
from esat.errors import CompileError, UserLine
from esat.graph import Constant, Op, Variable
from esat.graph.types import DTYPE_NUMBER

SCALAR = -1
"""Broadcast word of every value whose axes all have size 1: it has no rank of its own."""

Dimension = int | tuple[int, int]
"""Size of an axis: known, or a symbol (number of the term where it first stands, axis)."""

Joins = Sequence[tuple[int, int]]
"""How the user put the operands of an n-ary term together, two parts at a time.

Parts are numbered: the operands first, then what earlier joins made. Operands may be left over.
"""


Claim = tuple[Variable, Variable] | tuple[Variable, Variable, str]
"""Two Variables that are known to have the same value and the same type, and who says so."""


@record(frozen=True, slots=True)
class Term:
    """One term: a constructor, the numbers of its operand terms, and its literal attributes.

    N-ary sums and products carry the number of their positive operands (numerators) as the one
    attribute; these stand first among the operands.
    """

    constructor: str
    operands: tuple[int, ...]
    attributes: tuple[int | float, ...] = ()


@record(frozen=True, slots=True)
class TermType:
    """What the rules know of every term.

    Attributes
    ----------
    dtype
        Number of the dtype in :data:`esat.graph.types.DTYPES`.
    broadcast
        Broadcast word: bit ``i`` is set where axis ``i`` has size 1, and the bit above the last
        axis marks the rank; :data:`SCALAR` when all axes have size 1.
    shape
        Size of each axis, for sizes that rules and costs use; empty for :data:`SCALAR`. Of a sparse matrix a
        third number follows, that of its stored values.
    value
        The one value all elements have, where that is known.
    """

    dtype: int
    broadcast: int
    shape: tuple[Dimension, ...] = ()
    value: float | None = None

    @property
    def rank(self) -> int:
        """Number of axes; 0 for a scalar."""
        return rank_of(self.broadcast)


@record(frozen=True, slots=True)
class RankedOp:
    """An op, and the ranks its operands must have; None for an operand that may have any."""

    op: Op
    operand_ranks: tuple[int | None, ...]


@record(frozen=True, slots=True)
class TermGraph:
    """A closed set of terms with their types, roots, and the tables literal numbers refer to.

    Attributes
    ----------
    terms, types
        By number, operands before users.
    roots
        Terms of the graph's outputs, in order.
    inputs
        ``(In k)`` is ``inputs[k]``: the graph's inputs and shared variables.
    arrays
        ``(Array k)`` is ``arrays[k]``.
    opaque
        The last attribute ``k`` of an op without a form of its own means ``opaque[k]``.
    places
        By number, the user's line that built the node; None where unknown. Empty: all unknown.
    equal
        Pairs of terms that are known to have the same value.
    facts
        Pairs of a term and a relation that is true of it: what the user assumes, and what its type shows.
    structured
        Whether the structure of matrices may matter (:mod:`esat.egraph.analyses.structure`).
    joins
        Of n-ary terms, by number: how the user had put their operands together, as far as that is known.
    strict
        N-ary terms of which everything that was put together has to stay so, whatever it costs.
    claimants
        Who says so, of each pair of ``equal`` of which that is known.
    """

    terms: tuple[Term, ...]
    types: tuple[TermType, ...]
    roots: tuple[int, ...]
    inputs: tuple[Variable, ...] = ()
    arrays: tuple[Constant, ...] = ()
    opaque: tuple[RankedOp, ...] = ()
    places: tuple[UserLine | None, ...] = ()
    equal: tuple[tuple[int, int], ...] = ()
    facts: tuple[tuple[int, str], ...] = ()
    structured: bool = False
    joins: Mapping[int, Joins] = field(default_factory=dict)
    strict: frozenset[int] = frozenset()
    claimants: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def place_of(self, number: int) -> UserLine | None:
        """The user's line that built a term's node, if known."""
        return self.places[number] if self.places else None

    def verify(self) -> None:
        """Raise CompileError unless operands precede users and every number refers to something."""
        if len(self.terms) != len(self.types):
            raise CompileError(f"encode: {len(self.terms)} terms but {len(self.types)} types")
        tables = {"In": len(self.inputs), "Array": len(self.arrays)}
        for number, term in enumerate(self.terms):
            if any(not 0 <= operand < number for operand in term.operands):
                raise CompileError(f"encode: term {number} {term} uses a term that does not precede it")
            if term.constructor in tables and not 0 <= term.attributes[0] < tables[term.constructor]:
                raise CompileError(f"encode: term {number} {term} refers to nothing")
        if any(not 0 <= root < len(self.terms) for root in self.roots):
            raise CompileError("encode: a root is not a term")
        for left, right in self.equal:
            known, other = self.types[left], self.types[right]
            if (known.dtype, known.broadcast) != (other.dtype, other.broadcast):
                raise CompileError(f"encode: the equal terms {left} and {right} differ in type")


@dataclass(slots=True)
class TermBuilder:
    """Adds terms one by one, merging those that are equal."""

    terms: list[Term] = field(default_factory=list)
    types: list[TermType] = field(default_factory=list)
    numbers: dict[Term, int] = field(default_factory=dict)

    def add(
        self,
        constructor: str,
        operands: Sequence[int],
        attributes: Sequence[int | float],
        type: TermType,
    ) -> int:
        """The number of the term, new or known."""
        term = Term(constructor, tuple(operands), tuple(attributes))
        number = self.numbers.get(term)
        if number is None:
            number = len(self.terms)
            self.numbers[term] = number
            self.terms.append(term)
            self.types.append(type)
        return number


def rank_of(broadcast: int) -> int:
    """The rank a broadcast word marks; 0 for a scalar."""
    return broadcast.bit_length() - 1 if broadcast > 0 else 0


def broadcast_word(broadcastable: Sequence[bool]) -> int:
    """The broadcast word of axes that have size 1 where the flag is set."""
    if all(broadcastable):
        return SCALAR
    mask = sum(1 << axis for axis, flag in enumerate(broadcastable) if flag)
    return 1 << len(broadcastable) | mask


def dtype_number(name: str) -> int:
    """The number of a dtype in the e-graph."""
    return DTYPE_NUMBER[name]
