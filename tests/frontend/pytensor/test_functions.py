"""Compiled functions: what PyTensor's users do with them, and what they are told when something is wrong."""

import copy
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.typed_list
import pytest
from pytensor.compile.io import In, Out
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.ifelse import ifelse
from pytensor.raise_op import Assert, CheckAndRaise

import esat
from esat.errors import GraphError
from esat.frontend.pytensor import ESAT, ESATLinker, from_pytensor
from esat.frontend.pytensor.linker import INCOMPATIBLE
from frontend.pytensor.peer import MODES, REFERENCE, same

X = np.arange(6.0).reshape(2, 3)


class Doubled(Op):
    """An op of a user's, that esat has never heard of."""

    __props__ = ("factor",)

    def __init__(self, factor=2):
        self.factor = factor

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        if inputs[0].size == 0:
            raise RuntimeError("there is nothing to double")
        outputs[0][0] = inputs[0] * self.factor


@pytest.mark.parametrize("mode", MODES)
def test_updates_givens_and_shared_variables(mode):
    total, x = pytensor.shared(np.zeros(3), "total"), pt.dmatrix("x")
    function = pytensor.function([x], [total, x.sum()], updates={total: total + x.sum(0)}, mode=mode)
    same(function(X), [np.zeros(3), np.array(15.0)])
    same(function(X), [X.sum(0), np.array(15.0)])
    np.testing.assert_array_equal(total.get_value(), 2 * X.sum(0))
    total.set_value(np.array([1.0, 2.0]))  # of another size
    with pytest.raises(ValueError, match="sizes"):
        function(X)
    np.testing.assert_array_equal(total.get_value(), [1.0, 2.0])
    y = pt.dmatrix("y")
    given = pytensor.function([x], (y * 2).sum(), givens={y: x + 1}, mode=mode)
    assert given(X) == 42.0


@pytest.mark.parametrize("mode", MODES)
def test_results_are_nobody_elses(mode):
    shared, x = pytensor.shared(np.ones(3)), pt.dvector("x")
    value = np.arange(3.0)
    function = pytensor.function([x], [x, shared, x[1:], x.reshape((3, 1))], mode=mode)
    for one in function(value):
        one[...] = 99.0
    np.testing.assert_array_equal(value, np.arange(3.0))
    np.testing.assert_array_equal(shared.get_value(), np.ones(3))
    first, second = function(value)[0], function(value + 1)[0]
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_that_may_be_overwritten(mode):
    x = pt.dvector("x")
    function = pytensor.function([In(x, mutable=True)], [Out(pt.sqrt(x) + 1, borrow=True)], mode=mode)
    kept = pytensor.function([x], pt.sqrt(x) + 1, mode=mode)
    value = np.arange(1.0, 9.0)
    np.testing.assert_allclose(kept(value), np.sqrt(np.arange(1.0, 9.0)) + 1)
    np.testing.assert_array_equal(value, np.arange(1.0, 9.0))
    np.testing.assert_allclose(function(value)[0], np.sqrt(np.arange(1.0, 9.0)) + 1)


def test_trust_input_and_names():
    x, y = pt.dvector("x"), pt.dscalar("y")
    function = pytensor.function([x, y], [x.sum() + y, x.prod() * y], mode="ESAT")
    found = function(np.array([1.0, 2.0]), 3.0)
    assert list(map(float, found)) == [6.0, 6.0]
    assert float(function(np.array([1.0, 2.0]), y=0.0)[0]) == 3.0
    function.trust_input = True
    assert float(function(np.array([1.0, 2.0]), np.array(1.0))[0]) == 4.0
    with pytest.raises(TypeError):
        pytensor.function([x], x, mode="ESAT")(np.array(["a"]))


@pytest.mark.parametrize("mode", MODES)
def test_functions_are_pickled_and_copied(mode):
    counter, x = pytensor.shared(np.float64(0.0), "counter"), pt.dvector("x")
    function = pytensor.function(
        [x], [x * 2 + counter, Doubled()(x)], updates={counter: counter + 1}, mode=mode
    )
    function(np.ones(2))
    restored = pickle.loads(pickle.dumps(function))
    same(restored(np.ones(2)), [np.full(2, 3.0), np.full(2, 2.0)])
    same(function(np.ones(2)), [np.full(2, 3.0), np.full(2, 2.0)])
    other = function.copy()  # of the same shared variables
    same(other(np.ones(2)), [np.full(2, 4.0), np.full(2, 2.0)])
    same(function(np.ones(2)), [np.full(2, 5.0), np.full(2, 2.0)])
    same(copy.deepcopy(function)(np.ones(2)), [np.full(2, 6.0), np.full(2, 2.0)])
    assert counter.get_value() == 4.0


