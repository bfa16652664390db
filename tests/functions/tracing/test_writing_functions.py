"""NumPy's functions that write: what is cast, repeated and weak is as NumPy has it, in compiled functions."""

import numpy as np
import pytest

import esat

X = np.arange(6).reshape(2, 3)


def out_of(function, dtype):
    def run(x):
        out = np.zeros(3, dtype)
        function(x, axis=0, out=out)
        return out

    return run


def calling(function, *more):
    def run(x):
        function(x, *(one(x) if callable(one) else one for one in more))

    return run


CASES = {
    "add.at, floats to integers": (calling(np.add.at, [0, 1], [-0.5, 0.5]), np.array([1, -1])),
    "add.at, a float": (calling(np.add.at, 1, 0.5), np.array([1, -1], "int32")),
    "subtract.at": (calling(np.subtract.at, np.array([0, 1]), 0.5), np.array([1, -1], "int32")),
    "add.at, twice": (calling(np.add.at, [0, 0], [1, 2]), np.array([1, -1])),
    "add.at, weak": (calling(np.add.at, [0, 0], 1), np.array([1, -1], "int8")),
    "copyto, an integer": (calling(np.copyto, 255), np.zeros(3, "uint8")),
    "copyto, an integer to floats": (calling(np.copyto, 2), np.zeros(3, "float32")),
    "sum": (out_of(np.sum, "uint8"), X),
    "mean": (out_of(np.mean, "int32"), X),
    "add.reduce": (out_of(np.add.reduce, "uint8"), X),
    "place, one value": (calling(np.place, lambda x: x > 1, [9]), X),
    "place, fewer values": (calling(np.place, lambda x: x > 1, [9.5, 7, 5]), X * 1.0),
    "putmask, another shape": (calling(np.putmask, lambda x: (x > 1).reshape(3, 2), -1), X * 1.0),
    "putmask, fewer values": (calling(np.putmask, lambda x: x > 1, [-1, -2, -3, -4]), X * 1.0),
    "conj of booleans": (lambda c: c @ c.T.conj(), np.array([[True, False], [True, True]])),
    "conjugate is the array": (lambda x: x.conjugate().__iadd__(1), X.copy()),
    "where of scalars": (lambda x: np.where(x.sum() > 1, x.sum(), 0), X),
    "copy of a scalar": (lambda x: x.sum().copy(), X),
    "numpy.copy of a scalar": (lambda x: np.copy(x.sum()), X),
    "pad of a scalar": (lambda x: np.pad(x.sum(), 0), X),
    "accumulate of nothing": (np.maximum.accumulate, np.zeros(0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", ["fast_compile", "fast_run"])
def test_as_numpy(name, mode):
    function, array = CASES[name]
    theirs, ours = array.copy(), array.copy()
    expected, found = function(theirs), esat.jit(function, mode=mode)(ours)
    assert type(found) is type(expected)
    if expected is not None:
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "function",
    [
        calling(np.copyto, 1.5),
        lambda x: np.add(x, 1.5, out=x),
        lambda x: np.copyto(x, np.zeros(3)),
        calling(np.add.at, [0, 0], 0.5),
    ],
)
def test_what_is_not_cast_is_refused(function):
    with pytest.raises(esat.DtypeError, match="at "):
        esat.jit(function, mode="fast_compile")(np.zeros(3, "int32"))


def test_view():
    def f(x):
        x.view()[0] = 5
        x.view(x.dtype)[1] = 6
        return x.sum()

    theirs, ours = np.zeros(3), np.zeros(3)
    assert esat.jit(f, mode="fast_compile")(ours) == f(theirs)
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(esat.DtypeError, match=r"astype\(dtype\) converts"):
        esat.jit(lambda x: x.view("int64"))(np.zeros(3))


def test_attributes_that_are_not_there_are_told():
    with pytest.raises(AttributeError, match=r"traced function has no attribute 'tobytes'"):
        esat.jit(lambda x: x.tobytes())(np.zeros(3))
    with pytest.raises(AttributeError, match=r"no attribute 'cumsun' \(did you mean cumsum"):
        esat.jit(lambda x: x.cumsun())(np.zeros(3))
