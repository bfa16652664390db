"""Rules of ops that only Python types: indices, joins, sorting, running sums, draws, users' classes."""

import numpy as np
import pytest
from ops.size_cases import CASES

import esat
from esat.compilation.optimizing import optimize_graph, rule_options, rule_texts
from esat.egraph.language.constructors import op_signature
from esat.egraph.language.named_ops import named_ops, op_name
from esat.errors import RuleError
from esat.graph import FunctionGraph
from esat.runtime.function_profile import Profile

MODES = ["fast_run", "greedy"]


class Twist(esat.Op):
    """The other way round."""

    name, constructor, family = "twist", "Twist", esat.Family.LIBRARY

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        return (inputs[0][::-1].copy(),)


class Times(esat.Op):
    """So many times a number, which must be positive."""

    name, constructor, family = "times", "Times", esat.Family.LIBRARY

    def __init__(self, factor, note=""):
        self.factor, self.note = factor, note

    def properties(self):
        return self.factor, self.note

    def infer_types(self, inputs):
        if self.factor <= 0:
            raise ValueError("the factor is positive")
        return (inputs[0].type,)

    def perform(self, inputs):
        return (inputs[0] * self.factor,)

    def __str__(self):
        return f"times{{{self.factor}}}"


class Forgetful(Times):
    """Keeps what it is made with under another name."""

    name, constructor = "forgetful", "Forgetful"

    def __init__(self, number):
        super().__init__(number)


def inputs_of(output):
    return [one for one in esat.graph.inputs_of([output]) if not isinstance(one, esat.graph.Constant)]


def optimized(mode, output, rules):
    """The optimized graph as text, and the names of what had an effect."""
    chosen = esat.Mode(mode, accuracy="ignore")
    options = rule_options(chosen, rule_texts([rules]), ())
    graph = FunctionGraph(inputs_of(output), [output])
    result, report = optimize_graph(graph, chosen, options, Profile(), None)
    return str(result), set(report.rules)


def text(mode, output, rules):
    return optimized(mode, output, rules)[0]


twist = Twist()
x, y, i = esat.vector("x"), esat.vector("y"), esat.vector("i", dtype="int64")
k, m = esat.scalar("k", dtype="int64"), esat.matrix("m")
a, b = (esat.tensor(name, shape=(100_000,)) for name in "ab")
state = esat.random.state("state")

