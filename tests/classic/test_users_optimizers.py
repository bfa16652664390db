"""What users register takes part in saturation and in greedy optimization alike."""

import doctest
import itertools

import pytest

import esat
from esat import optdb
from esat.classic import (
    OpRemove,
    OpSub,
    Optimizer,
    PatternSub,
    TopoOptimizer,
    local_optimizer,
    register_canonicalize,
)
from esat.errors import OptimizerError

MODES = ["fast_run", "greedy"]


@pytest.fixture
def undo():
    databases = [optdb, *(entry.object for entry in optdb if hasattr(entry.object, "entries"))]
    known = [{entry.name for entry in database} for database in databases]
    rules = {rule.report_name for rule in esat.rules.list()}
    yield
    for database, names in zip(databases, known, strict=True):
        for entry in database:
            if entry.name not in names:
                database.remove(entry.name)
    for name in {rule.report_name for rule in esat.rules.list()} - rules:
        esat.rules.remove(name)


def ops(function):
    return [node.op.name for node in function.optimized.toposort()]


def compile_one(build, mode, **settings):
    x, y = esat.vector("x"), esat.vector("y")
    output = build(x, y)
    graph = esat.Graph([x, y], [output, x + y])
    return esat.compile(graph, esat.Mode(mode, **settings))


@pytest.mark.parametrize("mode", MODES)
class TestRegistered:
    """erf(tan(x)) has no other form that esat knows of; users know better."""

    def build(self, x, y):
        return esat.erf(esat.tan(x)) * y

    def check(self, mode, expected):
        assert ops(compile_one(self.build, mode)) == expected
        untouched = ops(compile_one(self.build, "fast_compile"))
        assert {"erf", "tan"} <= set(untouched)

    def test_local_optimizer(self, undo, mode):
        @esat.classic.register_canonicalize("fast_run", name="erf-tan")
        @local_optimizer([esat.erf])
        def erf_of_tan(node):
            inner = node.inputs[0].owner
            return [inner.inputs[0]] if inner is not None and inner.op == esat.tan else False

        self.check(mode, ["mul", "add"])

    def test_pattern(self, undo, mode):
        pattern = PatternSub((esat.mul, (esat.erf, "x"), "y"), (esat.mul, "x", "y"))
        optdb["canonicalize"].register("erf-away", pattern, "fast_run")
        self.check(mode, ["tan", "mul", "add"])

    def test_op_sub(self, undo, mode):
        optdb["specialize"].register("cheap-erf", OpSub(esat.erf, esat.neg), "fast_run")
        assert "erf" not in ops(compile_one(self.build, mode))

    def test_op_remove(self, undo, mode):
        optdb["canonicalize"].register("no-erf", OpRemove(esat.erf), "fast_run")
        self.check(mode, ["tan", "mul", "add"])

    @pytest.mark.parametrize("position", [0.5, 48, 60, 99])
    def test_global_optimizer(self, undo, mode, position):
        class WithoutErf(Optimizer):
            def apply(self, fgraph):
                for node in fgraph.toposort():
                    if node.op == esat.erf:
                        fgraph.replace(node.outputs[0], node.inputs[0])

        optdb.register("without-erf", WithoutErf(), position, "fast_run")
        self.check(mode, ["tan", "mul", "add"])

    def test_local_optimizer_in_a_navigator(self, undo, mode):
        optdb.register("no-erf", TopoOptimizer(OpRemove(esat.erf)), 60, "fast_run")
        self.check(mode, ["tan", "mul", "add"])

    def test_rule(self, undo, mode):
        esat.rules.add('(rewrite (Erf (Tan x)) x :name "erf-tan")')
        self.check(mode, ["mul", "add"])

    def test_rule_of_one_compilation(self, mode):
        x, y = esat.vector("x"), esat.vector("y")
        rule = '(rewrite (Erf (Tan x)) x :name "erf-tan")'
        function = esat.compile(esat.Graph([x, y], self.build(x, y)), mode, rules=rule)
        assert ops(function) == ["mul"]
        assert "erf" in ops(esat.compile(esat.Graph([x, y], self.build(x, y)), mode))

    def test_stabilizing_replaces_for_good(self, undo, mode):
        """A replacement that costs more is made all the same."""

        @esat.classic.register_stabilize("fast_run", "stabilize")
        @local_optimizer([esat.erf])
        def careful_erf(node):
            (x,) = node.inputs
            return [esat.tanh(esat.tanh(esat.exp(esat.sinh(x))))]

        assert "tanh" in ops(compile_one(self.build, mode))

    def test_the_tag_decides(self, undo, mode):
        optdb["canonicalize"].register("no-erf", OpRemove(esat.erf), "mine")
        assert "erf" in ops(compile_one(self.build, mode))
        x, y = esat.vector("x"), esat.vector("y")
        function = esat.compile(esat.Graph([x, y], self.build(x, y)), esat.Mode(mode).including("mine"))
        assert "erf" not in ops(function)

    def test_a_wrong_type_is_an_error(self, undo, mode):
        @esat.classic.register_canonicalize("fast_run")
        @local_optimizer([esat.erf])
        def to_integers(node):
            return [esat.cast(node.inputs[0], "int32")]

        with pytest.raises(OptimizerError, match=r"to_integers replaces .* of type"):
            compile_one(self.build, mode)


