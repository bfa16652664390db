"""Code written for structures: guards know arguments of their structure, builders make results again."""

import math
from enum import Enum

import numpy as np
import pytest

import esat
from esat.frontend.tracing.trees import flatten
from esat.functions.guards import guard_for, text_of


def structure_of(*arguments, **keywords):
    return flatten((arguments, keywords), [])


A = np.ones((2, 3))
GIVEN = ({"w": A, 3: [A, (1.5, None)]}, True, 2, (), {})


def test_leaves_are_those_of_flatten():
    guard = guard_for(structure_of(*GIVEN))
    leaves = []
    flatten(GIVEN, leaves)
    assert [id(leaf) for leaf in guard(GIVEN)] == [id(leaf) for leaf in leaves]


@pytest.mark.parametrize(
    "others",
    [
        ({"w": A.T, 3: [A, (1.5, None)]}, True, 2, (), {}),
        ({"w": A.astype("float32"), 3: [A, (1.5, None)]}, True, 2, (), {}),
        ({3: [A, (1.5, None)], "w": A}, True, 2, (), {}),
        ({"w": A, 3: (A, (1.5, None))}, True, 2, (), {}),
        ({"w": A, 3: [A, (1.5, 0)]}, True, 2, (), {}),
        ({"w": A, 3: [A, (1, None)]}, True, 2, (), {}),
        ({"w": A, 3: [A, (1.5, None)]}, 1, 2, (), {}),
        ({"w": A, 3: [A, (1.5, None)]}, True, True, (), {}),
        ({"w": A, 3: [A, (1.5, None)]}, True, 2, (1,), {}),
        ({"w": A, 3: [A, (1.5, None)]}, True, 2, (), {"a": 1}),
        ({"w": A, 3: [A, (1.5, None)]}, True, 2, ()),
    ],
)
def test_other_structures_are_not_taken(others):
    assert structure_of(*others) != structure_of(*GIVEN)
    assert guard_for(structure_of(*GIVEN))(others) is None


def test_scalars_of_numpy_are_known_by_their_type():
    guard = guard_for(structure_of(np.float32(2), A))
    given = (np.float32(3), A)
    assert [id(leaf) for leaf in guard(given)] == [id(leaf) for leaf in given]
    assert guard((np.float64(3), A)) is None
    assert guard((3.0, A)) is None


def test_texts_are_known_by_what_they_say():
    guard = guard_for(structure_of("text", A))
    assert [id(leaf) for leaf in guard(("text", A))] == [id(A)]
    assert guard(("another", A)) is None


def test_what_takes_more_than_a_look_has_no_guard():
    for argument in ({(1, 2): A}, esat.Query(["a"])):
        assert guard_for(structure_of(argument)) is None
    assert guard_for(structure_of(x=A)) is None


class Filter:
    def __init__(self, gain, memory):
        self.gain, self.memory = gain, memory

    def push(self, x):
        return self.memory + self.gain * x


def test_objects_of_attributes_are_known_by_these():
    given = Filter(2.0, A)
    guard = guard_for(structure_of(given, A))
    gain, memory, array = guard((given, A))
    assert (gain, memory is A, array is A) == (2.0, True, True)
    other = Filter(2.0, A)
    other.name = "another attribute"
    for one in (other, Filter(2, A), Filter(2.0, A.T), type("Other", (Filter,), {})(2.0, A), A):
        assert guard((one, A)) is None
    push = esat.jit(Filter.push)
    for one in (given, Filter(3.0, A + 1), given):
        np.testing.assert_array_equal(push(one, A), one.push(A))
    assert len(push.programs) == 1


class Order(Enum):
    ROWS = 1
    COLUMNS = 2


def test_members_of_enumerations_are_known_by_identity():
    guard = guard_for(structure_of(Order.ROWS, A))
    assert guard((Order.ROWS, A)) == [A]
    for other in (Order.COLUMNS, 1, None):
        assert guard((other, A)) is None


def test_zeros_that_are_part_of_a_program_are_told_apart_by_sign():
    structure = structure_of(0.0, A)
    for known, other in ((0.0, -0.0), (-0.0, 0.0), (np.float64(-0.0), 0.0)):
        guard = guard_for(structure, {0: known})
        assert guard((float(known), A)) is not None
        assert guard((float(other), A)) is None


def test_results_are_built():
    traced = ("traced",)
    inner = ("tuple", tuple, (traced, ("list", list, ())))
    structure = ("dict", dict, ("a", 2), (("list", list, (traced, inner)), traced))
    assert text_of(structure, iter("xyz")) == "{'a': [x, (y, [], ), ], 2: z}"
    assert text_of(("static", str, "text"), iter(())) is None


def test_calls_of_several_structures():
    both = esat.jit(lambda p, n: {"sum": p["x"] + n, "parts": (p["x"], [n])}, mode="fast_compile")
    for x in (np.ones(2), np.ones(3), np.ones(2, "float32"), np.ones((1, 2)), np.ones((2, 2)), np.ones(2)):
        for n in (2, 2.5):
            found = both({"x": x}, n)
            assert found["sum"].dtype == (x + n).dtype
            np.testing.assert_array_equal(found["sum"], x + n)
            assert found["parts"][1] == [n]
    both.clear()
    np.testing.assert_array_equal(both({"x": np.ones(2)}, n=1)["sum"], [2, 2])
    np.testing.assert_array_equal(both({"x": np.ones(2)}, 3)["sum"], [4, 4])


