"""A page that shows a compiled function from all sides, as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from esat.drawing.diagram import diagram_of
from esat.drawing.egraph import EClass, class_diagram, classes_of, cost_text
from esat.drawing.highlight import highlighted
from esat.drawing.svg import svg_text, xml_text

MOST_CLASSES = 2000
"""Classes that the table of an e-graph lists."""

MOST_DRAWN = 400
"""Classes up to which an e-graph is drawn."""

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 0; color: #223; background: #fff; }
header { padding: 12px 20px; background: #f3f4f8; border-bottom: 1px solid #d8dae4; }
h1 { font-size: 17px; margin: 0 0 4px; font-family: monospace; }
nav { padding: 0 20px; border-bottom: 1px solid #d8dae4; position: sticky; top: 0; background: #fff; }
nav a { display: inline-block; padding: 8px 14px 6px; color: #345; text-decoration: none; }
nav a:hover { background: #f3f4f8; }
section { padding: 10px 20px 26px; }
h2 { font-size: 16px; margin: 10px 0; }
h3 { font: bold 13px monospace; margin: 16px 0 4px; scroll-margin-top: 44px; }
pre { background: #f8f8fb; border: 1px solid #e4e5ee; padding: 8px 10px; overflow: auto; font-size: 12px; }
.figure { overflow: auto; max-height: 85vh; border: 1px solid #e4e5ee; resize: vertical; }
table { border-collapse: collapse; font: 12px monospace; }
td, th { text-align: left; vertical-align: top; padding: 3px 10px; border-bottom: 1px solid #e4e5ee; }
.chosen { font-weight: bold; color: #185; }
.dead { color: #889; }
.keyword { color: #93c; } .builtin { color: #06a; } .number { color: #b50; }
.string { color: #285; } .comment { color: #889; font-style: italic; }
"""

_ZOOM = """
for (const box of document.querySelectorAll('.figure')) {
  const picture = box.querySelector('svg'), width = picture.width.baseVal.value;
  const height = picture.height.baseVal.value, slider = box.previousElementSibling.querySelector('input');
  slider.oninput = () => {
    picture.setAttribute('width', width * slider.value / 100);
    picture.setAttribute('height', height * slider.value / 100);
  };
}
"""


def html_text(graph: Any) -> str:
    """The page of a compiled function; of a graph that is not compiled, its picture alone."""
    parts = [("graph", "Graph", _figure(svg_text(diagram_of(graph))))]
    if hasattr(graph, "source"):
        parts.append(("kernels", "Driver and kernels", _sources(graph.source())))
    extraction = getattr(getattr(graph, "report", None), "extraction", None)
    if extraction is not None:
        parts.append(("egraph", "E-graph", _egraph(classes_of(extraction), extraction.graph.roots)))
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
    heading = escape(xml_text(repr(graph)))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>{heading}</title>'
        f"<style>{_STYLE}</style></head>\n<body><header><h1>{heading}</h1>{_summary(graph)}</header>\n"
        f"<nav>{links}</nav>\n{sections}\n<script>{_ZOOM}</script></body></html>\n"
    )


def _summary(graph: Any) -> str:
    report = getattr(graph, "report", None)
    if report is None:
        return ""
    text = f"{report.nodes_before} nodes before optimization, {report.nodes_after} after"
    if report.cost_before:
        text += f"; predicted {report.cost_before * 1e6:.1f} us a call before,"
        text += f" {report.cost_after * 1e6:.1f} us after"
    return f"<div>{escape(text)}</div>"


def _figure(picture: str) -> str:
    slider = '<label>size <input type="range" min="10" max="200" value="100"/></label>'
    return f'<div>{slider}</div><div class="figure">{picture}</div>'


def _preformatted(text: str) -> str:
    return f"<pre>{escape(xml_text(text))}</pre>"


def _sources(source: str) -> str:
    """The driver, then each kernel under its name, which the picture links to."""
    driver, *kernels = source.split("\n\n# kernel_")
    pieces = [f'<h3 id="driver">driver</h3><pre>{highlighted(xml_text(driver))}</pre>']
    for kernel in kernels:
        number, _, text = kernel.partition("\n")
        name = f"kernel_{number.strip()}"
        pieces.append(f'<h3 id="{name}">{name}</h3><pre>{highlighted(xml_text(text))}</pre>')
    return "".join(pieces)


def _egraph(classes: Sequence[EClass], roots: Sequence[int]) -> str:
    nodes = sum(len(one.nodes) for one in classes)
    live = sum(one.live for one in classes)
    about = f"<p>{len(classes)} classes of {nodes} e-nodes; {live} are computed, by the e-nodes marked ▸.</p>"
    picture = ""
    if live <= MOST_DRAWN:
        picture = _figure(svg_text(class_diagram(classes, roots), legend=False, name="egraph"))
    rows = [_row(one) for one in classes[:MOST_CLASSES]]
    left_out = len(classes) - len(rows)
    rest = f"<p>{left_out} more are not listed.</p>" if left_out else ""
    head = "<tr><th>class</th><th>type</th><th>e-nodes, with their predicted times</th></tr>"
    return f"{about}{picture}<h3>all classes</h3><table>{head}{''.join(rows)}</table>{rest}"


def _row(one: EClass) -> str:
    lines = []
    for node in one.nodes:
        text = escape(xml_text(f"{'▸ ' if node.chosen else ''}{node.text}  {cost_text(node)}"))
        lines.append(f'<span class="chosen">{text}</span>' if node.chosen else text)
    kind = "" if one.live else ' class="dead"'
    name = f'<a id="class{one.number}">c{one.number}</a>'
    return f"<tr{kind}><td>{name}</td><td>{escape(one.type)}</td><td>{'<br/>'.join(lines)}</td></tr>"
