"""Debug mode: each kind of mistake is found, and blamed on who made it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted_rules import TRIDIAGONAL_PRODUCTS, planted_rule

import esat
from esat import Mode, optdb
from esat.classic import OpSub, Optimizer
from esat.codegen.ground import machine_text
from esat.codegen.matmul import small_systems, unrolled_systems
from esat.errors import DebugError, EsatWarning
from esat.graph import Family, FunctionGraph, Op
from esat.graph.algorithms.traversal import inputs_of
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.linalg.structured import STRUCTURED_PRODUCTS
from esat.phases.graph_checker import GraphChecker
from esat.runtime.checked_executable import DebugExecutable
from esat.runtime.entry.calls import drive


@pytest.fixture
def undo():
    databases = [optdb, *(entry.object for entry in optdb if hasattr(entry.object, "entries"))]
    known = [{entry.name for entry in database} for database in databases]
    yield
    for database, names in zip(databases, known, strict=True):
        for entry in database:
            if entry.name not in names:
                database.remove(entry.name)


class Wrong(Optimizer):
    def apply(self, fgraph):
        for node in fgraph.toposort():
            if node.op == esat.sin:
                fgraph.replace(node.outputs[0], esat.cos(node.inputs[0]))


def graph():
    x, y = esat.matrix("x"), esat.vector("y")
    w = esat.shared(np.ones((4, 6)), name="w")
    return esat.Graph([x, y], [esat.tanh(x @ w) + y, esat.sin(x).sum()], updates={w: w * 0.5})


@pytest.mark.parametrize("strategy", ["egraph", "greedy"])
class TestStages:
    @pytest.mark.parametrize("position", [0.5, 3, 60])
    def test_a_wrong_global_optimizer_is_named(self, undo, strategy, position):
        optdb.register("wrong-one", Wrong(), position, "fast_run")
        with pytest.raises(DebugError, match=r"after wrong-one, output 1 is wrong: .* instead of"):
            esat.compile(graph(), Mode("debug", strategy=strategy))

    def test_a_wrong_local_optimizer_is_found(self, undo, strategy):
        optdb["canonicalize"].register("wrong-local", OpSub(esat.sin, esat.cos), "fast_run")
        blamed = "sin -> cos" if strategy == "egraph" else "canonicalize"
        with pytest.raises(DebugError, match=f"after {blamed}, output . is wrong"):
            esat.compile(graph(), Mode("debug", strategy=strategy))

    def test_a_wrong_rule_is_found(self, strategy):
        x = esat.vector("x")
        blamed = (
            "equality saturation, .* its class .* the rule that matched, .* rule 'wrong'"
            if strategy == "egraph"
            else "canonicalize, output 0 is wrong"
        )
        with pytest.raises(DebugError, match=f"after {blamed}"):
            esat.compile(
                esat.Graph([x], esat.exp(esat.sin(x))),
                Mode("debug", strategy=strategy),
                rules='(rewrite (Exp (Sin x)) (Neg x) :name "wrong")',
            )

    def test_nothing_wrong_is_no_error(self, strategy):
        function = esat.compile(graph(), Mode("debug", strategy=strategy))
        x, y = np.ones((3, 4)), np.ones(6)
        first, _ = function(x, y)
        np.testing.assert_allclose(first, np.tanh(4.0) + 1)
        second, _ = function(x, y)
        np.testing.assert_allclose(second, np.tanh(2.0) + 1)


class Secretive(Op):
    """Does to its operand what it does not declare."""

    family = Family.LIBRARY

    def __init__(self, overwrites):
        self.overwrites = overwrites
        self.name = "overwriter" if overwrites else "viewer"
        self.constructor = self.name.title()

    def properties(self):
        return (self.overwrites,)

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        if self.overwrites:
            inputs[0] += 1
            return (inputs[0].copy(),)
        return (inputs[0],)


@pytest.mark.parametrize(
    ("overwrites", "reason"),
    [(True, "it overwrites input 0, which it does not declare"), (False, "shares memory with input 0")],
)
def test_undeclared_effects_are_found(overwrites, reason):
    x = esat.vector("x")
    y = Secretive(overwrites)(esat.exp(x))
    with pytest.raises(DebugError, match=reason) as raised:
        esat.compile(esat.Graph([x], y + 1.0), "debug")
    assert __file__ in str(raised.value)


def test_nan_is_traced_to_the_node_and_line_that_made_it():
    x, y = esat.vector("x"), esat.vector("y")
    hidden = esat.log(x)  # the culprit
    function = esat.compile(esat.Graph([x, y], (esat.exp(y) + hidden * 2.0).sum()), "debug")
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "# the culprit" in text)
    assert np.isfinite(function(np.ones(3), np.ones(3)))
    with pytest.raises(DebugError, match=r"log.*makes 1 NaN of finite operands") as raised:
        function(np.array([1.0, -1.0, 2.0]), np.ones(3))
    assert f"{__file__}:{line}" in str(raised.value)
    with pytest.raises(DebugError, match="makes 2 Inf"):
        function(np.array([0.0, 0.0, 2.0]), np.ones(3))
    # What came in as NaN may come out as NaN.
    assert np.isnan(function(np.array([np.nan, 1.0, 2.0]), np.ones(3)))


def test_a_stable_form_is_no_error():
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], esat.log(esat.softmax(x))), "debug")
    np.testing.assert_allclose(function(np.array([0.0, 1000.0])), [-1000.0, 0.0])


def test_a_kernel_that_computes_something_else_is_found():
    """The op's scalar code says otherwise than its NumPy function."""
    wrong = esat.elementwise("wrong_code", lambda x: x + 1.0, code="({0} + 2.0)")
    assert isinstance(wrong, Elementwise)
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], esat.exp(wrong(x))), "debug")
    with pytest.raises(
        DebugError,
        match=r"(?s)after code generation, output 0 is wrong.*kernel_0 is the first step that is wrong",
    ):
        function(np.ones(3))


