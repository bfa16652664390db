"""Views and copies that are written to: a traced function leaves in all arrays what NumPy leaves, whatever
the memory order of its arguments."""

import numpy as np
import pytest

import esat
from esat.errors import EsatError, InputError
from esat.runtime.native import direct

from .random_writes import OVERLAPPING, compiled, differences, function_of, layout_of, outcome, program

BODIES = (
    "a.reshape(-1)[0] = 9", "np.ravel(a)[:2] += 1", "a.ravel()[0] = 9", "v = a.reshape(-1); a[...] = 7",
    "a.T.ravel()[0] = 9", "a.T.reshape(-1)[0] = 9", "a.reshape(3, 2)[0, 0] = 9",
    "v = np.ascontiguousarray(a); v[...] = 7", "v = np.asfortranarray(a); v[...] = 2",
    "v = np.array(a.T); v.reshape(-1)[1] = 9", "v = np.zeros_like(a.T); v.ravel()[1] = 9",
    "v = a.T @ a; v.ravel()[1] = 9", "v = a.T + 0.0; v.ravel()[1] = 9",
    "v = a[:, [0, 1]]; v.reshape(-1)[1] = 9", "np.einsum('ij->ji', a)[0, 1] = 9",
    "np.einsum('ij->j', a)[0] = 9", "v = np.einsum('ij->ji', a); a += 1",
    "np.einsum('ii->i', a[:, :2])[...] = 7", "v = np.atleast_2d(a, a[0])[1]; v[...] = 5",
    "np.diag(a)[0] = 3", "v = a.reshape(-1, copy=True); v[0] = 3",
    "v = np.full((2, 3), 4.0, order='F'); v.ravel()[1] = a.sum()",
)  # fmt: skip
MATRICES = {
    "C": lambda: np.arange(6.0).reshape(2, 3),
    "F": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": lambda: np.arange(12.0).reshape(2, 6)[:, ::2],
    "reversed": lambda: np.arange(6.0).reshape(2, 3)[::-1],
    "read-only": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
}


@pytest.mark.parametrize("body", BODIES)
def test_memory_order_of_arguments_decides_what_is_a_view(body):
    source = "def f(a):\n    v = a\n    " + body.replace("; ", "\n    ") + "\n    return v, a.sum()\n"
    function = function_of(source)
    jitted = esat.jit(function, mode="fast_compile")
    for name, make in [*MATRICES.items(), *MATRICES.items()]:  # again, when all are compiled
        theirs, ours = make(), make()
        expected, found = outcome(function, theirs), outcome(jitted, ours)
        assert type(found) is type(expected) or isinstance(expected, ValueError), (name, found)
        if not isinstance(expected, Exception):
            for one, other in zip([*found, ours], [*expected, theirs], strict=True):
                np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("block", range(6))
def test_writes_are_numpys(block):
    refused = 0
    for seed in range(40 * block, 40 * (block + 1)):
        wrong, refuses = differences(seed)
        assert not wrong, (seed, program(seed), wrong)
        refused += refuses
    assert refused < 15


def test_compiled_programs_write_as_numpy_does():
    for seed in range(1000, 1020):
        wrong, _ = differences(seed, compiled)
        assert not wrong, (seed, program(seed), wrong)


def test_arrays_that_are_written_to_stand_alone():
    def f(a, b):
        a += b
        return a.sum()

    jitted = esat.jit(f, mode="fast_compile")
    x = np.arange(12.0).reshape(3, 4)
    assert jitted(x[:, 0], x[:, 1]) == 27  # interleaved, but apart
    np.testing.assert_array_equal(x[:, 0], [1, 9, 17])
    for arguments in [(x[1:], x[:-1]), (x[:, 1:], x[:, :-1]), (x[::-1], x)]:
        with pytest.raises(InputError, match="f: a is written to, and shares memory with b"):
            jitted(*arguments)
    x.flags.writeable = False
    with pytest.raises(ValueError, match=r"f: a is written to, .* read-only") as raised:
        jitted(x, x + 1)
    assert isinstance(raised.value, EsatError)


def test_arguments_that_share_memory_are_right_or_refused_where_written_to():
    right = refused = 0
    for seed in range(48):
        wrong, _ = differences(seed, compiled, OVERLAPPING)
        if wrong and "is written to, and shares memory with" in wrong[0]:
            assert layout_of(seed, OVERLAPPING) != "apart within"
            refused += 1
            continue
        assert not wrong, (seed, program(seed, OVERLAPPING), wrong)
        right += 1
    assert right > 15
    assert refused > 5


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o3", "o2", "unsafe", "strict", "symbolic"])
def test_arguments_that_share_memory_are_read(mode):
    def f(a, b):
        return np.exp(a) - b, (a * b).sum(), a[::-1], b

    options = {"shapes": "symbolic"} if mode == "symbolic" else {"mode": mode}
    jitted = esat.jit(f, **options)
    for call in range(direct.CALLS + 50):
        x = np.arange(6.0) + call
        first, second = [(x[:-1], x[1:]), (x[1:], x[:0:-1]), (x[:3], x[3:]), (x[::2], x[:3])][call % 4]
        for one, other in zip(jitted(first, second), f(first, second), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        np.testing.assert_array_equal(x, np.arange(6.0) + call)


def test_neither_reads_of_the_other_but_both_are_written_to():
    def f(a, b):
        b[...] = 1
        a[...] = 2

    x = np.zeros(4)
    with pytest.raises(InputError, match="shares memory"):
        esat.jit(f, mode="fast_compile")(x[1:], x[:-1])


TWICE = {
    "sum": lambda a, b: np.add(a, b, out=a),
    "in turn": lambda a, b: (a.__iadd__(1), b.__imul__(2), a + b)[2],
    "out of what is read": lambda a, b: np.multiply(a[::-1], 2, out=b),
    "returned": lambda a, b: (a.__isub__(3), b)[1],
    "views": lambda a, b: (a[1:].__iadd__(b[:-1]), b.sum())[1],
    "reshaped": lambda a, b: (a.reshape(-1).__setitem__(0, 9), b.reshape(-1) + 1)[1],
    "only read": lambda a, b: a + b,
}


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_arrays_that_are_given_twice(name, layout):
    function, make = TWICE[name], MATRICES[layout]
    jitted = esat.jit(function, mode="fast_compile")
    for twice in (True, False, True):
        theirs, ours = make(), make()
        others = (theirs, ours) if twice else (make(), make())
        expected, found = function(theirs, others[0]), jitted(ours, others[1])
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(others[1], others[0])
        if twice and name in ("sum", "out of what is read", "returned"):
            assert found is ours
