import io
import itertools

import numpy as np
import pytest

import esat
from esat import Mode, Query, optdb
from esat.classic.documents_table import ROWS
from esat.classic.optimizers.optimizer_database import DB
from esat.errors import ModeError
from esat.mode import mode_names, predefined_optimizers

# The documents' table: each row with the modes that have it, by the number of the mode below.
TABLE_MODES = ("o4", "o3", "o2", "o1", "Stabilization", "unsafe")
TABLE = {
    "merge": "x x x x . x",
    "constant folding": "x x x x . x",
    "GPU transfer": "x x x x . x",
    "shape promotion": "x x . . . x",
    "fill cut": "x x . . . x",
    "inc_subtensor srlz.": "x x . . . x",
    "reshape_chain": "x x . . . x",
    "const. elimination": "x x . . . x",
    "add canonical.": "x x . . . x",
    "mul canonical.": "x x . . . x",
    "dot22": "x x . . . x",
    "sparse_dot": "x x . . . x",
    "sum_scalar_mul": "x x . . . x",
    "neg_neg": "x x . . . x",
    "neg_div_neg": "x x . . . x",
    "add specialize": "x x . . . x",
    "mul specialize": "x x . . . x",
    "pow specialize": "x x . . . x",
    "inplace_setsubtensor": "x . . . . .",
    "gemm": "x x . . . x",
    "inplace_elemwise": "x . . . . .",
    "inplace_random": "x . . . . .",
    "elemwise fusion": "x x x . . x",
    "local_log_softmax": "x x . . x x",
    "local_remove_all_assert": ". . . . . x",
}


def entries(database: DB):
    for entry in database:
        if isinstance(entry.object, DB):
            yield from ((database_name, inner) for database_name, inner in entries(entry.object))
        else:
            yield database.name, entry


def members_selected(query: Query) -> set[str]:
    """Names of optimizers, rules and rule sets that a query selects."""
    names = {entry.name for place, entry in entries(optdb) if query.selects(entry.name, {*entry.tags, place})}
    rules = esat.rules.list(query)
    return names | {rule.report_name for rule in rules} | {rule.ruleset for rule in rules}


def test_the_rows_are_those_of_the_table():
    assert [row.name for row in ROWS] == list(TABLE)


@pytest.mark.parametrize("mode", TABLE_MODES)
def test_each_mode_has_the_rows_of_the_table(mode):
    column = TABLE_MODES.index(mode)
    expected = [name for name, marks in TABLE.items() if marks.split()[column] == "x"]
    query = predefined_optimizers[mode]
    assert [row.name for row in ROWS if row.selected(query)] == expected
    selected = members_selected(query)
    for row in ROWS:
        for member in row.members:
            assert (member in selected) == (row.name in expected), f"{row.name}: {member}"


def test_members_of_rows_exist():
    known = members_selected(Query(["fast_run", "fast_compile", "unsafe"]))
    assert {member for row in ROWS for member in row.members} <= known


@pytest.mark.parametrize(("mode", "same"), [("fast_run", "o4"), ("fast_compile", "o1")])
def test_two_names_of_one_mode(mode, same):
    one, other = Mode(mode), Mode(same)
    settings = set(Mode.__slots__) - {"name"}
    assert all(getattr(one, setting) == getattr(other, setting) for setting in settings)


@pytest.mark.parametrize("mode", mode_names())
def test_summaries(mode):
    text = io.StringIO()
    Mode(mode).print_summary(file=text)
    first, *lines = text.getvalue().splitlines()
    assert first.startswith(f"mode {mode}: strategy ")
    shown = {line.strip().partition(":")[0] for line in lines}
    query = predefined_optimizers[mode]
    assert {row.name for row in ROWS if row.selected(query)} <= shown
    text = io.StringIO()
    optdb.query(query).print_summary(file=text)
    assert text.getvalue().startswith("SeqOptimizer optdb")


def test_modes_compose():
    mode = Mode("fast_run", node_limit=10, soundness="exact").including("mine").excluding("inplace")
    assert (mode.name, mode.node_limit, mode.soundness) == ("fast_run", 10, "exact")
    assert mode.query == Query(["fast_run", "mine"], exclude=["inplace"])
    assert mode.requiring("stable").query.require == {"stable"}
    assert Mode(mode, round_limit=1).node_limit == 10
    assert hash(mode) == hash(Mode(mode))


@pytest.mark.parametrize("mode", ["greedy", "fast_run"])
def test_a_trace_tells_of_each_replacement_and_step(mode):
    lines = []
    x = esat.vector("x")
    graph = esat.Graph([x], esat.tanh(esat.neg(-x)) * 2.0)
    function = esat.compile(graph, Mode(mode, trace=lines.append))
    assert "neg" not in [node.op.name for node in function.optimized.toposort()]
    if mode == "greedy":
        assert any(line.startswith("rules: mul(tanh.0, ") for line in lines)
    else:
        assert any(line.startswith("saturation, round 1: ") for line in lines)
    assert Mode(mode).trace is None


