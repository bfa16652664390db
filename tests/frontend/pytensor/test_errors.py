"""What users of PyTensor know of wrong operands: the kinds of exceptions, with their own line; and values
that its other modes accept."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.pad import pad

from esat.errors import ShapeError
from frontend.pytensor.peer import MODES, REFERENCE, compared, same, variable

M = np.arange(16.0).reshape(4, 4)
X, R, V, PLACES = pt.dmatrix(), pt.dmatrix(), pt.dvector(), pt.lvector()

REFUSED = {
    "a size that is stated": (lambda: pt.specify_shape(X, (3, None)) * 2, [M], AssertionError),
    "a place out of range": (lambda: X[PLACES], [M, np.array([0, 7])], IndexError),
    "a number out of range": (lambda: X[7], [M], IndexError),
    "a mask that is too long": (lambda: X[PLACES > 0], [M, np.array([1, 0, 1, 0, 1])], IndexError),
    "a mask of two axes": (lambda: X[R > 0], [M, np.ones((4, 3))], IndexError),
    "sizes of a product": (lambda: X @ R, [M, np.ones((3, 2))], ValueError),
    "sizes of a sum": (lambda: X + R, [M, np.ones((3, 2))], ValueError),
    "a sum that would be stretched": (lambda: X + R, [M, np.ones((1, 4))], ValueError),
    "parts of other widths": (lambda: pt.join(0, X, R), [M, np.ones((3, 2))], ValueError),
    "elements for a shape": (lambda: X.reshape(PLACES, ndim=2), [M, np.array([3, 7])], ValueError),
    "a value too long": (lambda: pt.inc_subtensor(X[:2], V), [M, np.ones(2)], ValueError),
    "sums at places": (lambda: pt.inc_subtensor(X[PLACES], R), [M, np.ones((1, 4)), [0, 0]], ValueError),
    "the greatest of nothing": (lambda: pt.max(X, axis=0), [np.ones((0, 4))], ValueError),
    "an inverse": (lambda: pt.linalg.inv(X), [np.ones((4, 4))], np.linalg.LinAlgError),
    "rows that are not square": (lambda: pt.linalg.cholesky(X), [np.ones((4, 3))], ValueError),
}


def _inputs(output, values):
    inputs = [one for one in (X, R, V, PLACES) if one in set(pytensor.graph.traversal.ancestors([output]))]
    return inputs, [np.asarray(value) for value in values]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REFUSED)
def test_kinds_of_exceptions(name, mode):
    build, values, kind = REFUSED[name]
    output = build()
    inputs, values = _inputs(output, values)
    with pytest.raises(kind):
        pytensor.function(inputs, output, mode=REFERENCE)(*values)
    function = pytensor.function(inputs, output, mode=mode)
    with pytest.raises(kind) as found:
        function(*values)
    assert "test_errors.py" in str(found.value)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_are_checked_by_pytensor(mode):
    function = pytensor.function([X, V], X * 2 + V.sum(), mode=mode)
    with pytest.raises(TypeError, match="cannot store a value of dtype complex128"):
        function(np.ones((2, 2), "complex128"), np.ones(2))
    with pytest.raises(TypeError, match="Missing input"):
        function(M)
    with pytest.raises(TypeError, match="Wrong number of dimensions"):
        function(np.ones(2), np.ones(2))


WRITTEN = {
    "added": (lambda: pt.inc_subtensor(X[:2], R), [M, np.ones((1, 4))]),
    "set": (lambda: pt.set_subtensor(X[:2], R), [M, np.ones((1, 4))]),
    "a column": (lambda: pt.inc_subtensor(X[1:], R), [M, np.ones((3, 1))]),
    "one element": (lambda: pt.inc_subtensor(X[:2], V), [M, np.ones(1)]),
    "at places": (lambda: pt.set_subtensor(X[PLACES, 0], V), [M, np.ones(1), [0, 2]]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRITTEN)
def test_values_that_turn_out_to_have_one_element_are_stretched(name, mode):
    build, values = WRITTEN[name]
    output = build()
    inputs, values = _inputs(output, values)
    whole = [np.asarray(values[0])] * 2
    expected = pytensor.function(inputs, output, mode=REFERENCE)
    function = pytensor.function(inputs, output, mode=mode)
    same([function(*values)], [expected(*values)])
    if R in inputs and name != "a column":
        whole = [M, np.full((2, 4), 3.0)]
        same([function(*whole)], [expected(*whole)])
    assert not function.vm.jit_fn.report.foreign


SINGULAR = {
    "general": pt.linalg.solve,
    "symmetric": lambda a, b: pt.linalg.solve(a, b, assume_a="sym"),
    "positive definite": lambda a, b: pt.linalg.solve(a, b, assume_a="pos"),
    "tridiagonal": lambda a, b: pt.linalg.solve(a, b, assume_a="tridiagonal"),
    "a lower triangle": lambda a, b: pt.linalg.solve_triangular(a, b, lower=True),
    "an upper triangle": lambda a, b: pt.linalg.solve_triangular(a, b, trans=1),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SINGULAR)
def test_solutions_of_singular_systems_are_nan(name, mode):
    """As PyTensor's own: a sampler goes on, where an error would end it."""
    output = SINGULAR[name](X, R)
    function = pytensor.function([X, R], output, mode=mode)
    expected = pytensor.function([X, R], output, mode=REFERENCE)
    good, bad = np.diag([4.0, 5.0, 6.0, 7.0]), np.diag([1.0, 0.0, 2.0, 3.0])
    for matrix in (good, bad, good):
        same([function(matrix, M)], [expected(matrix, M)])
    assert np.isnan(function(bad, M)).all()
    assert not function.vm.jit_fn.report.foreign