def test_an_equality_is_a_choice_that_can_be_declined(undo):
    """In an e-graph the cheapest of all forms wins, in whatever order optimizers ran."""

    @esat.classic.register_canonicalize("fast_run")
    @local_optimizer([esat.add])
    def roundabout(node):
        x, y = node.inputs
        return [esat.neg(esat.sub(esat.neg(x), y))]

    x, y = esat.vector("x"), esat.vector("y")
    assert ops(esat.compile(esat.Graph([x, y], x + y))) == ["add"]


def test_equalities_join_rules(undo):
    """The optimizer turns tan(x) into log(x), and a rule of esat log(exp(y)) into y."""

    @esat.classic.register_canonicalize("fast_run")
    @local_optimizer([esat.tan])
    def tan_is_log(node):
        return [esat.log(node.inputs[0])]

    x = esat.vector("x")
    assert ops(esat.compile(esat.Graph([x], esat.tan(esat.exp(x)) + 1.0))) == ["add"]


def test_optimizers_that_see_their_own_answers(undo):
    """A chain of steps, and a pair that lead back and forth, both end."""
    chain = [esat.erf, esat.tan, esat.sinh, esat.neg]
    for position, (old, new) in enumerate(itertools.pairwise(chain)):
        optdb["canonicalize"].register(f"step{position}", OpSub(old, new), "fast_run")
        optdb["canonicalize"].register(f"back{position}", OpSub(new, old), "fast_run")
    x = esat.vector("x")
    assert ops(esat.compile(esat.Graph([x], esat.erf(x)))) == ["neg"]


def test_exact_modes_take_what_is_tagged_exact(undo):
    optdb["canonicalize"].register("no-erf", OpRemove(esat.erf), "fast_run")
    optdb["canonicalize"].register("no-tan", OpRemove(esat.tan), "fast_run", "exact")
    x = esat.vector("x")
    assert ops(esat.compile(esat.Graph([x], esat.erf(esat.tan(x))), "strict")) == ["erf"]


def test_the_example_of_the_package(undo):
    assert doctest.testmod(esat.classic, raise_on_error=False) == doctest.TestResults(0, 6)


@pytest.fixture
def erf_of_tan():
    """A rewrite that is true of nothing, so that nothing else finds it."""

    @register_canonicalize("fast_run")
    @local_optimizer([esat.erf])
    def erf_of_tan(node):
        inner = node.inputs[0].owner
        return [inner.inputs[0]] if inner is not None and inner.op == esat.tan else False

    yield erf_of_tan
    esat.optdb["canonicalize"].remove("erf_of_tan")


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o3", "unsafe"])
@pytest.mark.parametrize(
    "written",
    [
        lambda x, y: esat.erf(esat.neg(esat.neg(esat.tan(x)))) * y,
        lambda x, y: esat.erf(esat.tan(x) * y / y),
        lambda x, y: esat.erf(esat.tan(x) * 1.0) + y,
        lambda x, y: esat.erf(esat.sin(x) / esat.cos(x)) + y,
        lambda x, y: esat.erf(esat.tan(esat.erf(esat.tan(x) * 1.0) * 2 / 2)) + y,
    ],
)
def test_optimizers_are_asked_about_what_rules_find(erf_of_tan, mode, written):
    x, y = esat.vector("x"), esat.vector("y")
    f = esat.compile(esat.Graph([x, y], written(x, y)), mode)
    assert not {node.op.name for node in f.optimized.apply_nodes} & {"erf", "tan", "sin", "cos"}
    assert f.report.rules["erf_of_tan"] >= 1


def test_what_optimizers_make_of_what_rules_find_is_asked_about(erf_of_tan):
    """Optimizers that answer each other, over rules between them, until nobody knows more."""
    x = esat.vector("x")
    nested = x
    for _ in range(4):
        nested = esat.erf(esat.neg(esat.neg(esat.tan(nested) * 1.0)))
    f = esat.compile(esat.Graph([x], nested * 3.0), esat.Mode("fast_run", accuracy="ignore"))
    assert str(f.optimized) == "[mul(x, [3.0])]"


@local_optimizer([esat.sin])
def stray(node):
    """Answers with what is no part of the graph."""
    return [esat.dvector("other")]


def test_an_answer_with_a_foreign_input_is_refused():
    esat.optdb["canonicalize"].register("stray", stray, "fast_run")
    try:
        x = esat.dvector("x")
        with pytest.raises(OptimizerError, match=r"stray, asked about .*: it uses other, which is no input"):
            esat.compile(esat.Graph([x], [esat.sin(x)]))
    finally:
        esat.optdb["canonicalize"].remove("stray")
