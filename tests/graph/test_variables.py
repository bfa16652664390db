import operator

import numpy as np
import pytest

import esat
from esat.errors import DtypeError, GraphError, ShapeError
from esat.graph.variables import Apply, Constant, SharedVariable, Variable


def test_apply_owns_its_outputs():
    x = esat.scalar("x")
    out = Variable(x.type)
    node = Apply(esat.exp, [x], [out])
    assert out.owner is node
    assert out.index == 0
    assert node.where[0].endswith("test_variables.py")
    with pytest.raises(GraphError, match="already belongs"):
        Apply(esat.exp, [x], [out])
    with pytest.raises(GraphError, match="not a Variable"):
        Apply(esat.exp, [1.0], [Variable(x.type)])


X, M, J = esat.vector("x"), esat.matrix("m"), esat.ivector("i")
WRONG = {
    "dtypes": (esat.add, [X, J], [X.type()], r"add.*takes operands converted to .*call add.make_node"),
    "too few": (esat.add, [X], [X.type()], r"add\(x\): takes 2 operands, not 1"),
    "ranks": (esat.add, [X, M], [X.type()], r"add\(.*must have one rank"),
    "dtype of the result": (esat.add, [X, X], [J.type()], r"add.*results are of types \(vector\(float64\)\)"),
    "rank of the result": (esat.sum(M, 0).owner.op, [M], [M.type()], r"sum.*results are of types"),
    "no result": (esat.add, [X, X], [], r"add.*results are of types .*, not \(\)"),
    "no op": (3, [X, X], [X.type()], r"3 is not an op"),
    "no list": (esat.exp, X, [X.type()], r"exp.*inputs are a list of Variables, not x"),
    "itself": (esat.exp, [X], [X], r"exp.*cannot be an operand of its own"),
    "an index of another array": (X[0].owner.op, [], [X.type()], r"subtensor"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_applications_are_refused_when_they_are_made(name):
    op, inputs, outputs, message = WRONG[name]
    with pytest.raises(GraphError, match=message):
        Apply(op, inputs, outputs)
    assert X.owner is None


def test_what_ops_make_can_be_made_by_hand():
    outputs = [
        X[1:].sum(), M @ M.T, esat.linalg.solve(M, X), esat.where(X > 0, J, 2.0), esat.concatenate([X, J]),
        esat.set_subtensor(X[1:3], 1.0), esat.reshape(X, (3, -1)), M[[0, 1], :], esat.sort(X),
        esat.softmax(M),
        *esat.linalg.svd(M), esat.arange(esat.shape(M)[0]), esat.zeros((esat.shape(M)[1], 3)), esat.cumsum(X),
        esat.ifelse(X[0] > 0, X, X + 1), esat.random.normal(esat.random.state(), size=(2,))[1],
        esat.sparse.dot(esat.sparse.csr_matrix("s"), M), esat.take_along_axis(X, J, 0), esat.tile(X, 3),
        esat.grad(esat.logsumexp(M @ X), M), esat.cast(X, "int8"), esat.argmax(M, 1), esat.diagonal(M),
    ]  # fmt: skip
    nodes = esat.graph.toposort(outputs)
    assert len(nodes) > 50
    for node in nodes:
        made = Apply(node.op, node.inputs, [Variable(output.type) for output in node.outputs])
        assert made.inputs == node.inputs


def test_the_users_line_is_the_one_outside_esat():
    assert esat.mean(esat.vector()).owner.where[0] == __file__


def test_constants_cannot_change():
    array = np.ones(2)
    c = esat.constant(array)
    array[0] = 5
    assert c.data.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        c.data[0] = 2
    with pytest.raises(AttributeError):
        c.data = array
    assert c.clone() is c
    assert c.type.shape == (2,)


def test_constants_from_values():
    assert esat.constant([1, 2]).dtype == "int64"
    assert esat.constant(1.5, "float32").dtype == "float32"
    assert str(esat.constant(2.5)) == "2.5"
    assert str(esat.constant(2.5, name="half")) == "half"
    for bad in ("text", object(), None, [esat.scalar()], [[1], [1, 2]]):
        with pytest.raises(DtypeError):
            esat.constant(bad)


def test_variables_are_found_by_identity():
    x = esat.scalar("x")
    assert len({x, x, esat.scalar("x")}) == 2
    assert {x: 1}[x] == 1
    assert {(x, 1): 2}[x, 1] == 2
    assert x in [x, esat.scalar("x")]
    assert [esat.constant(1.0), x] != [x]
    one, other = esat.constant(1.0), esat.constant(1.0)
    assert len({one, other}) == 2
    with pytest.raises(TypeError, match="truth value"):
        bool(x > 0)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_comparisons_are_elementwise(compare):
    x, w = esat.vector("x"), esat.shared(np.array([1.0, 2.0]))
    values = np.array([0.0, 1.0])
    for other, number in (
        (0, 0),
        (1.0, 1.0),
        (np.ones(2), np.ones(2)),
        (np.float64(0), 0.0),
        (w, w.get_value()),
    ):
        for built in (compare(x, other), compare(other, x)):
            assert isinstance(built, Variable)
            assert built.dtype == "bool"
            np.testing.assert_array_equal(built.eval({x: values}), compare(values, number))
    chosen = np.where(compare(x, 0), 1, 2)
    assert chosen.eval({x: values}).tolist() == np.where(compare(values, 0), 1, 2).tolist()


def test_comparisons_are_never_silently_false():
    x, y = esat.vector("x"), esat.vector("y")
    asked = [
        lambda: bool(x == y), lambda: x == y or 1, lambda: x in [y], lambda: [y].index(x),
        lambda: [y].count(x), lambda: [y].remove(x), lambda: (y,) == (x,), lambda: not operator.ne(x, y),
        lambda: x in {"a": y}.values(), lambda: 1 if operator.eq(0, x) else 2,
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(DtypeError, match=r"asked by `is`\n  at .*test_variables\.py"):
            ask()
    reasons = ((None, r"`x is None`\n  at .*_variables\.py"), ("a", "not numeric"), (object(), "not numeric"))
    for other, reason in reasons:
        for compare in (operator.eq, operator.ne):
            with pytest.raises(DtypeError, match=rf"^(eq|ne)(\(.*\))?: .*{reason}"):
                compare(x, other)
    with pytest.raises(ShapeError, match=r"^eq\("):
        operator.eq(esat.tensor("a", shape=(3,)), esat.tensor("b", shape=(4,)))


def test_optimizers_may_ask_whether_nodes_are_the_same():
    x, y, three = esat.vector("x"), esat.vector("y"), esat.tensor("three", shape=(3,))
    four, state = esat.tensor("four", shape=(4,)), esat.random.state()
    asked = {}

    class Asks(esat.classic.Optimizer):
        def apply(self, fgraph):
            asked["same"] = [bool(x == x), bool(x != y), x in [y, x], [y, x].index(x), bool(three != four)]
            asked["other"] = [
                bool(x == y),
                bool(x != x),
                x in [y, three],
                bool(three == four),
                bool(state == x),
            ]
            asked["state"] = [bool(state == state)]
            asked["built"] = esat.where(x == y, 1, 2)
            for value in (x == 0, x > y):
                with pytest.raises(DtypeError, match="truth value"):
                    bool(value)

    Asks().optimize(esat.FunctionGraph([x], [x + 1]))
    assert asked["same"] == [True, True, True, 1, True]
    assert asked["other"] == [False] * 5
    assert asked["state"] == [True]
    assert asked["built"].eval({x: np.arange(2.0), y: np.ones(2)}).tolist() == [2, 1]
    with pytest.raises(DtypeError, match="truth value"):
        bool(x == y)


def test_shared_variables_own_their_value():
    array = np.ones(2)
    w = SharedVariable(esat.TensorType("float64", shape=(None,)), array, "w")
    array[0] = 9
    assert w.get_value().tolist() == [1.0, 1.0]
    w.get_value()[0] = 9
    assert w.get_value().tolist() == [1.0, 1.0]
    assert w.get_value(borrow=True) is w.get_value(borrow=True)
    w.set_value([1, 2, 3])
    assert w.get_value().dtype == np.float64
    with pytest.raises(ShapeError):
        w.set_value(np.ones((2, 2)))
    with pytest.raises(DtypeError):
        w.set_value(np.ones(2, dtype="complex128"))
    assert w.clone() is w


def test_numpy_makes_no_arrays_of_variables():
    x = esat.vector("x")
    for result in (np.ones(2) + x, np.float64(2) * x, np.ones(2) < x, 2 - x, np.ones((2, 2)) @ x, np.exp(x)):
        assert isinstance(result, Variable)
    with pytest.raises(DtypeError, match="has no value"):
        np.asarray(x)


def test_text():
    x = esat.vector("x")
    assert str(x) == "x"
    assert str(x + 1) == "add.0"
    assert str(esat.vector()) == "<vector(float64)>"
    assert "exp" in repr(esat.exp(x).owner)
    assert isinstance(esat.constant(3), Constant)
