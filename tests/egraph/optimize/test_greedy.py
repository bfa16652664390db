import numpy as np
import pytest
from effort import assert_near_linear

import esat
from esat import Query, optdb
from esat.classic import OscillationWarning, local_optimizer
from esat.classic.standard import standard_database
from esat.graph.algorithms.evaluate import evaluate


def gradient_graph(layers):
    x, y = esat.matrix("x"), esat.matrix("y")
    h, parameters = x, []
    for layer in range(layers):
        w = esat.shared(np.random.default_rng(layer).normal(size=(6, 6)) / 3, name=f"w{layer}")
        b = esat.shared(np.zeros(6), name=f"b{layer}")
        parameters += [w, b]
        h = esat.tanh(h @ w + b)
    loss = -(y * esat.log(esat.softmax(h, axis=1))).mean()
    return esat.Graph([x, y], [loss, *(esat.grad(loss, p) for p in parameters)]).function_graph()


def test_the_work_on_gradients_of_a_network_grows_with_its_depth():
    optimizer = optdb.query(Query(["fast_run"]))

    def optimizing(layers):
        graph = gradient_graph(layers)
        return lambda: optimizer.optimize(graph)

    assert_near_linear(optimizing, 3)


def test_gradients_of_a_deep_network_keep_their_values():
    graph = gradient_graph(40)
    merged = graph.clone()
    optdb.query(Query(["fast_compile"])).optimize(merged)
    assert len(merged) > 450
    result = graph.clone()
    optdb.query(Query(["fast_run"])).optimize(result)
    assert len(result) <= len(merged)
    values = [np.random.default_rng(seed).normal(size=(5, 6)) for seed in range(2)]
    expected = evaluate(merged.outputs, dict(zip(merged.inputs, values, strict=True)))
    found = evaluate(result.outputs, dict(zip(result.inputs, values, strict=True)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


def greedy(build, count=2):
    variables = [esat.vector(name) for name in "xyzw"[:count]]
    graph = esat.Graph(variables, build(*variables)).function_graph()
    optdb.query(Query(["fast_run"])).optimize(graph)
    return str(graph)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x, y: esat.neg(-x) * y, "[mul(x, y)]"),
        (lambda x, y: (x * y) / y, "[x]"),
        (lambda x, y: esat.exp(x) * esat.exp(y), "[exp(add(y, x))]"),
        (lambda x, y: esat.log(1.0 + esat.exp(x)) + y * 0.0, "[softplus(x)]"),
        (lambda x, y: esat.log(esat.exp(x) + 1.0) * y, "[mul(softplus(x), y)]"),  # the commuted pattern
        (lambda x, y: esat.pow(x, 2.0) + (y - y), "[sqr(x)]"),
        (lambda x, y: x + y - x, "[y]"),
    ],
)
def test_rules_as_replacements(build, expected):
    assert greedy(build) == expected


A, B, C = (esat.matrix(name) for name in "ABC")
square = esat.tensor("square", shape=(3, 3))
VIEWS = [
    ((A.T @ B.T).T, "matmul(B, A)"),
    ((A @ B.T).T, "matmul(B, dimshuffle{1,0}(A))"),
    (esat.exp((A @ B.T).T) @ C, "matmul(exp(matmul(B, dimshuffle{1,0}(A))), C)"),
    (((A @ B).T @ C).T, "matmul(dimshuffle{1,0}(C), matmul(A, B))"),
    ((A * 2.0).sum(), "mul(sum{0,1}(A), 2.0)"),
    ((-A).sum(), "neg(sum{0,1}(A))"),
    ((A * 2.0).sum(0).sum(0), "mul(sum{0,1}(A), 2.0)"),
    (esat.trace(square @ C[:3, :3]), None),
    (esat.sort(A.T[None].T), "sort{2}(dimshuffle{0,1,x}(A))"),
]


@pytest.mark.parametrize(("output", "expected"), VIEWS)
def test_views_go_as_in_the_order_of_the_documents(output, expected):
    """Transposes of products go to their operands, scalars and signs leave views, views of views are one."""
    inputs = [one for one in esat.graph.inputs_of([output]) if not isinstance(one, esat.graph.Constant)]
    left = esat.compile(esat.Graph(inputs, output), "greedy").optimized
    assert expected is None or str(left) == f"[{expected}]"
    for node in left.toposort():
        inner = node.inputs[0].owner if node.inputs else None
        assert node.op.name != "dimshuffle" or inner is None or inner.op.name not in ("dimshuffle", "matmul")


def test_a_product_that_is_read_both_ways_is_computed_once():
    found = esat.compile(esat.Graph([A, B], [A @ B, (A @ B).T]), "greedy").optimized.toposort()
    assert [node.op.name for node in found].count("matmul") == 1


