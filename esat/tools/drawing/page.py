"""A page that shows a compiled function from all sides, as one HTML file that needs nothing else."""

from __future__ import annotations

import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from esat.base.quoting import markup, xml_text
from esat.egraph.preparation.rule_database import RULES
from esat.graph.algorithms.printing import program_of
from esat.optimize.equality.report import time_text
from esat.rules.language.reader import head_of
from esat.rules.language.rule import Rule
from esat.tools.drawing.diagram import diagram_of
from esat.tools.drawing.egraph import EClass, class_diagram, classes_of, cost_text, title
from esat.tools.drawing.svg import svg_text

_KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string", tokenize.NUMBER: "number"}


def highlighted(source: str) -> str:
    """The source with its keywords, names of builtins, numbers, strings and comments in spans.

    Parameters
    ----------
    source
        Python, of any number of modules one after the other.
    """
    source = xml_text(source)
    lines = source.splitlines(keepends=True)
    pieces: list[str] = []
    row, column = 1, 0

    def copy(to_row: int, to_column: int) -> str:
        """The source from where the last piece ended."""
        if row == to_row:
            return lines[row - 1][column:to_column] if row <= len(lines) else ""
        first, last = lines[row - 1][column:], lines[to_row - 1][:to_column] if to_row <= len(lines) else ""
        return first + "".join(lines[row : to_row - 1]) + last

    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = _KINDS.get(token.type)
        if token.type == tokenize.NAME:
            kind = "keyword" if keyword.iskeyword(token.string) else None
            kind = kind or ("builtin" if hasattr(builtins, token.string) else None)
        if kind is not None:
            pieces.append(markup(copy(*token.start)))
            pieces.append(f'<span class="{kind}">{markup(token.string)}</span>')
            row, column = token.end
    pieces.append(markup(copy(len(lines) + 1, 0)))
    return "".join(pieces)


MOST_CLASSES = 2000
"""Classes that the table of an e-graph lists."""

MOST_DRAWN = 400
"""Classes up to which an e-graph is drawn."""

_ASSETS = Path(__file__).parent / "assets"
"""Style and scripts; ``d3-zoom.min.js`` are modules of d3; their licence is beside them."""

MOST_MAKERS = 8
"""Rules that a class names."""

_MADE_AS = {"Add": "NarySum", "Sub": "NarySum", "Neg": "NarySum", "Mul": "NaryProd", "Div": "NaryProd"}
"""Ops of rules that become sums and products of any length."""


def html_text(graph: Any) -> str:
    """The page of a compiled function; of a graph that is not compiled, its picture alone."""
    graph = program_of(graph)
    parts = [("graph", "Graph", _figure(svg_text(diagram_of(graph))))]
    if hasattr(graph, "source"):
        times = _times(graph)
        parts.append(("steps", "Steps", _steps(graph, times)))
        parts.append(("kernels", "Driver and kernels", _sources(graph.source(), times)))
    extraction = getattr(getattr(graph, "report", None), "extraction", None)
    if extraction is not None:
        fired = _fired(graph.report.rules)
        classes = classes_of(extraction)
        parts.append(("egraph", "E-graph", _egraph(classes, extraction.graph.roots, _makers(fired))))
        parts.append(("rules", "Rules that fired", _rule_texts(fired, graph.report.rules)))
    report = getattr(graph, "report", None)
    if report is not None:
        text = str(report) if extraction is None else f"{report}\n\n{graph.explain()}"
        parts.append(("optimizer", "Optimizer", _preformatted(text)))
    profile = getattr(graph, "profile", None)
    if profile is not None:
        text = str(profile) if profile.optimizer is None else f"{profile}\n\n{profile.optimizer}"
        parts.append(("profile", "Profile", _preformatted(text)))
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in parts)
    sections = "".join(f'<section id="{key}"><h2>{title}</h2>{body}</section>' for key, title, body in parts)
    heading = markup(getattr(profile, "message", "") or repr(graph))
    style, library, script = (
        (_ASSETS / name).read_text(encoding="utf-8") for name in ("page.css", "d3-zoom.min.js", "page.js")
    )
    search = '<input type="search" placeholder="search (Enter: next)"/><output></output>'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>{heading}</title>'
        f"<style>{style}</style></head>\n<body><header><h1>{heading}</h1>{_summary(graph)}</header>\n"
        f'<nav>{links}{search}<button id="dark">dark</button></nav>\n{sections}\n'
        f"<script>{library}</script><script>{script}</script></body></html>\n"
    )


def _summary(graph: Any) -> str:
    """What was gained: measured beside predicted."""
    report = getattr(graph, "report", None)
    if report is None:
        return ""
    nodes = f"{report.nodes_before} nodes before optimization, {report.nodes_after} after"
    return "".join(f"<div>{markup(line)}</div>" for line in [*report.gain_lines(), nodes])


def _figure(picture: str) -> str:
    names = ("whole", "+", "\N{MINUS SIGN}", "collapse kernels" if "data-members" in picture else "")
    buttons = "".join(f"<button{'' if name else ' hidden'}>{name}</button>" for name in names)
    return f'<div>{buttons}</div><div class="figure">{picture}</div>'


def _preformatted(text: str) -> str:
    return f"<pre>{markup(text)}</pre>"


def _times(graph: Any) -> list[tuple[float | None, float | None]]:
    """Seconds that each step takes in a call: measured, and predicted; None where that is not known."""
    steps = graph.profile.steps
    measured = (step.seconds / step.calls if step.calls else None for step in steps)
    return list(zip(measured, graph.predicted_seconds(), strict=True))


