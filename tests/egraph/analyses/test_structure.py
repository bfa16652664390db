"""Structure of matrices: what follows from how a value is made, and what does not."""

import re

import numpy as np
import pytest

import esat
from esat.classic.rules.matrix_facts import facts_of_matrix
from esat.egraph.analyses.structure import RELATIONS, STRUCTURE_TABLES, given_tables, structure_program
from esat.egraph.language.encode import encode
from esat.egraph.preparation.prepare import prepared
from esat.graph import FunctionGraph, inputs_of
from esat.ops.inference.structure import shaped
from esat.tools.soundness.firing import saturated
from esat.tools.soundness.oracle import check_egraph
from tests.tools.soundness.saturation import all_rules

N = 5


def square(name, *facts, dtype="float64"):
    variable = esat.tensor(name, dtype=dtype, shape=(N, N))
    return esat.assume(variable, *facts) if facts else variable


def saturate(outputs):
    graph = FunctionGraph(
        [v for v in inputs_of(outputs) if not isinstance(v, esat.Constant)], outputs, clone=False
    )
    terms = encode(graph)
    _, arrays = saturated(terms, all_rules())
    return graph, terms, arrays


def facts_of(output):
    # A product alone makes nobody ask for structure; a determinant does.
    _, terms, arrays = saturate([output, esat.linalg.det(esat.matrix("w"))])
    klass = int(arrays.term_class[terms.roots[0]])
    return {fact for fact in RELATIONS if klass in arrays.facts.get(fact, {})}


a, b = square("a"), square("b")
lower, upper = square("l", "lower_triangular"), square("u", "upper_triangular")
symmetric, definite = square("s", "symmetric"), square("p", "positive_definite")
semidefinite, diagonal = square("q", "positive_semidefinite"), square("d", "diagonal")
orthogonal, tridiagonal = square("o", "orthogonal"), square("t", "tridiagonal")
permutation = square("m", "permutation")
skew = square("w", "skew_symmetric")
even = esat.assume(esat.tensor("f", shape=(4, 4)), "skew_symmetric")
vector, scalar = esat.vector("v"), esat.scalar("c")
tall = esat.tensor("x", shape=(7, N))
semi_tall = esat.assume(esat.tensor("z", shape=(7, 7)), "positive_semidefinite")
unknown = esat.matrix("k")
la = esat.linalg

HOLDS = [
    (tall.T @ tall, "positive-semidefinite"),
    (tall.T @ (esat.exp(tall[:, :1]) * tall), "positive-semidefinite"),
    (tall.T @ (semi_tall @ tall), "positive-semidefinite"),
    (lower @ lower, "lower-triangular"),
    (upper @ upper, "upper-triangular"),
    (lower.T, "upper-triangular"),
    (lower + 2 * lower - lower / 3, "lower-triangular"),
    (scalar * lower, "lower-triangular"),
    (lower * a, "lower-triangular"),
    (diagonal @ tridiagonal, "tridiagonal"),
    (tridiagonal.T - diagonal, "tridiagonal"),
    (a @ a.T, "positive-semidefinite"),
    (a.T @ a, "positive-semidefinite"),
    (tall.T @ tall, "symmetric"),
    (a + a.T, "symmetric"),
    (a.T + a, "symmetric"),
    (a - a.T, "skew-symmetric"),
    (a.T - a, "skew-symmetric"),
    (skew.T, "skew-symmetric"),
    (skew / scalar - 2 * skew, "skew-symmetric"),
    (a @ skew @ a.T, "skew-symmetric"),
    (la.inv(even), "skew-symmetric"),
    (a @ symmetric @ a.T, "symmetric"),
    (a @ definite @ a.T, "positive-semidefinite"),
    (symmetric - 3 * symmetric, "symmetric"),
    (symmetric / scalar, "symmetric"),
    (2 * definite + semidefinite, "positive-definite"),
    (a @ a.T + 0.1 * np.eye(N), "positive-definite"),
    (unknown @ unknown.T + esat.eye(unknown.shape[0]), "positive-definite"),
    (esat.tril(unknown), "lower-triangular"),
    (esat.triu(unknown), "upper-triangular"),
    (esat.triu(lower), "diagonal"),
    (esat.tril(a), "lower-triangular"),
    (esat.diag(vector), "diagonal"),
    (esat.diag(esat.exp(vector)), "positive-definite"),
    (la.cholesky(unknown), "lower-triangular"),
    (la.qr(tall)[0], "orthonormal-columns"),
    (la.qr(tall)[1], "upper-triangular"),
    (la.qr(unknown, mode="complete")[0], "orthogonal"),
    (la.lu(a)[0], "permutation"),
    (la.lu(a)[1], "lower-triangular"),
    (la.lu(a)[2], "upper-triangular"),
    (la.eigh(a)[1], "orthogonal"),
    (la.svd(a)[0], "orthogonal"),
    (orthogonal.T @ orthogonal, "orthogonal"),
    (permutation @ permutation.T, "permutation"),
    (la.inv(lower), "lower-triangular"),
    (la.inv(symmetric), "symmetric"),
    (la.inv(definite), "positive-definite"),
    (la.inv(diagonal), "diagonal"),
    (esat.cast(lower, "float32"), "lower-triangular"),
]