def test_factors_of_decompositions_are_known_to_be_triangular():
    matrix = esat.tensor("matrix", shape=(5, 5))
    inverse = esat.linalg.inv(esat.linalg.qr(matrix)[1])
    for mode in ("greedy", "fast_run"):
        left = esat.compile(esat.Graph([matrix], [inverse]), mode).optimized.toposort()
        assert [node.op.name for node in left] == ["qr", "inv_triangular"]


def test_each_step_keeps_one_form():
    """What saturation finds, and steps do not: the second rule needs what the first one replaced."""
    rules = """
        (ruleset first :tags (canonicalize)) (ruleset second :tags (specialize))
        (rewrite (Erf (Erfc x)) (Sin x) :ruleset first :name "first")
        (rewrite (Tanh (Erf (Erfc x))) x :ruleset second :name "second")"""
    x = esat.vector("x")
    build = esat.Graph([x], esat.tanh(esat.erf(esat.erfc(x))))
    for mode, left in (("greedy", "[tanh(sin(x))]"), ("fast_run", "[x]")):
        chosen = esat.Mode(mode, accuracy="ignore")
        assert str(esat.compile(build, chosen, rules=rules).optimized) == left


def test_a_rule_and_an_optimizer_that_undo_each_other_are_named():
    """The optimizer writes exp(x) as the reciprocal of exp(-x), rules of esat take it back."""
    database = standard_database(esat.rules.RULES)

    @local_optimizer([esat.exp])
    def roundabout(node):
        (x,) = node.inputs
        if x.owner is not None and x.owner.op == esat.neg:
            return False
        return [esat.reciprocal(esat.exp(esat.neg(x)))]

    database["canonicalize"].register("roundabout", roundabout, "fast_run")
    x = esat.vector("x")
    value = x
    for _ in range(50):
        value = esat.sin(value) + 1.0
    graph = esat.Graph([x], esat.exp(value)).function_graph()
    with pytest.warns(OscillationWarning, match="undo each other: roundabout, rules"):
        profile = database.query(Query(["fast_run"])).optimize(graph)
    assert profile.all_applied()["roundabout"] < 50, "some dozen changes name the culprits"


def test_two_operands_are_found_among_all_of_a_sum_or_product():
    x, y, b = (esat.dvector(name) for name in "xyb")
    programs = {
        "merged": (esat.exp(x) * b * esat.exp(y), ["add", "exp", "mul"]),
        "merged of four": (esat.exp(x) * b * b * esat.exp(y), None),
        "cancelled": (esat.exp(x) * b * esat.exp(-x), []),
        "divided": (esat.exp(x) * b / esat.exp(y), ["sub", "exp", "mul"]),
        "tangent": (esat.sin(x) * b / esat.cos(x), ["tan", "mul"]),
        "terms": (esat.sin(x) ** 2 + b + esat.cos(x) ** 2, ["add"]),
    }
    rule = '(rewrite (Add (Sqr (Sin x)) (Sqr (Cos x))) (Fill x (K 1.0 (dt x))) :name "pythagoras")'
    values = np.random.default_rng(0).normal(size=(3, 5))
    for name, (output, expected) in programs.items():
        graph = esat.Graph([x, y, b], [output], on_unused_input="ignore")
        function = esat.compile(graph, esat.Mode("greedy", accuracy="ignore"), rules=rule)
        names = [node.op.name for node in function.optimized.toposort()]
        assert expected is None or names == expected, name
        assert names.count("exp") <= 1
        plain = esat.evaluate(output, dict(zip((x, y, b), values, strict=True)))
        np.testing.assert_allclose(function(*values), plain, rtol=1e-12)


@pytest.mark.parametrize("mode", ["greedy", "fast_run"])
@pytest.mark.parametrize(
    ("sizes", "right_first"), [((4, 700, 700, 700), False), ((700, 700, 700, 4), True)], ids=["left", "right"]
)
def test_products_are_ordered_for_the_sizes_given(
    mode: str, sizes: tuple[int, ...], right_first: bool
) -> None:
    factors = [esat.matrix(name) for name in "abc"]
    first, second, third = factors
    written = (first @ second) @ third if right_first else first @ (second @ third)
    shapes = {factor: (sizes[place], sizes[place + 1]) for place, factor in enumerate(factors)}
    f = esat.compile(esat.Graph(factors, [written]), mode=mode, shapes=shapes)
    last = f.optimized.outputs[0].owner
    assert last is not None
    assert (last.inputs[0] in f.optimized.input_set) is right_first
