"""What is known to be finite: derived where it is asked for, sound, and free where it is not."""

import warnings

import numpy as np
import pytest

import esat
from esat.egraph.analyses.facts import FINITE_WANTED
from esat.egraph.language.encode import encode
from esat.egraph.preparation.prepare import prepared
from esat.graph import FunctionGraph
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES
from esat.ops.elementwise.records.record import Elementwise
from esat.tools.soundness.oracle import check_egraph
from tests.tools.soundness.saturation import all_rules, saturated

FLOATS = ("float16", "float32", "float64")
KEEPING = [op for op in registered_ops() if isinstance(op, Elementwise) and op.facts.keeps_finite]


def extremes(dtype):
    """Finite numbers of a dtype, the largest and smallest among them."""
    limits = np.finfo(dtype)
    values = [limits.max, limits.tiny, limits.smallest_subnormal, limits.eps, 1.0, 1.5, 100.0, 0.0]
    return np.array([*values, *(-value for value in values)], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", KEEPING, ids=lambda op: op.name)
def test_ops_that_keep_numbers_finite_do_at_the_edges_of_dtypes(op, dtype):
    values = extremes(dtype)
    grids = np.meshgrid(*[values] * op.arity)
    operands = [
        (grid > 0 if typing == "bool" else grid).ravel()
        for grid, typing in zip(grids, op.operand_typing, strict=True)
    ]
    if op.admits(dtype) is None:
        pytest.skip(f"{op.name} takes no {dtype}")
    assert np.isfinite(op.perform(operands)[0]).all()
    variables = [esat.vector(f"x{place}", operand.dtype.name) for place, operand in enumerate(operands)]
    compiled = esat.compile(esat.Graph(variables, [op(*variables)]), "fast_compile")
    assert np.isfinite(compiled(*operands)).all()


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", [name for name in DTYPES if np.dtype(name).kind in "biu"])
def test_casts_of_integers_are_finite_where_they_cannot_overflow(source, target):
    limits = [False, True] if source == "bool" else [np.iinfo(source).min, np.iinfo(source).max]
    n = esat.vector("n", source)
    function = esat.compile(esat.Graph([n], [esat.isfinite(esat.cast(n, target))]))
    array = np.array(limits, source)
    with np.errstate(over="ignore"):
        expected = np.isfinite(array.astype(target))
    np.testing.assert_array_equal(function(array), expected)
    assert ("isfinite-of-finite" in function.report.rules) == expected.all()


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
def test_what_is_assumed_finite_passes_its_checks(mode):
    x = esat.vector("x")
    known = esat.assume(x, "finite")
    checks = [
        esat.isnan(known),
        esat.isinf(-known),
        esat.isfinite(esat.tanh(known)),
        esat.isfinite(known * 2.0),
    ]
    function = esat.compile(esat.Graph([x], checks), mode)
    values = np.array([1.0, -0.0, 1e308])
    for result, expected in zip(function(values), ([0] * 3, [0] * 3, [1] * 3, [1, 1, 0]), strict=True):
        np.testing.assert_array_equal(result, np.array(expected, bool))
    names = [node.op.name for node in function.graph.toposort()]
    assert names.count("isfinite") == 1
    assert not {"isnan", "isinf"} & set(names)


def test_differences_of_finite_numbers_vanish_in_strict_mode():
    x = esat.vector("x")
    known = esat.assume(x, "finite")
    function = esat.compile(esat.Graph([x], [known - known, x[::-1] - x[::-1]]), "strict")
    assert "sub-same-of-finite" in function.report.rules
    values = np.array([np.inf, -0.0, 1e308])
    zeros, differences = function(np.where(np.isinf(values), 1.0, values))
    assert not np.signbit(zeros).any()
    assert not zeros.any()
    np.testing.assert_array_equal(differences, [0.0, 0.0, 0.0])
    unknown = esat.compile(esat.Graph([x], [x - x]), "strict")
    np.testing.assert_array_equal(unknown(values), [np.nan, 0.0, 0.0])


def test_an_assumption_that_is_false_is_found_in_debug_mode():
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], [esat.isnan(esat.assume(x, "finite"))]), "debug")
    np.testing.assert_array_equal(function(np.ones(2)), [False, False])
    with pytest.raises(esat.AssertionFailed, match="finite"):
        function(np.array([1.0, np.nan]))


def test_the_oracle_sees_a_false_claim():
    n = esat.vector("n", "int32")
    y = esat.vector("y")
    outputs = [esat.isfinite(esat.sin(n)), esat.isnan(esat.minimum(esat.cast(n, "float64"), y))]
    for strict in (False, True):
        terms, _, arrays = saturated([n, y], outputs, all_rules(strict=strict))
        assert arrays.facts["finite"]
        inputs = {n: np.array([2**31 - 1, -(2**31)], "int32"), y: np.array([np.nan, np.inf])}
        report = check_egraph(arrays, terms, inputs)
        assert not report.errors
        of_y = int(arrays.term_class[[term.constructor for term in terms.terms].index("In", 1)])
        arrays.facts["finite"][of_y] = True
        assert "finite" in check_egraph(arrays, terms, inputs).errors[0]


def test_graphs_that_do_not_ask_load_nothing_of_it():
    x = esat.matrix("x")
    plain = [esat.tanh(x) - esat.sum(esat.exp(x), axis=0), esat.where(x > 0, x, 0.0)]
    program = all_rules()

    def loaded(outputs):
        terms = encode(FunctionGraph([x], outputs, clone=False)).terms
        numbers = prepared(program).relevant({term.constructor for term in terms})
        modules = [prepared(program).modules[number] for number in numbers]
        own = {"finite", FINITE_WANTED}
        return [module.name for module in modules if own & (module.needs | module.makes)]

    assert loaded(plain) == []
    assert "isnan-of-finite" in loaded([*plain, esat.isnan(x)])


def test_rules_of_users_may_ask():
    n, x = esat.vector("n", "int32"), esat.vector("x")
    rule = '(rewrite (Sin x) (Cos x) :when ((finite x)) :name "sin-of-finite-t" :soundness unsafe)'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", esat.EsatWarning)
        function = esat.compile(esat.Graph([n, x], [esat.sin(n), esat.sin(x)]), "unsafe", rules=rule)
    assert function.report.rules["sin-of-finite-t"] == 1