def _steps(graph: Any, times: Sequence[tuple[float | None, float | None]]) -> str:
    """A table of the steps in their order: what they took beside what was predicted."""
    titles = ("step", "what it is", "measured", "predicted", "measured / predicted", "of the time")
    whole = sum(measured or 0.0 for measured, _ in times)
    rows = []
    for number, (group, step, (measured, predicted)) in enumerate(
        zip(graph.steps, graph.profile.steps, times, strict=True)
    ):
        name = f'<a href="#kernel_{number}">kernel_{number}</a>' if group.kind == "kernel" else group.kind
        cells = [name, markup(step.name), _time_cell(measured), _time_cell(predicted)]
        cells.append(f"{measured / predicted:.2f}" if measured is not None and predicted else "")
        cells.append(f"{measured / whole:.0%}" if measured is not None and whole else "")
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    about = "" if whole else "<p>Steps are measured by calls after <code>f.measure()</code>.</p>"
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f"{about}<table><tr>{head}</tr>{''.join(rows)}</table>"


def _time_cell(seconds: float | None) -> str:
    return "" if seconds is None else time_text(seconds)


def _sources(source: str, times: Sequence[tuple[float | None, float | None]]) -> str:
    """The driver, then each kernel, which the picture links to, and all else that runs under its name."""
    driver, *texts = re.split(r"\n\n# (?=(?:kernel|routine|native|function)_\w+\n|routines\n)", source)
    pieces = [f'<h3 id="driver">driver</h3><pre>{highlighted(driver)}</pre>']
    for one in texts:
        name, _, text = one.partition("\n")
        number = name.removeprefix("kernel_")
        measured, predicted = times[int(number)] if number.isdecimal() else (None, None)
        told = [f"{time_text(measured)} a call, measured"] if measured is not None else []
        told += [f"{time_text(predicted)} predicted"] if predicted is not None else []
        time = f" <small>{'; '.join(told)}</small>" if told else ""
        pieces.append(f'<h3 id="{name}">{name}{time}</h3><pre>{highlighted(text)}</pre>')
    return "".join(pieces)


def _fired(matches: Mapping[str, int]) -> dict[str, tuple[Rule, ...]]:
    """The rules that fired, as far as they are rules of the database."""
    known: dict[str, list[Rule]] = {}
    for rule in RULES.list():
        known.setdefault(rule.report_name, []).append(rule)
        if rule.name != rule.report_name:
            known.setdefault(rule.name, []).append(rule)
    return {name: tuple(known[name]) for name in matches if name in known}


def _makers(fired: Mapping[str, Sequence[Rule]]) -> dict[str, list[str]]:
    """Operator -> names of the rules that fired and make forms of it."""
    makers: dict[str, list[str]] = {}
    for name, rules in fired.items():
        for action in (action for rule in rules for action in rule.head):
            for side in action[1:] if head_of(action) == "union" else ():
                made = head_of(side) if isinstance(side, tuple) else ""
                operator = _MADE_AS.get(made, made)
                if operator and name not in makers.setdefault(operator, []):
                    makers[operator].append(name)
    return makers


def _rule_texts(fired: Mapping[str, Sequence[Rule]], matches: Mapping[str, int]) -> str:
    pieces = []
    for name, rules in fired.items():
        text = re.sub(" {2,}", " ", rules[0].source)
        times = f"<small>{rules[0].soundness}, {matches[name]} matches</small>"
        pieces.append(f'<h3 id="rule-{markup(name)}">{markup(name)} {times}</h3>{_preformatted(text)}')
    return "".join(pieces)


def _egraph(classes: Sequence[EClass], roots: Sequence[int], makers: Mapping[str, Sequence[str]]) -> str:
    nodes = sum(len(one.nodes) for one in classes)
    live = sum(one.live for one in classes)
    about = f"<p>{len(classes)} classes of {nodes} e-nodes; {live} are computed, by the e-nodes marked ▸.</p>"
    picture = ""
    if live <= MOST_DRAWN:
        picture = _figure(svg_text(class_diagram(classes, roots), legend=False, name="egraph"))
    rows = [_row(one, makers) for one in classes[:MOST_CLASSES]]
    left_out = len(classes) - len(rows)
    rest = f"<p>{left_out} more are not listed.</p>" if left_out else ""
    head = "<tr><th>class</th><th>type</th><th>e-nodes, with their predicted times</th></tr>"
    return f"{about}{picture}<h3>all classes</h3><table>{head}{''.join(rows)}</table>{rest}"


def _row(one: EClass, makers: Mapping[str, Sequence[str]]) -> str:
    lines = []
    for node in one.nodes:
        text = markup(f"{'▸ ' if node.chosen else ''}{node.text}  {cost_text(node)}")
        lines.append(f'<span class="chosen">{text}</span>' if node.chosen else text)
    rules = dict.fromkeys(name for node in one.nodes for name in makers.get(node.operator, ()))
    if len(one.nodes) > 1 and rules:
        shown = [f'<a href="#rule-{markup(name)}">{markup(name)}</a>' for name in [*rules][:MOST_MAKERS]]
        lines.append(f'<span class="rules">made by some of: {", ".join(shown)}</span>')
    kind = "" if one.live else ' class="dead"'
    name = f"c{one.number}"
    cells = f"<td>{name}</td><td>{markup(title(one))}</td><td>{'<br/>'.join(lines)}</td>"
    return f'<tr id="class{one.number}"{kind}>{cells}</tr>'
