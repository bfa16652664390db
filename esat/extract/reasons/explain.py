"""Why a program is what it is: for each part, the forms that lost and what they would have cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any

from esat.base.records import record
from esat.egraph.algebra.findings import FOUND, Finding
from esat.egraph.language.form_text import form_text
from esat.egraph.saturation.saturation_report import rule_name
from esat.errors import OptimizerError, UserLine
from esat.extract.choice.refine import priced_moves
from esat.extract.extraction import Extraction, SaturatedGraph
from esat.extract.reasons.given_names import names_of_classes
from esat.extract.reasons.why import ReasonChain, Reasons
from esat.graph.types import DTYPES

DEPTH = 3
"""Levels of an expression that are written out."""

_ALL = 1 << 30
"""Alternatives: no limit."""

SHARE = 0.01
"""Of the whole time: what takes less is not printed."""


@record(frozen=True, slots=True)
class RejectedForm:
    """A form that was not chosen.

    Attributes
    ----------
    form
        The expression; parts further down are written as ``...``.
    seconds_more
        What the whole program would take longer, by prediction, with this form and the best way to its
        operands. Negative for what a stabler form replaced although it is faster, and where the search
        missed something.
    replaced
        Whether a rule replaced it for good, by a form that is more stable, or it loses more digits.
    loss
        How many bits it loses where it is worst beside the form that was chosen, in words; empty where it is
        as accurate, or not judged.
    rule
        The rule that made it; empty where it was written, or comes from sums and products in normal form.
    """

    form: str
    seconds_more: float
    replaced: bool
    loss: str = ""
    rule: str = ""

    @property
    def reason(self) -> str:
        """Why it was not chosen."""
        beside = " (replaced by a stabler form)" if self.replaced else ""
        if self.loss:
            beside = f" (loses {self.loss})"
        return f"{self.seconds_more * 1e6:+.2f} us{beside}"


@record(frozen=True, slots=True)
class ExplainedValue:
    """One value that the program computes.

    Attributes
    ----------
    form
        How it is computed.
    shape
        The sizes that were expected.
    dtype
        Name of its dtype.
    seconds
        Predicted for this step alone.
    where
        The user's line it came from, if known.
    alternatives
        Other forms, best first.
    algebra
        What no rule derived, but values in finite fields showed: the equality that its form comes from.
    name
        What the user's program calls it; empty if unknown.
    rule
        The rule that made this form, as of :class:`RejectedForm`.
    """

    form: str
    shape: tuple[int, ...]
    dtype: str
    seconds: float
    where: UserLine | None
    alternatives: tuple[RejectedForm, ...]
    algebra: Finding | None = None
    name: str = ""
    rule: str = ""


@record(frozen=True, slots=True)
class Explanation:
    """The parts of a program, those that take longest first.

    Attributes
    ----------
    parts
        Those that have alternatives, take time, or come from algebra.
    seconds
        Predicted for one call.
    seconds_written
        Predicted for one call of the graph as it was written.
    regimes
        Values that two forms compute: the parts show the one that is best by itself.
    share
        Of the whole time: parts, and differences to alternatives, that are smaller are not printed, but where
        an alternative loses digits, or a form comes from algebra.
    matches
        Matches of the rules that had any.
    offered
        Names of the rules that the mode and the query chose.
    loops
        What became of loops of Python's in a traced function, a line each.
    extraction, reasons, findings
        What :meth:`why` asks: the choice, which rules made what equal, what the algebra found.
    """

    parts: tuple[ExplainedValue, ...]
    seconds: float
    seconds_written: float
    regimes: tuple[str, ...] = ()
    share: float = SHARE
    matches: Mapping[str, int] = field(default_factory=dict, repr=False)
    offered: frozenset[str] = field(default=frozenset(), repr=False)
    loops: tuple[str, ...] = ()
    extraction: Extraction | None = field(default=None, repr=False, compare=False)
    reasons: Reasons | None = field(default=None, repr=False, compare=False)
    findings: Sequence[Finding] = field(default=(), repr=False, compare=False)

    def __reduce__(self) -> Any:
        """Copies tell all that is printed; what is asked of rules stays where the program was compiled."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return Explanation, tuple({**values, "extraction": None, "reasons": None, "findings": ()}.values())

    def why(self, value: object = 0) -> ReasonChain:
        """The rules that lead from a value as it was written to the form that is computed.

        The saturation is done once more for it, and takes as long as when the program was compiled.

        Parameters
        ----------
        value
            A Variable of the graph that was compiled, a name that a line of the program assigns, or the
            number of an output.

        Returns
        -------
        ReasonChain
            The steps, each with its rule and the facts that this needed; printed it is text.

        Raises
        ------
        InputError
            For a value that the program does not have.
        OptimizerError
            Where nothing was saturated, with egglog as the engine, and for a value that is not computed.

        Examples
        --------
        >>> import esat
        >>> x = esat.vector("x")
        >>> function = esat.compile(esat.Graph([x], [esat.log(1.0 + x)]))
        >>> print(function.explain().why(0))
        log(1 + x), as written
          = log1p(x), by log1p
        """
        from esat.extract.reasons.reason_chains import (
            ReasonChains,  # who is not asked need not know how to answer
        )
        from esat.extract.reasons.written_terms import term_meant

        if self.extraction is None or self.reasons is None:
            raise OptimizerError(
                "why: what rules did is known where the program was compiled, and not of a copy that was read"
                " from elsewhere: compile it here, and ask that program"
            )
        number = term_meant(self.extraction.graph.terms, value)
        return ReasonChains(self.extraction, self.reasons.provenance, self.offered, self.findings).of(number)

    def why_not(self, rule: str) -> str:
        """What became of a rule: left out, never matched, or what it made and why that was not chosen.

        Where a condition of it was not proven, that is told with the values which it was not proven for; the
        saturation is done once more for that, as by :meth:`why`.

        Raises
        ------
        RuleError
            For a name that no rule has; it tells the nearest ones.

        Examples
        --------
        >>> import esat
        >>> x, y = esat.vector("x"), esat.vector("y")
        >>> function = esat.compile(esat.Graph([x, y], [esat.sqrt(x) * esat.sqrt(esat.exp(y))]))
        >>> print(function.explain().why_not("sqrt-mul-sqrt"))
        sqrt-mul-sqrt never matched: its left side is in the program, but a condition of it is not proven:
          (nonnegative x), for x
        >>> print(function.explain().why_not("log1p"))
        log1p never matched: no term of the program has its left side
        """
        from esat.extract.reasons.lost_rules import AskedRule  # who is not asked need not know how to answer

        parts = self.parts
        if self.extraction is not None:
            parts = explain(self.extraction, 0.0, limit=_ALL, offered=self.offered).parts
        made = [f"  it made {part.form}, which is computed" for part in parts if part.rule == rule]
        made += [
            f"  it made {other.form}, instead of {part.form}: {other.reason}"
            for part in parts
            for other in part.alternatives
            if other.rule == rule
        ]
        matches = self.matches.get(rule, 0)
        return AskedRule(rule, matches, made, self.offered, self.extraction, self.reasons).fate()

    def __str__(self) -> str:
        lines = [
            f"predicted: {self.seconds * 1e6:.2f} us a call, {self.seconds_written * 1e6:.2f} us as written",
            *self.regimes,
            *self.loops,
        ]
        least = self.share * self.seconds
        left = [part for part in self.parts if not self._worth_telling(part, least)]
        for part in self.parts:
            if part not in left:
                lines += self._part_lines(part, least)
        if left:
            seconds = sum(part.seconds for part in left)
            each = "each of less than" if len(left) > 1 else "less than"
            lines.append(
                f"{seconds * 1e6:9.2f} us  in {len(left)} further parts, {each} {least * 1e6:.2f} us"
                " (explain(share=0) names them)"
            )
        return "\n".join(lines)

    @staticmethod
    def _worth_telling(part: ExplainedValue, least: float) -> bool:
        told = part.algebra is not None or any(other.loss for other in part.alternatives)
        return told or part.seconds >= least

    @staticmethod
    def _part_lines(part: ExplainedValue, least: float) -> list[str]:
        sizes = "x".join(map(str, part.shape)) or "scalar"
        place = f"  ({part.where[0]}:{part.where[1]})" if part.where else ""
        name = f"{part.name} = " if part.name else ""
        lines = [f"{part.seconds * 1e6:9.2f} us  {name}{part.form}  [{part.dtype} {sizes}]{place}"]
        if part.algebra is not None:
            lines.append(f"{'':14}by algebra: {part.algebra}")
        elif part.rule:
            lines.append(f"{'':14}by the rule {part.rule}")
        lines += [
            f"{'':14}not {other.form}: {other.reason}"
            for other in part.alternatives
            if other.loss or other.replaced or abs(other.seconds_more) >= least
        ]
        return lines


