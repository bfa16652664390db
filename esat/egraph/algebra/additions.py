"""What was found, as rows for the engine.

New terms are numbered on from the loaded ones, and lose their numbers once they are loaded. A class without a
number is named by its chosen e-node: the engine finds that it has it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from esat.egraph.algebra.equal_forms.expressions import Expression, Name, NumberExpression, Product, Sum
from esat.egraph.algebra.equal_forms.expressions import names as names_of
from esat.egraph.algebra.equal_forms.normal_forms import Forms
from esat.egraph.algebra.equal_forms.polynomials import Coefficient
from esat.egraph.algebra.findings import FOUND
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints
from esat.egraph.algebra.finite_fields.reading import UNKNOWN
from esat.egraph.engine import AnyEngine
from esat.egraph.language.loader import nary_action, term_action
from esat.egraph.language.term_rows import COLUMNS, TermRows

MADE = frozenset(["Fill", "K", "MatMul", "DimShuffle", "NarySum", "NaryProd"])
"""Constructors of terms that are added to a graph whether it has others of them or not."""

_FIRST = "algebra-first"
_RULES = "esat-algebra"
_PROGRAM = f"""
(function {FOUND} (T) i64 :merge (min old new))
(relation {_FIRST} (i64))   ; the number of the first term that was added
(ruleset {_RULES})
(rule (({_FIRST} f) (= t (N k)) (>= k f)) ((delete (N k))) :ruleset {_RULES} :name "forget-number")
(rule (({_FIRST} f)) ((delete ({_FIRST} f))) :ruleset {_RULES} :name "forget-first")
"""
_EQUATE = "(union (N n) (N x0))"
_BUDGET = "(set (flatten-budget (N n)) 64)"
_FILL = "(union (N n) (Fill (N x0) (N x1)))"
_NOTE = f"(set ({FOUND} (N n)) x0)"
_ANY_SHAPE = -1
_LARGEST_DEPTH = 64


class UnnamedError(Exception):
    """A class has no e-node that a row could stand for."""


class Additions:
    """Collects rows.

    Parameters
    ----------
    found
        The e-graph.
    forms
        Its forms.
    stored
        Classes of sparse matrices, which lend no array their shape.
    """

    def __init__(self, found: Fingerprints, forms: Forms, stored: Collection[int] = ()) -> None:
        self._stored = stored
        self._found, self._forms, self._reading = found, forms, found.reading
        self._rows = TermRows()
        self._first = self._next = len(found.reading.term_class)
        self._numbers: dict[int, int] = {}
        self._terms: dict[tuple[Expression, int], int] = {}
        self._made_terms: dict[tuple[str | int, ...], int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to load."""
        return not self._rows.rows

    def equate(self, classes: Sequence[int], finding: int) -> None:
        """Several classes are one; raises UnnamedError."""
        numbers = [self.number(klass) for klass in classes]
        for klass, number in zip(classes[1:], numbers[1:], strict=True):
            self._add(number, klass, _EQUATE, (numbers[0],))
        self._note(classes[0], finding)

    def constant(self, klass: int, value: Coefficient, finding: int) -> None:
        """A class is a constant; raises UnnamedError."""
        dtype, word = int(self._reading.dtype[klass]), int(self._reading.word[klass])
        number = self.number(klass)
        term = self._literal(float(value), dtype)
        if word == _ANY_SHAPE:
            self._add(number, klass, _EQUATE, (term,))
        else:
            self._add(number, klass, _FILL, (self.number(self._lender(klass)), term))
        self._note(klass, finding)

    def form(self, klass: int, expression: Expression, finding: int) -> None:
        """A class has another form; raises UnnamedError."""
        number, dtype = self.number(klass), int(self._reading.dtype[klass])
        word = int(self._reading.word[klass])
        if self._word(expression) == word:
            self._add(number, klass, _EQUATE, (self._expression(expression, dtype),))
        else:
            lender = self.number(self._lender(klass))
            self._add(number, klass, _FILL, (lender, self._expression(expression, dtype)))
        self._note(klass, finding)

    def same(self, klass: int, number: int, finding: int) -> None:
        """A class is a term, too; raises UnnamedError."""
        self._add(self.number(klass), klass, _EQUATE, (number,))
        self._note(klass, finding)

    def term(
        self, name: str, operands: Sequence[int], attributes: tuple[int, ...], dtype: int, word: int
    ) -> int:
        """The number of a term of terms."""
        action = term_action(name, len(operands), len(attributes))
        return self._known(
            (name, *operands, *attributes, dtype), dtype, word, action, (*operands, *attributes)
        )

    def sum(self, above: Sequence[int], below: Sequence[int], dtype: int, word: int) -> int:
        """The number of a sum of terms; raises UnnamedError for one that is too long."""
        return self._nary("NarySum", above, below, dtype, word)

    def scaled(self, factor: Coefficient, number: int, dtype: int, word: int) -> int:
        """The number of a multiple of a term."""
        if factor == 1:
            return number
        return self._nary("NaryProd", [self._literal(float(factor), dtype), number], [], dtype, word)

    def _nary(self, name: str, above: Sequence[int], below: Sequence[int], dtype: int, word: int) -> int:
        operands = *above, *below
        if len(operands) > COLUMNS:
            raise UnnamedError
        action = f"{nary_action(name, len(above), len(operands))} {_BUDGET}"
        return self._known((name, len(above), *operands, dtype), dtype, word, action, operands)

    def _known(
        self, key: tuple[str | int, ...], dtype: int, word: int, action: str, numbers: Sequence[int]
    ) -> int:
        """The number of a term, which is told of once."""
        if key not in self._made_terms:
            number = self._made_terms[key] = self._new()
            self._rows.add(number, dtype, word, action, numbers)
        return self._made_terms[key]

    def lend(self, klass: int) -> bool:
        """Fill a class's value into the smallest tree of its shape, where that is another; whether it is."""
        found = self._found
        node = found.chosen_list[klass]
        lender, value = self._reading.operands_of(node)
        smallest = self._lenders.get(self._shape(klass), lender)
        if found.cost[smallest] >= found.cost[lender] or self._shape(lender) != self._shape(klass):
            return False
        self._add(self.number(klass), klass, _FILL, (self.number(smallest), self.number(value)))
        return True

    def load(self, engine: AnyEngine) -> None:
        """Tell the engine."""
        if _RULES not in engine.forms:
            engine.load(_PROGRAM)
            engine.forms[_RULES] = UNKNOWN
        self._rows.load(engine)
        engine.execute(f"({_FIRST} {self._first})")
        engine.execute(f"(run {_RULES} 1)")

    def _note(self, klass: int, finding: int) -> None:
        self._add(self.number(klass), klass, _NOTE, (finding,))

    def _add(self, number: int, klass: int, action: str, numbers: Sequence[int]) -> None:
        dtype, word = int(self._reading.dtype[klass]), int(self._reading.word[klass])
        self._rows.add(number, dtype, word, action, numbers)

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    # ---- classes

    def number(self, klass: int, depth: int = 0) -> int:
        """The number of a class, which its chosen e-node has from now on if it had none."""
        known = int(self._reading.term[klass])
        if known != UNKNOWN:
            return known
        if klass in self._numbers:
            return self._numbers[klass]
        node = self._found.chosen_list[klass]
        if node < 0 or depth > _LARGEST_DEPTH:
            raise UnnamedError
        operands = self._reading.operands_of(node)
        attributes = self._reading.attributes[node]
        name = self._reading.names[int(self._reading.operator[node])]
        if name == "K":
            return self._literal(float(attributes[0]), int(attributes[1]))
        if len(operands) + len(attributes) > COLUMNS or any(isinstance(a, float) for a in attributes):
            raise UnnamedError
        numbers = [self.number(operand, depth + 1) for operand in operands]
        if name in ("NarySum", "NaryProd"):
            action = nary_action(name, int(self._reading.positives[node]), len(operands))
        else:
            action = term_action(name, len(operands), len(attributes))
        number = self._numbers[klass] = self._new()
        self._add(number, klass, action, (*numbers, *map(int, attributes)))
        return number

    def _lender(self, klass: int) -> int:
        """The class of the smallest tree that has the shape of another one; raises UnnamedError."""
        lender = self._lenders.get(self._shape(klass))
        if lender is None or self._found.cost[lender] >= self._found.cost[klass]:
            raise UnnamedError
        return lender

    def _shape(self, klass: int) -> tuple[int, ...]:
        lengths: list[int] = self._found.lengths[klass].tolist()
        return (int(self._reading.word[klass]), *lengths)

    @cached_property
    def _lenders(self) -> dict[tuple[int, ...], int]:
        """By shape, the class of the smallest tree."""
        found = self._found
        lenders: dict[tuple[int, ...], int] = {}
        for klass in sorted(found.order.tolist(), key=lambda klass: (found.cost[klass], found.rank[klass])):
            if klass not in self._stored:
                lenders.setdefault(self._shape(klass), klass)
        return lenders

    # ---- expressions

    def _word(self, expression: Expression) -> int:
        """The broadcast word of an expression."""
        word = _ANY_SHAPE
        for name in names_of(expression):
            word &= int(self._reading.word[self._forms.classes[name]])
        return word

    def _literal(self, value: float, dtype: int) -> int:
        number = self._new()
        self._rows.add(number, dtype, _ANY_SHAPE)
        self._rows.constants.append(f"{number}\t{value!r}\t{dtype}")
        return number

    def _expression(self, expression: Expression, dtype: int) -> int:
        """The number of an expression as a term of a dtype."""
        if isinstance(expression, Name):
            return self.number(self._forms.classes[expression.rank])
        known = self._terms.get((expression, dtype))
        if known is None:
            known = self._terms[expression, dtype] = self._made(expression, dtype)
        return known

    def _made(self, expression: NumberExpression | Sum | Product, dtype: int) -> int:
        if isinstance(expression, NumberExpression):
            return self._literal(float(expression.value), dtype)
        above, below = expression.above, expression.below
        if len(above) + len(below) > COLUMNS:  # the rules flatten it again
            parts = [*above, *below]
            half = len(parts) // 2
            first = type(expression)(above[:half], below[: max(half - len(above), 0)])
            rest = type(expression)(above[half:], below[max(half - len(above), 0) :])
            above, below = (first, rest), ()
        numbers = [self._expression(part, dtype) for part in (*above, *below)]
        name = "NarySum" if isinstance(expression, Sum) else "NaryProd"
        number = self._new()
        action = f"{nary_action(name, len(above), len(numbers))} {_BUDGET}"
        self._rows.add(number, dtype, self._word(expression), action, numbers)
        return number