def test_unknown_names_are_errors():
    with pytest.raises(ModeError, match="did you mean fast_run"):
        Mode("fastrun")
    with pytest.raises(ModeError, match="did you mean node_limit"):
        Mode("fast_run", nodes_limit=3)


def graph_with_everything():
    x, y = esat.matrix("x"), esat.matrix("y")
    products = (x @ y) * 2.0 + esat.log(esat.softmax(x @ y, axis=1))
    return esat.Graph([x, y], [products.sum(axis=0), esat.neg(-x) / -y, esat.pow(x, 2.0) + 0.0 * y])


@pytest.mark.parametrize("mode", mode_names())
def test_every_mode_computes_the_same(mode):
    function = esat.compile(graph_with_everything(), mode)
    x, y = np.random.default_rng(0).normal(size=(2, 4, 4))
    softmax = np.exp(x @ y) / np.exp(x @ y).sum(axis=1, keepdims=True)
    expected = [(2 * (x @ y) + np.log(softmax)).sum(axis=0), x / -y, x**2]
    for result, wanted in zip(function(x, y), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-10)


def names(mode, build):
    x = esat.matrix("x")
    function = esat.compile(esat.Graph([x], build(x)), mode)
    return [node.op.name for node in function.optimized.toposort()], function


def test_what_the_table_says_is_what_happens():
    """Two rows that are easily seen: cancelling signs, and a stable logarithm."""
    for mode, marks in itertools.product(TABLE_MODES, ["neg_neg", "local_log_softmax"]):
        has = TABLE[marks].split()[TABLE_MODES.index(mode)] == "x"
        if marks == "neg_neg":
            ops, _ = names(mode, lambda x: esat.neg(-esat.tanh(x)))
            assert ("neg" not in ops) == has, mode
        else:
            ops, function = names(mode, lambda x: esat.log(esat.softmax(x, axis=1)))
            assert ("log_softmax" in ops) == has, mode
            result = function(np.array([[0.0, 1000.0]]))
            assert np.isfinite(result).all() == has, mode


def test_fusion_follows_the_query():
    def build(x):
        return esat.tanh(esat.exp(x) + 1.0)

    for mode, fused in [("o4", True), ("o2", True), ("o1", False), ("Stabilization", False)]:
        _, function = names(mode, build)
        assert any(step.kind == "kernel" for step in function.steps) == fused, mode
    _, function = names(Mode("fast_run").excluding("fusion"), build)
    assert all(step.kind != "kernel" for step in function.steps)


@pytest.mark.parametrize("seed", range(6))
def test_strict_gives_every_bit_of_the_graph_as_written(seed):
    """The same kernels' mathematics, in the order written: as o2, which fuses and rewrites nothing."""
    rng = np.random.default_rng(seed)
    x, y = esat.vector("x"), esat.vector("y")
    pool = [x, y, x * 0.1, y + 0.3]
    for _ in range(20):
        one, other = (pool[int(index)] for index in rng.integers(0, len(pool), 2))
        op = rng.choice([esat.add, esat.sub, esat.mul, esat.div, esat.maximum])
        pool.append(op(one, other) if rng.random() < 0.8 else esat.neg(esat.neg(one)))
    graph = esat.Graph([x, y], [*pool[-3:], pool[0] * pool[1]])
    strict, written = (esat.compile(graph, mode) for mode in ("strict", "o2"))
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324, 3.0]
    values = [np.concatenate([rng.permutation(special), rng.normal(size=40)]) for _ in range(2)]
    for result, wanted in zip(strict(*values), written(*values), strict=True):
        np.testing.assert_array_equal(result, wanted)
        finite = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(result)[finite], np.signbit(wanted)[finite])


def test_steps_run_on_the_processor_unless_a_device_is_asked_for():
    """With one: tests/gpu/test_placed_functions.py."""
    assert Mode().device == "cpu"
    assert Mode("greedy", device="cpu") == Mode("greedy")
    with pytest.raises(ModeError, match="steps run on one of 'cpu', 'cuda', 'auto'"):
        Mode("fast_run", device="gpu")