def explain(
    extraction: Extraction,
    seconds_written: float,
    limit: int = 3,
    findings: Sequence[Finding] = (),
    regimes: tuple[str, ...] = (),
    share: float = SHARE,
    matches: Mapping[str, int] = MappingProxyType({}),
    offered: frozenset[str] = frozenset(),
) -> Explanation:
    """The parts of a choice with the best forms that lost.

    Parameters
    ----------
    extraction
        The choice.
    seconds_written
        Predicted seconds of the graph as it was written.
    limit
        Alternatives of each part, at most.
    findings
        Equalities that saturation recognised, by the numbers that classes have of them.
    regimes
        Values that two forms compute.
    share
        Of the whole time: what is smaller is not printed.
    matches, offered
        As of :class:`Explanation`.
    """
    found = extraction.graph.arrays.facts.get(FOUND, {})
    graph, selection = extraction.graph, extraction.selection
    names = names_of_classes(graph.terms, graph.arrays.term_class.tolist())
    others = _alternatives(extraction, limit, names, offered)
    places: dict[int, UserLine] = {}
    for number, klass in enumerate(graph.arrays.term_class.tolist()):
        place = graph.terms.place_of(number)
        if place is not None:
            places.setdefault(klass, place)
    parts = []
    for klass in selection.live_classes.tolist():
        node, value = int(selection.chosen[klass]), extraction.values[klass]
        seconds = float(extraction.costs[node])
        finding = findings[int(found[klass])] if klass in found else None
        if value is not None and (seconds > 0.0 or klass in others or finding is not None):
            parts.append(
                ExplainedValue(
                    _form(extraction, node, DEPTH, names),
                    tuple(int(size) for size in value.shape),
                    DTYPES[value.dtype],
                    seconds,
                    places.get(klass),
                    tuple(others.get(klass, ())),
                    finding,
                    names.get(klass, ""),
                    _rule_of(graph, node, offered),
                )
            )
    parts.sort(key=lambda part: (-part.seconds, part.form))
    return Explanation(tuple(parts), extraction.seconds, seconds_written, regimes, share, matches, offered)


