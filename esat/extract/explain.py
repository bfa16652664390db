"""Why a program is what it is: for each part, the forms that lost and what they would have cost."""

from __future__ import annotations

from collections.abc import Sequence

from esat.egraph.algebra.findings import FOUND, Finding
from esat.errors import UserLine
from esat.extract.extraction import Extraction, SaturatedGraph
from esat.extract.refine import priced_moves
from esat.graph.types import DTYPES
from esat.records import record
from esat.rules.macros import permutation_axes

DEPTH = 3
"""Levels of an expression that are written out."""


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
    """

    form: str
    seconds_more: float
    replaced: bool
    loss: str = ""


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
    """

    form: str
    shape: tuple[int, ...]
    dtype: str
    seconds: float
    where: UserLine | None
    alternatives: tuple[RejectedForm, ...]
    algebra: Finding | None = None


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
    """

    parts: tuple[ExplainedValue, ...]
    seconds: float
    seconds_written: float
    regimes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"predicted: {self.seconds * 1e6:.2f} us a call, {self.seconds_written * 1e6:.2f} us as written",
            *self.regimes,
        ]
        for part in self.parts:
            sizes = "x".join(map(str, part.shape)) or "scalar"
            place = f"  ({part.where[0]}:{part.where[1]})" if part.where else ""
            lines.append(f"{part.seconds * 1e6:9.2f} us  {part.form}  [{part.dtype} {sizes}]{place}")
            if part.algebra is not None:
                lines.append(f"{'':14}by algebra: {part.algebra}")
            for other in part.alternatives:
                reason = " (replaced by a stabler form)" if other.replaced else ""
                if other.loss:
                    reason = f" (loses {other.loss})"
                lines.append(f"{'':14}not {other.form}: {other.seconds_more * 1e6:+.2f} us{reason}")
        return "\n".join(lines)


def explain(
    extraction: Extraction,
    seconds_written: float,
    limit: int = 3,
    findings: Sequence[Finding] = (),
    regimes: tuple[str, ...] = (),
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
    """
    found = extraction.graph.arrays.facts.get(FOUND, {})
    graph, selection = extraction.graph, extraction.selection
    others = _alternatives(extraction, limit)
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
                    _form(extraction, node, DEPTH),
                    tuple(int(size) for size in value.shape),
                    DTYPES[value.dtype],
                    seconds,
                    places.get(klass),
                    tuple(others.get(klass, ())),
                    finding,
                )
            )
    parts.sort(key=lambda part: (-part.seconds, part.form))
    return Explanation(tuple(parts), extraction.seconds, seconds_written, regimes)


def _alternatives(extraction: Extraction, limit: int) -> dict[int, list[RejectedForm]]:
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
    seen = {(klass, _form(extraction, int(selection.chosen[klass]), DEPTH)) for klass in live}
    for replaced, moves in ((False, for_others), (True, for_replaced)):
        for seconds, klass, node in moves:
            form = _form(extraction, node, DEPTH)
            if (penalties[node] > 0.0) == replaced and (klass, form) not in seen:
                seen.add((klass, form))
                if replaced or len(found.get(klass, ())) < limit:
                    loss = graph.loss_of(node)
                    found.setdefault(klass, []).append(RejectedForm(form, seconds, replaced, loss))
    return found


def _form(extraction: Extraction, node: int, depth: int) -> str:
    """An e-node as an expression, its operands as chosen, or by their first e-node."""
    arrays = extraction.graph.arrays
    operands = arrays.operands_of(node).tolist()
    if depth == 0 and operands:
        return "..."
    shown = []
    for operand in operands:
        chosen = int(extraction.selection.chosen[operand])
        below = chosen if chosen >= 0 else arrays.nodes_of(operand)[0]
        shown.append(_form(extraction, below, depth - 1))
    return written(extraction.graph, node, shown)


def written(graph: SaturatedGraph, node: int, shown: Sequence[str]) -> str:
    """An e-node as an expression of the texts of its operands."""
    name, attributes = graph.arrays.operator_of(node), graph.arrays.attributes_of(node)
    if name == "In":
        return str(graph.terms.inputs[int(attributes[0])])
    if name == "K":
        return f"{attributes[0]:g}"
    if name == "Array":
        return f"constant {int(attributes[0])}"
    if name in ("NarySum", "NaryProd"):
        sign, inverse = (" + ", " - ") if name == "NarySum" else (" * ", " / ")
        above, under = shown[: int(attributes[0])], shown[int(attributes[0]) :]
        start = sign.join(above) if above else ("0" if name == "NarySum" else "1")
        return f"({start}{''.join(inverse + part for part in under)})"
    text = {"MatMul": " @ ", "Add": " + ", "Sub": " - ", "Mul": " * ", "Div": " / "}.get(name)
    if text is not None:
        return f"({text.join(shown)})"
    if name == "DimShuffle":
        order = ", ".join(map(str, permutation_axes(int(attributes[0]))))
        return f"{shown[0]}.dimshuffle({order})"
    return f"{name}({', '.join(shown)})"