def _line(mark):
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


@pytest.fixture
def planted(monkeypatch):
    """Code for small matrices is made anew."""

    def forget():
        small_systems._plan.cache_clear()
        monkeypatch.setattr(machine_text, "_addresses", {})

    forget()
    yield monkeypatch
    monkeypatch.undo()
    small_systems._plan.cache_clear()


def test_the_step_that_is_wrong_is_named(planted):
    """The last element of Cholesky's factor is the one before it on the diagonal."""
    own = unrolled_systems.compute

    def wrong(matrices, *options):
        results = own(matrices, *options)
        matrices.store("2", "2", matrices.load("1", "1"))
        return results

    planted.setattr(unrolled_systems, "compute", wrong)
    x, w = esat.matrix("x"), esat.shared(np.ones((3, 3)), name="w")
    factor = esat.linalg.cholesky(x @ x.T + np.eye(3))  # the factor
    graph = esat.Graph([x], [esat.tanh(factor @ w), esat.sin(x)], updates={w: w + factor})
    samples = (np.arange(9.0).reshape(3, 3),)
    function = esat.compile(graph, Mode("debug", samples=samples), donate=[x])
    with pytest.raises(DebugError, match=r"(?s)perform_\d is the first.*wrong, library\(cholesky") as raised:
        function(samples[0].copy())
    assert f"{__file__}:{_line('the factor')}" in str(raised.value)
    np.testing.assert_array_equal(function.updated[0].get_value().shape, (3, 3))


