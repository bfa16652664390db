"""What errors of traced functions say: whose function, which line, what to write; and whose frames."""

import math
import traceback

import numpy as np
import pytest
import scipy.integrate
from scipy.spatial.transform import Rotation

import esat
from esat.errors import (
    DtypeError,
    EsatError,
    GradientError,
    InputError,
    ShapeError,
    TracedAttributeError,
    TracingError,
)
from esat.graph.calls.callers import PACKAGE

X = np.ones(3)


@esat.jit
def added(x, y, n=1):
    z = x * 2
    return z + y


def test_arguments_are_those_of_the_users_function():
    with pytest.raises(TypeError, match=r"^added\(\) missing 1 required positional argument: 'y'"):
        added(X)
    with pytest.raises(TypeError, match=r"^added\(\) got an unexpected keyword argument 'k'"):
        added(X, X, k=1)


def test_lines_are_named_and_own_frames_hidden(monkeypatch):
    line = added.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(ShapeError, match=rf"test_messages\.py:{line}, in added") as raised:
        added(X, np.ones(4))
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert frames[-1].lineno == line
    assert sum(frame.filename.startswith((PACKAGE, "<esat")) for frame in frames) <= 2
    monkeypatch.setenv("ESAT_TRACEBACK", "full")
    with pytest.raises(ShapeError) as raised:
        added(X, np.ones(4))
    assert len(traceback.extract_tb(raised.value.__traceback__)) > len(frames)


def exclaimed(ask) -> list[str]:
    """Files of the frames of the error that a call raises."""
    with pytest.raises(EsatError) as raised:
        ask()
    return [frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)]


CALLS = {
    "a rule": lambda: esat.compile(
        esat.Graph([X], [esat.exp(X)]), rules='(rewrite (Exp x) (No x) :name "no")'
    ),
    "a mode": lambda: esat.compile(esat.Graph([X], [esat.exp(X)]), mode="fats_run"),
    "an input": lambda: esat.Graph([X], [esat.vector("y")]),
    "shapes": lambda: esat.add(esat.zeros(3), esat.zeros(4)),
    "a call": lambda: esat.compile(esat.Graph([X], [X * 2]))(np.ones((2, 2))),
}


@pytest.mark.parametrize("call", CALLS)
def test_own_frames_of_all_calls_are_hidden(call, monkeypatch) -> None:
    files = exclaimed(CALLS[call])
    assert files[-1] == __file__
    assert not any(file.startswith((PACKAGE, "<esat")) for file in files)
    monkeypatch.setenv("ESAT_TRACEBACK", "full")
    assert any(file.startswith(PACKAGE) for file in exclaimed(CALLS[call]))


LINES = {
    "an index": lambda x: x[5],
    "an axis": lambda x: x.sum(axis=2),
    "a shape": lambda x: x.reshape(7),
    "a product": lambda x: x @ np.ones(4),
    "a solve": lambda x: np.linalg.solve(x[:, None], x),
    "a draw": lambda x: np.random.rand(3) + x,
    "no such function": lambda x: np.trim_zeros(x) + x,
    "a library": lambda x: scipy.integrate.simpson(x) + x,
    "a library in C": lambda x: Rotation.from_euler("xyz", x).as_matrix(),
    "an axis of text": lambda x: x.sum(axis="rows"),
    "an axis twice": lambda x: np.sum(x[None], axis=(0, 0)),
    "a branch": lambda x: x if x.sum() > 0 else x[:1],
    "a negative of bools": lambda x: -(x > 0),
    "an attribute": lambda x: x.strides,
    "a matrix": lambda x: np.matrix(x) + x,
    "an iterator": lambda x: np.nditer([x, x]),
    "bits": lambda x: x.view(np.int64),
    "a list": lambda x: ["a", "b", "c"][np.argmin(x)],
    "a key": lambda x: {1.0: 2}[x[0]],
}