def test_profile_and_printing(capsys):
    x = pt.dvector("x")
    function = pytensor.function([x], pt.exp(x).sum(), mode="ESAT", profile=True)
    function(np.ones(3))
    assert function.profile.fct_callcount == 1
    pytensor.dprint(function)
    assert "exp" in capsys.readouterr().out.lower()


def test_modes_are_found_by_name_and_may_be_varied():
    """As PyMC does, which makes a Mode of its own of the linker and the query."""
    assert get_mode("ESAT") is ESAT
    assert "Subtensor" in str(pytensor.function([x := pt.dvector()], x[1:], mode="ESAT_AFTER").maker.fgraph)
    varied = Mode(linker=ESAT.linker, optimizer=ESAT.provided_optimizer.including("random_make_inplace"))
    rng = pytensor.shared(np.random.default_rng(2))
    sample = pt.random.normal(size=(3,), rng=rng)
    found = pytensor.function([], sample, mode=varied, updates={rng: sample.owner.outputs[0]})
    np.testing.assert_array_equal(found(), np.random.default_rng(2).normal(size=3))
    assert pickle.loads(pickle.dumps(varied)).linker.strict is False
    assert pytensor.function([x], x * 2, mode=Mode("esat", "fast_compile"))(np.ones(2)).tolist() == [2.0, 2.0]


def test_no_op_writes_into_its_operands():
    """No rewrite for other linkers takes part."""
    x, rng = pt.dmatrix("x"), pytensor.shared(np.random.default_rng(0))
    outputs = [
        pt.exp(x) + 1,
        pt.set_subtensor(x[0], 1.0),
        pt.linalg.inv(x),
        pt.dot(x, x) + x,
        pt.random.normal(rng=rng),
    ]
    function = pytensor.function([x], outputs, mode="ESAT_AFTER")
    for node in function.maker.fgraph.toposort():
        assert not node.op.destroy_map
        assert not type(node.op).__name__.startswith(("Gem", "Fused", "CGem"))
    assert "fusion" in INCOMPATIBLE


@pytest.mark.parametrize("mode", MODES)
def test_assertions_raise_what_pytensor_raises(mode):
    class UnfitError(ValueError):
        pass

    x = pt.dvector("x")
    checked = CheckAndRaise(UnfitError, "x must not be negative")(x, pt.all(x >= 0))
    asserted = Assert("x has to be below ten")(checked, pt.all(x < 10))
    function = pytensor.function([x], asserted * 2, mode=mode)
    assert not function.vm.jit_fn.report.foreign
    np.testing.assert_array_equal(function(np.ones(2)), [2.0, 2.0])
    with pytest.raises(UnfitError) as caught:
        function(np.array([-1.0]))
    assert str(caught.value) == "x must not be negative"
    assert __file__ in "".join(caught.value.__notes__)
    with pytest.raises(AssertionError) as caught:
        function(np.array([11.0]))
    assert str(caught.value) == "x has to be below ten"


def test_assertions_of_one_text_raise_each_its_own():
    x = pt.dscalar("x")
    first = CheckAndRaise(KeyError, "no")(x, x > 0)
    function = pytensor.function([x], CheckAndRaise(OSError, "no")(first, x < 10), mode="ESAT")
    with pytest.raises(KeyError):
        function(-1.0)
    with pytest.raises(OSError, match="no"):
        function(11.0)


def test_what_no_array_can_hold_is_refused_with_its_op_and_line():
    x = pt.dvector("x")
    items = pytensor.typed_list.make_list([x, x * 2])
    with pytest.raises(GraphError, match=r"(?s)MakeList.*esat has no type for TypedList") as caught:
        pytensor.function([x], pytensor.typed_list.length(items), mode="ESAT")
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("mode", MODES)
def test_only_the_branch_that_is_chosen_is_computed(mode):
    x = pt.dvector("x")
    function = pytensor.function([x], ifelse(x.sum() > 0, x * 2, Doubled()(x)), mode=mode)
    np.testing.assert_array_equal(function(np.ones(2)), [2.0, 2.0])
    np.testing.assert_array_equal(function(-np.ones(2)), [-2.0, -2.0])
    with pytest.raises(RuntimeError):
        function(np.zeros(0))
    several = ifelse(x.sum() > 0, [x, x + 1], [x - 1, x - 2])
    same(pytensor.function([x], several, mode=mode)(np.ones(2)), [np.ones(2), np.full(2, 2.0)])


