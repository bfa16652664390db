"""Flattening of chains, and what loading leaves in the e-graph."""

import pytest
from egraph.term_graphs import GraphBuilder, load, rules_engine

from esat.egraph.loader import LONGEST_FLAT, LONGEST_POWER, NaryTerm, flatten, load_text
from esat.egraph.terms import Term


def test_chains_flatten_with_their_signs():
    build = GraphBuilder()
    a, b, c, d = (build.input() for _ in range(4))
    root = build.op("Sub", build.op("Add", a, build.op("Neg", b)), build.op("Sub", c, d))
    (*_, form) = flatten(build.graph(root)).forms
    assert isinstance(form, NaryTerm)
    assert (form.constructor, sorted(form.above), sorted(form.below)) == ("NarySum", [a, d], [b, c])
    root = build.op("Div", build.op("Sqr", a), build.op("Div", b, build.op("Mul", c, d)))
    form = flatten(build.graph(root)).forms[root]
    assert (form.constructor, sorted(form.above), sorted(form.below)) == ("NaryProd", [a, a, c, d], [b])


def test_shared_terms_and_roots_stay():
    build = GraphBuilder()
    a, b, c = (build.input() for _ in range(3))
    inner = build.op("Add", a, b)
    outer = build.op("Add", inner, c)
    assert flatten(build.graph(outer)).forms[inner] is None
    assert flatten(build.graph(outer, inner)).forms[outer] == NaryTerm("NarySum", (c, inner), ())
    other = build.op("Mul", inner, c)
    forms = flatten(build.graph(outer, other)).forms
    assert forms[inner] == NaryTerm("NarySum", (b, a), ())


@pytest.mark.parametrize(
    ("dtype", "strict", "flat"), [("float64", True, False), ("int32", True, True), ("bool", False, False)]
)
def test_what_is_not_a_ring_stays_binary(dtype, strict, flat):
    build = GraphBuilder()
    root = build.chain("Add", [build.input(dtype) for _ in range(3)])
    form = flatten(build.graph(root), strict).forms[root]
    assert isinstance(form, NaryTerm if flat else Term)


def test_nary_terms_may_be_given():
    build = GraphBuilder()
    a, b, c = (build.input() for _ in range(3))
    inner = build.builder.add("NarySum", (a, b), (1,), build.builder.types[a])
    root = build.op("Sub", c, inner)
    form = flatten(build.graph(root)).forms[root]
    assert (sorted(form.above), sorted(form.below)) == ([b, c], [a])


def test_lengths_are_bounded():
    build = GraphBuilder()
    x = power = build.input()
    for _ in range(40):
        power = build.op("Sqr", power)
    total = build.chain("Add", [build.op("Mul", build.input(), x) for _ in range(3000)])
    forms = flatten(build.graph(power, total)).forms
    nary = [form for form in forms if isinstance(form, NaryTerm)]
    assert max(len(f.above) for f in nary if f.constructor == "NaryProd") <= LONGEST_POWER
    assert max(len(f.above) for f in nary if f.constructor == "NarySum") <= LONGEST_FLAT


def test_loading_is_linear_and_complete():
    lengths = {}
    for size in (500, 2000):
        build = GraphBuilder()
        leaves = [build.input() for _ in range(10)]
        terms = list(leaves)
        for number in range(size):
            terms.append(build.op("Maximum", terms[-1], leaves[number % 10]))
        graph = build.graph(terms[-1])
        engine = rules_engine()
        load(engine, graph)
        texts = list(load_text(graph, flatten(graph)))
        # egglog parses in the square of one text's length, so texts are of bounded length and grow in number.
        lengths[size] = (max(map(len, texts)), sum(map(len, texts)))
        sizes = engine.sizes()
        assert sizes["N"] == sizes["dt"] == sizes["bp"] == len(graph.terms)
    assert lengths[2000][0] < 1.5 * lengths[500][0]
    assert lengths[2000][1] < 4 * 1.2 * lengths[500][1]


def test_values_and_literals_are_loaded():
    build = GraphBuilder()
    root = build.op("Maximum", build.constant(1e-7), build.constant(1e22))
    engine = rules_engine()
    load(engine, build.graph(root))
    values = {engine.values.value_to_f64(row.output) for row in engine.freeze().functions["val"].rows}
    assert values == {1e-7, 1e22}


def test_a_deep_graph_needs_no_recursion():
    build = GraphBuilder()
    term = build.input()
    for _ in range(5000):
        term = build.op("Exp", build.op("Neg", term))
    assert sum(1 for _ in load_text(build.graph(term), flatten(build.graph(term)))) > 1000
