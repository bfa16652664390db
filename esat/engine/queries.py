"""The query of a rule as atoms and primitives over variables, with sorts.

egglog has checked the rule, or will: what it would refuse is not looked for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from esat.base.records import record
from esat.engine import primitive_names as names
from esat.engine.vocabulary import UnknownFormError, Vocabulary, literal
from esat.rules.language.reader import Sexp, string_value

MADE = " "
"""Begins names of variables that no text can have."""


@record(frozen=True, slots=True)
class NumberOperand:
    """A number of a rule."""

    sort: str
    register: int


Operand = str | NumberOperand
"""A variable by its name, or a constant."""


@record(frozen=True, slots=True)
class TableAtom:
    """A table, and what stands in its columns."""

    table: str
    columns: tuple[Operand, ...]


@record(frozen=True, slots=True)
class Call:
    """A primitive, and what its result is; None where it is a check.

    Attributes
    ----------
    function, bound
        Of a primitive that takes a function: its name, and how many of the arguments are bound to it.
    """

    name: str
    arguments: tuple[Operand, ...]
    result: Operand | None
    function: str = ""
    bound: int = 0


@dataclass(slots=True)
class RuleQuery:
    """The body of a rule.

    Parameters
    ----------
    vocabulary
        What is declared.
    """

    vocabulary: Vocabulary
    atoms: list[TableAtom] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    sorts: dict[str, str] = field(default_factory=dict)
    _equal: dict[str, Operand] = field(default_factory=dict)
    _made: int = 0

    @classmethod
    def of(cls, vocabulary: Vocabulary, facts: Sequence[Sexp]) -> RuleQuery:
        """The query of facts."""
        query = cls(vocabulary)
        for fact in facts:
            query._add(fact)
        query.atoms = [TableAtom(a.table, tuple(map(query.value, a.columns))) for a in query.atoms]
        query.calls = [
            Call(
                c.name,
                tuple(map(query.value, c.arguments)),
                None if c.result is None else query.value(c.result),
                c.function,
                c.bound,
            )
            for c in query.calls
        ]
        query._infer()
        return query

    def value(self, operand: Operand) -> Operand:
        """What a variable stands for, where it is equal to another one, or to a constant."""
        while isinstance(operand, str) and operand in self._equal:
            operand = self._equal[operand]
        return operand

    def sort(self, operand: Operand) -> str:
        """The sort of a value; empty where it is not known."""
        return operand.sort if isinstance(operand, NumberOperand) else self.sorts.get(operand, "")

    def _add(self, fact: Sexp) -> None:
        if isinstance(fact, str):
            raise UnknownFormError(f"the fact {fact}")
        if fact[0] == "=":
            values = [self._flat(part) for part in fact[1:]]
            for first, second in pairwise(values):
                self._equate(first, second)
        elif fact[0] in names.CHECKS:
            self.calls.append(Call(str(fact[0]), tuple(self._operand(part) for part in fact[1:]), None))
        else:
            self._flat(fact)

    def _equate(self, first: Operand | None, second: Operand | None) -> None:
        if first is None or second is None:
            return  # Unit
        first, second = self.value(first), self.value(second)
        if first == second:
            return
        if isinstance(first, NumberOperand):
            first, second = second, first
        if isinstance(first, NumberOperand):
            raise UnknownFormError("two constants that differ")
        # A name of the user's stays rather than one that was made.
        if isinstance(second, str) and second.startswith(MADE):
            first, second = second, first
        assert isinstance(first, str)
        self._equal[first] = second

    def _fresh(self) -> str:
        self._made += 1
        return f"{MADE}{self._made}"

    def _operand(self, part: Sexp) -> Operand:
        value = self._flat(part)
        if value is None:
            raise UnknownFormError("a value of the sort Unit")
        return value

    def _flat(self, part: Sexp) -> Operand | None:
        """What stands for an expression; None for Unit."""
        if isinstance(part, str):
            number = literal(part)
            if number is not None:
                return NumberOperand(number[0], self.vocabulary.constant(number[1]))
            if part.startswith(('"', "$")) or part in ("true", "false"):
                raise UnknownFormError(f"the value {part}")
            return self._fresh() if part == "_" else str(part)
        if not part:
            return None
        name = str(part[0])
        table = self.vocabulary.tables.get(name)
        if table is not None:
            columns = [self._operand(operand) for operand in part[1:]]
            if len(columns) != len(table.inputs):
                raise UnknownFormError(f"{name} of {len(columns)} operands")
            if table.output:
                columns.append(self._fresh())
            self.atoms.append(TableAtom(name, tuple(columns)))
            return columns[-1] if table.output else None
        if name in names.HIGHER:
            called = part[1]
            if isinstance(called, str) or called[0] != "unstable-fn":
                raise UnknownFormError("a function that is a variable")
            bound = [self._operand(operand) for operand in called[2:]]
            operands = (*bound, *(self._operand(operand) for operand in part[2:]))
            result = self._fresh()
            self.calls.append(Call(name, operands, result, string_value(called[1]), len(bound)))
            return result
        if name not in names.NAMES or name in names.CHECKS:
            raise UnknownFormError(f"the primitive {name}")
        operands = tuple(self._operand(operand) for operand in part[1:])
        while names.is_associative(name) and len(operands) > 2:
            between = self._fresh()
            self.calls.append(Call(name, operands[:2], between))
            operands = (between, *operands[2:])
        result = self._fresh()
        self.calls.append(Call(name, operands, result))
        return result

    def _infer(self) -> None:
        """Sorts of all variables: those of tables, then of what primitives make of them."""
        for atom in self.atoms:
            for operand, sort in zip(atom.columns, self.vocabulary.tables[atom.table].columns, strict=True):
                if isinstance(operand, str):
                    self.sorts[operand] = sort
        waiting = [call for call in self.calls if call.result is not None]
        while waiting:
            still = []
            for call in waiting:
                sort = self.result_of(call)
                if not sort:
                    still.append(call)
                elif isinstance(call.result, str):
                    self.sorts.setdefault(call.result, sort)
            if len(still) == len(waiting):
                raise UnknownFormError(f"the primitive {still[0].name}, of sorts that are not known")
            waiting = still

    def result_of(self, call: Call) -> str:
        """The sort of what a primitive makes; empty where it is not known yet."""
        sorts = [self.sort(operand) for operand in call.arguments]
        made = self.made_by(call) if call.function else ""
        found = names.result_sort(self.vocabulary, call.name, sorts[call.bound :], made)
        return found or ("" if call.result is None else self.sort(call.result))

    def made_by(self, call: Call) -> str:
        """The sort of what the function of a call makes."""
        table = self.vocabulary.tables.get(call.function)
        if table is not None:
            return table.output
        return names.result_sort(self.vocabulary, call.function, self.sorts_inside(call))

    def sorts_inside(self, call: Call) -> list[str]:
        """Sorts of the arguments of the function of a call: those bound, and elements of the multiset."""
        bound = [self.sort(operand) for operand in call.arguments[: call.bound]]
        elements = self.vocabulary.elements.get(self.sort(call.arguments[-1]), ("",))
        return [*bound, *(elements * 2 if call.name == "unstable-multiset-reduce" else elements)]
