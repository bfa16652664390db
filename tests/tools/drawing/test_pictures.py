"""Pictures are well formed, hold every node, and say what overwrites what; hostile names stay text."""

import re
import shutil
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import esat
from esat.errors import EsatError
from esat.optimize.equality.report import time_text
from esat.tools.drawing.diagram import diagram_of
from esat.tools.drawing.dot import dot_text
from esat.tools.drawing.egraph import classes_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert('1')</script>&\"\x00\x1b\ud800 ünï <!-- ]]>"


def training_step():
    x, y = esat.matrix("x"), esat.vector("y")
    w = esat.shared(np.zeros(4), name="w")
    p = esat.sigmoid(x @ w)
    loss = -(y * esat.log(p) + (1 - y) * esat.log(1 - p)).mean()
    return esat.compile(esat.Graph([x, y], [loss], updates={w: w - 0.1 * esat.grad(loss, w)}))


@pytest.fixture(scope="module")
def step():
    return training_step()


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def boxes(root, kind):
    return [
        group
        for group in root.iter(f"{SVG}g")
        if any(rectangle.get("class") == f"box {kind}" for rectangle in group.findall(f"{SVG}rect"))
    ]


def test_every_node_and_leaf_is_there(step):
    root = ElementTree.fromstring(esat.pydotprint(step))
    ids = {group.get("id") for group in root.iter(f"{SVG}g")}
    diagram = diagram_of(step)
    assert set(diagram.boxes) <= ids
    nodes = step.graph.toposort()
    kinds = [box.kind for box in diagram.boxes.values()]
    assert kinds.count("input") == 2
    assert kinds.count("shared") == 1
    assert kinds.count("output") == 2
    assert len(diagram.boxes) == len(nodes) + 5
    shown = texts(root)
    for node in nodes:
        assert any(text.startswith(str(node.op)) for text in shown), node
    assert {"output 0", "new value of w"} <= set(shown)


