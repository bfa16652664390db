"""Rules of egglog's text as words for the machine (:mod:`esat.engine.rules` says which)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from esat.engine import primitive_names as names
from esat.engine import primitives
from esat.engine import rules as r
from esat.engine.queries import Call, NumberOperand, Operand, RuleQuery, TableAtom
from esat.engine.state.memory import ARGUMENTS, MOST_ARGUMENTS
from esat.engine.vocabulary import UnknownFormError, Vocabulary, literal
from esat.rules.language.reader import Sexp, string_value

_TEMPORARY = "\t"
"""Begins names of what actions compute."""
MOST_VARIABLES = ARGUMENTS
"""Registers of a rule."""


class RulePlace(NamedTuple):
    """Where the words of a rule stand, and what its text calls it."""

    address: int
    name: str
    ruleset: str


def options_of(form: Sequence[Sexp]) -> dict[str, str]:
    """``:ruleset`` and ``:name`` of a rule.

    Raises
    ------
    UnknownFormError
        For other options.
    """
    found = dict(zip(map(str, form[::2]), map(str, form[1::2]), strict=False))
    if unknown := found.keys() - {":ruleset", ":name"}:
        raise UnknownFormError(f"the option {min(unknown)} of a rule")
    return found


def rule_words(vocabulary: Vocabulary, form: Sequence[Sexp], base: int) -> tuple[list[int], RulePlace]:
    """The words of a rule that will stand at ``base``, and where they are.

    Raises
    ------
    UnknownFormError
        For what the machine does not have.
    """
    _, body, actions, *rest = form
    options = options_of(rest)
    query = RuleQuery.of(vocabulary, body if not isinstance(body, str) else ())
    if not query.atoms:
        raise UnknownFormError("a rule without a table in its query")
    return _Writer(vocabulary, query, base).rule(
        actions if not isinstance(actions, str) else (),
        string_value(options[":name"]) if ":name" in options else "",
        options.get(":ruleset", ""),
    )


def action_words(vocabulary: Vocabulary, actions: Sequence[Sexp]) -> list[int]:
    """Actions outside of rules: instructions, the deletions last."""
    writer = _Writer(vocabulary, RuleQuery(vocabulary), 0)
    for action in actions:
        writer.act(action)
    return [*writer.resolved(writer.actions), *writer.resolved(writer.deletions), r.END]


@dataclass(slots=True)
class _Writer:
    """Writes one rule."""

    vocabulary: Vocabulary
    query: RuleQuery
    base: int
    actions: list[int | str] = field(default_factory=list)
    deletions: list[int | str] = field(default_factory=list)
    _bound: list[str] = field(default_factory=list)
    _own: dict[str, Operand] = field(default_factory=dict)
    _made: int = 0

    def rule(self, actions: Sequence[Sexp], name: str, ruleset: str) -> tuple[list[int], RulePlace]:
        for action in actions:
            self.act(action)
        query = self.query
        variables = dict.fromkeys(self._bound)
        for atom in query.atoms:
            variables.update(dict.fromkeys(v for v in atom.columns if isinstance(v, str)))
        for call in query.calls:
            operands = (*call.arguments, call.result)
            variables.update(dict.fromkeys(v for v in operands if isinstance(v, str)))
        numbers = {variable: number for number, variable in enumerate(variables)}
        if len(numbers) > MOST_VARIABLES:
            raise UnknownFormError(f"a rule with more than {MOST_VARIABLES} variables")
        words = [0] * r.RULE_WORDS

        def place(more: Sequence[int]) -> int:
            at = self.base + len(words)
            words.extend(more)
            return at

        def number(operand: Operand) -> int:
            return operand.register if isinstance(operand, NumberOperand) else numbers[operand]

        words[r.ATOMS], words[r.PRIMITIVES] = len(query.atoms), len(query.calls)
        words[r.VARIABLES], words[r.BOUND] = len(numbers), len(self._bound)
        if self.actions:
            words[r.ACTIONS] = place([*self.resolved(self.actions), r.END])
        if self.deletions:
            words[r.DELETIONS] = place([*self.resolved(self.deletions), r.END])
        starts = place([0] * len(query.atoms) ** 2)
        atoms = [
            place(self._atom(atom, starts + i * len(query.atoms), [number(v) for v in atom.columns]))
            for i, atom in enumerate(query.atoms)
        ]
        calls = [
            place(
                self._primitive(
                    call, [*map(number, call.arguments)], -1 if call.result is None else number(call.result)
                )
            )
            for call in query.calls
        ]
        words[r.ATOM_LIST], words[r.PRIMITIVE_LIST] = place(atoms), place(calls)
        return words, RulePlace(self.base, name, ruleset)

    def _atom(self, atom: TableAtom, starts: int, columns: Sequence[int]) -> list[int]:
        return [self.vocabulary.tables[atom.table].number, 0, starts, *columns, *[0] * len(columns)]

    def _primitive(self, call: Call, arguments: Sequence[int], result: int) -> list[int]:
        op, function, target, sort = self._operation(call)
        is_cheap = op < primitives.CONTAINERS or op in names.CHEAP
        return [op, result, function, target, sort, len(arguments), int(is_cheap), 0, *arguments]

    def _operation(self, call: Call) -> tuple[int, int, int, int]:
        """The operation of a primitive, the kind and number of its function, the sort of what it makes."""
        query, vocabulary = self.query, self.vocabulary
        sorts = [query.sort(operand) for operand in call.arguments]
        if len(sorts) > MOST_ARGUMENTS:
            raise UnknownFormError(f"{call.name} of more than {MOST_ARGUMENTS} operands")
        op = names.operation(vocabulary, call.name, sorts[call.bound :])
        made = query.result_of(call)
        sort = vocabulary.containers.get(made, 0)
        if not call.function:
            return op, 0, 0, sort
        table = vocabulary.tables.get(call.function)
        if table is not None:
            return op, primitives.TABLE, table.number, sort
        inner = names.operation(vocabulary, call.function, query.sorts_inside(call))
        if inner >= primitives.MAP or inner in (
            primitives.MULTISET_OF,
            primitives.PAIR_OF,
            primitives.SINGLE,
        ):
            raise UnknownFormError(f"the function {call.function}")
        return op, primitives.PRIMITIVE, inner, sort

    # ---- actions

    def act(self, action: Sexp) -> None:
        """Write an action."""
        if isinstance(action, str):
            raise UnknownFormError(f"the action {action}")
        match action:
            case ("let", str(name), value):
                self._own[name] = self._value(value, self.actions)
            case ("set", (str(name), *inputs), value):
                table = self.vocabulary.tables[name]
                values = [*inputs, value] if table.output else inputs
                registers = [
                    self._word(self._value(part, self.actions, sort))
                    for part, sort in zip(values, table.columns, strict=True)
                ]
                self.actions += [r.SET, table.number, *registers]
            case ("union", first, second):
                sides = [self._word(self._value(part, self.actions)) for part in (first, second)]
                self.actions += [r.UNION, *sides]
            case ("subsume" | "delete" as kind, (str(name), *inputs)):
                to = self.deletions if kind == "delete" else self.actions
                table = self.vocabulary.tables[name]
                registers = [
                    self._word(self._value(part, to, sort))
                    for part, sort in zip(inputs, table.inputs, strict=True)
                ]
                self._same(to, registers)
                code = r.DELETE if kind == "delete" else r.SUBSUME
                to += [code, self.vocabulary.tables[name].number, *registers]
            case ("unstable-multiset-fill-index", multiset, ("unstable-fn", str(name))):
                register = self._word(self._value(multiset, self.actions))
                self.actions += [r.FILL, self.vocabulary.tables[string_value(name)].number, register]
            case ("vec-of", *parts):
                for part in parts:
                    self._value(part, self.actions)
            case (str(name), *_) if name in self.vocabulary.tables:
                self._value(action, self.actions)
            case _:
                raise UnknownFormError(f"the action {action[0]}")

    def _same(self, to: list[int | str], registers: Sequence[int | str]) -> None:
        """Deletions come first, and do not see what other actions computed."""
        if to is self.deletions:
            for register in registers:
                if isinstance(register, str) and register.startswith(_TEMPORARY) and register not in to:
                    raise UnknownFormError("the deletion of what an action made")

    def _word(self, operand: Operand) -> int | str:
        """A register, or the name of a variable that will have one."""
        if isinstance(operand, NumberOperand):
            return operand.register
        if not operand.startswith(_TEMPORARY):
            if operand not in self.query.sorts:
                raise UnknownFormError(f"the variable {operand}")
            if operand not in self._bound:
                self._bound.append(operand)
        return operand

    def _temporary(self, sort: str) -> str:
        self._made += 1
        name = f"{_TEMPORARY}{self._made}"
        self.query.sorts[name] = sort
        return name

    def _value(self, part: Sexp, to: list[int | str], sort: str = "") -> Operand:
        """What stands for an expression of a sort, where one is known; what computes it is written before."""
        vocabulary, query = self.vocabulary, self.query
        if isinstance(part, str):
            number = literal(part)
            if number is not None:
                return NumberOperand(number[0], vocabulary.constant(number[1]))
            return self._own.get(part) or query.value(str(part))
        name = str(part[0])
        table = vocabulary.tables.get(name)
        if table is not None:
            if table.output and not table.is_constructor:
                raise UnknownFormError(f"an action that looks up {name}")
            inputs = [
                self._word(self._value(operand, to, sort))
                for operand, sort in zip(part[1:], table.inputs, strict=True)
            ]
            made = self._temporary(table.output) if table.output else f"{_TEMPORARY}0"
            to += [r.MAKE, table.number, made if table.output else -1, *inputs]
            return made
        function, bound = "", 0
        operands = part[1:]
        if not operands:
            # The sort of an empty multiset is that of its place.
            empty = self._temporary(sort)
            to += [
                r.CALCULATE,
                names.operation(vocabulary, name, ()),
                empty,
                0,
                0,
                vocabulary.containers[sort],
                0,
            ]
            return empty
        if name in names.HIGHER:
            called = part[1]
            if isinstance(called, str) or called[0] != "unstable-fn":
                raise UnknownFormError("a function that is a variable")
            function, bound = string_value(called[1]), len(called) - 2
            operands = (*called[2:], *part[2:])
        elif name not in names.NAMES or name in names.CHECKS:
            raise UnknownFormError(f"the primitive {name}")
        values = tuple(self._value(operand, to) for operand in operands)
        while names.is_associative(name) and len(values) > 2:
            values = (self._calculated(Call(name, values[:2], None), to), *values[2:])
        return self._calculated(Call(name, values, None, function, bound), to)

    def _calculated(self, call: Call, to: list[int | str]) -> Operand:
        op, function, target, sort = self._operation(call)
        arguments = [self._word(operand) for operand in call.arguments]
        result = self._temporary(self.query.result_of(call))
        to += [r.CALCULATE, op, result, function, target, sort, len(arguments), *arguments]
        return result

    def resolved(self, words: Sequence[int | str]) -> list[int]:
        """Words with registers for names: what is computed comes after what is bound."""
        return list(self._resolved(words))

    def _resolved(self, words: Sequence[int | str]) -> Iterator[int]:
        for word in words:
            if isinstance(word, int):
                yield word
            elif word.startswith(_TEMPORARY):
                register = len(self._bound) + int(word[1:])
                if register >= MOST_VARIABLES:
                    raise UnknownFormError(f"a rule with more than {MOST_VARIABLES} variables")
                yield register
            else:
                yield self._bound.index(word)