@pytest.mark.parametrize("name", LINES)
def test_errors_are_esats_and_name_the_line(name):
    f = LINES[name]
    with pytest.raises(EsatError) as raised:
        esat.jit(f)(X)
    text = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert f"test_messages.py:{f.__code__.co_firstlineno}" in text
    for internal in ("refuse", "call:", "make.", "<locals>", "_nditer", "operate"):
        assert internal not in text


def test_functions_of_libraries_are_named():
    """What they are given has no value; NumPy's advice for arrays would not help."""
    for function, name in (
        (LINES["a library in C"], "scipy.spatial.transform.Rotation.from_euler"),
        (lambda x: scipy.integrate.quad(lambda t: np.exp(-t * x[0]), 0, 1)[0], "scipy.integrate.quad"),
        (lambda x: scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), x).y, "scipy.integrate.solve_ivp"),
        (lambda x: np.vectorize(abs)(x) + x, "numpy.vectorize"),
    ):
        with pytest.raises(TracingError, match=f"{name} computes with known values, and is no function of"):
            esat.jit(function)(X)


def test_counts_that_are_computed_are_answered_by_what_takes_them():
    def added(x):
        total = 0.0
        for i in range(int(x[0])):
            total = total + i
        return total

    for function in (added, lambda x: [0.0] * int(x[0]), lambda x: "abc"[int(x[0])]):
        with pytest.raises(TracingError, match=r"esat.fori_loop\(0, n, body, value\)"):
            esat.jit(function)(X)
    looped = esat.jit(lambda x: esat.fori_loop(0, int(x[0]), lambda i, total: total + i, 0.0))
    assert looped(5.0 * X) == added(5.0 * X)


def test_truth_of_several_elements_is_ambiguous():
    for function in (lambda x: x if x > 0 else -x, lambda x: 0 < x < 2, lambda x: not x):
        with pytest.raises(TracingError, match=r"no truth: x.any\(\) and x.all\(\) have"):
            esat.jit(function)(X)


COUNT = 0


def test_what_is_changed_is_shown_with_a_line():
    def counts(x):
        global COUNT  # noqa: PLW0603 - the mistake
        COUNT = COUNT + 1
        return x

    def grows(items):
        items.append(1.0)
        return sum(items)

    first = counts.__code__.co_firstlineno
    with pytest.raises(EsatError, match=rf"global COUNT(?s:.)*test_messages.py:{first + 2}"):
        esat.jit(counts)(X)
    with pytest.raises(EsatError, match=rf"the list items(?s:.)*test_messages.py:{first + 5}"):
        esat.jit(grows)([1.0])
    with pytest.raises(GradientError, match="argument 0, a str, has no derivatives"):
        esat.grad(lambda text: 1.0)("a")


def test_what_is_asked_for_is_shown():
    def grown(x):
        kept = []
        while x.sum() < 10.0:
            x = 2.0 * x
            kept.append(x)
        return kept

    with pytest.raises(TracingError, match=r"`while x.sum\(\) < 10.0:` asks for the value") as raised:
        esat.jit(grown)(X)
    assert "how often a loop runs" in str(raised.value)
    with pytest.raises(TracingError, match=r"np\.array\(values\)\[i\]"):
        esat.jit(LINES["a list"])(X)


def test_attributes_are_refused_as_attributes():
    @esat.jit
    def f(x):
        assert not hasattr(x, "strides")
        assert x.flags.c_contiguous
        assert x.flags["WRITEABLE"]
        return x.item(0), x.tolist()

    assert f(X) == (1.0, [1.0, 1.0, 1.0])

    def reshaped(x):
        x.shape = (3, 1)

    with pytest.raises(TracedAttributeError, match=r"x = x\.reshape"):
        esat.jit(reshaped)(X)


def test_memory_order_is_a_part_of_programs_that_ask():
    f = esat.jit(lambda x: x + 1.0 if x.flags.f_contiguous else x - 1.0)
    a = np.ones((2, 3))
    np.testing.assert_array_equal(f(a), a - 1.0)
    np.testing.assert_array_equal(f(np.asfortranarray(a)), a + 1.0)