def test_the_kernel_that_is_wrong_is_named():
    """It leaves out the last element."""
    x, y = esat.matrix("x"), esat.matrix("y")
    outputs = [esat.exp(x @ y), esat.sum(esat.sin(x) * 2.0 + y)]  # the outputs
    right = esat.compile(esat.Graph([x, y], outputs), "debug")
    number, group = next(one for one in enumerate(right.steps) if "exp" in str(one[1]))
    call = right._program.kernels[group]

    def wrong(output, *inputs):
        call.contiguous(output, *inputs)
        output.ravel()[-1] = 0.0

    kernels = {**right._program.kernels, group: replace(call, contiguous=wrong)}
    function = DebugExecutable(drive(replace(right._program, kernels=kernels)))
    function.checker = right.checker
    values = np.random.default_rng(0).normal(size=(2, 5, 5))
    right(*values)
    with pytest.raises(DebugError, match=rf"(?s)kernel_{number} is the first step .*kernel\(exp") as raised:
        function(*values)
    assert f"{__file__}:{_line('the outputs')}" in str(raised.value)


def test_what_no_step_explains_is_told_apart(monkeypatch):
    x, w = esat.vector("x"), esat.shared(np.ones(3), name="w")
    function = esat.compile(esat.Graph([x], [x * w, esat.exp(x)], updates={w: w * 2.0}), "debug")
    own = function.entry

    def wrong(*arguments):
        """As a native function that forgets to return its second result."""
        return own(*arguments)[0], np.zeros(3)

    function(np.ones(3))
    monkeypatch.setattr(function, "entry", wrong)
    with pytest.raises(DebugError, match=r"output 1 .*; step by step the program is right"):
        function(np.ones(3))
    np.testing.assert_array_equal(w.get_value(), 4.0)
    other = esat.compile(esat.Graph([x], [x * 3.0, esat.sin(x)], updates={w: w * 2.0}), "debug")
    other.checker = function.checker
    with pytest.raises(DebugError, match=r"output 0 .*; each step computes what its ops say"):
        other(np.ones(3))


def test_a_wrong_new_value_of_a_shared_variable_is_found():
    wrong = esat.elementwise("wrong_code_of_new_value", lambda x: x + 1.0, code="({0} + 2.0)")
    w, x = esat.shared(np.zeros(3), name="w"), esat.vector("x")
    function = esat.compile(esat.Graph([x], [x * 2.0], updates={w: wrong(w) * x}), "debug")
    with pytest.raises(DebugError, match=r"(?s)output 1 is wrong.*kernel_\d is the first step"):
        function(np.ones(3))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: esat.concatenate([x, x]),
        lambda x: esat.set_subtensor(x[1:], x[:-1]),
        lambda x: esat.inc_subtensor(x[1:], x[:-1]),
        lambda x: esat.inc_subtensor(x[np.array([0, 0, 1])], x[1:4]),
        lambda x: esat.concatenate([esat.exp(x), x]) - 1.0,
    ],
)
def test_parts_that_are_written_or_joined_are_no_indices(make):
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], make(x)), "debug")
    function(np.linspace(-1.1, 1.3, 5))


def test_samples_of_the_users_own():
    index, x = esat.lvector("index"), esat.vector("x")
    graph = esat.Graph([x, index], esat.exp(x[index]) * 1.0)
    samples = (np.arange(10.0), np.array([7, 8]))
    function = esat.compile(graph, Mode("debug", samples=samples))
    np.testing.assert_allclose(function(*samples), np.exp([7.0, 8.0]))


def test_inputs_that_cannot_be_made_up_are_told_of():
    x = esat.vector("x")
    with pytest.warns(EsatWarning, match="samples="):
        function = esat.compile(esat.Graph([x], x.reshape((5, 7)).sum()), "debug")
    assert function(np.ones(35)) == 35


def test_a_rule_that_changes_a_type_is_named():
    x = esat.vector("x")
    graph = esat.Graph([x], [esat.exp(x) + 1.0])
    bad = '(rule ((= e (Exp x))) ((set (dt e) 4)) :name "exponentials-are-integers")'
    with pytest.raises(esat.SaturationError, match=r"different dtype.*exponentials-are-integers"):
        esat.compile(graph, "debug", rules=bad)
    np.testing.assert_allclose(esat.compile(graph)(np.zeros(3)), 2.0)


