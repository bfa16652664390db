"""All of a user's code is traced, by whatever way a function comes to it, and nothing of it is changed."""

import copy
import functools
import importlib
import math
import os
import pickle
import threading
from dataclasses import dataclass, field

import numba
import numpy as np
import pytest
import scipy.special

import esat
from esat.errors import EsatError
from tests.functions import users_helpers as helpers

X = np.array([0.3, 0.5, 2.0])
FILTER = helpers.Filter(3, 0.5)
TABLE = {"shift": helpers.shifted, "layers": [helpers.Layer(3)], "sine": math.sin}
SCALED = functools.partial(helpers.Filter.twice)


@dataclass
class Measured:
    value: object
    weights: object = field(default_factory=lambda: np.zeros(2))

    def __post_init__(self):
        self.both = np.zeros(2)
        self.both[0] = self.value


@dataclass(frozen=True)
class Settings:
    width: int = 3

    def window(self, x):
        out = np.zeros(self.width)
        out[:2] = x[:2]
        return out


def local_class(x):
    class Local:
        def __init__(self):
            self.array = np.zeros(3)

        def set(self):
            self.array[2] = x[0]
            return self.array

    return Local().set()


def _with_padded(x):
    made = helpers.Filter(len(x))
    made.padded = np.concatenate((x[:1], x))
    return made.memory * 2


def _with_pair(x):
    made, other = helpers.Filter(len(x)), helpers.Filter(len(x))
    made.padded, (other.gain, other.padded) = np.zeros(len(x) + 1), (3.0, np.concatenate((x[:1], x)))
    return other.memory * other.gain + made.memory


def imported_within(x):
    import math as m

    from tests.functions.users_helpers import shifted

    return shifted(x) * m.exp(x[0])


def recursive(x, n=3):
    if n == 0:
        out = np.zeros(3)
        out[0] = x[0]
        return out
    return recursive(x, n - 1) + x


def in_place(x):
    made = kept = helpers.Vector(x)
    made *= 2.0
    x = x.copy()
    x += 1.0
    x **= 2
    total = 0
    for part in made:
        total += part[0]
    return kept.values + x + total


PROGRAMS = {
    "a module": lambda x: helpers.shifted(x) + 0.0,
    "names of a module": lambda x: helpers.by_name(x) + 0.0,
    "SciPy by name": lambda x: helpers.whitened(x) + 0.0,
    "a decorator": lambda x: helpers.decorated(x) + 0.0,
    "a cache": lambda x: helpers.cached(x) + 0.0,
    "a class": lambda x: helpers.Filter(3).keep(x)(x),
    "a class method": lambda x: helpers.Filter.of(x).memory,
    "a static method": lambda x: helpers.Filter.twice(x) + 0.0,
    "an object": lambda x: FILTER(x) + 0.0,
    "a bound method": FILTER,
    "a property": lambda x: helpers.Filter.of(x).padded,
    "a property that takes values": _with_padded,
    "a property among other targets": _with_pair,
    "a cached property": lambda x: helpers.Filter.of(x).total,
    "slots": lambda x: helpers.Slotted(x).value,
    "a dict": lambda x: TABLE["shift"](x) + 0.0,
    "an object in a dict": lambda x: TABLE["layers"][0].forward(x) + 0.0,
    "a method of a class": lambda x: helpers.Layer.forward(TABLE["layers"][0], x),
    "math in a dict": lambda x: x * TABLE["sine"](x[0]),
    "a partial": lambda x: SCALED(x) + functools.partial(helpers.shifted, x)(),
    "a dataclass": lambda x: Measured(x[0]).both + Measured(x[1]).weights,
    "a frozen dataclass": lambda x: Settings().window(x),
    "a class within": local_class,
    "imports within": imported_within,
    "recursion": recursive,
    "map": lambda x: sum(map(math.sin, x)),
    "map of a module's": lambda x: list(map(helpers.shifted, [x, 2.0 * x])),
    "reduce": lambda x: functools.reduce(lambda a, b: helpers.shifted(a) + b, [x, x, x]),
    "operators": lambda x: (helpers.Vector(x) + helpers.Vector(2.0 * x) + 1.5).values,
    "a reflected operator": lambda x: (2.5 + helpers.Vector(x) * 3.0).values,
    "a narrower class's": lambda x: (helpers.Vector(x) + helpers.Longer(x)).values,
    "a sign": lambda x: (-helpers.Vector(x)).values,
    "a product of objects": lambda x: helpers.Vector(x) @ helpers.Vector(x + 1.0),
    "a comparison of objects": lambda x: helpers.Vector(x) == helpers.Vector(x + 1.0),
    "in place": in_place,
    "a loop over an object": lambda x: [2.0 * part for part in helpers.Vector(x)],
    "a comprehension": lambda x: [helpers.shifted(x * n) for n in range(3)],
    "index tricks": lambda x: np.r_[x, 0.0, 1:3] @ np.c_[np.r_[x, x]] + len(np.mgrid[0 : x.size]),
    "a generator": lambda x: sum(helpers.shifted(x * n) for n in range(3)),
    "SciPy's ufuncs": lambda x: scipy.special.expit(x) + 0.0,
}


