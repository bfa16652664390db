"""Programs for all sizes: what broadcasts, and what is written, is as with sizes that are known."""

import numpy as np
import pytest

import esat


def fills(a):
    np.fill_diagonal(a, np.diagonal(a) * 2)
    return a


def fills_with_a_number(a):
    np.fill_diagonal(a, 7)
    return a


def masks(a):
    a[a > 0] = 0.0
    return a


CASES = {
    "first column": lambda a: a - a[:, :1],
    "from the first": lambda a: a - a[0:1],
    "last row": lambda a: a - a[-1:],
    "of a sum": lambda a: (a + 1) - (a * 2)[:, :1],
    "transposed": lambda a: a.T - a.T[:1],
    "alone": lambda a: a[:, :1],
    "both": lambda a: a * a[:1, -1:],
    "written to": lambda a: (a[:, :1].__iadd__(5), a)[1],
    "diagonal": fills,
    "diagonal of a number": fills_with_a_number,
    "mask": masks,
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy_for_all_sizes(name):
    f = CASES[name]
    jitted = esat.jit(f, shapes="symbolic", mode="fast_compile")
    for shape in [(2, 2), (3, 5), (5, 3), (1, 4), (4, 1), (1, 1)]:
        theirs, ours = (np.random.default_rng(0).normal(size=shape) for _ in range(2))
        np.testing.assert_array_equal(jitted(ours), f(theirs), err_msg=str(shape))
        np.testing.assert_array_equal(ours, theirs, err_msg=str(shape))
    assert len(jitted.programs) == 4  # axes of one element have programs of their own


@pytest.mark.parametrize("name", ["first column", "last row", "alone", "mask"])
def test_of_nothing(name):
    f = CASES[name]
    jitted = esat.jit(f, shapes="symbolic", mode="fast_compile")
    for shape in [(2, 0), (0, 2), (0, 0)]:
        np.testing.assert_array_equal(jitted(np.ones(shape)), f(np.ones(shape)), err_msg=str(shape))


def test_derivatives_and_batches():
    a = np.random.default_rng(1).normal(size=(3, 4))

    def cost(a):
        return ((a - a[:, :1]) ** 2).sum()

    gradient = esat.grad(esat.jit(cost, shapes="symbolic"))(a)
    np.testing.assert_allclose(gradient, esat.grad(cost)(a), 1e-12)

    def masked(row):
        row = row.copy()
        row[row > 0] = 0.0
        return row

    batch = esat.vmap(esat.jit(masked, shapes="symbolic"))
    np.testing.assert_array_equal(batch(a), np.where(a > 0, 0, a))


def test_sizes_of_one_broadcast_whatever_was_called_before():
    jitted = esat.jit(lambda a, b: a + b, shapes="symbolic", mode="fast_compile")
    for first, second in [
        ((3, 3), (3, 3)),
        ((1, 3), (3, 3)),
        ((4, 3), (4, 1)),
        ((5, 5), (5, 5)),
        ((2, 0), (1, 0)),
    ]:
        found = jitted(np.ones(first), np.ones(second))
        np.testing.assert_array_equal(found, np.ones(first) + np.ones(second))
