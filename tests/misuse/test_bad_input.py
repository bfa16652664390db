"""Mistakes get an error of the EsatError family that says what is wrong and where."""

import numpy as np
import pytest

import esat
from esat.errors import (
    CallError,
    DtypeError,
    EsatError,
    GradientError,
    GraphError,
    InputError,
    ModeError,
    RuleError,
    ShapeError,
)


def test_shapes_that_do_not_match() -> None:
    a, b = esat.tensor("a", shape=(3,)), esat.tensor("b", shape=(4,))
    with pytest.raises(ShapeError, match=r"add\(.*\): sizes 3 and 4 of axis 0"):
        a + b


def test_inner_sizes_that_do_not_match() -> None:
    a, b = esat.tensor("a", shape=(2, 3)), esat.tensor("b", shape=(4, 5))
    with pytest.raises(ShapeError, match="inner sizes 3 and 4"):
        a @ b


def test_sizes_that_do_not_match_at_run_time_name_the_op_and_the_line() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    function = esat.compile(esat.Graph([x, y], esat.exp(x) + y))
    with pytest.raises(ShapeError, match=r"(?s)add.*test_bad_input.py:\d+"):
        function(np.ones(3), np.ones(4))


def test_unknown_modes_and_settings() -> None:
    x = esat.vector("x")
    with pytest.raises(ModeError, match="did you mean fast_run"):
        esat.compile(esat.Graph([x], x + 1), mode="fast_rum")
    with pytest.raises(ModeError, match="node_limit"):
        esat.Mode("fast_run", node_limits=3)


def test_a_constant_as_input() -> None:
    x = esat.vector("x")
    with pytest.raises(GraphError, match="cannot be an input"):
        esat.Graph([x, esat.constant(1.0)], x + 1)


def test_unused_and_missing_inputs() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    with pytest.raises(GraphError, match="nothing depends on the input y"):
        esat.Graph([x, y], x + 1)
    with pytest.raises(GraphError, match=r"depend on y .* not among the inputs"):
        esat.Graph([x], x + y)
    with pytest.raises(GraphError, match="nothing depends on the input y"):
        esat.compile(esat.FunctionGraph([x, y], [x + 1]))


def test_a_cycle() -> None:
    x = esat.vector("x")
    y = x + 1
    z = y * 2
    y.owner.inputs[0] = z
    with pytest.raises(GraphError, match="depends on itself"):
        esat.Graph([x], z)


def test_a_dtype_that_is_not_numeric() -> None:
    with pytest.raises(DtypeError, match="not numeric"):
        esat.tensor("x", dtype="datetime64[s]", shape=(3,))
    with pytest.raises(DtypeError):
        esat.constant(["a", "b"])


def test_operands_that_are_no_tensors_are_named_with_the_op() -> None:
    v = esat.vector("v")
    with pytest.raises(DtypeError, match=r"add\(vector\(float64\), None\).*not numeric"):
        v + None
    with pytest.raises(GraphError, match=r"exp\(csr\(float64\)\): s is a csr\(float64\), not a tensor"):
        esat.exp(esat.sparse.csr_matrix("s"))


