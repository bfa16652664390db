"""Whole e-graphs after saturation with all rules: e-nodes and facts are true of their classes."""

import numpy as np
import pytest

import esat
from esat.egraph.preparation.rule_program import program_for
from esat.rules import read_rules
from esat.rules.language.query import Query
from esat.tools.soundness.oracle import check_egraph
from tests.tools.soundness.random_graphs import RandomGraph
from tests.tools.soundness.saturation import DATABASE, all_rules, saturated

GRAPHS = {"float": 14, "mixed": 10, "integer": 8, "complex": 6}
HOSTILE = np.array([-2.0, -1.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 1.0, 3.0])


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind, count in GRAPHS.items() for seed in range(count)]
)
def test_random_graphs(kind, seed):
    graph = RandomGraph(seed, kind)
    terms, _, arrays = saturated(graph.inputs, graph.outputs)
    report = check_egraph(arrays, terms, graph.inputs, seed)
    assert not report.errors, report.errors[:3]
    assert report.compared >= 10
    assert report.facts > report.compared


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_in_strict_mode(seed):
    graph = RandomGraph(seed, "float")
    terms, _, arrays = saturated(graph.inputs, graph.outputs, all_rules(strict=True))
    report = check_egraph(arrays, terms, graph.inputs, seed)
    assert not report.errors, report.errors[:3]


# Each is the operand where the left side of some partial identity is defined, and not elsewhere.
PARTIAL = {
    "exp-log": lambda x: esat.exp(esat.log(x)),
    "log-exp": lambda x: esat.log(esat.exp(x)),
    "expm1-log1p": lambda x: esat.expm1(esat.log1p(x)),
    "exp-log1p": lambda x: esat.exp(esat.log1p(x)) - 1,
    "sqr-sqrt": lambda x: esat.sqr(esat.sqrt(x)),
    "sqrt-sqr": lambda x: esat.sqrt(esat.sqr(x)),
    "sqrt-times-sqrt": lambda x: esat.sqrt(x) * esat.sqrt(x),
    "pow-pow": lambda x: (x**2.0) ** 0.5,
    "root-squared": lambda x: (x**0.5) ** 2.0,
    "divided by itself": lambda x: x / x,
    "times its reciprocal": lambda x: x * (1 / x),
    "log of a product": lambda x: esat.log(x * x),
    "log of a power": lambda x: esat.log(x**2.0),
    "divided by its root": lambda x: x / esat.sqrt(x),
    "sign times abs": lambda x: esat.sign(x) * esat.abs(x),
    "log of a square": lambda x: esat.exp(0.5 * esat.log(esat.sqr(x))),
}
# What would be wrong if a fact leaked from there to the operand.
VICTIMS = [
    esat.abs,
    lambda x: esat.sqrt(esat.sqr(x)),
    lambda x: esat.maximum(x, 0.0),
    esat.sign,
    esat.floor,
    lambda x: esat.log(x * esat.exp(x)),
]


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_identities_leak_no_facts(name):
    x = esat.tensor("x", dtype="float64", shape=(None,))
    outputs = [PARTIAL[name](x), *(victim(x) for victim in VICTIMS)]
    terms, _, arrays = saturated([x], outputs)
    report = check_egraph(arrays, terms, {x: HOSTILE})
    assert not report.errors, report.errors[:3]
    leaf = int(arrays.term_class[next(n for n, term in enumerate(terms.terms) if term.constructor == "In")])
    for fact in ("positive", "nonnegative", "negative", "nonpositive", "integral"):
        assert leaf not in arrays.facts.get(fact, {}), f"the input is said to be {fact}"


def program_with(text):
    tags = {tag for rule in DATABASE.list() for tag in (*rule.tags, rule.ruleset)}
    return program_for(DATABASE.query(Query(tags), soundness="unsafe", extra=[read_rules(text)]))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('(rewrite (Exp (Log x)) x :name "partial")', "positive"),
        ('(rewrite (Arctan x) (Tanh x) :name "wrong value")', "its class"),
        ('(rule ((= e (Arctan x))) ((nonnegative e)) :name "wrong fact")', "nonnegative"),
        (
            '(rule ((= e (Arctan x)) (= d (dt x))) ((union e (Fill x (K 0.5 d)))) :name "wrong constant")',
            "val",
        ),
    ],
)
def test_the_oracle_catches_wrong_rules(rule, message):
    x = esat.tensor("x", dtype="float64", shape=(None,))
    outputs = [esat.exp(esat.log(x)), esat.arctan(x), esat.abs(x)]
    terms, _, arrays = saturated([x], outputs, program_with(rule))
    report = check_egraph(arrays, terms, {x: HOSTILE})
    assert any(message in error for error in report.errors), report.errors


def determinants(*rules):
    """The report on an e-graph of log-determinants, with further rules."""
    a, b = (esat.tensor(name, dtype="float64", shape=(3, 3)) for name in "ab")
    outputs = [
        *esat.linalg.slogdet(a @ b),
        *esat.linalg.slogdet(esat.linalg.inv(a)),
        *esat.linalg.slogdet(a.T),
        *esat.linalg.qr(b),
    ]
    terms, _, arrays = saturated([a, b], outputs, program_with("".join(rules)) if rules else None)
    generator = np.random.default_rng(3)
    return check_egraph(arrays, terms, {x: generator.normal(size=(3, 3)) for x in (a, b)})


def test_outputs_of_ops_with_several_are_compared():
    report = determinants()
    assert not report.errors, report.errors[:3]
    # log|det AB| = log|det A| + log|det B|, its sign, and those of the inverse and of the transpose.
    assert report.unknown == 0
    assert report.compared >= 20
    wrong = '(rewrite (Output (SlogDet (Inv a r) r) 1) (Output (SlogDet a r) 1) :name "wrong sign")'
    assert any("Output" in error or "NarySum" in error for error in determinants(wrong).errors)