@pytest.mark.parametrize("mode", MODES)
def test_inner_graphs_become_part_of_the_program(mode):
    a, b, x = pt.dvector("a"), pt.dscalar("b"), pt.dvector("x")
    op = pytensor.compile.builders.OpFromGraph([a, b], [a * b, pt.exp(a) + b])
    one, two = op(x, pt.constant(np.float64(2.0)))
    outputs = [one, two, pytensor.grad((one * two).sum(), x)]
    function = pytensor.function([x], outputs, mode=mode)
    assert not function.vm.jit_fn.report.foreign
    same(function(np.ones(2)), pytensor.function([x], outputs, mode=REFERENCE)(np.ones(2)), 1e-13)


def test_ops_without_a_rule_are_counted_and_refused_where_that_is_asked_for():
    x = pt.dvector("x")
    output = Doubled(3)(x) + Doubled(5)(x) + pt.exp(x)
    function = pytensor.function([x], output, mode="ESAT")
    np.testing.assert_allclose(function(np.ones(2)), np.full(2, 8 + np.e))
    assert str(function.vm.jit_fn.report).endswith("ops by PyTensor: Doubled (2)")
    assert function.vm.jit_fn.report.reasons == {"Doubled": "it has no rule"}
    with pytest.raises(GraphError, match="Doubled") as caught:
        pytensor.function([x], output, mode=Mode(ESATLinker(strict=True), ESAT.provided_optimizer))
    assert __file__ in str(caught.value)


def test_equal_ops_are_one_and_others_are_not():
    x, y = pt.dvector("x"), pt.dvector("y")
    outputs = [Doubled()(x), Doubled()(x), Doubled(3)(x), Doubled()(y)]
    function = pytensor.function([x, y], outputs, mode="ESAT")
    ones = np.ones(1)
    assert [one.tolist() for one in function(ones, ones * 5)] == [[2.0], [2.0], [3.0], [10.0]]


def test_errors_of_such_ops_name_the_node():
    x = pt.dvector("x")
    function = pytensor.function([x], pt.exp(Doubled()(x)) + 1, mode="ESAT")
    with pytest.raises(RuntimeError, match="nothing to double") as caught:
        function(np.zeros(0))
    assert "in library(pytensor.Doubled)" in caught.value.__notes__[0]
    assert __file__ in caught.value.__notes__[0]
    with pytensor.config.change_flags(exception_verbosity="medium"), pytest.raises(RuntimeError) as caught:
        function(np.zeros(0))
    assert "Apply node that caused the error: Doubled" in str(caught.value)


def test_large_constants_are_arguments():
    """Programs do not depend on their values; those that are small do."""
    large, x = np.random.default_rng(0).normal(size=100_000), pt.dvector("x")
    functions = [
        pytensor.function([x], pt.dot(x, pt.constant(one)) * 2, mode="ESAT") for one in (large, -large)
    ]
    found = [float(function(np.ones(100_000))) for function in functions]
    np.testing.assert_allclose(found, [2 * large.sum(), -2 * large.sum()], rtol=1e-10)
    assert len(functions[0].vm.jit_fn.executable.graph.inputs) == 2


def test_functions_without_outputs_and_of_nothing():
    x, counter = pt.dvector("x"), pytensor.shared(np.int64(0))
    assert pytensor.function([x], [], mode="ESAT", on_unused_input="ignore")(np.ones(1)) == []
    pytensor.function([], [], updates={counter: counter + 1}, mode="ESAT")()
    assert counter.get_value() == 1
    assert pytensor.function([], pt.constant(3.0), mode="ESAT")() == 3.0


def test_graphs_for_esat():
    x, scale = pt.dvector("x"), pytensor.shared(np.full(3, 2.0), "scale")
    graph = from_pytensor([x], [(x * scale).sum(), x + 1])
    total, raised = esat.compile(graph)(np.arange(3.0))
    assert (float(total), raised.tolist()) == (6.0, [1.0, 2.0, 3.0])
    (own,) = graph.inputs
    slope = esat.compile(esat.Graph([own], esat.grad(graph.outputs[0], own)))
    assert slope(np.arange(3.0)).tolist() == [2.0, 2.0, 2.0]
    single = from_pytensor([x], pt.linalg.norm(x))
    assert (single.single_output, single.inputs[0].name) == (True, "x")
    with pytest.raises(GraphError, match="takes variables of PyTensor's"):
        from_pytensor([x], esat.vector())
    with pytest.raises(GraphError, match="missing is needed"):
        from_pytensor([x], x * pt.dscalar("missing"))