SPARSE = {
    "sum": esat.sum, "inv": esat.linalg.inv, "getitem": lambda s: s[0], "reshape": lambda s: s.reshape((3,)),
    "gt": lambda s: s > 0, "concatenate": lambda s: esat.concatenate([s, s]), "median": esat.median,
    "where": lambda s: esat.where(s, 1, 2), "einsum": lambda s: esat.einsum("ij->", s), "sort": esat.sort,
    "add": lambda s: s + 1,
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_what_takes_no_sparse_matrices_says_so_by_its_name(name) -> None:
    s = esat.sparse.csr_matrix("s")
    with pytest.raises(
        GraphError, match=rf"^{name}(\(.*\))?: s is a csr\(float64\), not a tensor; .*esat.sparse"
    ):
        SPARSE[name](s)


NO_ARRAYS = {
    "exp": esat.exp, "sum": esat.sum, "reshape": lambda v: esat.reshape(v, (2,)),
    "outer": lambda v: esat.outer(v, 1), "add": lambda v: esat.vector() + v,
    "quantile": lambda v: esat.quantile(esat.vector(), v), "shared": esat.shared,
}  # fmt: skip


@pytest.mark.parametrize("name", NO_ARRAYS)
def test_what_is_no_array_is_called_that_by_the_function(name) -> None:
    for value in (None, "a", [1, "b"]):
        with pytest.raises(DtypeError, match=rf"^{name}(\(.*\))?: .* is not numeric"):
            NO_ARRAYS[name](value)


@pytest.mark.parametrize("function", [esat.concatenate, esat.stack, esat.hstack, esat.vstack, esat.dstack])
def test_what_joins_arrays_takes_some(function) -> None:
    name = function.__name__
    with pytest.raises(DtypeError, match=rf"^{name}\(None\): takes a sequence of arrays"):
        function(None)
    with pytest.raises(ShapeError, match=rf"^{name}\(\): there are no arrays"):
        function([])
    with pytest.raises(ShapeError, match=rf"^{name}\(vector\(float64\)\): takes a sequence of arrays"):
        function(esat.vector("x"))


def test_functions_of_numpy_that_have_no_like_are_named() -> None:
    with pytest.raises(DtypeError, match=r"numpy.trim_zeros\(.*\): .*; esat has no trim_zeros"):
        np.trim_zeros(esat.vector("x"))
    with pytest.raises(DtypeError, match=r"einsum\(x\): the subscripts come first"):
        esat.einsum(esat.vector("x"), "i->")


def test_sizes_and_steps_that_nothing_can_have() -> None:
    state = esat.random.state()
    with pytest.raises(ShapeError, match=r"normal.*size \(-3,\) has a negative number"):
        esat.random.normal(state, size=(-3,))
    with pytest.raises(ShapeError, match=r"normal.*do not broadcast to size \(2,\)"):
        esat.random.normal(state, np.zeros(3), size=(2,))
    with pytest.raises(ShapeError, match=r"arange\(0, 3, 0\): the step is 0"):
        esat.arange(0, 3, 0)
    step = esat.lscalar("step")
    with pytest.raises(ShapeError, match=r"arange\(0, 3, 0\): the step is 0(?s:.)*test_bad_input"):
        esat.compile(esat.Graph([step], esat.arange(0, 3, step)))(0)


def test_wrong_arguments_of_a_compiled_function() -> None:
    x = esat.matrix("x", dtype="float32")
    function = esat.compile(esat.Graph([x], x + 1))
    with pytest.raises(InputError, match="x"):
        function(np.ones((2, 2)) + 1e-9)
    with pytest.raises(InputError, match=r"x.*rank|x.*ax"):
        function(np.ones(2, dtype="float32"))
    with pytest.raises(InputError):
        function()
    with pytest.raises(InputError):
        function(np.ones((2, 2), dtype="float32"), 1)
    with pytest.raises(InputError):
        function("text")


def test_gradients_that_are_not_defined() -> None:
    x = esat.vector("x")
    with pytest.raises(GradientError, match="scalar"):
        esat.grad(x * 2, x)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("(rewrite (Ad x y) x)", "unknown op Ad"),
        ("(rewrite (Add x) x)", "Add takes 2 operands"),
        ("(rewrite (Add x y", "never closed|parenthes|unbalanced"),
        ("(rewrite (Exp x) y)", "y"),
    ],
)
def test_malformed_rules_name_their_place_and_leave_the_next_compilation_alone(
    rule: str, message: str
) -> None:
    x = esat.vector("x")
    graph = esat.Graph([x], esat.exp(x) + x)
    with pytest.raises(RuleError, match=message):
        esat.compile(graph, rules="\n\n" + rule)
    np.testing.assert_allclose(esat.compile(graph)(np.ones(2)), np.exp(1) + np.ones(2))


def test_a_missing_rule_file() -> None:
    x = esat.vector("x")
    with pytest.raises(RuleError, match="no_such_file"):
        esat.compile(esat.Graph([x], x + 1), rules="no_such_file.egg")


@pytest.mark.parametrize("rules", [3, [3], None, [b"(rewrite (Exp x) x)"]])
def test_rules_that_are_neither_text_nor_paths(rules: object) -> None:
    x = esat.vector("x")
    with pytest.raises(RuleError, match="text, or the path of a file"):
        esat.compile(esat.Graph([x], x + 1), rules=rules)


def test_masked_arrays_that_hide_elements() -> None:
    x, hidden = esat.vector("x"), np.ma.array(np.ones(3), mask=[True, False, False])
    double = esat.compile(esat.Graph([x], x * 2))
    with pytest.raises(esat.InputError, match="masked array"):
        double(hidden)
    for build in (lambda: x + hidden, lambda: esat.constant(hidden), lambda: esat.shared(hidden)):
        with pytest.raises(esat.DtypeError, match="masked array"):
            build()
    np.testing.assert_array_equal(double(np.ma.array(np.ones(3))), np.full(3, 2.0))


def test_all_errors_are_of_one_family() -> None:
    for name in dir(esat.errors):
        item = getattr(esat.errors, name)
        ours = isinstance(item, type) and item.__module__ == "esat.errors"
        if ours and issubclass(item, Exception) and not issubclass(item, Warning):
            assert issubclass(item, EsatError), name


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "fast_compile", "debug"])
def test_known_sizes_that_contradict_each_other_are_refused(mode):
    x, y, z = esat.vector("x"), esat.tensor("y", shape=(5,)), esat.tensor("z", shape=(6,))
    five = esat.sum(x + y)
    six = esat.sum(x * z)
    place = rf"at .*test_bad_input\.py:{five.owner.where[1] + 1}"
    with pytest.raises(esat.ShapeError, match=rf"(?s)mul\(.*sizes 5 and 6 meet.*{place}"):
        esat.compile(esat.Graph([x, y, z], [five, six]), mode)