def test_elements_in_order():
    f = esat.jit(lambda x: ([2 * v for v in np.nditer(x)], dict(np.ndenumerate(x))))
    a = np.arange(6.0).reshape(2, 3)
    elements, places = f(a)
    np.testing.assert_array_equal(elements, 2.0 * a.ravel())
    assert places == dict(np.ndenumerate(a))


def test_transformations_name_arguments():
    with pytest.raises(GradientError, match=r"<lambda> returns vector\(float64, shape=\(3,\)\)\. Sum it"):
        esat.grad(lambda x: 2.0 * x)(X)
    with pytest.raises(ShapeError, match=r"argument a \(axis 0\) has 5, argument b \(axis 0\) has 7"):
        esat.vmap(lambda a, b: a + b)(np.ones(5), np.ones(7))
    with pytest.raises(ShapeError, match=r"argument p\[1\] \(axis 0\) has 4"):
        esat.vmap(lambda a, p: a + p["x"] + p["y"])(np.ones(5), {"x": np.ones(5), "y": np.ones(4)})
    with pytest.raises(ShapeError, match="1 for 2"):
        esat.vmap(lambda a, b: a + b, in_axes=(0,))(np.ones(5), np.ones(5))


def test_numbers_and_names():
    with pytest.raises(EsatError, match="does not fit scalar"):
        esat.jit(lambda n: n + 1)(10**30)
    with pytest.raises(AttributeError, match="did you mean exp"):
        esat.expp
    with pytest.raises(DtypeError, match="booleans; use ~"):
        esat.jit(LINES["a negative of bools"])(X)


MISTAKES = {
    "append": (lambda x: x.append(1.0), AttributeError, r"x\.append.*np\.append\(x, value\)"),
    "pop": (lambda x: x.pop(), AttributeError, r"np\.delete"),
    "a method": (lambda x: x.meann(), AttributeError, r"did you mean mean"),
    "a function": (lambda x: np.expp(x) + 1, AttributeError, r"numpy has no 'expp' \(did you mean exp"),
    "an axis": (lambda x: x.sum(axis=2), IndexError, r"sum\(axis=2\): out of range for 1 axes\n  at "),
    "float": (lambda x: float(x) * 2, TypeError, r"shape \(4,\) is no number; x\.astype\(float\)"),
    "a call": (lambda x: x(1), TypeError, r"an array is no function: x\[place\]"),
    "math": (lambda x: math.sin(x) + 1.0, TypeError, r"math\.sin.*np\.sin takes each element"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_line_and_what_to_write(name):
    function, kind, message = MISTAKES[name]
    with pytest.raises(EsatError, match=message) as raised:
        esat.jit(function)(np.arange(4.0))
    assert isinstance(raised.value, kind)
    assert "test_messages.py:" in str(raised.value)


def test_surplus_arguments_are_counted_as_python_counts():
    for function in (lambda x: x, lambda x, y=1.0: x, lambda x, *, k=2: x):
        compiled = esat.jit(function)
        compiled(np.ones(3))
        with pytest.raises(TypeError) as raised:
            compiled(1.0, 2.0, 3.0)
        with pytest.raises(TypeError) as pythons:
            function(1.0, 2.0, 3.0)
        assert str(raised.value).rpartition(">")[2] == str(pythons.value).rpartition(">")[2]


def test_nothing_is_equal_to_none():
    def compared(x):
        return x == None, x != None, x == None  # noqa: E711

    for x in (np.arange(3.0), np.arange(3), np.array([np.nan, 1.0])):
        for found, wanted in zip(esat.jit(compared)(x), compared(x), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_iterators_are_not_taken():
    for value in ((i for i in range(3)), iter([1.0]), zip([1.0], [2.0], strict=True)):
        with pytest.raises(InputError, match="not there in the next call; pass a list"):
            esat.jit(lambda g: sum(g) + 0)(value)
