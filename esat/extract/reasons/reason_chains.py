"""ReasonChains of rules between forms of a value, made of what the log of a saturation tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from esat.egraph.algebra.findings import Finding
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.language.form_text import form_text
from esat.egraph.reasons.provenance import TERMS, LoggedForm, ProofStep, Provenance
from esat.engine.state.contents import LoggedMatch
from esat.errors import OptimizerError
from esat.extract.extraction import Extraction
from esat.extract.reasons.given_names import names_of_classes
from esat.extract.reasons.why import Reason, ReasonChain, ReasonStep
from esat.ops.inference.structure import NUMBERS, RANGES

_DEPTHS = (8, 6, 5, 4, 3, 2)
"""Levels of an expression that may be written out: as many as go on a line."""
_LONGEST = 96
"""Characters of an expression, for which fewer levels are left out."""
_DEEPEST_REASON = 4
"""Facts that facts were concluded from, and so on."""
_MOST_CHAINS = 40
"""ReasonChains of operands that are told of one value."""

_FACTS = {
    **{name: f"is {name}" for name in (*NUMBERS, *RELATIONS, "integral")},
    **dict(zip(RANGES, ("may overflow", "may vanish", "may over- or underflow"), strict=True)),
}
_LAYERS = {
    "esat-fold": "constant folding",
    "esat-facts": "facts",
    "esat-types": "types",
}
_SUMS = "sums and products"


@dataclass(slots=True)
class ReasonChains:
    """ReasonChains of the values of one program.

    Parameters
    ----------
    extraction
        What was chosen.
    provenance
        Which rules made what equal.
    offered
        Names of the rules that the mode and the query chose.
    findings
        What the algebra found.
    """

    extraction: Extraction
    provenance: Provenance
    offered: frozenset[str]
    findings: Sequence[Finding] = ()
    _names: Mapping[int, str] = field(init=False)
    _classes: dict[int, int] = field(default_factory=dict)
    _told: set[tuple[int, LoggedForm]] = field(default_factory=set)
    _parts: set[tuple[LoggedForm, LoggedForm]] = field(default_factory=set)

    def __post_init__(self) -> None:
        terms = self.extraction.graph.terms
        self._names = names_of_classes(terms, range(len(terms.terms)))

    # ---- chains of values

    def of(self, number: int) -> ReasonChain:
        """The chain of a term that was loaded: from the form as written to the one that is computed.

        Raises
        ------
        OptimizerError
            For a term that is no value of its own, or that the program does not compute.
        """
        klass = int(self.extraction.graph.arrays.term_class[number])
        if klass < 0:
            raise OptimizerError(
                f"{self._term(number)} is no value of its own here, but a part of a longer sum or"
                " product: ask about that"
            )
        if int(self.extraction.selection.chosen[klass]) < 0:
            raise OptimizerError(f"the program has no need to compute {self._term(number)}")
        self._told, self._parts = set(), set()
        return self._chain(klass, LoggedForm(TERMS, (number,)))

    def between(self, left: int, right: int) -> ReasonChain:
        """The chain between two terms of one class."""
        last_form = LoggedForm(TERMS, (right,))
        steps = self.provenance.path(LoggedForm(TERMS, (left,)), last_form.__eq__)
        if steps is None:
            raise OptimizerError("the saturation, done once more, does not find the two to be equal")
        first = ReasonStep(self._term(left))
        told = self._steps(steps, first.form)
        if told and told[-1].form != self._term(right):
            last = told[-1]
            told[-1] = ReasonStep(self._term(right), last.rule, last.facts, last.parts)
        return ReasonChain(self._names.get(left, ""), (first, *told))

    def _chain(self, klass: int, start: LoggedForm) -> ReasonChain:
        """The chain from a form of a class to the one that was chosen."""
        path = self.provenance.path_to_node(start, self._chosen_node(klass))
        text, number = self._form_text(start), self._number_of(start)
        name = "" if number is None else self._names.get(number, "")
        steps = (ReasonStep(text), *self._steps(path or (), text))
        operands = () if path is None else self._operands(klass, path[-1].end if path else start)
        return ReasonChain(name, steps, tuple(operands), number is not None)

    def _operands(self, klass: int, form: LoggedForm) -> list[ReasonChain]:
        """ReasonChains of what a form is computed of, where that has changed and has no name of its own."""
        chosen = int(self.extraction.selection.chosen[klass])
        classes = {self._raw_class(one): one for one in self._operands_of(chosen)}
        found: list[ReasonChain] = []
        for operand in dict.fromkeys(self.provenance.operands(form)[0]):
            raw = self.provenance.class_of_form(operand)
            own = None if raw is None else classes.get(raw)
            if own is None or (own, operand) in self._told or len(self._told) > _MOST_CHAINS:
                continue
            self._told.add((own, operand))
            number = self._number_of(operand)
            if number is None or number not in self._names:
                chain = self._chain(own, operand)
                found += [chain] if len(chain.steps) > 1 else chain.operands
        return found

    def value(self, klass: int) -> str:
        """A class of the log in words, by its name if it has one."""
        return self._operand(self.provenance.origin(klass))

    def needless_forms_by(self, rule: str) -> list[str]:
        """Forms that a rule made of values that nothing computed needs, in words."""
        needed = {self._raw_class(klass) for klass in self.extraction.selection.live_classes.tolist()}
        forms = self.provenance.forms_by(lambda name: rule in (name, name[:-2]))
        found = [form for form in forms if self.provenance.class_of_form(form) not in needed]
        return list(dict.fromkeys(map(self._form_text, found)))

    # ---- classes and forms

    def _operands_of(self, node: int) -> list[int]:
        operands: list[int] = self.extraction.graph.arrays.operands_of(node).tolist()
        return operands

    def _raw_class(self, klass: int) -> int:
        """The class of the log that a class of the choice is."""
        pending = [klass]
        numbers = {
            klass: number for number, klass in enumerate(self.extraction.graph.arrays.term_class.tolist())
        }
        while pending:
            one = pending[-1]
            if one in self._classes:
                pending.pop()
                continue
            number = numbers.get(one)
            if number is not None:
                found = self.provenance.class_of_term(number)
            else:
                node = int(self.extraction.selection.chosen[one])
                missing = [operand for operand in self._operands_of(node) if operand not in self._classes]
                if missing:
                    pending += missing
                    continue
                found = self.provenance.class_of_node(*self._node(node))
            if found is None:
                raise OptimizerError(
                    "the saturation, done once more, does not find what the program computes"
                )
            self._classes[one] = found
            pending.pop()
        return self._classes[klass]

    def _chosen_node(self, klass: int) -> LoggedForm:
        node = int(self.extraction.selection.chosen[klass])
        for operand in self._operands_of(node):
            self._raw_class(operand)
        return self.provenance.node(*self._node(node))

    def _node(self, node: int) -> tuple[str, list[int], tuple[int | float, ...]]:
        """The operator, operands by classes of the log, and attributes of an e-node."""
        arrays = self.extraction.graph.arrays
        operands = [self._classes[operand] for operand in self._operands_of(node)]
        return arrays.operator_of(node), operands, arrays.attributes_of(node)

    # ---- steps

    def _steps(self, path: Sequence[ProofStep], text: str) -> list[ReasonStep]:
        """The steps of a path from a form with a text, but those that make no difference to it."""
        found: list[ReasonStep] = []
        for step in path:
            if not self.provenance.is_plain(step):
                told = self._step(step)
                if told.form != (found[-1].form if found else text):
                    found.append(told)
        return found

    def _step(self, step: ProofStep) -> ReasonStep:
        text, match = self._form_text(step.end), step.match
        if match is None:
            differing = self.provenance.differing(step)
            found = [self._part(start, end, step.time + 1) for start, end in differing]
            return ReasonStep(text, "", (), tuple(filter(None, found)))
        provenance, facts = self.provenance, []
        parts: dict[LoggedForm, ReasonChain | None] = {}
        for atom in provenance.needed(match):
            name, table = provenance.log.tables[atom.table]
            if table.is_constructor:
                form = provenance.matched(name, atom)
                if form not in (step.start, step.end, *parts):
                    parts[form] = self._part(provenance.origin(atom.values[-1]), form, match.number)
            elif name in _FACTS:
                facts.append(self._reason(name, atom.values[0], match, _DEEPEST_REASON))
        return ReasonStep(
            text, self._label(step, match), tuple(dict.fromkeys(facts)), tuple(filter(None, parts.values()))
        )

    def _part(self, start: LoggedForm, end: LoggedForm, before: int) -> ReasonChain | None:
        """The chain between two forms of an operand; None where they are the same in other words."""
        if (start, end) in self._parts:
            return None
        self._parts.add((start, end))
        path = self.provenance.path(start, end.__eq__, before)
        text = self._operand(start)
        told = self._steps(path or (), text)
        return ReasonChain("", (ReasonStep(text), *told), is_written=False) if told else None

    def _reason(self, fact: str, member: int, before: LoggedMatch, depth: int) -> Reason:
        provenance = self.provenance
        text = f"{self._operand(provenance.origin(member))} {_FACTS[fact]}"
        maker = provenance.maker_of_fact(fact, (member,))
        if maker is None or maker.rule is None:
            return Reason(text, "")
        needs = []
        if depth > 1:
            for atom in provenance.needed(maker):
                name = provenance.log.tables[atom.table][0]
                if name in _FACTS:
                    needs.append(self._reason(name, atom.values[0], maker, depth - 1))
        return Reason(text, provenance.rule_of(maker), tuple(dict.fromkeys(needs)))

    def _label(self, step: ProofStep, match: LoggedMatch) -> str:
        finding = self.provenance.finding_of(step)
        if finding is not None:
            is_known = 0 <= finding < len(self.findings)
            return f"algebra: {self.findings[finding] if is_known else 'another value lends its shape'}"
        rule = match.rule
        if rule is None:
            return self._claimant(step)
        name = self.provenance.rule_of(match)
        known = [one for one in (name, name[:-2]) if one in self.offered]
        if known:
            return known[0] if step.is_forward else f"{known[0]}, read from right to left"
        return f"{_LAYERS.get(rule.ruleset, _SUMS)} ({name})"

    def _claimant(self, step: ProofStep) -> str:
        left, right = self._number_of(step.start), self._number_of(step.end)
        for pair, claimant in self.extraction.graph.terms.claimants.items():
            if pair in ((left, right), (right, left)):
                return f"the local optimizer {claimant}"
        return "what is known of the graph"

    # ---- texts

    def _term(self, number: int) -> str:
        """A term as it was written, its operands by their names."""
        return _fitted(lambda depth: self._term_text(number, depth))

    def _operand(self, form: LoggedForm) -> str:
        """A form as it stands in others, by its name if it has one."""
        return _fitted(lambda depth: self._named_text(form, depth))

    def _form_text(self, form: LoggedForm) -> str:
        return _fitted(lambda depth: self._text(form, depth))

    def _term_text(self, number: int, depth: int) -> str:
        terms = self.extraction.graph.terms
        term = terms.terms[number]
        if depth == 0 and term.operands:
            return "..."
        shown = [self._names.get(one) or self._term_text(one, depth - 1) for one in term.operands]
        return form_text(term.constructor, term.attributes, shown, terms)

    def _named_text(self, form: LoggedForm, depth: int) -> str:
        number = self._number_of(form)
        return (number is not None and self._names.get(number)) or self._text(form, depth)

    def _number_of(self, form: LoggedForm) -> int | None:
        """The number of the term that was loaded as a form."""
        if form.table == TERMS and len(form.inputs) == 1:
            return int(form.inputs[0])  # type: ignore[call-overload, no-any-return]
        return None

    def _text(self, form: LoggedForm, depth: int) -> str:
        number = self._number_of(form)
        if number is not None:
            return self._term_text(number, depth)
        if form.table == TERMS:
            form = self.provenance.meaning(form)
        operands, attributes = self.provenance.operands(form)
        if not form.table or (depth == 0 and operands):
            return "..."
        shown = [self._named_text(operand, depth - 1) for operand in operands]
        return form_text(form.table, attributes, shown, self.extraction.graph.terms)


def _fitted(text: Callable[[int], str]) -> str:
    """A text of as many levels as go on a line."""
    for depth in _DEPTHS:
        found = text(depth)
        if len(found) <= _LONGEST:
            break
    return found
