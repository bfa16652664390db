import numpy as np
import pytest

import esat
from esat import assert_
from esat.errors import AssertionFailed, CallError, DtypeError, GraphError, ShapeError
from esat.graph.algorithms.folding import fold
from esat.graph.op import Family

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 4.0]])


def test_assert_passes_its_operand_on():
    x = esat.matrix("x")
    checked = assert_(x, x.sum() > 0, x < 10, message="x is in bounds")
    assert checked.type == x.type
    assert checked.owner.op.perform([X, np.array(True)])[0] is X
    assert esat.evaluate(checked, {x: X}).tolist() == X.tolist()
    assert assert_(x).owner.op == assert_(x).owner.op != checked.owner.op
    esat.verify_grad(lambda y: assert_(y, y < 10) * y, [X])


def test_assert_says_what_failed():
    x = esat.matrix("x")
    with pytest.raises(
        AssertionFailed, match=r"condition 1 is false\): x is positive\n  at .*test_control.py"
    ):
        esat.evaluate(assert_(x, True, (x > 0).all(), message="x is positive"), {x: X})
    with pytest.raises(AssertionError, match=r"false at 2 places, first at \(0, 1\)"):
        esat.evaluate(assert_(x, x > 0), {x: X})
    with pytest.raises(ShapeError, match="false at 2 places"):
        esat.evaluate(assert_(x, x > 0, error=ShapeError), {x: X})
    for error in (ValueError, "ShapeError", None):
        with pytest.raises(CallError, match=r"error=.*: the class of the error is an EsatError"):
            assert_(x, x > 0, error=error)


def test_assert_fails_at_run_time_alone():
    checked = assert_(np.ones(3), False)
    assert checked.owner.op.family is Family.CONTROL
    assert fold(checked.owner, checked.owner.inputs) is None


def test_assert_of_constants_that_holds_is_one():
    size = assert_(np.array([2]), np.ones(5, bool))
    (folded,) = fold(size.owner, size.owner.inputs)
    assert folded.data.tolist() == [2]
    chosen = esat.ifelse(True, np.ones(3), np.zeros(3))
    assert fold(chosen.owner, chosen.owner.inputs) is None
    x = esat.vector("x")
    sizes = esat.constant(np.full(4, 2))
    size = assert_(np.array([2]), esat.eq(np.array([2]), sizes), message="sizes differ")[0]
    function = esat.compile(esat.Graph([x], [x[:2] * esat.arange(size)]))
    assert "assert" not in {node.op.name for node in function.optimized.toposort()}
    assert function(np.array([4.0, 5.0, 6.0])).tolist() == [0.0, 5.0]


@pytest.mark.parametrize("choice", [True, False])
def test_ifelse_chooses_whole_values(choice):
    c, x, y = esat.scalar("c", "bool"), esat.vector("x"), esat.vector("y", "float32")
    chosen = esat.ifelse(c, x, y)
    assert str(chosen.type) == "vector(float64)"
    values = {c: choice, x: np.arange(3.0), y: np.ones(5, "float32")}
    result = esat.evaluate(chosen, values)
    assert result.tolist() == (values[x] if choice else values[y]).tolist()
    assert result.dtype == np.float64
    first, second = esat.ifelse(c, [x, 1.0], [x[::-1], x.sum()])
    assert esat.evaluate([first, second], values)[1] == (1.0 if choice else 3.0)
    assert chosen.owner.op.lazy
    assert first.owner.op.view_map == {0: (1, 3), 1: (2, 4)}


def test_gradient_of_ifelse_goes_to_the_choice():
    for choice in (True, False):
        esat.verify_grad(lambda a, b, c=choice: esat.ifelse(c, a * a, esat.exp(b)), [X[0], X[1]])
        esat.verify_grad(lambda a, b, c=choice: esat.ifelse(c, [a * a, b], [b, a * b])[1], [X[0], np.ones(3)])
    c, x, y = esat.scalar("c", "bool"), esat.vector("x"), esat.vector("y")
    gradients = esat.grad(esat.ifelse(c, x, y).sum(), [x, y])
    values = esat.evaluate(gradients, {c: False, x: np.ones(2), y: np.ones(3)})
    assert [value.tolist() for value in values] == [[0, 0], [1, 1, 1]]


def test_static_sizes_of_ifelse():
    x, y = esat.vector(shape=(3,)), esat.vector(shape=(4,))
    assert esat.ifelse(True, x, x).type.shape == (3,)
    assert esat.ifelse(True, x, y).type.shape == (None,)


def test_errors_of_ifelse():
    x = esat.vector()
    with pytest.raises(ShapeError, match="condition is a scalar"):
        esat.ifelse(x > 0, x, x)
    with pytest.raises(ShapeError, match="one rank"):
        esat.ifelse(True, x, esat.matrix())
    with pytest.raises(GraphError, match="as many values"):
        esat.ifelse(True, [x, x], [x])


def test_specify_shape():
    x = esat.matrix("x")
    known = esat.specify_shape(x, (None, 3))
    assert known.type.shape == (None, 3)
    assert esat.evaluate(known, {x: X}).tolist() == X.tolist()
    assert esat.specify_shape(known, (None, 3)) is known
    with pytest.raises(ShapeError, match=r"sizes differ\n  at"):
        esat.evaluate(known, {x: X.T})
    with pytest.raises(ShapeError, match="contradict"):
        esat.specify_shape(known, (2, 4))
    with pytest.raises(ShapeError, match="3 sizes for 2 axes"):
        esat.specify_shape(x, (1, 2, 3))
    esat.verify_grad(lambda y: esat.specify_shape(y, (2, 3)) ** 2, [X])


def test_assertions_in_compiled_functions():
    x = esat.vector("x")
    for mode in ("fast_run", "greedy", "fast_compile"):
        step = esat.compile(esat.Graph([x], esat.log(assert_(x, x > 0)) * 2.0), mode=mode)
        assert step(np.ones(3)).tolist() == [0, 0, 0]
        with pytest.raises(AssertionFailed, match=r"test_control\.py"):
            step(-np.ones(3))
        choose = esat.compile(esat.Graph([x], esat.ifelse(x.sum() > 0, x * 2, -x)), mode=mode)
        assert choose(np.ones(3)).tolist() == [2, 2, 2]
        assert choose(-np.ones(3)).tolist() == [1, 1, 1]


def test_other_types_must_be_equal():
    with pytest.raises(DtypeError, match="one type"):
        esat.ifelse(True, esat.vector(), esat.random.RandomStream(1).state())