SUMS = {
    "sum over rows, stored too": lambda x, y: [esat.exp(x).sum(axis=0), esat.exp(x)],
    "of a transposed array": lambda x, y: [x.T.sum(axis=1), esat.exp(x.T)],
    "transposed twice": lambda x, y: [esat.exp(x.T).T.sum(axis=0), (y * 2).T.T + x],
    "negated twice": lambda x, y: [esat.neg(esat.neg(x)).sum(axis=0), esat.neg(esat.neg(x)) + y],
    "means and softmax": lambda x, y: [esat.softmax(x.T.T, axis=0), x.mean(axis=0), (x + y).sum(axis=0)],
    "logsumexp": lambda x, y: [esat.logsumexp(esat.neg(esat.neg(x)), axis=0), x - y, x.sum(axis=1)],
}


@pytest.mark.parametrize("build", SUMS.values(), ids=SUMS)
def test_strict_adds_in_one_order_whatever_else_is_computed(build):
    """Each output alone, with nothing rewritten, has the bits that all of them have together."""
    x, y = esat.matrix("x"), esat.matrix("y")
    rng = np.random.default_rng(0)
    values = {x: rng.normal(size=(70, 90)), y: rng.normal(size=(70, 90))}
    written = Mode("strict", strategy="greedy", query=Query(["fusion"]), invariants=False)

    def run(outputs, mode):
        used = set(esat.graph.ancestors(outputs))
        inputs = [variable for variable in (x, y) if variable in used]
        results = esat.compile(esat.Graph(inputs, outputs), mode)(*(values[one] for one in inputs))
        return results if isinstance(results, tuple) else (results,)

    outputs = build(x, y)
    for output, result in zip(outputs, run(outputs, "strict"), strict=True):
        (alone,) = run([output], written)
        np.testing.assert_array_equal(result, alone)


UNNEEDED = {
    "times zero": lambda total, y: total * 0.0,
    "subtracted again": lambda total, y: total - y,
    "its size": lambda total, y: total.shape[0],
    "ones like it": lambda total, y: esat.ones_like(total),
}


@pytest.mark.parametrize("build", UNNEEDED.values(), ids=UNNEEDED)
def test_sizes_that_do_not_fit_are_found_where_all_is_computed(build):
    """Elsewhere what no output needs may go, its misfits included (docs/numpy.md)."""
    x, y = esat.vector("x"), esat.vector("y")
    graph = esat.Graph([x, y], [build(x + y, y)])
    misfit, fitting = (np.ones(3), np.ones(4)), (np.ones(3), np.full(3, 2.0))
    results = []
    for mode in ("fast_compile", "debug"):
        function = esat.compile(graph, mode)
        with pytest.raises(esat.ShapeError, match="sizes"):
            function(*misfit)
        results.append(function(*fitting))
    for mode in ("fast_run", "greedy", "strict"):
        np.testing.assert_array_equal(esat.compile(graph, mode)(*fitting), results[0])


@pytest.mark.parametrize("mode", ["fast_run", "o3", "strict", "greedy", "fast_compile", "debug"])
def test_assertions_about_sizes_are_asked_even_if_a_sum_needs_them_to_fit(mode):
    x, y = esat.vector("x"), esat.vector("y")
    checked = esat.assert_((x + y) - y, esat.eq(x.shape[0], y.shape[0]), message="sizes differ")
    function = esat.compile(esat.Graph([x, y], checked), mode)
    np.testing.assert_array_equal(function(np.ones(3), np.full(3, 2.0)), np.ones(3))
    with pytest.raises((esat.AssertionFailed, esat.ShapeError), match="sizes"):
        function(np.ones(3), np.ones(4))


@pytest.mark.parametrize("size", [None, 3])
def test_assertions_compute_with_sizes_that_a_sum_needs_to_fit(size):
    x, y = esat.vector("x"), esat.tensor("y", shape=(size,))
    mean = ((x + y) - y).mean() + y.mean()
    difference = esat.cast(x.shape[0], "float64") - esat.cast(y.shape[0], "float64")
    conditions = [
        esat.eq(x.shape[0] - y.shape[0], 0),
        esat.eq(2 * x.shape[0], y.shape[0] + y.shape[0]),
        abs(difference) < 0.5,
    ]
    for condition in conditions:
        checked = esat.assert_(mean, condition, message="sizes differ")
        function = esat.compile(esat.Graph([x, y], checked))
        np.testing.assert_allclose(function(np.ones(3), np.full(3, 2.0)), 3.0)
        with pytest.raises((esat.AssertionFailed, esat.ShapeError), match="sizes"):
            function(np.ones(4), np.ones(3))


@pytest.mark.parametrize("mode", mode_names())
def test_names_in_capitals(mode):
    """As Theano writes them: FAST_RUN."""
    assert Mode(mode.upper()) == Mode(mode.lower()) == Mode(mode)
    assert Mode(mode.upper()).name == mode


def test_what_is_close_to_a_mode():
    with pytest.raises(ModeError, match=r"'DEBUG_MODE' .*did you mean debug"):
        Mode("DEBUG_MODE")