FIRE = {
    "a user's op": (
        lambda: twist(twist(x)),
        "(rewrite (Twist (Twist x)) x)",
        "[x]",
    ),
    "a user's op behind what rules find": (
        lambda: twist(twist(x) * y / y),
        "(rewrite (Twist (Twist x)) x)",
        "[x]",
    ),
    "a user's op that rules bring together": (
        lambda: twist(esat.neg(esat.neg(twist(esat.log(esat.exp(x)))))),
        "(rewrite (Twist (Twist x)) x)",
        "[x]",
    ),
    "parameters are computed with": (
        lambda: Times(2.0)(Times(3.0)(x)),
        "(rewrite (Times (Times x a n) b n) (Times x (* a b) n))",
        "[times{6.0}(x)]",
    ),
    "parameters are compared": (
        lambda: Times(2.0)(x) + Times(1.0)(y),
        '(rewrite (Times x a "") x :when ((<= a 1.0)))',
        "[add(times{2.0}(x), y)]",
    ),
    "strings": (
        lambda: Times(2.0, "left")(x) + Times(3.0, "right")(y),
        '(rewrite (Times x a "left") x)',
        "[add(x, times{3.0}(y))]",
    ),
    "any slice": (
        lambda: esat.exp(a * 2.0 + b)[2:5],
        "(rewrite (Subtensor (Exp x) i) (Exp (Subtensor x i)))"
        "(rewrite (Subtensor (Add x y) i) (Add (Subtensor x i) (Subtensor y i)) :when ((= (bp x) (bp y))))",
        None,
    ),
    "parts of slices": (
        lambda: m[1:5][2:3],
        "(rewrite (Subtensor (Subtensor x (tuple (slice a b) r)) (tuple (slice c d) r))"
        " (Subtensor x (tuple (slice (+ a c) (+ a d)) r)))",
        None,
    ),
    "a number as an index": (
        lambda: esat.sort(x)[0],
        "(rewrite (Subtensor (Sort x 0) (tuple 0)) (ReduceMin x 1) :when ((> (bp x) 0)))",
        None,
    ),
    "a number that is computed": (
        lambda: twist(x)[k],
        "(rewrite (Subtensor (Twist x) n (tuple (operand))) (Subtensor x n (tuple (operand))))",
        "[subtensor{?}(x, k)]",
    ),
    "an index array": (
        lambda: twist(x)[i],
        "(rewrite (AdvancedSubtensor (Twist x) n (tuple (array))) (AdvancedSubtensor x n (tuple (array))))",
        "[advanced_subtensor{array}(x, i)]",
    ),
    "joining": (
        lambda: twist(esat.concatenate([x, y])),
        "(rewrite (Twist (Join x y 0)) (Join x y 0))",
        "[join{0}(x, y)]",
    ),
    "sorting below a sum over all axes": (
        lambda: esat.sum(twist(esat.sort(m, axis=0))),
        "(rewrite (ReduceSum (Twist (Sort x a)) k) (ReduceSum x k))",
        "[sum{0,1}(m)]",
    ),
    "sorting below a sum over one axis": (
        lambda: esat.sum(twist(esat.sort(m, axis=0)), axis=1),
        "(rewrite (ReduceSum (Twist (Sort x a)) k) (ReduceSum x k))",
        "[sum{1}(m)]",
    ),
    "running sums": (
        lambda: twist(esat.cumsum(x)),
        "(rewrite (Twist (CumSum x a)) (CumProd x a))",
        "[cumprod{0}(x)]",
    ),
    "shifting": (
        lambda: esat.roll(twist(x), 2),
        "(rewrite (Twist x) x)",
        None,
    ),
    "one of several results": (
        lambda: esat.split(twist(a), 2)[1],
        "(rewrite (Output (Split (Twist x) 0 2) 1) (Subtensor x (tuple (slice 0 50000))))",
        "[subtensor{0:50000:1}(a)]",
    ),
    "draws": (
        lambda: twist(esat.random.normal(state, 0.0, 2.0, size=(3,))[1]),
        "(rewrite (Twist (Output (RandomNormal s a b n k) 1)) (Output (RandomLaplace s a b n k) 1))",
        None,
    ),
    "numbers in a row": (
        lambda: twist(esat.arange(k)),
        '(rewrite (Twist (ARange a b c "int64")) (ARange a b c "int64"))',
        None,
    ),
    "the class of an operand": (
        lambda: twist(esat.sqr(x)),
        "(rewrite (Twist x) x :when ((nonnegative x)))",
        "[sqr(x)]",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FIRE)
def test_rules_of_opaque_ops_fire(name, mode):
    make, rules, expected = FIRE[name]
    found, names = optimized(mode, make(), rules)
    assert any(name.startswith("<rules") for name in names)
    if expected is not None:
        assert found.replace(":1}", "}") == expected.replace(":1}", "}")


@pytest.mark.parametrize("mode", MODES)
def test_values_stay(mode):
    rules = "(rewrite (Subtensor (Exp x) i) (Exp (Subtensor x i))) (rewrite (Twist (Twist x)) x)"
    f = esat.compile(esat.Graph([x], [esat.exp(x)[2:5], twist(twist(x) * 1.0)]), mode, rules=[rules])
    numbers = np.linspace(0.0, 1.0, 9)
    part, whole = f(numbers)
    np.testing.assert_allclose(part, np.exp(numbers)[2:5], rtol=1e-15)
    np.testing.assert_array_equal(whole, numbers)


REFUSED = {
    "operands": ("(rewrite (Exp (Sort)) (Exp (Sort)))", "Sort takes operands and then axis"),
    "a number as an operand": ("(rewrite (Sort 1.0 0) (Sort 1.0 0))", "an operand is a term"),
    "a term as a parameter": ("(rewrite (Sort x (Exp y)) x)", "axis of Sort is a parameter"),
    "an unknown form": ("(rewrite (Subtensor x (tupel 1)) x)", "unknown form tupel"),
    "parts of a slice": ("(rewrite (Subtensor x (tuple (slice 1))) x)", "takes 0 or 2 or 3 parts"),
    "an unknown op within": ("(rewrite (Sort (Exq x) 0) x)", "unknown op Exq"),
    "operands of an op within": ("(rewrite (Sort (Exp x y) 0) x)", "Exp takes 1 operands"),
    "an unbound variable": ("(rewrite (Sort x 0) (Sort y 0))", "y is not bound"),
    "a fact": ("(rule ((= e (Sort x 0))) ((positive e)))", "replacements; it says something else"),
    "a relation": ("(relation mine (T)) (rewrite (Sort x 0) x :when ((mine x)))", "asks for .mine x"),
    "a primitive": ("(rewrite (Sort x a) x :when ((= a (log2 a))))", "asks for .log2 a"),
    "a subsumption": ("(rewrite (Sort x 0) x :subsume)", "subsumes"),
    "a declaration": ("(constructor Join (T) T)", "Join is an op"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_where_it_stands(name):
    rules, reason = REFUSED[name]
    with pytest.raises(RuleError, match=reason):
        esat.rules.add(rules)
    for mode in MODES:
        with pytest.raises(RuleError, match=reason):
            text(mode, esat.sort(x), rules)


ILL_TYPED = {
    "another axis": (lambda: esat.sort(x), '(rewrite (Sort x a) (Sort x (+ a 1)) :name "mine")', "no axis 1"),
    "a user's class": (
        lambda: Times(1.0)(x),
        '(rewrite (Times x a n) (Times x (- a 1.0) n) :name "mine")',
        "the factor is positive",
    ),
    "shapes": (
        lambda: (a + esat.tensor("r", shape=(1,)))[2:5],
        '(rewrite (Subtensor (Add x y) i) (Add (Subtensor x i) (Subtensor y i)) :name "mine")',
        "add",
    ),
    "no attribute": (
        lambda: Forgetful(2.0)(x),
        '(rewrite (Forgetful x n) x :name "mine")',
        "attribute number",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ILL_TYPED)
def test_what_a_rule_makes_that_has_no_type_is_an_error_of_the_rule(name, mode):
    make, rules, reason = ILL_TYPED[name]
    with pytest.raises(RuleError, match=f"(?s)rule 'mine'.*{reason}"):
        text(mode, make(), rules)
    output = make()
    inputs = inputs_of(output)
    with esat.rules.add(rules), pytest.warns(esat.EsatWarning, match=f"(?s)not used here.*mine.*{reason}"):
        f = esat.compile(esat.Graph(inputs, [output]), mode)
    shapes = [tuple(3 if size is None else size for size in one.type.shape) for one in inputs]
    assert np.isfinite(f(*(np.ones(shape) for shape in shapes))).all()


def test_another_type_is_no_replacement():
    for mode in MODES:
        assert text(mode, esat.sort(m, axis=0), "(rewrite (Sort x a) (ArgSort x a))") == "[sort{0}(m)]"


@pytest.mark.parametrize("mode", MODES)
def test_rules_of_opaque_ops_are_excluded_by_name_and_taken_back(mode):
    with esat.rules.add('(rewrite (Twist (Twist x)) x :name "twice")'):
        f = esat.compile(esat.Graph([x], twist(twist(x))), mode)
        assert f.report.rules["twice"]
        g = esat.compile(esat.Graph([x], twist(twist(x))), esat.Mode(mode).excluding("twice"))
        assert "twice" not in g.report.rules
    h = esat.compile(esat.Graph([x], twist(twist(x))), mode)
    assert "twice" not in h.report.rules


def test_every_op_is_made_again_of_what_rules_call_it():
    """Of the ops in the table of sizes; those in the e-graph's signature have terms of their own."""
    signature = op_signature()
    names = {name: op for name, op in named_ops().items() if name not in signature}
    seen = set()
    for case in CASES.values():
        inputs = case.inputs()
        for ours, _ in case.programs.values():
            result = ours(*inputs)
            for node in esat.graph.toposort(result if isinstance(result, tuple | list) else [result]):
                op = node.op
                name, values = names.get(op.constructor), op_name(op).values(op)
                if name is not None and values is not None:
                    assert name.make(values) == op
                    seen.add(op.constructor)
    wanted = {
        "Subtensor",
        "AdvancedSubtensor",
        "IncSubtensor",
        "SetSubtensor",
        "Join",
        "Split",
        "Sort",
        "ArgSort",
    }
    assert seen >= wanted | {"CumSum", "CumProd", "ARange", "Alloc", "SearchSorted"}
