"""Sums and products of any number of operands: what they find, and that they are sound."""

import numpy as np
import pytest
from egraph.numeric_oracle import check_egraph
from egraph.term_graphs import (
    CONSTRUCTORS,
    GraphBuilder,
    holds,
    load,
    random_polynomial,
    rules_engine,
    saturated,
)

from esat.egraph.preparation.core import LIFTS
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import Budgets, Schedule

TOLERANCE = {"float32": 1e-3, "float64": 1e-7, "complex128": 1e-7}


DTYPES = ["float64", "float32", "int32", "int8", "uint8", "int64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_node_has_the_value_of_its_class(dtype):
    compared, first = 0, 6 * DTYPES.index(dtype)
    for seed in range(first, first + 6):
        build, graph = random_polynomial(seed, dtype)
        engine, _ = saturated(graph, budgets=Budgets(nodes=3000, rounds=4))
        compared += check_egraph(engine, build.arrays, TOLERANCE.get(dtype, 0.0))
    assert compared > 250


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_strict_mode_is_exact(dtype):
    for seed in range(6):
        build, graph = random_polynomial(seed, dtype)
        engine, _ = saturated(graph, strict=True)
        assert check_egraph(engine, build.arrays, 1e-300) > 20
        if dtype == "float64":
            assert engine.sizes()["NarySum"] == 0


def test_a_sum_of_distinct_terms_stays_linear():
    for count in (12, 200):
        build = GraphBuilder()
        total = build.chain("Add", [build.input() for _ in range(count)])
        engine, report = saturated(build.graph(total))
        assert report.stop_reason == "saturated"
        assert report.nodes == count + 1
        assert engine.sizes()["NarySum"] == 1


def test_far_terms_cancel_and_many_pairs_do_so_at_once():
    build = GraphBuilder()
    terms = [build.input() for _ in range(100)]
    total = build.chain("Add", terms)
    root = build.chain("Sub", [total, *terms[:60]])
    rest = build.chain("Add", terms[60:])
    _, report = saturated(build.graph(root, rest))
    assert report.stop_reason == "saturated"
    assert report.nodes < 110
    engine, _ = saturated(build.graph(root, rest))
    assert holds(engine, f"(N {root})", f"(N {rest})")


def test_an_expanded_product_is_factored():
    build = GraphBuilder()
    left, right = ([build.input() for _ in range(4)] for _ in range(2))
    expanded = build.chain("Add", [build.op("Mul", a, b) for a in left for b in right])
    factored = build.op("Mul", build.chain("Add", left), build.chain("Add", right))
    engine, report = saturated(build.graph(expanded, factored))
    assert holds(engine, f"(N {expanded})", f"(N {factored})")
    assert report.nodes < 150


@pytest.mark.parametrize("spelling", ["Neg", "Mul"])
def test_the_opposite_of_minus_one_times_a_factor_ends(spelling):
    """-(-1 * y) is y, and not the opposite of its own multiple."""
    build = GraphBuilder()
    x, y = build.input(), build.input()
    minus_one, opposite = build.constant(-1.0), build.op("Neg", y)
    scaled = build.op("Mul", minus_one, y)
    restored = build.op("Neg", scaled) if spelling == "Neg" else build.op("Mul", minus_one, opposite)
    product = build.op("Mul", restored, x)
    # As the rule does that turns -1 * y into -y.
    engine = rules_engine()
    load(engine, build.graph(product, build.op("Mul", x, y), opposite))
    engine.execute(f"(union (N {scaled}) (N {opposite}))")
    report = saturate(engine, Schedule(), Budgets(nodes=500), CONSTRUCTORS)
    assert report.stop_reason == "saturated"
    assert report.nodes < 30
    assert holds(engine, f"(N {product})", f"(N {build.op('Mul', x, y)})")


def test_a_polynomial_reaches_horners_form():
    build = GraphBuilder()
    x = build.input()
    coefficients = [build.input(shape=()) for _ in range(7)]
    expanded = coefficients[0]
    for degree in range(1, 7):
        expanded = build.op("Add", expanded, build.chain("Mul", [coefficients[degree], *[x] * degree]))
    horner = coefficients[6]
    for degree in reversed(range(6)):
        horner = build.op("Add", build.op("Mul", horner, x), coefficients[degree])
    engine, _ = saturated(build.graph(expanded, horner))
    assert holds(engine, f"(N {expanded})", f"(N {horner})")


EQUAL = {
    "like terms": lambda b, x, y: (
        b.op("Add", b.op("Mul", b.constant(2), x), b.op("Mul", x, b.constant(3))),
        b.op("Mul", b.constant(5), x),
    ),
    "like products": lambda b, x, y: (
        b.op("Sub", b.chain("Mul", [b.constant(2), x, y]), b.op("Mul", x, y)),
        b.op("Mul", y, x),
    ),
    "repeated terms": lambda b, x, y: (
        b.chain("Add", [x, y, x, x, x]),
        b.op("Add", y, b.op("Mul", b.constant(4), x)),
    ),
    "negative coefficient": lambda b, x, y: (
        b.op("Add", y, b.op("Mul", b.constant(-2), x)),
        b.op("Sub", y, b.op("Mul", x, b.constant(2))),
    ),
    "constants": lambda b, x, y: (
        b.op("Add", b.constant(2), b.op("Add", x, b.constant(3))),
        b.op("Add", b.constant(5), x),
    ),
    "signs": lambda b, x, y: (b.op("Mul", b.op("Neg", x), y), b.op("Neg", b.op("Mul", x, y))),
    "common factor": lambda b, x, y: (
        b.op("Add", x, b.op("Mul", x, y)),
        b.op("Mul", x, b.op("Add", b.constant(1), y)),
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
@pytest.mark.parametrize("name", EQUAL)
def test_equal_forms_meet(name, dtype):
    if name == "negative coefficient" and dtype == "uint8":
        return  # -2 is no uint8
    build = GraphBuilder()
    left, right = EQUAL[name](TypedConstants(build, dtype), build.input(dtype), build.input(dtype))
    engine, _ = saturated(build.graph(left, right))
    assert holds(engine, f"(N {left})", f"(N {right})")


class TypedConstants:
    """A GraphBuilder whose constants have one dtype."""

    def __init__(self, build, dtype):
        self.op, self.chain = build.op, build.chain
        self.constant = lambda value: build.constant(value, dtype)


def test_division_of_floats_cancels_and_is_shared():
    build = GraphBuilder()
    x, y, z = (build.input() for _ in range(3))
    inside = build.op("Div", build.chain("Mul", [*(build.input() for _ in range(8)), x, y]), y)
    without = build.builder.terms[inside].operands[0]
    shared = build.op("Add", build.op("Div", x, z), build.op("Div", y, z))
    once = build.op("Div", build.op("Add", x, y), z)
    engine, _ = saturated(build.graph(inside, shared, once, without))
    assert holds(engine, f"(N {shared})", f"(N {once})")
    product = build.chain("Mul", [*range(3, 11), x])
    engine, _ = saturated(build.graph(inside, product))
    assert holds(engine, f"(N {inside})", f"(N {product})")


def test_cancelled_terms_keep_their_shape():
    build = GraphBuilder()
    large, row = build.input(shape=(3, 5)), build.input(shape=(1, 5))
    difference = build.op("Sub", build.op("Add", large, row), large)
    nothing = build.op("Sub", large, large)
    engine, _ = saturated(build.graph(difference, nothing))
    assert holds(engine, f"(N {difference})", f"(Fill (N {large}) (N {row}))")
    assert not holds(engine, f"(N {difference})", f"(N {row})")
    assert check_egraph(engine, build.arrays) > 5


def test_bools_are_left_alone():
    build = GraphBuilder()
    p, q = build.input("bool"), build.input("bool")
    both = build.op("Add", build.op("Add", p, q), p)
    engine, _ = saturated(build.graph(both))
    assert engine.sizes()["NarySum"] == 0


def test_integers_wrap_around_and_constants_stay_in_range():
    build = GraphBuilder()
    x = build.input("int8")
    doubled = build.op(
        "Add",
        build.op("Mul", build.constant(100, "int8"), x),
        build.op("Mul", build.constant(100, "int8"), x),
    )
    sums = build.op("Add", build.op("Add", x, build.constant(100, "int8")), build.constant(100, "int8"))
    engine, _ = saturated(build.graph(doubled, sums))
    assert check_egraph(engine, build.arrays) > 6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_folded_constants_are_values_of_their_dtype(dtype):
    build = GraphBuilder()
    x = build.input(dtype)
    values = np.array([0.1, 0.2, 1e-3], dtype).astype("float64")
    parts = [build.constant(value, dtype) for value in values]
    root = build.chain("Add", [x, *parts])
    product = build.chain("Mul", [x, *parts])
    engine, _ = saturated(build.graph(root, product))
    assert check_egraph(engine, build.arrays, 1e-5) > 8


def test_an_undefined_term_leaves_the_rest_alone():
    build = GraphBuilder()
    x, a = build.input(), build.input()
    zero = build.op("Sub", x, x)
    undefined = build.op("Div", build.op("Mul", zero, a), zero)
    reciprocal = build.op("Div", build.constant(1), zero)
    other = build.op("Mul", zero, reciprocal)
    engine, _ = saturated(build.graph(undefined, other, reciprocal, a))
    assert not holds(engine, f"(N {a})", f"(N {zero})")
    assert not holds(engine, "(K 0.0 11)", "(K 1.0 11)")


def test_forms_of_opposites_do_not_retire_each_other():
    """y = -z and z = -y: sums and products of either, and both themselves, keep a form that rules see."""
    build = GraphBuilder()
    a, b, u, v = (build.input() for _ in range(4))
    y = build.op("Mul", build.op("Neg", a), b)
    z = build.op("Neg", y)
    engine, report = saturated(build.graph(build.op("Add", u, y), build.op("Add", v, z), z))
    assert report.stop_reason == "saturated"
    assert retired_classes(engine) == set()
    assert holds(engine, f"(N {z})", "(NaryProd (multiset-of (In 0) (In 1)) (multiset-of))")


def test_many_multiples_of_one_term_are_collected():
    """x + x * 2 + x * 3 ...: every prefix of the sum meets all multiples, and must not try all pairs."""
    build = GraphBuilder()
    x = build.input()
    total = x
    for count in range(2, 51):
        total = build.op("Add", total, build.op("Mul", x, build.constant(count)))
    engine, report = saturated(build.graph(total), budgets=Budgets(seconds=20.0))
    assert report.stop_reason == "saturated"
    expected = f"(NaryProd (multiset-of (In 0) (K {sum(range(51))}.0 (dt (In 0)))) (multiset-of))"
    assert holds(engine, f"(N {total})", expected)


def retired_classes(engine) -> set[int]:
    """Classes of nothing but binary ops, and of sums and products that no rule sees any more."""
    seen, of_sums = set(), set()
    for name, table in engine.freeze().functions.items():
        if table.output_sort != "T" or name.startswith("nary") or name == "N":
            continue
        is_nary = name in ("NarySum", "NaryProd")
        of_sums.update(hash(row.output) for row in table.rows if is_nary)
        if name not in LIFTS:
            seen.update(hash(row.output) for row in table.rows if not row.subsumed)
    return of_sums - seen