@pytest.mark.parametrize("mode", MODES)
def test_of_a_batch_singular_systems_alone_are_nan(mode):
    batch, values = pt.dtensor3(), [np.stack([np.eye(4), np.ones((4, 4))]), M]
    output = pt.linalg.solve(batch, R)
    function = pytensor.function([batch, R], output, mode=mode)
    same([function(*values)], [pytensor.function([batch, R], output, mode=REFERENCE)(*values)])


def test_sizes_that_are_to_be_found_in_a_batch_of_shapes():
    x, v, shape = pt.lscalar(), pt.dvector(), pt.tensor(dtype="int64", shape=(2,))
    shapes = pt.stack([[-1, x], [x - 1, -1]], axis=0)
    output = vectorize_graph(v.reshape(shape), {shape: shapes})
    compared([x, v], [output], [np.array(3), np.arange(6.0)])
    for mode in MODES:
        with pytest.raises(ValueError, match=r"sizes differ within a batch|could not broadcast"):
            pytensor.function([x, v], output, mode=mode)(2, np.arange(6.0))


@pytest.mark.parametrize("kind", ["linear_ramp", "maximum", "mean", "edge", "reflect", "wrap"])
def test_gradients_of_padded_arrays_of_known_sizes(kind):
    """Choices of which both sides turn out to be zero keep their shapes."""
    x, w = variable(M, known=True), pt.dmatrix()
    cost = (pad(x, ((1, 2), (2, 1)), mode=kind) * w).sum()
    weights = np.random.default_rng(3).normal(size=(7, 7))
    compared([x, w], [pytensor.grad(cost, x)], [M, weights], modes=("ESAT",))


class _Halved(Op):
    """Declares as many elements as there are, and gives half of them."""

    def make_node(self, vector):
        return Apply(self, [vector], [vector.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0][: len(inputs[0]) // 2]


@pytest.mark.parametrize("mode", MODES)
def test_sizes_that_users_ops_declare_are_not_believed(mode):
    given, values = pt.dvector(shape=(6,)), np.arange(6.0)
    outputs = [_Halved()(given) * 2.0, pt.sum(_Halved()(given * 3.0)) + given]
    for found, wanted in zip(
        pytensor.function([given], outputs, mode=mode)(values),
        pytensor.function([given], outputs, mode=REFERENCE)(values), strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(found, wanted)


def test_an_op_that_declares_other_sizes_is_named_where_its_operands_may_be_overwritten():
    """Then the call cannot be made a second time."""
    given = pt.dvector(shape=(6,))
    function = pytensor.function([pytensor.In(given, mutable=True)], _Halved()(given * 2.0), mode="ESAT")
    with pytest.raises(ShapeError, match=r"^_Halved\(.*perform gives shape \(3,\).*\n.*test_errors.py"):
        function(np.arange(6.0))