def test_graphs_with_branches_are_not_refused_for_their_sizes():
    """Of two branches only one is computed, so sizes that both tell need not agree."""
    condition = esat.scalar("c", dtype="bool")
    x, y, z = esat.vector("x"), esat.tensor("y", shape=(5,)), esat.tensor("z", shape=(6,))
    chosen = esat.ifelse(condition, esat.sum(x + y), esat.sum(x * z))
    assert len(esat.compile(esat.Graph([condition, x, y, z], [chosen])).graph.inputs) == 4


NUMBERS = {
    "float": float,
    "int": int,
    "complex": complex,
    "bool": lambda x: 1 if x else 0,
    "index": lambda x: [1, 2][x],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_asks_a_variable_for_a_number_names_it_and_its_line(name) -> None:
    with pytest.raises(
        DtypeError, match=rf"^{name}\(scalar\(int64\)\): n has no (truth )?value before it is computed"
    ):
        NUMBERS[name](esat.scalar("n", dtype="int64"))
    with pytest.raises(
        DtypeError, match=rf"(?s)^{name}\(scalar\(int64\)\): add.0 has no .*test_bad_input.py:\d+$"
    ):
        NUMBERS[name](esat.scalar("n", dtype="int64") + 1)


def test_what_goes_through_a_variable_says_that_its_size_is_not_known() -> None:
    x = esat.vector("x")
    for ask in (list, max, sum, lambda x: [*x], lambda x: dict(zip("ab", x, strict=True))):
        with pytest.raises(
            ShapeError, match=r"iter\(vector\(float64\)\): the number of elements is not known"
        ):
            ask(x)
    with pytest.raises(ShapeError, match=r"(?s)len\(vector\(float64\)\): .*test_bad_input.py"):
        len(x * 2)
    assert len(list(esat.vector("x", shape=(3,)))) == 3


def test_an_op_takes_no_parameters_that_it_does_not_have() -> None:
    with pytest.raises(CallError, match=r"^exp\(x\): takes no parameter where\n  at .*bad_input.py:[0-9]+$"):
        esat.exp(esat.vector("x"), where=True)


def test_inputs_and_outputs_where_a_graph_is_wanted() -> None:
    x = esat.vector("x")
    with pytest.raises(GraphError, match=r"not list; write esat.compile\(esat.Graph\(inputs, outputs\)\)"):
        esat.compile([x], [x + 1])
    with pytest.raises(ModeError, match="the name of one, or a Mode; not 3"):
        esat.compile(esat.Graph([x], x + 1), 3)


def test_values_that_are_given_by_name() -> None:
    x = esat.vector("x")
    with pytest.raises(GraphError, match="for Variables, not for 'x'"):
        (x + 1).eval({"x": np.ones(3)})


def test_what_lapack_says_keeps_its_capitals() -> None:
    x = esat.matrix("x")
    function = esat.compile(esat.Graph([x], esat.linalg.svdvals(x)))
    with pytest.raises(esat.LinearAlgebraError, match="SVD did not converge"):
        function(np.full((3, 3), np.nan))
    with pytest.raises(esat.LinearAlgebraError, match="singular matrix"):
        esat.compile(esat.Graph([x], esat.linalg.inv(x)))(np.zeros((3, 3)))


def test_what_comes_out_of_the_depths_is_named_by_the_users_call() -> None:
    x, m = esat.tensor("x", shape=(3,)), esat.matrix("m")
    with pytest.raises(
        CallError, match=r"(?s)^rot90\(m=matrix\(float64\), axes=3\): .*test_bad_input.py:[0-9]+$"
    ):
        esat.rot90(m, axes=3)
    with pytest.raises(
        CallError, match=r"(?s)^matrix_norm\(keepdims=ndarray\): keepdims is True or False.*test_bad_input"
    ):
        esat.linalg.matrix_norm(m, keepdims=np.array([]))
    with pytest.raises(CallError, match=r"^split\(indices_or_sections=object\): .* is a"):
        np.split(m, object())
    with pytest.raises(CallError, match=r"^show\(name=NoneType\): name is text"):
        esat.rules.show(None)
    with pytest.raises(DtypeError, match=r"^delete\(.*known when the graph is built"):
        esat.delete(x, esat.iscalar("i"))
    nested: list[object] = [1.0]
    nested.append(nested)
    with pytest.raises(DtypeError, match="too many levels, or contains itself"):
        esat.constant(nested)


def test_errors_of_users_own_functions_are_theirs() -> None:
    class Own(Exception):
        pass

    def fails(error: Exception) -> None:
        raise error

    for error in (KeyError("a"), ZeroDivisionError(), ValueError("mine"), Own()):
        with pytest.raises(type(error)) as caught:
            esat.sparse.structured(lambda v, error=error: fails(error), esat.sparse.csr_matrix("s"))
        assert caught.value is error


@pytest.mark.parametrize("index", [2**63, -(2**63), 10**400, np.uint64(2**63)])
def test_indices_of_more_than_64_bits(index: object) -> None:
    x = esat.vector("x")
    with pytest.raises(IndexError, match=r"^subtensor\(.*no axis has so many places"):
        x[index]
    for part in (slice(index, None), slice(None, index), slice(None, None, index)):
        values = np.arange(4.0)
        np.testing.assert_array_equal(esat.evaluate(x[part], {x: values}), values[part])