REFUSED = [
    (lower @ upper, "lower-triangular"),
    (lower + a, "lower-triangular"),
    (lower + 1.0, "lower-triangular"),
    (a / lower, "lower-triangular"),
    (esat.exp(lower), "lower-triangular"),
    (tridiagonal @ tridiagonal, "tridiagonal"),
    (la.inv(tridiagonal), "tridiagonal"),
    (symmetric @ symmetric, "symmetric"),
    (a @ b.T, "symmetric"),
    (skew @ skew, "skew-symmetric"),
    (skew * skew, "skew-symmetric"),
    (skew + symmetric, "skew-symmetric"),
    (a - b.T, "skew-symmetric"),
    (a - a.T, "symmetric"),
    (definite - semidefinite, "positive-semidefinite"),
    (scalar * definite, "positive-semidefinite"),
    (a @ a.T, "positive-definite"),
    (la.inv(a @ a.T), "positive-definite"),
    (2 * orthogonal, "orthogonal"),
    (la.qr(tall)[0], "orthogonal"),
    (esat.tril(unknown, 1), "lower-triangular"),
    (esat.diag(vector), "positive-semidefinite"),
    (la.solve(lower, b), "lower-triangular"),
]


@pytest.mark.parametrize(
    ("output", "fact"), HOLDS, ids=[f"{number}-{fact}" for number, (_, fact) in enumerate(HOLDS)]
)
def test_structure_follows_from_how_a_value_is_made(output, fact):
    assert fact in facts_of(output)


@pytest.mark.parametrize(
    ("output", "fact"), REFUSED, ids=[f"{number}-{fact}" for number, (_, fact) in enumerate(REFUSED)]
)
def test_what_does_not_follow_is_not_claimed(output, fact):
    assert fact not in facts_of(output)


def test_the_same_is_known_of_variables():
    for output, fact in HOLDS:
        assert fact.replace("-", "_") in facts_of_matrix(output)
    for output, fact in REFUSED:
        assert fact.replace("-", "_") not in facts_of_matrix(output)


def test_products_with_transposes_of_other_matrices_of_a_batch_have_no_structure():
    batch, sides = esat.tensor("a", shape=(2, 2, 20, 20)), esat.tensor("b", shape=(2, 2, 20, 1))
    crossed = batch @ esat.transpose(batch, (1, 0, 3, 2))
    own = batch @ esat.transpose(batch, (0, 1, 3, 2))
    assert "symmetric" in facts_of(own)
    assert "symmetric" in facts_of_matrix(own)
    assert not facts_of_matrix(crossed) & {"symmetric", "positive_semidefinite"}
    assert not facts_of(crossed) & {"symmetric", "positive-semidefinite"}
    solution = esat.compile(esat.Graph([batch, sides], la.solve(crossed + 90 * esat.eye(20), sides)))
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 2, 20, 20)), generator.normal(size=(2, 2, 20, 1))
    matrices = x @ np.transpose(x, (1, 0, 3, 2)) + 90 * np.eye(20)
    np.testing.assert_allclose(solution(x, y), np.linalg.solve(matrices, y), rtol=1e-9)