def test_kernels_frame_their_nodes(step):
    root = ElementTree.fromstring(esat.pydotprint(step))
    kernels = [place for place, one in enumerate(step.steps) if one.kind == "kernel"]
    frames = {
        group.get("id"): group.find(f"{SVG}rect") for group in boxes(root, "cluster") if group.get("id")
    }
    assert set(frames) == {f"step{place}" for place in kernels}
    places = {group.get("id"): group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g") if group.get("id")}
    for cluster in diagram_of(step).clusters:
        for key in cluster.members:
            for axis, size in (("x", "width"), ("y", "height")):
                inner, outer = places[key], frames[cluster.key]
                low, high = float(inner.get(axis)), float(inner.get(axis)) + float(inner.get(size))
                begin, end = float(outer.get(axis)), float(outer.get(axis)) + float(outer.get(size))
                assert begin <= low
                assert high <= end


def test_views_and_what_is_written_over_are_marked(step):
    diagram = diagram_of(step)
    label = {key: box.lines[0] for key, box in diagram.boxes.items()}
    found = {(label[one.tail], label[one.head].partition("(")[0], one.kind) for one in diagram.arrows}
    assert ("w", "sub", "overwrite") in found
    assert ("w", "dimshuffle{0,x}", "view") in found
    x, y = esat.matrix("x"), esat.matrix("y")
    in_place = esat.compile(esat.Graph([x, y], esat.tanh(x @ y) @ y))
    kinds = [one.kind for one in diagram_of(in_place).arrows]
    assert kinds == ["read", "read", "overwrite", "read", "read", "read"]
    root = ElementTree.fromstring(esat.pydotprint(in_place))
    assert len([path for path in root.iter(f"{SVG}path") if path.get("class") == "line overwrite"]) == 2
    assert "is written over it" in texts(root), "the second one is the legend's"


def test_operands_are_numbered_where_their_order_matters():
    x, y = esat.vector("x"), esat.vector("y")
    marks = {one.mark for one in diagram_of(x - y).arrows}
    assert {"0", "1"} <= marks
    assert {one.mark for one in diagram_of(x + y).arrows} == {""}
    assert diagram_of(2.0 - esat.scalar("s")).boxes["node0"].lines[0] == "sub(2.0, ·)"


@pytest.mark.parametrize("build", ["variable", "graph", "several", "plain", "greedy"])
def test_everything_that_prints_can_be_drawn(build):
    x = esat.matrix("x")
    outputs = [esat.tanh(x).sum(axis=0), x]
    given = {
        "variable": outputs[0],
        "several": outputs,
        "graph": esat.FunctionGraph([x], outputs),
        "plain": esat.compile(esat.Graph([x], outputs), "fast_compile"),
        "greedy": esat.compile(esat.Graph([x], outputs), "greedy"),
    }[build]
    ElementTree.fromstring(esat.pydotprint(given))


def test_hostile_names_stay_text(tmp_path):
    x = esat.vector(HOSTILE)
    w = esat.shared(np.zeros(3), name=HOSTILE)
    function = esat.compile(esat.Graph([x], [esat.exp(x) * w], updates={w: w + x}))
    root = ElementTree.fromstring(esat.pydotprint(function))
    shown = HOSTILE.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\ud800", "\ufffd")
    assert shown in texts(root)
    assert not list(root.iter(f"{SVG}script"))
    esat.pydotprint(function, tmp_path / "a.svg")
    function.save_html(tmp_path / "a.html")
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert page.tags.count("script") == 2, "d3's and the page's own"
    for line in dot_text(diagram_of(function)).splitlines():
        assert len(re.findall(r'(?<!\\)"', line.replace("\\\\", ""))) % 2 == 0, line


class Page(HTMLParser):
    """What a browser sees: tags, ids, addresses, and whether tags close in order."""

    VOID = ("meta", "input", "br")

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.open, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        known = dict(attributes)
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known[name] for name in ("href", "src") if name in known]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_is_one_file_with_everything(step, tmp_path):
    step.save_html(tmp_path / "step.html")
    text = (tmp_path / "step.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links), "no network"
    assert not re.search(r"@import|url\((?!#)", text)
    words = "".join(page.words)
    for source in re.split(r"\n\n# (?:[a-z]+_\w+|routines)\n", step.source()):
        assert source.strip() in words
    assert "Function profiling" in words
    assert "Optimizer Profile" in words


def test_the_egraph_is_told_in_full(step, tmp_path):
    extraction = step.report.extraction
    classes = classes_of(extraction)
    live = [one for one in classes if one.live]
    assert len(live) == len(extraction.selection.live_classes)
    assert all([node.chosen for node in one.nodes] == [True] + [False] * (len(one.nodes) - 1) for one in live)
    assert not any(node.chosen for one in classes if not one.live for node in one.nodes)
    total = sum(node.seconds for one in live for node in one.nodes if node.chosen)
    assert total == pytest.approx(extraction.seconds)
    step.save_html(tmp_path / "step.html")
    page = Page((tmp_path / "step.html").read_text(encoding="utf-8"))
    assert {f"class{one.number}" for one in classes} <= set(page.ids)
    assert {f"c{one.number}" for one in live} <= set(page.ids)


def test_formats(tmp_path):
    x = esat.vector("x")
    esat.pydotprint(esat.exp(x), outfile=tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text().startswith("digraph")
    assert esat.pydotprint(esat.exp(x), format="dot").startswith("digraph")
    with pytest.raises(EsatError, match="give it an outfile"):
        esat.pydotprint(esat.exp(x), format="png")


def test_other_formats_need_graphviz(tmp_path, monkeypatch):
    calls = tmp_path / "bin"
    calls.mkdir()
    monkeypatch.setenv("PATH", str(calls))
    with pytest.raises(EsatError, match="needs the program dot of graphviz"):
        esat.pydotprint(esat.exp(esat.vector("x")), tmp_path / "a.png")
    program = calls / "dot"
    cat = shutil.which("cat", path="/bin:/usr/bin")
    script = f"""[ "$1" = -Tpng ] || {{ echo "Format: $1" >&2; exit 1; }}\nexec {cat}"""
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    esat.pydotprint(esat.exp(esat.vector("x")), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_text().startswith("digraph")
    with pytest.raises(EsatError, match="could not write 'odd': Format: -Todd"):
        esat.pydotprint(esat.exp(esat.vector("x")), tmp_path / "a.odd")


def test_no_class_of_the_e_graph_lists_a_form_twice():
    x, y = esat.vector("x"), esat.vector("y")
    loss = (x * y * 2.0 + esat.exp(-x) / (x + y) - 3.0 * x * y).sum()
    function = esat.compile(esat.Graph([x, y], [loss, esat.grad(loss, x)]))
    for one in classes_of(function.report.extraction):
        texts = [node.text for node in one.nodes]
        assert len(texts) == len(set(texts)), texts


def test_steps_are_shown_with_their_predicted_times_and_measured_where_they_were(step, tmp_path):
    expected = step.predicted_seconds()
    assert len(expected) == len(step.steps)
    step.save_html(tmp_path / "before.html")
    assert "Steps are measured by calls after" in (tmp_path / "before.html").read_text(encoding="utf-8")
    step(np.ones((2, 4)), np.ones(2))
    small = step.predicted_seconds()
    step(np.ones((100_000, 4)), np.ones(100_000))
    large = step.predicted_seconds()
    assert sum(large) > 10 * sum(small)
    step.save_html(tmp_path / "step.html")
    text = (tmp_path / "step.html").read_text(encoding="utf-8")
    for number, (group, seconds) in enumerate(zip(step.steps, large, strict=True)):
        if group.kind == "kernel":
            assert f'<a href="#kernel_{number}">kernel_{number}</a>' in text
            assert f"kernel_{number} <small>{time_text(seconds)} predicted</small>" in text
