"""Code written for structures: guards know arguments of their structure, builders make results again."""

import numpy as np
import pytest

import esat
from esat.frontend.tracing.trees import flatten
from esat.functions.guards import builder_for, guard_for


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


def test_what_takes_more_than_a_look_has_no_guard():
    for argument in ("text", {(1, 2): A}, esat.Query(["a"])):
        assert guard_for(structure_of(argument)) is None
    assert guard_for(structure_of(x=A)) is None


def test_results_are_built():
    traced = ("traced",)
    inner = ("tuple", tuple, (traced, ("list", list, ())))
    structure = ("dict", dict, ("a", 2), (("list", list, (traced, inner)), traced))
    assert builder_for(structure)([1, 2, 3]) == {"a": [1, (2, [])], 2: 3}
    assert builder_for(("static", str, "text")) is None


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
