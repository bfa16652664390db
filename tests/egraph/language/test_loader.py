"""Flattening of chains, and what loading leaves in the e-graph."""

from math import inf, isnan, nan

import pytest
from egraph.term_graphs import GraphBuilder, holds, load, rules_engine

from esat.egraph.language.loader import LONGEST_FLAT, LONGEST_POWER, NaryTerm, flatten, loading
from esat.egraph.language.term_rows import COLUMNS
from esat.egraph.language.terms import Term
from esat.graph.types import DTYPES


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


@pytest.mark.parametrize("width", [1, COLUMNS + 1])
def test_loading_is_linear_and_complete(width):
    """Terms that are rows, and terms that are too long for one."""
    lengths = {}
    for size in (200, 800):
        build = GraphBuilder()
        leaves = [build.input() for _ in range(COLUMNS)]
        terms = list(leaves)
        for number in range(size):
            inner = build.op("Maximum", terms[-1], leaves[number % COLUMNS])
            terms.append(build.chain("Add", [inner, *leaves[: width - 1]]))
        graph = build.graph(*terms)
        engine = rules_engine()
        load(engine, graph)
        told = loading(graph, flatten(graph))
        lengths[size] = sum(map(len, told.all_texts()))
        sizes = engine.sizes()
        assert sizes["N"] == sizes["dt"] == sizes["bp"] == COLUMNS + (size if width == 1 else 2 * size)
        assert sizes["Maximum"] == size
        assert sizes["NarySum"] == (size if width > 1 else 0)
        assert sizes["LoadedRow"] == 0
    assert lengths[800] < 4 * 1.2 * lengths[200]


def test_all_that_loads_terms_says_what_they_are():
    """Rows of every form, a term too long for a row, constants, values and sizes."""
    build = GraphBuilder()
    a, b, c = (build.input() for _ in range(3))
    long = [build.input() for _ in range(COLUMNS + 2)]
    quotient = build.op("Div", c, build.op("Mul", a, b))
    root = build.op("Maximum", build.op("Exp", build.op("Sub", a, b)), quotient)
    total, constant = build.chain("Add", long), build.op("Minimum", a, build.constant(2.5))
    engine = rules_engine()
    load(engine, build.graph(root, total, constant))
    difference = f"(NarySum (multiset-of (N {a})) (multiset-of (N {b})))"
    product = f"(NaryProd (multiset-of (N {c})) (multiset-of (N {a}) (N {b})))"
    addends = " ".join(f"(N {number})" for number in long)
    assert holds(engine, f"(N {root})", f"(Maximum (Exp {difference}) {product})")
    assert holds(engine, f"(N {total})", f"(NarySum (multiset-of {addends}) (multiset-of))")
    assert holds(engine, f"(N {constant})", f"(Minimum (N {a}) (K 2.5 {DTYPES.index('float64')}))")


def test_values_and_literals_are_loaded():
    build = GraphBuilder()
    root = build.op("Maximum", build.constant(1e-7), build.constant(1e22))
    root = build.op("Maximum", root, build.op("Minimum", build.constant(inf), build.constant(-inf)))
    root = build.op("Maximum", root, build.constant(nan))
    engine = rules_engine()
    load(engine, build.graph(root))
    values = {engine.values.value_to_f64(row.output) for row in engine.freeze().functions["val"].rows}
    assert {value for value in values if not isnan(value)} == {1e-7, 1e22, inf, -inf}
    assert any(map(isnan, values))


def test_a_deep_graph_needs_no_recursion():
    build = GraphBuilder()
    term = build.input()
    for _ in range(5000):
        term = build.op("Exp", build.op("Neg", term))
    engine = rules_engine()
    load(engine, build.graph(term))
    assert engine.sizes()["Exp"] == 5000