def _rule_of(graph: SaturatedGraph, node: int, offered: frozenset[str]) -> str:
    """The rule of a file that made an e-node; empty if none did."""
    if not graph.arrays.origins:
        return ""
    name = rule_name(graph.arrays.origins[node])
    found = [one for one in (name, name[:-2]) if one in offered]  # the directions of a birewrite share a name
    return found[0] if found else ""


def _alternatives(
    extraction: Extraction, limit: int, names: Mapping[int, str], offered: frozenset[str]
) -> dict[int, list[RejectedForm]]:
    graph, selection, penalties = extraction.graph, extraction.selection, extraction.penalties
    arguments = graph.arrays, graph.roots, selection
    # With penalties, or the way to an operand would lead through what a rule replaced; without them for what
    # a rule replaced itself.
    for_others, for_replaced = (
        priced_moves(arguments[0], costs, *arguments[1:])
        for costs in (extraction.costs + penalties, extraction.costs)
    )
    found: dict[int, list[RejectedForm]] = {}
    live = selection.live_classes.tolist()
    seen = {(klass, _form(extraction, int(selection.chosen[klass]), DEPTH, names)) for klass in live}
    for replaced, moves in ((False, for_others), (True, for_replaced)):
        for seconds, klass, node in moves:
            form = _form(extraction, node, DEPTH, names)
            if (penalties[node] > 0.0) == replaced and (klass, form) not in seen:
                seen.add((klass, form))
                if replaced or len(found.get(klass, ())) < limit:
                    loss, rule = graph.loss_of(node), _rule_of(graph, node, offered)
                    found.setdefault(klass, []).append(RejectedForm(form, seconds, replaced, loss, rule))
    return found


def _form(extraction: Extraction, node: int, depth: int, names: Mapping[int, str]) -> str:
    """An e-node as an expression, its operands by their names, as chosen, or by their first e-node."""
    arrays = extraction.graph.arrays
    operands = arrays.operands_of(node).tolist()
    if depth == 0 and operands:
        return "..."
    shown = []
    for operand in operands:
        if operand in names:
            shown.append(names[operand])
            continue
        chosen = int(extraction.selection.chosen[operand])
        below = chosen if chosen >= 0 else arrays.nodes_of(operand)[0]
        shown.append(_form(extraction, below, depth - 1, names))
    return written(extraction.graph, node, shown)


def written(graph: SaturatedGraph, node: int, shown: Sequence[str]) -> str:
    """An e-node as an expression of the texts of its operands."""
    return form_text(graph.arrays.operator_of(node), graph.arrays.attributes_of(node), shown, graph.terms)