def by_type(key):
    return {int: 2.0, float: 3.0, bool: 5.0}[type(key)]


@pytest.mark.parametrize("repeated", [1, 2])
def test_parts_of_programs_are_told_apart_by_type_and_sign(repeated):
    """1, 1.0 and True are equal and have one hash, as 0.0 and -0.0 have."""
    x = np.ones(2)

    def signed(x, values):
        return np.copysign(x, np.array(values))

    of_tuple = esat.jit(lambda x, t: x * by_type(t[0]), static_argnames="t")
    of_set = esat.jit(lambda x, t: x * by_type(next(iter(t))), static_argnames="t")
    inside = esat.jit(lambda t: t[1] * by_type(next(iter(t[0]))))
    of_keys = esat.jit(lambda t: next(iter(t.values())) * by_type(next(iter(t))))
    sign = esat.jit(signed, static_argnames="values")
    for one in (1, 1.0, True) * repeated:
        np.testing.assert_array_equal(of_tuple(x, (one,)), x * by_type(one))
        np.testing.assert_array_equal(of_tuple(x, (one, (one,))), x * by_type(one))
        np.testing.assert_array_equal(of_set(x, frozenset([one])), x * by_type(one))
        np.testing.assert_array_equal(inside((frozenset([one]), x)), x * by_type(one))
        np.testing.assert_array_equal(of_keys({one: x}), x * by_type(one))
    for zero in (0.0, -0.0, complex(0.0, -0.0).imag, np.float64(-0.0), np.float32(0.0)) * repeated:
        np.testing.assert_array_equal(sign(x, zero), signed(x, zero))
        np.testing.assert_array_equal(sign(x, (zero, 1.0)), signed(x, (zero, 1.0)))


@pytest.mark.filterwarnings("ignore:.*compiled anew:esat.errors.EsatWarning")
def test_values_of_numbers_that_are_asked_for_are_told_apart_by_sign():
    @esat.jit
    def f(x, rate):
        return x * math.copysign(2.0, rate) if rate == 0 else x

    x = np.ones(2)
    assert [f(x, rate)[0] for rate in (0.0, -0.0, 0.0, 1.0)] == [2.0, -2.0, 2.0, 1.0]


@pytest.mark.filterwarnings("ignore:.*compiled anew:esat.errors.EsatWarning")
def test_a_nan_is_one_value():
    f = esat.jit(lambda x, rate: x if rate == rate else -x)
    for _ in range(3):
        np.testing.assert_array_equal(f(np.ones(2), float("nan")), -np.ones(2))
    assert len(f.programs) == 1


def test_parameters_may_have_any_names():
    @esat.jit
    def f(dtype_0, ndarray, first, dtype_1=1.0, *, found=2.0):
        return dtype_0 + ndarray * first + dtype_1 * found

    x = np.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, x, x), x + x * x + 2.0)
        np.testing.assert_array_equal(f(x, first=x, ndarray=x, found=x), x + x * x + x)


def test_numbers_that_are_part_of_a_program_are_compared():
    guard = guard_for(structure_of(A, 3, 2.5), {1: 3, 2: 2.5})
    assert guard((A, 3, 2.5)) == [A, 3, 2.5]
    for other in ((A, 4, 2.5), (A, 3, 2.0), (A, 3.0, 2.5), (A, True, 2.5), (A, 3, math.nan)):
        assert guard(other) is None
    for value in (math.nan, 1j):
        assert guard_for(structure_of(value), {0: value}) is None


def test_conditions_of_numbers_are_asked():
    @esat.jit
    def root(x, t):
        return math.sqrt(t) * x if t < 4.0 else x - t

    x = np.ones(3)
    for t in (1.0, 9.0, 2.0, -1.0, 5.0, math.nan, math.inf, 4.0):
        if t < 0:
            with pytest.raises(ValueError, match="math domain error"):
                root(x, t)
        else:
            np.testing.assert_allclose(root(x, t), math.sqrt(t) * x if t < 4.0 else x - t, rtol=1e-15)
    assert len(root.programs) == 2
    assert len(root._kept.guards) == 2


def test_values_of_numbers_are_asked():
    power = esat.jit(lambda x, n: sum(x * k for k in range(n)))
    for n in (3, 4, 3, 5, 6, 7, 4, 3):
        np.testing.assert_array_equal(power(A, n), sum(A * k for k in range(n)))
    assert len(power.programs) == 5


def test_calls_with_known_arguments_beside_arrays_have_a_guard():
    """Defaults are such arguments, too: programs of arrays alone are found without a guard."""

    def scaled(x, degrees=False, name=None):
        return np.deg2rad(x) if degrees else x * 2.0

    f, g = esat.jit(scaled), esat.jit(lambda x: x * 2.0)
    np.testing.assert_array_equal(f(A), scaled(A))
    np.testing.assert_allclose(f(A, True), scaled(A, True))
    np.testing.assert_array_equal(f(A, name="x"), scaled(A))
    g(A)
    assert len(f._kept.guards) == 3
    assert not g._kept.guards