@pytest.mark.filterwarnings("error::esat.errors.EsatWarning")
def test_sizes_that_a_graph_asks_for_are_found():
    x, v = esat.matrix("x"), esat.vector("v")
    asking = (
        v.reshape((2, 3)) * 2,
        esat.specify_shape(v, (4,)) + 1,
        x[2, 3] * x[7, 1],
        v.reshape((5, 5)) @ v[:5],
    )
    for output in asking:
        given = [variable for variable in (x, v) if variable in set(inputs_of([output]))]
        esat.compile(esat.Graph(given, [output]), "debug")


def test_a_graph_that_takes_no_sample_is_told():
    v = esat.vector("v")
    with pytest.warns(esat.EsatWarning, match="found no input that the graph takes"):
        esat.compile(esat.Graph([v], [esat.assert_(v, v > 9) * 2]), "debug")


def test_zero_for_a_small_number_is_found_and_the_node_that_makes_it_named():
    x, y = esat.vector("x"), esat.vector("y")
    checker = GraphChecker(FunctionGraph([x], [esat.sigmoid(x)]), [np.array([-40.0, 1.0])])
    checker.check("a stage", FunctionGraph([x], [1 / (1 + esat.exp(-x))]))
    with pytest.raises(esat.errors.DebugError, match=r"(?s)0\.0 instead of 4\.248.*sub.*loses its digits"):
        checker.check("a stage", FunctionGraph([y], [1 - esat.sigmoid(-y)]))


def test_what_rounding_explains_is_no_error():
    x, y = esat.matrix("x"), esat.matrix("y")
    outputs = [1 - esat.sigmoid(x), (x * y + x * x).sum(axis=0), (x @ y.T).sum(), (x - x.mean()) ** 2]
    values = np.random.default_rng(0).normal(size=(2, 5, 4)) * 10.0 ** np.arange(-6, 2, 2)
    function = esat.compile(esat.Graph([x, y], outputs), esat.Mode("debug", samples=tuple(values)))
    function(*values)
    function(values[0] + 40, values[1])


def test_a_wrong_fact_is_found_and_its_rule_named():
    a, x = esat.dmatrix("a"), esat.dvector("x")
    t = esat.assume(a, "tridiagonal")
    product = t @ t
    with (
        planted_rule(TRIDIAGONAL_PRODUCTS),
        pytest.raises(DebugError, match=r"(?s)said to have tridiagonal .* conclude it: .*planted"),
    ):
        esat.compile(esat.Graph([a, x], [product, product @ x]), "debug")


def test_a_wrong_rule_of_the_nary_layer_is_named():
    x, y = esat.dvector("x"), esat.dvector("y")
    wrong = (
        "(rule ((= e (NarySum p n)) (= 1 (multiset-length n)))"
        " ((union e (NarySum (multiset-sum p n) (multiset-of))))"
        ' :ruleset esat-reduce :name "planted")'
    )
    with (
        planted_rule(wrong),
        pytest.raises(DebugError, match=r"no rule file's .* n-ary layer matched .*planted"),
    ):
        esat.compile(esat.Graph([x, y], [x - y]), "debug")


def test_structured_products_compute_what_they_promise():
    matrix = np.arange(16.0).reshape(4, 4)
    for op in STRUCTURED_PRODUCTS:
        if op.structure in ("symmetric", "gram"):
            continue
        result = op.perform([matrix, np.eye(4)] if op.side == "left" else [np.eye(4), matrix])[0]
        expected = {
            "lower": np.tril(matrix),
            "upper": np.triu(matrix),
            "diagonal": np.diag(np.diag(matrix)),
            "tridiagonal": np.tril(np.triu(matrix, -1), 1),
        }[op.structure]
        np.testing.assert_array_equal(result, expected)
