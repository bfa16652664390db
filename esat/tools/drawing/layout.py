"""Layered layout: where the boxes of an acyclic diagram stand, and how its arrows run between them.

The method of Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical system structures",
IEEE Transactions on Systems, Man and Cybernetics 11, 1981): boxes go into rows by the longest path, arrows
that skip rows get a bend in each of them, rows are put in an order with few crossings, and then each box
moves as near to its neighbours as its row leaves room for.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from esat.base.records import record

Key: TypeAlias = Hashable
Point: TypeAlias = tuple[float, float]
Size: TypeAlias = tuple[float, float]

ROW_GAP = 34.0
BOX_GAP = 18.0
BEND_WIDTH = 8.0
SWEEPS = 12
"""Times that all rows are put in order, and moved."""


@record(frozen=True, slots=True)
class Edge:
    """An arrow between boxes; the shifts tell how far from the boxes' middles it leaves and arrives."""

    tail: Key
    head: Key
    tail_shift: float = 0.0
    head_shift: float = 0.0


@record(frozen=True, slots=True)
class Layout:
    """Where everything stands, within ``(0, 0)`` and ``(width, height)``.

    Attributes
    ----------
    centers
        Middle of each box.
    routes
        For each edge the points it runs through, from below its tail to above its head.
    """

    centers: dict[Key, Point]
    routes: list[list[Point]]
    width: float
    height: float


class _Bend(NamedTuple):
    """The place where edges from one box pass a row."""

    tail: Key
    row: int


class _Link(NamedTuple):
    """A piece of an edge, from one row to the next."""

    upper: Key
    lower: Key
    upper_shift: float
    lower_shift: float


def layered(
    sizes: Mapping[Key, Size], edges: Sequence[Edge], first: Collection[Key] = (), last: Collection[Key] = ()
) -> Layout:
    """Lay out an acyclic diagram from top to bottom.

    Parameters
    ----------
    sizes
        Width and height of each box.
    edges
        Arrows between them; they must not close a circle.
    first, last
        Boxes for the first and the last row.
    """
    row_of = _rows(sizes, edges, first, last)
    chains = [_chain(edge, row_of) for edge in edges]
    pairs = zip(edges, chains, strict=True)
    links = list(dict.fromkeys(link for edge, chain in pairs for link in _links(edge, chain)))
    rows = _ordered(_filled(row_of, chains), links)
    widths = {key: sizes[key][0] if key in sizes else BEND_WIDTH for row in rows for key in row}
    x = _abscissas(rows, links, widths)
    heights = [max((sizes[key][1] for key in row if key in sizes), default=0.0) for row in rows]
    tops = [sum(heights[:number]) + ROW_GAP * number for number in range(len(rows))]
    centers = {key: (x[key], tops[row_of[key]] + heights[row_of[key]] / 2) for key in sizes}
    routes = []
    for edge, (_, *inner, _) in zip(edges, chains, strict=True):
        start, end = centers[edge.tail], centers[edge.head]
        points = [(start[0] + edge.tail_shift, start[1] + sizes[edge.tail][1] / 2)]
        for bend in inner:
            assert isinstance(bend, _Bend)
            top = tops[bend.row]
            points += [(x[bend], top), (x[bend], top + heights[bend.row])]
        routes.append([*points, (end[0] + edge.head_shift, end[1] - sizes[edge.head][1] / 2)])
    width = max((x[key] + widths[key] / 2 for key in x), default=0.0)
    return Layout(centers, routes, width, tops[-1] + heights[-1] if rows else 0.0)


def _rows(
    sizes: Mapping[Key, Size], edges: Sequence[Edge], first: Collection[Key], last: Collection[Key]
) -> dict[Key, int]:
    """The row of each box: below all that lead to it; what nothing leads to stands just above its readers."""
    # networkx is loaded when it is needed.
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(sizes)
    graph.add_edges_from((edge.tail, edge.head) for edge in edges)
    row_of: dict[Key, int] = {}
    for number, generation in enumerate(networkx.topological_generations(graph)):
        row_of.update(dict.fromkeys(generation, number))
    for key in sizes:
        if graph.in_degree(key) == 0 and graph.out_degree(key) and key not in first:
            row_of[key] = min(row_of[reader] for reader in graph.successors(key)) - 1
    if last:
        lowest = max((row for key, row in row_of.items() if key not in last), default=-1)
        row_of.update(dict.fromkeys(last, lowest + 1))
    return {key: row_of[key] for key in sizes}


def _chain(edge: Edge, row_of: Mapping[Key, int]) -> list[Key]:
    """The boxes and bends that an edge runs through."""
    between = range(row_of[edge.tail] + 1, row_of[edge.head])
    return [edge.tail, *(_Bend(edge.tail, row) for row in between), edge.head]


