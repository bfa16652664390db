"""Where the boxes, kernels and arrows of a diagram stand on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from esat.base.records import record
from esat.tools.drawing.diagram import Arrow, Cluster, Diagram
from esat.tools.drawing.layout import Edge, Key, Layout, Point, Size, layered

LINE_HEIGHT = 15.0
CHARACTER = 7.25
"""Width of a character of the first, larger line; others are SMALL times as wide."""

SMALL = 0.83
PADDING = 10.0
HEADING = 18.0
"""Room for the name of a kernel, above its boxes."""

HEAD_GAP = 18.0
"""Distance of arrows that lead to the same box."""

PORT: Size = (2.0, 0.0)


@record(frozen=True, slots=True)
class Rectangle:
    """A box on the page: its middle and its size."""

    x: float
    y: float
    width: float
    height: float


@record(frozen=True, slots=True)
class Line:
    """An arrow on the page: the legs it runs along, each through points."""

    arrow: Arrow
    legs: tuple[tuple[Point, ...], ...]


@dataclass(slots=True)
class Drawing:
    """A diagram with a place for everything.

    Attributes
    ----------
    boxes, clusters
        Key of each box and of each cluster -> its place.
    lines
        The arrows.
    width, height
        Of the page.
    """

    boxes: dict[str, Rectangle] = field(default_factory=dict)
    clusters: dict[str, Rectangle] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def place(diagram: Diagram) -> Drawing:
    """Lay out each kernel by itself, with ports for what it reads and gives, and then all of them."""
    return _Placement(diagram).drawing


def box_size(lines: Sequence[str]) -> Size:
    """Room for lines of text, the first one larger."""
    widths = [len(line) * CHARACTER * (1.0 if number == 0 else SMALL) for number, line in enumerate(lines)]
    return max(widths, default=0.0) + 2 * PADDING, LINE_HEIGHT * len(lines) + PADDING


@record(frozen=True, slots=True)
class _In:
    """The port of a cluster through which what a box gives comes in."""

    tail: str


@record(frozen=True, slots=True)
class _Out:
    """The port of a cluster through which what one of its boxes gives goes out."""

    tail: str


class _Placement:
    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.cluster_of = {key: one.key for one in diagram.clusters for key in one.members}
        self.sizes = {key: box_size(box.lines) for key, box in diagram.boxes.items()}
        self.inner = {cluster.key: self._inside(cluster) for cluster in diagram.clusters}
        self.drawing = self._outside()

    def _inside(self, cluster: Cluster) -> tuple[Layout, dict[Edge, list[Point]]]:
        members = frozenset(cluster.members)
        sizes: dict[Key, Size] = {key: self.sizes[key] for key in cluster.members}
        edges: dict[Edge, None] = {}
        for arrow in self.diagram.arrows:
            tail: Key = arrow.tail if arrow.tail in members else _In(arrow.tail)
            head: Key = arrow.head if arrow.head in members else _Out(arrow.tail)
            if arrow.tail in members or arrow.head in members:
                edges[Edge(tail, head)] = None
        ports = [key for edge in edges for key in (edge.tail, edge.head) if isinstance(key, (_In, _Out))]
        sizes.update(dict.fromkeys(ports, PORT))
        first = {port for port in ports if isinstance(port, _In)}
        layout = layered(sizes, list(edges), first, set(ports) - first)
        return layout, dict(zip(edges, layout.routes, strict=True))

    def _outside(self) -> Drawing:
        sizes: dict[Key, Size] = {k: size for k, size in self.sizes.items() if k not in self.cluster_of}
        for key, (layout, _) in self.inner.items():
            sizes[key] = (layout.width + 2 * PADDING, layout.height + HEADING + PADDING)
        outer: dict[Edge, None] = {}
        for arrow in self.diagram.arrows:
            edge = self._outer_edge(arrow)
            if edge is not None:
                outer[edge] = None
        layout = layered(sizes, list(outer))
        routes = dict(zip(outer, layout.routes, strict=True))
        drawing = Drawing(width=layout.width, height=layout.height)
        for one, (x, y) in layout.centers.items():
            assert isinstance(one, str)
            (drawing.clusters if one in self.inner else drawing.boxes)[one] = Rectangle(x, y, *sizes[one])
        for key, rectangle in drawing.clusters.items():
            for inner, (x, y) in self.inner[key][0].centers.items():
                if isinstance(inner, str):
                    left, top = _origin(rectangle)
                    drawing.boxes[inner] = Rectangle(left + x, top + y, *self.sizes[inner])
        lines = [
            Line(arrow, tuple(self._legs(arrow, drawing, routes)))
            for arrow in dict.fromkeys(self.diagram.arrows)
        ]
        drawing.lines = _spread_heads(lines, drawing.boxes)
        return drawing

    def _outer_edge(self, arrow: Arrow) -> Edge | None:
        """The edge between clusters, or boxes in none; None where an arrow stays inside a cluster."""
        tail, head = (self.cluster_of.get(key, key) for key in (arrow.tail, arrow.head))
        if tail == head:
            return None
        return Edge(tail, head, self._shift(tail, _Out(arrow.tail)), self._shift(head, _In(arrow.tail)))

    def _shift(self, key: str, port: Key) -> float:
        """How far from the middle of a cluster one of its ports is."""
        if key not in self.inner:
            return 0.0
        layout = self.inner[key][0]
        return layout.centers[port][0] - layout.width / 2

    def _legs(
        self, arrow: Arrow, drawing: Drawing, routes: dict[Edge, list[Point]]
    ) -> Iterable[tuple[Point, ...]]:
        """Out of a cluster, from cluster to cluster, and into one: each where there is such a leg."""
        tail, head = (self.cluster_of.get(key) for key in (arrow.tail, arrow.head))
        outer = self._outer_edge(arrow)
        if outer is None:
            assert tail is not None
            yield self._inner_leg(tail, Edge(arrow.tail, arrow.head), drawing)
            return
        points = tuple(routes[outer])
        if tail is not None:
            leg = self._inner_leg(tail, Edge(arrow.tail, _Out(arrow.tail)), drawing)
            yield (*leg, points[0])
        yield points
        if head is not None:
            leg = self._inner_leg(head, Edge(_In(arrow.tail), arrow.head), drawing)
            yield (points[-1], *leg)

    def _inner_leg(self, cluster: str, edge: Edge, drawing: Drawing) -> tuple[Point, ...]:
        left, top = _origin(drawing.clusters[cluster])
        return tuple((left + x, top + y) for x, y in self.inner[cluster][1][edge])


def _spread_heads(lines: Sequence[Line], boxes: Mapping[str, Rectangle]) -> list[Line]:
    """The lines, those that lead to one box arriving side by side."""
    arriving: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        arriving.setdefault(line.arrow.head, []).append(number)
    spread = list(lines)
    for head, numbers in arriving.items():
        numbers.sort(key=lambda number: lines[number].legs[-1][-2][0])
        room = min(HEAD_GAP, 0.6 * boxes[head].width / len(numbers))
        for place, number in enumerate(numbers):
            *legs, (*points, (x, y)) = lines[number].legs
            moved = x + (place - (len(numbers) - 1) / 2) * room
            spread[number] = Line(lines[number].arrow, (*legs, (*points, (moved, y))))
    return spread


def _origin(rectangle: Rectangle) -> Point:
    """Where the layout inside a cluster begins."""
    left, top = rectangle.x - rectangle.width / 2, rectangle.y - rectangle.height / 2
    return left + PADDING, top + HEADING