def test_a_partial_identity_leaks_no_structure():
    """inv(inv(a)) is a; that a may be inverted, or that its inverse has a structure, is no fact about it."""
    _, terms, arrays = saturate([la.inv(la.inv(a)), la.solve(a, a @ b), a @ a.T, b])
    for root in (terms.roots[0], terms.roots[1]):
        klass = int(arrays.term_class[root])
        assert {fact for fact in RELATIONS if klass in arrays.facts.get(fact, {})} == {"square"}


@pytest.mark.parametrize("seed", range(3))
def test_every_fact_and_every_e_node_is_true_of_values(seed):
    outputs = [output for output, _ in (*HOLDS, *REFUSED)][seed::3]
    _, terms, arrays = saturate(outputs)
    assumed = {"l": "lower_triangular", "u": "upper_triangular", "s": "symmetric", "p": "positive_definite"}
    assumed |= {
        "q": "positive_semidefinite",
        "z": "positive_semidefinite",
        "d": "diagonal",
        "o": "orthogonal",
        "t": "tridiagonal",
    }
    assumed |= {"m": "permutation", "w": "skew_symmetric", "f": "skew_symmetric"}
    generator = np.random.default_rng(seed)
    values = {}
    for variable in terms.inputs:
        shape = tuple(N if size is None else size for size in variable.tensor_type.shape)
        data = generator.normal(size=shape)
        if variable.name == "c":
            data = np.asarray(1.5)
        elif variable.name in ("a", "b", "k", "l", "u", "d", "s"):
            data = data + 3 * N * np.eye(N)
        values[variable] = shaped(data, [assumed[variable.name]] if variable.name in assumed else [])
    report = check_egraph(arrays, terms, values)
    assert not report.errors, report.errors[:3]
    structural = sum(len(arrays.facts.get(fact, {})) for fact in RELATIONS)
    assert structural > 20
    assert report.facts > structural


def test_graphs_without_structure_pay_nothing():
    program = all_rules()
    x, y = esat.matrix("x"), esat.matrix("y")
    terms = encode(FunctionGraph([x, y], [esat.exp(x @ y) + x.T @ y], clone=False))
    assert not given_tables(terms)
    rules = prepared(program)
    for number in rules.relevant({term.constructor for term in terms.terms}):
        assert STRUCTURE_TABLES.isdisjoint(rules.modules[number].needs), rules.modules[number].text


def test_constants_show_their_structure():
    assert "lower-triangular" in facts_of(np.tril(np.ones((N, N))) @ (lower @ lower))
    assert "symmetric" in facts_of(np.ones((N, N)) + symmetric)
    assert "lower-triangular" not in facts_of(np.ones((N, N)) @ lower)


def test_reports_name_the_rules_that_tell_of_structure():
    a, x = esat.dmatrix("a"), esat.dvector("x")
    lower = esat.assume(a, "lower_triangular")
    report = esat.compile(esat.Graph([a, x], [(lower @ lower) @ x, esat.exp(x)])).report
    assert "lower-triangular: " in str(report)
    assert all(rules for rules in report.facts.values())
    assert "fact-positive-Exp" in report.facts["positive"]
    told = str(esat.compile(esat.Graph([x], [esat.exp(x)])).report)
    assert "facts about matrices" not in told
    assert "    positive: fact-positive-Exp" in told


def test_rules_have_names_of_their_own():
    names = re.findall(r':name "([^"]+)"', structure_program())
    assert len(names) == len(set(names))
