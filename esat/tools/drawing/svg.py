"""Diagrams as SVG: one file, no fonts or scripts from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from esat.base.quoting import xml_text
from esat.tools.drawing.diagram import ArrowKind, Box, Cluster, Diagram
from esat.tools.drawing.layout import Point
from esat.tools.drawing.place import HEADING, LINE_HEIGHT, PADDING, Line, Rectangle, place

MARGIN = 12.0

STYLE = """
.esat { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; background: #fff; }
.esat .small { font-size: 10px; fill: #555; }
.esat .box { stroke: #667; stroke-width: 1; fill: #fff; }
.esat .input { fill: #c9efc4; stroke: #3c8a34; }
.esat .shared { fill: #c4ecef; stroke: #2c8088; }
.esat .constant { fill: #eee; stroke: #888; }
.esat .output { fill: #c6dcfa; stroke: #2f64b0; }
.esat .library { fill: #fde3c0; stroke: #b0742c; }
.esat .view { fill: #f5f5ff; stroke: #7a7ab8; }
.esat .transfer { fill: #f6cfe6; stroke: #a83a80; }
.esat .size { fill: #fafafa; stroke: #aaa; stroke-dasharray: 2 2; }
.esat .cluster { fill: #fff8db; stroke: #c0a53a; }
.esat .heading { fill: #8a7420; font-weight: bold; }
.esat .mark { font-size: 9px; fill: #889; }
.esat .line { fill: none; stroke: #778; stroke-width: 1; }
.esat .line.view { stroke: #3f6fd0; fill: none; stroke-dasharray: 5 3; }
.esat .line.overwrite { stroke: #d03a2f; stroke-width: 1.6; }
"""

_HEADS: dict[ArrowKind, str] = {"read": "#778", "view": "#3f6fd0", "overwrite": "#d03a2f"}
_ROUNDED = {"input": 8, "shared": 8, "constant": 8, "output": 8}

LEGEND = (
    ("input", "input"),
    ("shared", "shared variable"),
    ("constant", "constant"),
    ("output", "output"),
    ("library", "library call"),
    ("view", "view"),
    ("transfer", "copy between host and device"),
    ("size", "known from shapes"),
    ("cluster", "kernel"),
)


def svg_text(diagram: Diagram, legend: bool = True, name: str = "esat") -> str:
    """A diagram as the text of an SVG file.

    Parameters
    ----------
    diagram
        What to draw.
    legend
        Whether to explain the colours that appear, below.
    name
        Begins the names of what is defined in it, which must differ between pictures of one page.
    """
    drawing = place(diagram)
    shown = _kinds(diagram) if legend else []
    width = max(drawing.width, sum(_legend_width(title) for _, title in shown)) + 2 * MARGIN
    height = drawing.height + 2 * MARGIN + (2 * LINE_HEIGHT if shown else 0.0)
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "esat",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
        },
    )
    SubElement(root, "style").text = STYLE
    definitions = SubElement(root, "defs")
    for kind, colour in _HEADS.items():
        _add_head(definitions, f"{name}-{kind}", colour)
    page = SubElement(root, "g", {"transform": f"translate({MARGIN:.0f} {MARGIN:.0f})"})
    for cluster in diagram.clusters:
        _add_cluster(page, cluster, drawing.clusters[cluster.key])
    for line in drawing.lines:
        _add_line(page, line, f"{name}-{line.arrow.kind}")
    for box in diagram.boxes.values():
        _add_box(page, box, drawing.boxes[box.key])
    if shown:
        _add_legend(page, shown, drawing.height + 1.5 * LINE_HEIGHT)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _kinds(diagram: Diagram) -> list[tuple[str, str]]:
    used: set[str] = {box.kind for box in diagram.boxes.values()}
    if diagram.clusters:
        used.add("cluster")
    shown = [(kind, title) for kind, title in LEGEND if kind in used]
    kinds = {arrow.kind for arrow in diagram.arrows}
    shown += [("line view", "shows its memory")] if "view" in kinds else []
    return shown + ([("line overwrite", "is written over it")] if "overwrite" in kinds else [])


def _add_head(definitions: Element, name: str, colour: str) -> None:
    attributes = {"refX": "7", "refY": "3.5", "markerWidth": "8", "markerHeight": "7", "orient": "auto"}
    marker = SubElement(definitions, "marker", {"id": name, "markerUnits": "userSpaceOnUse", **attributes})
    SubElement(marker, "path", {"d": "M0,0 L8,3.5 L0,7 z", "fill": colour})


def _add_box(page: Element, box: Box, where: Rectangle) -> None:
    group = SubElement(page, "g", {"id": box.key, **({"data-class": box.leads_to} if box.leads_to else {})})
    if box.about:
        SubElement(group, "title").text = xml_text(box.about)
    corner = _ROUNDED.get(box.kind, 2)
    _add_rectangle(group, where, f"box {box.kind}", corner)
    first = where.y - where.height / 2 + PADDING / 2 + 0.75 * LINE_HEIGHT
    for number, line in enumerate(box.lines):
        y = first + number * LINE_HEIGHT
        _add_text(group, (where.x, y), line, "small" if number else "", "middle")


def _add_cluster(page: Element, cluster: Cluster, where: Rectangle) -> None:
    group = SubElement(page, "g", {"id": cluster.key, "data-members": " ".join(cluster.members)})
    _add_rectangle(group, where, "box cluster", 6)
    corner = (where.x - where.width / 2 + 6, where.y - where.height / 2 + HEADING - 5)
    link = SubElement(group, "a", {"href": f"#{cluster.label.partition(' ')[0]}"})
    _add_text(link, corner, cluster.label, "heading small", "start")


def _add_rectangle(parent: Element, where: Rectangle, kind: str, corner: float) -> None:
    place = {"x": where.x - where.width / 2, "y": where.y - where.height / 2}
    size = {"width": where.width, "height": where.height, "rx": corner}
    SubElement(
        parent, "rect", {"class": kind, **{name: f"{value:.1f}" for name, value in (place | size).items()}}
    )


def _add_text(parent: Element, where: Point, text: str, kind: str, anchor: str) -> None:
    attributes = {"x": f"{where[0]:.1f}", "y": f"{where[1]:.1f}", "text-anchor": anchor}
    if kind:
        attributes["class"] = kind
    SubElement(parent, "text", attributes).text = xml_text(text)


def _add_line(page: Element, line: Line, head: str) -> None:
    path = SubElement(page, "path", {"class": f"line {line.arrow.kind}"})
    path.set("d", " ".join(_curve(leg) for leg in line.legs))
    path.set("marker-end", f"url(#{head})")
    if line.arrow.mark:
        x, y = line.legs[-1][-1]
        _add_text(page, (x + 5, y - 3), line.arrow.mark, "mark", "start")
    if line.arrow.about:
        SubElement(path, "title").text = xml_text(line.arrow.about)


def _curve(points: Sequence[Point]) -> str:
    """A path through points that is upright in each of them."""
    parts = ["M{:.1f},{:.1f}".format(*points[0])]
    for (x, y), (end_x, end_y) in pairwise(points):
        middle = (y + end_y) / 2
        straight = abs(x - end_x) < 0.5
        parts.append(
            f"L{end_x:.1f},{end_y:.1f}"
            if straight
            else f"C{x:.1f},{middle:.1f} {end_x:.1f},{middle:.1f} {end_x:.1f},{end_y:.1f}"
        )
    return " ".join(parts)


def _legend_width(title: str) -> float:
    return 28.0 + 6.4 * len(title)


def _add_legend(page: Element, shown: Sequence[tuple[str, str]], y: float) -> None:
    x = 0.0
    for kind, title in shown:
        if kind.startswith("line"):
            SubElement(page, "path", {"class": kind, "d": f"M{x:.1f},{y:.1f} h14"})
        else:
            _add_rectangle(page, Rectangle(x + 7, y, 14, 10), f"box {kind}", 2)
        _add_text(page, (x + 18, y + 3.5), title, "small", "start")
        x += _legend_width(title)
