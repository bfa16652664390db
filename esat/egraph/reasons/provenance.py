"""Which rules made what equal: read from the log of an engine that saturated an e-graph once more.

The vertices of a graph are the e-nodes as rules made and matched them. Each union that a rule made is an edge
between the one that it matched and the one that it made. E-nodes that came to be congruent, since operands of
theirs were made equal, are neighbours as well. A path between two forms of a class is a proof that they are
equal, if each step of it holds by what was known before. (The method is that of egg: O. Flatt, S. Coward,
M. Willsey, Z. Tatlock, P. Panchekha, "Small proofs from congruence closure", FMCAD 2022.)
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from esat.egraph.algebra.findings import FOUND
from esat.egraph.reasons.class_times import ClassTimes
from esat.egraph.saturation.saturation_report import rule_name
from esat.engine.state.contents import EventLog, LoggedMatch, LoggedRow, MatchedAtom
from esat.engine.state.memory import CLASS, CONTAINER
from esat.engine.vocabulary import Vocabulary, bits_of, float_of

_LOADED = "load-"
_ADDED = "algebra-first"
TERMS = "N"
"""The table of the numbers of terms."""
_FILL = "Fill"
_UNNAMED = -1
_PLAIN = ("load-", "view-", "single-")
"""Begin the names of rules that say the same in another way: no steps of their own."""
_EXCHANGE = "exchange-"
"""Begins the names of rules that choose among what others offer to replace in long sums and products."""
_MAPPED = "holds/"
"""Begins the names of tables of what a rule asks of all elements of a sum or product."""
_INNER = "nary-"
"""Begins the names of tables that the layer of sums and products has for itself."""
_SHORT = 1e-3
"""The length of such a step, where that of any other is 1."""


class LoggedForm(NamedTuple):
    """An e-node: its constructor, and its inputs: ids, numbers, and sorted ids for a multiset."""

    table: str
    inputs: tuple[object, ...]


class ProofStep(NamedTuple):
    """Two forms of a class are equal.

    Attributes
    ----------
    match
        What a rule matched that said so; None where the operands are equal.
    start, end
        The forms, in the order they are read.
    is_forward
        Whether the rule made the second of the first.
    time
        The number of the match from which on it was known.
    """

    match: LoggedMatch | None
    start: LoggedForm
    end: LoggedForm
    is_forward: bool
    time: int


class Provenance:
    """The forms of an e-graph and the rules that connect them.

    Parameters
    ----------
    log, vocabulary
        Those of the engine.
    """

    def __init__(self, log: EventLog, vocabulary: Vocabulary) -> None:
        self.log = log
        self._sorts = {name: table.inputs for name, table in vocabulary.tables.items()}
        self._kinds = {name: tuple(map(vocabulary.kind, sorts)) for name, sorts in self._sorts.items()}
        self._made: dict[LoggedForm, tuple[LoggedRow, LoggedMatch]] = {}
        self._facts: dict[LoggedForm, LoggedMatch] = {}
        self._origin: dict[int, LoggedForm] = {}
        self._ids: dict[LoggedForm, int] = {}
        self._alike: dict[LoggedForm, list[LoggedForm]] = {}
        self._edges: dict[LoggedForm, list[ProofStep]] = {}
        self._plain: set[int] = set()
        self._named: set[LoggedForm] = set()
        self._classes = ClassTimes()
        self._first_added: dict[int, int] = {}
        self._found: dict[tuple[int, int], int] = {}
        self._added = dict(self._runs_of_algebra())
        for match in log.matches:
            self._enter(match)

    # ---- reading the log

    def _runs_of_algebra(self) -> Iterator[tuple[int, int]]:
        """For each match that loaded what the algebra says, the number of the run.

        Its terms are numbered on from those that were loaded, each time.
        """
        waiting: list[LoggedMatch] = []
        for match in self.log.matches:
            first = [row for row in match.rows if self.log.tables[row.table][0] == _ADDED]
            if first:
                (self._first_added[match.number],) = self.log.row(first[0].table, first[0].row)
                for other in waiting:
                    yield other.number, match.number
                    for row in other.rows:
                        if self.log.tables[row.table][0] == FOUND:
                            klass = self.log.find(self.log.row(row.table, row.row)[0])
                            self._found.setdefault((match.number, klass), row.output)
                waiting = []
            elif match.rule is not None and match.rule.name.startswith(_LOADED):
                waiting.append(match)
            else:
                waiting = []

    def _enter(self, match: LoggedMatch) -> None:
        forms: list[LoggedForm] = []
        for row in match.rows:
            name, table = self.log.tables[row.table]
            form = self._made_form(name, self.log.row(row.table, row.row), match)
            forms.append(form)
            if table.is_constructor:
                self._made.setdefault(form, (row, match))
                self._origin.setdefault(row.output, form)
                self._meet(form, row.output)
            else:
                self._facts.setdefault(self._key(form), match)
        for left, right, count in match.unions:
            ends = self._end(match, left, forms[:count]), self._end(match, right, forms[:count])
            if ends[0] != ends[1]:
                if self._says_the_same(match, *ends):
                    self._plain.add(match.number)
                elif match.number in self._added and self._finding(match, left) == _UNNAMED:
                    ends = self._lender(left, *ends), ends[1]
                self._connect(match, *ends)
            self._classes.unite(left, right, match.number)
        for left, right in match.congruences:
            self._classes.unite(left, right, match.number)

    def _meet(self, form: LoggedForm, member: int) -> None:
        """Note a form that is met for the first time, of the class of an id."""
        if form not in self._ids:
            self._ids[form] = member
            self._alike.setdefault(self._key(form), []).append(form)

    def _finding(self, match: LoggedMatch, member: int) -> int:
        return self._found.get((self._added[match.number], self.log.find(member)), _UNNAMED)

    def _lender(self, member: int, named: LoggedForm, made: LoggedForm) -> LoggedForm:
        """The form that another takes the place of: of a value that is filled, what lends it the shape."""
        if made.table != _FILL:
            return named
        for form in self._ids:
            if form.table == _FILL and self._classes.are_equal(self._ids[form], member):
                return form
        return named

    def _made_form(self, name: str, values: Sequence[int], match: LoggedMatch) -> LoggedForm:
        run = self._added.get(match.number)
        if name == TERMS and run is not None and values[0] >= self._first_added[run]:
            return LoggedForm(name, (values[0], run))
        return self._form(name, values)

    def _form(self, name: str, values: Sequence[int]) -> LoggedForm:
        inputs: list[object] = []
        for value, kind in zip(values, self._kinds[name], strict=False):
            inputs.append(tuple(self.log.items(value)) if kind == CONTAINER else value)
        return LoggedForm(name, tuple(inputs))

    def _key(self, form: LoggedForm) -> LoggedForm:
        """What congruent forms have in common: ids are classes as they are in the end."""
        if form.table == TERMS:
            return form
        find, inputs = self.log.find, list(form.inputs)
        for place, kind in enumerate(self._kinds[form.table]):
            value = inputs[place]
            if isinstance(value, tuple):
                inputs[place] = tuple(sorted(map(find, value)))
            elif kind == CLASS and isinstance(value, int):
                inputs[place] = find(value)
        return LoggedForm(form.table, tuple(inputs))

    def _end(self, match: LoggedMatch, side: int, made: Sequence[LoggedForm]) -> LoggedForm:
        """The form that one side of a union stands for: what the rule made, or what it matched."""
        for row, form in zip(reversed(match.rows[: len(made)]), reversed(made), strict=True):
            if row.output == side and self.log.tables[row.table][1].is_constructor:
                return form
        atoms = [(self.log.tables[atom.table], atom) for atom in self.needed(match)]
        for (name, table), atom in atoms:
            if table.is_constructor and atom.values[-1] == side:
                return self.matched(name, atom)
        for (name, table), atom in atoms:
            if table.is_constructor and CONTAINER in self._kinds[name]:
                known = self.operands(self.matched(name, atom))
                for form in known[0]:
                    if form in self._ids and self._classes.are_equal(self._ids[form], side):
                        return form
        return self.origin(side)

    def matched(self, name: str, atom: MatchedAtom) -> LoggedForm:
        """The form of a term that a rule matched."""
        form = self._form(name, atom.values[:-1])
        if form not in self._ids and self._key(form) not in self._alike:
            # Terms of many operands are no action of a rule's: they are as they were written.
            self._connect(_LOADING, form, self.origin(atom.values[-1]))
        self._meet(form, atom.values[-1])
        return form

    def _connect(self, match: LoggedMatch, left: LoggedForm, right: LoggedForm) -> None:
        self._edges.setdefault(left, []).append(ProofStep(match, left, right, True, match.number))
        self._edges.setdefault(right, []).append(ProofStep(match, right, left, False, match.number))

    def _says_the_same(self, match: LoggedMatch, left: LoggedForm, right: LoggedForm) -> bool:
        if match.number not in self._added:
            return match.rule is not None and match.rule.name.startswith(_PLAIN)
        # The algebra numbers terms that it makes or finds, and equates them with others.
        new = {form for form in (left, right) if form.table == TERMS and len(form.inputs) == 2}
        if left.table == right.table == TERMS or not new or new <= self._named:
            return False
        self._named |= new
        return True

    # ---- asking

    def origin(self, member: int) -> LoggedForm:
        """The form that a class began with."""
        return self._origin.get(member) or LoggedForm("", (member,))

    def needed(self, match: LoggedMatch) -> Iterator[MatchedAtom]:
        """The rows that a match needed; in place of rows that only rules read, what these were made of."""
        seen = {match.number}
        pending = [match]
        while pending:
            own = pending.pop()
            for atom in self.log.atoms(own):
                name, table = self.log.tables[atom.table]
                maker = None
                if not table.is_constructor and ("/" in name or name.startswith(_INNER)):
                    maker = self.maker_of_fact(name, atom.values[: len(table.inputs)])
                if maker is None or maker.number > own.number:
                    yield atom
                elif maker.number not in seen:
                    others = self._elements(own) if name.startswith(_MAPPED) else ()
                    makers = [maker, *(self.maker_of_fact(name, (element,)) for element in others)]
                    new = {one.number: one for one in makers if one and one.number < own.number}
                    pending += [one for number, one in new.items() if number not in seen]
                    seen.update(new)

    def _elements(self, match: LoggedMatch) -> list[int]:
        """Ids of the elements of all sums and products that a rule matched."""
        found: list[int] = []
        for atom in self.log.atoms(match):
            name, table = self.log.tables[atom.table]
            if table.is_constructor and CONTAINER in self._kinds[name]:
                found += self._parts(self._form(name, atom.values[:-1]))[0]
        return found

    def maker_of_fact(self, name: str, members: Sequence[int]) -> LoggedMatch | None:
        """What concluded a fact first; None if no rule did."""
        return self._facts.get(self._key(self._form(name, members)))

    def operands(self, form: LoggedForm) -> tuple[list[LoggedForm], list[int | float]]:
        """The operands of a form, as they were when it was made, and its attributes."""
        ids, attributes = self._parts(form)
        made: dict[int, LoggedForm] = {}
        if form in self._made:
            own, match = self._made[form]
            for row in match.rows:
                name, table = self.log.tables[row.table]
                if table.is_constructor and row != own:
                    made[row.output] = self._made_form(name, self.log.row(row.table, row.row), match)
        return [made.get(one) or self.origin(one) for one in ids], attributes

    def _parts(self, form: LoggedForm) -> tuple[list[int], list[int | float]]:
        operands: list[int] = []
        attributes: list[int | float] = []
        if not form.table:
            return operands, attributes
        for value, kind, sort in zip(
            form.inputs, self._kinds[form.table], self._sorts[form.table], strict=True
        ):
            if isinstance(value, tuple):
                operands += value
                attributes.append(len(value))
            else:
                assert isinstance(value, int)
                if kind == CLASS:
                    operands.append(value)
                else:
                    attributes.append(float_of(value) if sort == "f64" else value)
        return operands, attributes

    def differing(self, step: ProofStep) -> list[tuple[LoggedForm, LoggedForm]]:
        """The operands in which two congruent forms differ."""
        pairs = zip(self._sorted_operands(step.start), self._sorted_operands(step.end), strict=True)
        return [(left, right) for (one, left), (other, right) in pairs if one != other]

    def _sorted_operands(self, form: LoggedForm) -> list[tuple[int, LoggedForm]]:
        """Operands in an order in which those of congruent forms are equal."""
        ids, forms = self._parts(form)[0], self.operands(form)[0]
        if CONTAINER not in self._kinds[form.table]:
            return list(zip(ids, forms, strict=True))
        found: list[tuple[int, LoggedForm]] = []
        begin = 0
        for value in form.inputs:
            count = len(value) if isinstance(value, tuple) else 0
            pairs = zip(ids[begin : begin + count], forms[begin : begin + count], strict=True)
            found += sorted(pairs, key=lambda pair: (self.log.find(pair[0]), pair[0]))
            begin += count
        return found

    def meaning(self, form: LoggedForm) -> LoggedForm:
        """The term that the algebra gave a number."""
        steps = self._edges.get(form, ())
        return next((step.end for step in steps if self.is_plain(step)), form)

    def forms_by(self, is_meant: Callable[[str], bool]) -> list[LoggedForm]:
        """Forms that rules whose names are meant equated with others."""
        steps = [step for own in self._edges.values() for step in own if step.match is not None]
        steps.sort(key=lambda step: step.time)
        found = [
            step.end
            for step in steps
            if step.is_forward and step.match is not None and is_meant(self.rule_of(step.match))
        ]
        return list(dict.fromkeys(found))

    def class_of_form(self, form: LoggedForm) -> int | None:
        """The class of a form."""
        member = self._ids.get(form)
        return None if member is None else self.log.find(member)

    def class_of_term(self, number: int) -> int | None:
        """The class of a term that was loaded."""
        return self.class_of_form(LoggedForm(TERMS, (number,)))

    def class_of_node(
        self, name: str, operands: Sequence[int], attributes: Sequence[int | float]
    ) -> int | None:
        """The class of an e-node as :meth:`node` takes it."""
        alike = self._alike.get(self.node(name, operands, attributes))
        return None if alike is None else self.log.find(self._ids[alike[0]])

    def node(self, name: str, operands: Sequence[int], attributes: Sequence[int | float]) -> LoggedForm:
        """A constructor with classes and numbers as e-graphs are read out.

        Of multisets, all numbers of elements but the last one's are attributes.
        """
        classes, numbers = iter(operands), iter(attributes)
        inputs: list[object] = []
        kinds = self._kinds[name]
        for place, kind in enumerate(kinds, 1):
            if kind == CONTAINER:
                count = len(operands) if place == len(kinds) else int(next(numbers))
                inputs.append(tuple(sorted(islice(classes, count))))
            else:
                inputs.append(next(classes) if kind == CLASS else _word_of(next(numbers)))
        return LoggedForm(name, tuple(inputs))

    # ---- chains

    def path(
        self, start: LoggedForm, is_end: Callable[[LoggedForm], bool], before: float = math.inf
    ) -> list[ProofStep] | None:
        """The shortest chain of steps, known before a match, that leads from a form; None if there is none.

        Of chains, one that was known early: so that no step needs what it is to show.
        """
        known = self._shortest(start, is_end, before)
        while known:
            earlier = self._shortest(start, is_end, max(step.time for step in known))
            if earlier is None:
                break
            known = earlier
        return known

    def path_to_node(self, start: LoggedForm, node: LoggedForm) -> list[ProofStep] | None:
        """The chain to an e-node as :meth:`node` makes it."""
        return self.path(start, lambda form: form.table != TERMS and self._key(form) == node)

    def _shortest(
        self, start: LoggedForm, is_end: Callable[[LoggedForm], bool], before: float
    ) -> list[ProofStep] | None:
        queue: list[tuple[float, int, int, LoggedForm]] = [(0.0, 0, 0, start)]
        came: dict[LoggedForm, ProofStep | None] = {start: None}
        lengths = {start: 0.0}
        done: set[LoggedForm] = set()
        count = 0
        while queue:
            length, _, _, form = heapq.heappop(queue)
            if form in done:
                continue
            done.add(form)
            if is_end(form):
                return _steps(came, form)
            for step in self._following(form):
                if step.time >= before:
                    continue
                far = length + (_SHORT if self.is_plain(step) else 1.0)
                if far < lengths.get(step.end, math.inf):
                    lengths[step.end], came[step.end] = far, step
                    count += 1
                    heapq.heappush(queue, (far, step.time, count, step.end))
        return None

    def _following(self, form: LoggedForm) -> Iterator[ProofStep]:
        yield from self._edges.get(form, ())
        if form.table in ("", TERMS):
            return
        for other in self._alike.get(self._key(form), ()):
            if other != form:
                pairs = zip(self._sorted_operands(form), self._sorted_operands(other), strict=True)
                times = [self._classes.time(one, two) for (one, _), (two, _) in pairs]
                if None not in times:
                    yield ProofStep(None, form, other, True, max((time or 0 for time in times), default=0))

    def is_plain(self, step: ProofStep) -> bool:
        """Whether a step says the same in another way: a term as it was loaded, an op for a sum of two."""
        return step.match is not None and (step.match.number == 0 or step.match.number in self._plain)

    def finding_of(self, step: ProofStep) -> int | None:
        """The number of what the algebra found, where it said that the two are equal."""
        if step.match is None or step.match.number not in self._added:
            return None
        member = self._ids.get(step.start)
        return _UNNAMED if member is None else self._finding(step.match, member)

    def rule_of(self, match: LoggedMatch) -> str:
        """The name that a rule has in its file; empty for what no rule did.

        What the n-ary layer does with an offer is done by the rule that made it.
        """
        while match.rule is not None and match.rule.name.startswith(_EXCHANGE):
            atoms = [(self.log.tables[atom.table], atom.values) for atom in self.log.atoms(match)]
            inner = [(name, table, values) for (name, table), values in atoms if not table.is_constructor]
            makers = [self.maker_of_fact(name, values[: len(table.inputs)]) for name, table, values in inner]
            before = [maker for maker in makers if maker is not None and maker.number < match.number]
            if not before:
                break
            match = before[0]
        return "" if match.rule is None else rule_name(match.rule.name)


_LOADING = LoggedMatch(0, None, (), [], [], [])
"""What loads terms of many operands."""


def _steps(came: Mapping[LoggedForm, ProofStep | None], end: LoggedForm) -> list[ProofStep]:
    steps: list[ProofStep] = []
    step = came[end]
    while step is not None:
        steps.append(step)
        step = came[step.start]
    return steps[::-1]


def _word_of(number: int | float) -> int:
    return bits_of(number) if isinstance(number, float) else number