def _links(edge: Edge, chain: Sequence[Key]) -> Iterable[_Link]:
    for place, (upper, lower) in enumerate(pairwise(chain)):
        tail_shift = edge.tail_shift if place == 0 else 0.0
        yield _Link(upper, lower, tail_shift, edge.head_shift if lower is chain[-1] else 0.0)


def _filled(row_of: Mapping[Key, int], chains: Iterable[Sequence[Key]]) -> list[list[Key]]:
    """The keys of each row, boxes and bends, as they come."""
    rows: list[dict[Key, None]] = [{} for _ in range(max(row_of.values(), default=-1) + 1)]
    for chain in chains:
        for key in chain:
            rows[key.row if isinstance(key, _Bend) else row_of[key]][key] = None
    for key, number in row_of.items():
        rows[number][key] = None
    return [list(row) for row in rows]


def _neighbours(links: Iterable[_Link]) -> tuple[dict[Key, list[_Link]], dict[Key, list[_Link]]]:
    """For each key the links that come from above, and those that go on below."""
    above: dict[Key, list[_Link]] = {}
    below: dict[Key, list[_Link]] = {}
    for link in links:
        above.setdefault(link.lower, []).append(link)
        below.setdefault(link.upper, []).append(link)
    return above, below


def _ordered(rows: list[list[Key]], links: Sequence[_Link]) -> list[list[Key]]:
    """Each row in the order of its neighbours' middles; of all orders tried that with fewest crossings."""
    above, below = _neighbours(links)
    best, fewest = rows, _crossings(rows, above)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        rows = [list(row) for row in rows]
        place = {key: float(number) for row in rows for number, key in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            middle = {key: _middle(key, above if sweep % 2 == 0 else below, place) for key in row}
            row.sort(key=middle.__getitem__)
            place.update((key, float(number)) for number, key in enumerate(row))
        crossings = _crossings(rows, above)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _middle(key: Key, neighbours: Mapping[Key, Sequence[_Link]], place: Mapping[Key, float]) -> float:
    places = [place[link.upper if link.lower == key else link.lower] for link in neighbours.get(key, ())]
    return sum(places) / len(places) if places else place[key]


def _crossings(rows: Sequence[Sequence[Key]], above: Mapping[Key, Sequence[_Link]]) -> int:
    """How many pairs of links cross."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {key: number for number, key in enumerate(upper)}
        passed: list[int] = []
        for key in lower:
            starts = [place[link.upper] for link in above.get(key, ())]
            total += sum(len(passed) - bisect_right(passed, start) for start in starts)
            for start in starts:
                insort(passed, start)
    return total


def _abscissas(
    rows: Sequence[Sequence[Key]], links: Iterable[_Link], widths: Mapping[Key, float]
) -> dict[Key, float]:
    """The middle of each key: near those of its neighbours, in the order of its row, nothing overlapping."""
    above, below = _neighbours(links)
    x: dict[Key, float] = {}
    for row in rows:
        x.update(_spread(row, [0.0] * len(row), widths))
    for sweep in range(SWEEPS + 1):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = []
            for key in row:
                pulls = [x[link.upper] + link.upper_shift - link.lower_shift for link in above.get(key, ())]
                others = [x[link.lower] + link.lower_shift - link.upper_shift for link in below.get(key, ())]
                # The last sweep looks both ways, for what has no neighbours on one side.
                pulls = pulls + others if sweep == SWEEPS else (pulls if down else others)
                wanted.append(sum(pulls) / len(pulls) if pulls else x[key])
            x.update(_spread(row, wanted, widths))
    left = min((x[key] - widths[key] / 2 for key in x), default=0.0)
    return {key: value - left for key, value in x.items()}


def _spread(
    row: Sequence[Key], wanted: Sequence[float], widths: Mapping[Key, float]
) -> Iterable[tuple[Key, float]]:
    """The places nearest to those wanted, by least squares, at which the keys of a row do not overlap.

    Less the room that is taken to its left, each place must be at least that of its left neighbour: the
    answer pools neighbours that would not be (isotonic regression). Bends count more, to keep arrows
    straight.
    """
    taken, right = [], 0.0
    for key in row:
        taken.append(right + widths[key] / 2)
        right += widths[key] + BOX_GAP
    pools: list[tuple[float, float, int]] = []
    for key, target, room in zip(row, wanted, taken, strict=True):
        mean, weight, count = target - room, 4.0 if isinstance(key, _Bend) else 1.0, 1
        while pools and pools[-1][0] > mean:
            other, other_weight, other_count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        pools.append((mean, weight, count))
    places = [mean for mean, _, count in pools for _ in range(count)]
    return [(key, place + room) for key, place, room in zip(row, places, taken, strict=True)]