def assert_same(result, expected):
    if isinstance(expected, (list, tuple)):
        assert type(result) is type(expected)
        for pair in zip(result, expected, strict=True):
            assert_same(*pair)
        return
    assert type(result) is type(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_traced(name):
    f = PROGRAMS[name]
    before = copy.deepcopy((FILTER.__dict__, TABLE["layers"][0].__dict__))
    expected = f(X) if name != "a cache" else helpers.shifted(X)
    compiled = esat.jit(f)
    assert_same(compiled(X), expected)
    assert_same(compiled(X + 1.0), f(X + 1.0) if name != "a cache" else helpers.shifted(X + 1.0))
    assert pickle.dumps(before[0]["gain"]) == pickle.dumps(FILTER.gain)
    np.testing.assert_equal(FILTER.memory, before[0]["memory"])
    assert set(FILTER.__dict__) == set(before[0])


def test_modules_and_classes_are_as_before():
    before = {name: id(value) for name, value in vars(helpers).items()}
    methods = {name: id(value) for name, value in vars(helpers.Filter).items()}
    code = helpers.shifted.__code__
    for f in PROGRAMS.values():
        esat.jit(f)(X)
    assert before == {name: id(value) for name, value in vars(helpers).items()}
    assert methods == {name: id(value) for name, value in vars(helpers.Filter).items()}
    assert helpers.shifted.__code__ is code
    assert type(helpers.shifted(X)) is np.ndarray


def test_objects_that_are_made_are_the_users():
    @esat.jit
    def f(x):
        made = helpers.Filter.of(x)
        assert type(made) is helpers.Filter
        assert isinstance(made, helpers.Base)
        assert FILTER is FILTER.inner.get("itself", FILTER)
        return made

    result = f(X)
    assert type(result) is helpers.Filter
    np.testing.assert_allclose(result.memory, [X.sum(), 0.0, 0.0])
    assert pickle.loads(pickle.dumps(result)).gain == 1.0


def test_traces_in_threads_do_not_meet():
    results = {}

    def run(number):
        f = esat.jit(lambda x: helpers.Filter(3, number)(x) + 0.0)
        results[number] = f(X)

    threads = [threading.Thread(target=run, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    plain = [helpers.Filter(3, float(n))(X) + 0.0 for n in range(4)]
    for thread in threads:
        thread.join()
    for n in range(4):
        np.testing.assert_allclose(results[float(n)], plain[n], rtol=1e-14)


def test_gradients_go_through_objects():
    gradient = esat.grad(lambda x: (FILTER(x) ** 2).sum())(X)
    step = 1e-6
    for place in range(3):
        moved = X.copy()
        moved[place] += step
        slope = ((FILTER(moved) ** 2).sum() - (FILTER(X) ** 2).sum()) / step
        assert gradient[place] == pytest.approx(slope, rel=1e-4)


BUILTINS = {
    "len": lambda x: len(x),  # noqa: PLW0108
    "len of a choice": lambda x: len(x[x > 0]) * 2,
    "sum": lambda x: sum(x) + 0.0,
    "sum of few": lambda x: sum([x[0], x[1]]),
    "sum from": lambda x: sum(x, 2.5),
    "sum of rows": lambda x: sum(np.outer(x, x)),
    "max": lambda x: max(x) + 0.0,
    "min": lambda x: min(x) + 0.0,
    "max of two": lambda x: max(x[0], x[4]),
    "min of numbers": lambda x: min(0.5, x[0], 1),
    "abs": lambda x: abs(x[0]),
    "round": lambda x: round(x[0], 1),
    "round to an integer": lambda x: round(x[0] * 3.0),
    "round of a number": lambda x: round(float(x.sum())),
    "round to even": lambda x: round(x[0] * 0 + 2.5),
    "any": lambda x: any(x > 1.0),
    "all": lambda x: all(x > 1.0),
    "any of some": lambda x: any(v > 1.0 for v in x),
    "all of some": lambda x: all([x[0] > -5.0, True, x[1] < 5.0]),
    "sorted": lambda x: sorted(x)[:],
    "sorted down": lambda x: sorted(x, reverse=True),
    "float": lambda x: float(x[0]) * 2,
    "float of one": lambda x: float(x[:1].sum()),
    "int": lambda x: int(x[0] * 10.0),
    "complex": lambda x: complex(x[0]),
    "complex of two": lambda x: complex(x[0], x[1]),
    "bool": lambda x: bool(x[0] > 0),
    "NumPy's float": lambda x: np.float64(x[0]),
    "NumPy's short float": lambda x: np.float32(x[0]),
    "bools add": lambda x: bool(x[0] > -9) + bool(x[1] > -9),
    "is scalar": lambda x: (np.isscalar(x), np.isscalar(x[0]), np.isscalar(2.0)),
}
FIVE = np.array([0.3, -1.5, 2.0, 2.0, -0.25])


@pytest.mark.parametrize("values", [FIVE, -FIVE, FIVE[::-1].copy()], ids=["values", "negative", "reversed"])
@pytest.mark.parametrize("name", BUILTINS)
def test_pythons_functions(name, values):
    f = BUILTINS[name]
    assert_same(esat.jit(f)(values), f(values))


def test_extrema_of_nan_are_pythons():
    for values in ([np.nan, 1.0, 2.0, 0.0, 3.0], [1.0, np.nan, 2.0, 0.0, 3.0], [1.0, 2.0, 0.0, 3.0, np.nan]):
        x = np.array(values)
        for f in (max, min):
            np.testing.assert_equal(esat.jit(lambda x, f=f: f(x), mode="strict")(x), f(x))
            of_three = esat.jit(lambda x, f=f: f(x[0], x[1], x[4]), mode="strict")
            np.testing.assert_equal(of_three(x), f(x[0], x[1], x[4]))


MATH = {
    "sin": (0.3, math.inf), "cos": (0.3, -math.inf), "tan": (0.3, math.inf), "asin": (0.3, 1.5),
    "acos": (0.3, -1.5), "atan": (0.3,), "sinh": (0.3, 800.0), "cosh": (0.3, -800.0), "tanh": (0.3,),
    "asinh": (0.3,), "acosh": (1.3, 0.5), "atanh": (0.3, 1.0), "exp": (0.3, 800.0), "expm1": (0.3, 800.0),
    "log": (0.3, 0.0), "log2": (0.3, -1.0), "log10": (0.3, 0.0), "log1p": (0.3, -1.0), "sqrt": (0.3, -1.0),
    "fabs": (-0.3,), "degrees": (0.3,), "radians": (0.3,), "erf": (0.3,), "erfc": (0.3,),
    "gamma": (2.3, -1.0), "lgamma": (2.3, -2.0), "floor": (-0.3, math.nan),
    "ceil": (0.3, math.inf), "trunc": (-1.3, math.nan),
    "isnan": (0.3, math.nan), "isinf": (0.3, math.inf), "isfinite": (0.3, math.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", MATH)
def test_functions_of_math(name):
    function = getattr(math, name)
    compiled = esat.jit(lambda x: function(x[0]))
    for value in MATH[name]:
        expected, result = outcome(function, value), outcome(compiled, np.array([value]))
        assert type(result) is type(expected)
        if isinstance(expected, Exception):
            assert str(result) == str(expected) or "math" in str(result)
        else:
            assert result == pytest.approx(expected, rel=1e-14, nan_ok=True)


def outcome(function, value):
    try:
        return function(value)
    except (ValueError, OverflowError) as error:
        return error


def test_functions_of_math_of_several():
    def f(x):
        return (
            math.atan2(x[0], x[1]), math.hypot(x[0], x[1], x[2]), math.pow(x[0], 2.5), math.fmod(x[2], x[0]),
            math.dist(x, [0.0, 1.0, 2.0]), math.log(x[0], 2), math.isclose(x[0], 0.3),
            math.copysign(x[0], -1.0), math.prod(x), math.fsum(x),
        )  # fmt: skip

    for result, expected in zip(esat.jit(f)(X), f(X), strict=True):
        assert isinstance(result, type(expected)) or isinstance(expected, np.float64)
        assert result == pytest.approx(expected, rel=1e-14)
    with pytest.raises(ValueError, match="math domain"):
        esat.jit(lambda x: math.pow(x[0], 0.5))(-X)


def test_math_is_pythons_of_what_is_known():
    def f(x, n):
        assert math.sqrt(4) == 2.0
        assert math.pi == np.pi
        return x * math.factorial(4) + math.sqrt(n)

    np.testing.assert_allclose(esat.jit(f)(X, 2), f(X, 2))


@esat.jit
def powers(x):
    return (
        float(x[0]) ** 0.5,
        float(x[0]) ** 2,
        2.0 ** float(x[1]),
        float(x[0]) // float(x[1]),
        float(x[0]) % 0.7,
    )


def test_arithmetic_of_numbers_from_arrays():
    x = np.array([5.3, 0.75])
    a, b = map(float, x)
    assert powers(x) == pytest.approx((a**0.5, a**2, 2.0**b, a // b, a % 0.7), rel=1e-15)
    with pytest.raises(ZeroDivisionError):
        powers(np.array([5.3, 0.0]))
    with pytest.raises(EsatError, match="complex"):
        powers(-x)


def test_code_without_its_text_is_traced_by_names():
    space = {"np": np}
    exec(
        "def f(x):\n    out = np.zeros(3)\n    out[0] = x.sum()\n    return out\n"
        "class Kept:\n    def __init__(self, gain): self.gain = gain\n"
        "    def step(self, x):\n        out = np.zeros(3)\n        out[:] = x * self.gain\n"
        "        return out\n",
        space,
    )
    np.testing.assert_allclose(esat.jit(space["f"])(X), space["f"](X))
    kept = space["Kept"](np.array([2.0]))
    np.testing.assert_allclose(esat.jit(kept.step)(X), kept.step(X))


class Grid:
    def __init__(self, values):
        self.values = values

    def __getitem__(self, place):
        out = np.zeros(2)
        out[0] = self.values[place]
        return out


ELEMENTS = {
    "a list": lambda x: [10, 20, 30, 40, 50][np.argmin(x)],
    "a tuple of traced numbers": lambda x: tuple(2.0 * x)[np.argmax(x)],
    "a list of rows": lambda x: [x, x + 1.0, x * 2.0][int(abs(x[0])) % 3],
    "from the end": lambda x: [1.5, 2.5, 3.5, 4.5, 5.5][np.argmin(x) - 5],
    "an index": lambda x: list(x).index(min(x)),
    "an index of numbers": lambda x: [v.item() for v in x].index(x.max()),
    "an object's": lambda x: Grid(x)[1],
    "a place of the call's": lambda x: [x, 2.0 * x][len(x) - 4],
    "in place": lambda x: np.nan_to_num(x * np.nan, copy=False, nan=0.5),
}


@pytest.mark.parametrize("values", [FIVE, -FIVE])
@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_by_computed_places(name, values):
    f = ELEMENTS[name]
    assert_same(esat.jit(f)(values), f(values))


def test_places_that_are_not_there():
    f = esat.jit(lambda x: [1.0, 2.0][np.argmax(x)])
    assert f(FIVE[1::-1].copy()) == 2.0
    with pytest.raises(IndexError, match="list index out of range"):
        f(FIVE)
    with pytest.raises(ValueError, match="is not in list"):
        esat.jit(lambda x: [0.3, 7.0].index(x[1]))(FIVE)


def test_modules_that_are_changed_and_loaded_again(tmp_path, monkeypatch):
    path = tmp_path / "reloaded_by_test.py"
    text = (
        "import numpy as np\n\n"
        "def f(x):\n    out = dict(a=np.zeros)['a'](3)\n    out[0] = {}\n    return out\n"
    )
    path.write_text(text.format("x[0]"))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("reloaded_by_test")
    np.testing.assert_array_equal(esat.jit(module.f)(X), [X[0], 0.0, 0.0])
    path.write_text(text.format("2.0 * x[1]"))
    os.utime(path, (1e9, 1e9))
    module = importlib.reload(module)
    np.testing.assert_array_equal(esat.jit(module.f)(X), [2.0 * X[1], 0.0, 0.0])


@functools.lru_cache
def singleton():
    return []


def test_functions_with_caches_are_called_once_for_each_argument():
    """A cache of the module is the caller's own; one of a function that sees arrays lasts for the trace."""

    @esat.jit
    def powers(x):
        calls = []

        @functools.cache
        def power(n):
            calls.append(n)
            return np.sin(x) if n == 0 else power(n - 1) * power(n - 1)

        return power(12), len(calls)

    x = np.linspace(0.5, 1.0, 3)
    value, calls = powers(x)
    np.testing.assert_allclose(value, np.sin(x) ** 4096, rtol=1e-10)
    assert calls == 13

    @esat.jit
    def counted(x):
        singleton().append(1)
        return x * len(singleton())

    singleton().append(1)
    np.testing.assert_allclose(counted(x), 2 * x)
    assert singleton() == [1, 1]


class Weighted:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x):
        return (
            self.weights.dot(x) + self.weights.take(np.argsort(x[:2])) + self.weights.clip(x[0], x[1])[0, 0]
        )


def test_methods_of_arrays_from_outside_take_traced_arguments():
    weights = np.arange(4.0).reshape(2, 2)
    x = np.array([0.5, -1.0])
    np.testing.assert_allclose(esat.jit(Weighted(weights))(x), Weighted(weights)(x))
    with pytest.raises(EsatError, match=r"weights\.fill"):
        esat.jit(lambda x: weights.fill(x[0]))(x)


def test_empty_tuples_are_indices_of_no_elements():
    def products(x):
        out = np.empty((x.shape[0], 3))
        for place, columns in enumerate([(), (0,), (0, 1)]):
            out[:, place] = np.prod(x[:, columns], axis=1)
        return out

    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(esat.jit(products)(x), products(x))


def test_math_of_what_arrays_of_one_element_hold():
    def cosine(t):
        wrapped = (np.asarray(t).flatten() + np.pi) % (2 * np.pi) - np.pi
        return math.cos(wrapped.item())

    for t in (0.5, 7.0, -9.0):
        assert esat.jit(cosine)(t) == pytest.approx(cosine(t), rel=1e-14)


@numba.njit
def scaled_by_numba(x, k):
    return x * k + np.sum(x)


@numba.guvectorize(["(f8[:], f8[:])"], "(n)->(n)")
def doubled_by_numba(x, out):
    for place in range(x.shape[0]):
        out[place] = 2.0 * x[place]


def test_functions_that_numba_compiles_are_traced():
    x = np.arange(4.0)
    np.testing.assert_allclose(esat.jit(lambda x: scaled_by_numba(x, 3.0))(x), x * 3.0 + 6.0)
    assert esat.jit(lambda x: x + scaled_by_numba(np.ones(2), 3.0)[0])(x)[0] == 5.0
    with pytest.raises(EsatError, match=r"doubled_by_numba.*of numba takes arrays"):
        esat.jit(lambda x: doubled_by_numba(x) + 1.0)(x)


def test_lists_of_what_a_call_tells_are_arrays_for_functions():
    def nearest(x):
        distances = [math.sqrt(sum((x[i] - k) ** 2 for i in range(2))) for k in range(5)]
        return np.argsort(distances)[:3], np.cumsum([x[0], 1.0, x[1]]), np.median([distances, distances])

    x = np.array([0.3, 1.9])
    for found, wanted in zip(esat.jit(nearest)(x), nearest(x), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_arrays_from_outside_are_indexed_by_what_a_call_tells():
    table, names = np.arange(12.0).reshape(4, 3), np.array([5, 7, 9])

    def read(x):
        best = np.argmax(x)
        return table[best], names[best], table[best, 1:], table[1:, best], table[best : best + 1].shape

    x = np.array([0.1, 3.0, 0.2])
    for found, wanted in zip(esat.jit(read)(x), read(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


class Node:
    def __init__(self, value, after=None):
        self._value, self.after = value, after

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = value * 1.0


def linked(x):
    first = last = Node(x)
    for factor in (2.0, 3.0):
        last.after = last = Node(x * factor)
    last = last.after = Node(x + 1.0)
    return first, last


def exchanged(x):
    node, other = Node(x), Node(x * 2)
    node.after, node = other, Node(x * 5)
    node.value, other, node.after = x * 3, node, other
    head, *node.after.rest, node.after.last = x, x + 1, x + 2, x + 3
    parts = [None, None]
    parts[0], node.value, parts[1] = node.value, node.value + head, node.value
    node, node.value = other, parts[0] + parts[1]
    return node, parts


def values_of(node):
    found = []
    while node is not None and len(found) < 5:
        found.append(node.value)
        node = node.after
    return found


def chains(x):
    first, last = linked(x)
    node, parts = exchanged(x)
    return [*values_of(first), *values_of(last), *values_of(node), *parts, *node.after.rest, node.after.last]


def test_attributes_and_names_are_assigned_in_their_order():
    x = np.arange(3.0)
    wanted, found = chains(x), esat.jit(chains)(x)
    assert len(found) == len(wanted)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.filterwarnings("ignore:.*compiled anew:esat.errors.EsatWarning")
def test_lists_are_repeated_by_integers():
    """A product of NumPy's would be of their elements."""
    for function, n in (
        (lambda n: [0.5, 1.0] * n, 3),
        (lambda n: n * (1.0, 2.0), 2),
        (lambda n: "ab" * n, 2),
        (lambda n: [1, 2] * n, 0),
    ):
        found = esat.jit(function)(n)
        assert (found, type(found)) == (function(n), type(function(n)))
    for function in (lambda x: [0.5] * int(x[0]), lambda x: [0.5] * x.astype(int)[0]):
        with pytest.raises(esat.EsatError):
            esat.jit(function)(np.array([2.0]))
    np.testing.assert_array_equal(esat.jit(lambda x: [1.0, 2.0] * x)(np.array([2.0, 3.0])), [2.0, 6.0])


def test_integers_of_numbers_that_have_none_are_errors():
    for function in (lambda x: round(x[0]), lambda x: int(x[0]), lambda x: math.floor(x[0])):
        for value, error in ((np.nan, ValueError), (-np.inf, OverflowError)):
            for f in (function, esat.jit(function)):
                with pytest.raises(error):
                    f(np.array([value]))
        with pytest.raises(esat.EsatError, match="no int64"):
            esat.jit(function)(np.array([1e300]))
        least = np.array([-(2.0**63)])
        assert esat.jit(function)(least) == function(least)
    with pytest.raises(esat.EsatError, match=r"np.round\(x\) rounds all"):
        esat.jit(lambda x: round(x) + 0)(np.ones(3))
