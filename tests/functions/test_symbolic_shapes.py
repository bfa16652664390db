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


SLICES = {
    "second": lambda a: a - a[1:2],
    "last but one": lambda a: a - a[:, -2:-1],
    "from the first on back": lambda a: a - a[0::-1],
    "first of the reversed": lambda a: a - a[::-1][:1],
    "first of the later ones": lambda a: a - a[1:][:1],
    "with steps": lambda a: a - a[0:2:2],
    "behind an ellipsis": lambda a: a - a[..., 0:1],
    "with a new axis": lambda a: a - a[:, None, 1:2][:, 0],
    "up to the end": lambda a: a - a[a.shape[0] - 1 :],
    "within bounds by sizes": lambda a: a - a[a.shape[0] - 2 : a.shape[0] - 1],
    "of running sums": lambda a: a - np.cumsum(a, axis=0)[-1:],
    "of what is sorted": lambda a: a - np.sort(a, axis=0)[-1:],
    "of a product": lambda a: a - (a @ a.T)[:1, :1],
    "of sums": lambda a: a - a.sum(axis=1, keepdims=True)[:1],
    "of all elements": lambda a: a - a.ravel()[-1:],
    "of two joined": lambda a: a - np.concatenate([a, a])[3:4],
    "choices": lambda a: np.where(a[1:2] > 0, a, a[:, 1:2]),
    "written": lambda a: (a.__isub__(a[1:2].copy()), a)[1],
    "sizes of a part": lambda a: (np.exp(a) + a)[1:].shape[0] + a,
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_of_one_element_of_all_sizes(name):
    f = SLICES[name]
    jitted = esat.jit(f, shapes="symbolic", mode="fast_compile")
    for shape in [(2, 2), (3, 5), (5, 3), (2, 7), (7, 2)]:
        theirs, ours = (np.random.default_rng(0).normal(size=shape) for _ in range(2))
        np.testing.assert_allclose(jitted(ours), f(theirs), 1e-12, err_msg=str(shape))
        np.testing.assert_array_equal(ours, theirs, err_msg=str(shape))
    assert len(jitted.programs) == 1


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o3", "o2", "unsafe", "strict", "fast_compile"])
def test_slices_that_only_larger_arrays_have(mode):
    """Each size below has a program of its own, where the slice may be empty."""
    jitted = esat.jit(lambda a: a * a[3:4].sum() - a[3:4], shapes="symbolic", mode=mode)
    for rows in (5, 4, 9, 30):
        a = np.random.default_rng(rows).normal(size=(rows, 7))
        np.testing.assert_allclose(jitted(a), a * a[3:4].sum() - a[3:4], 1e-12)
    assert len(jitted.programs) == 1
    jitted = esat.jit(lambda a: a[:, -4:-3] * 2, shapes="symbolic", mode=mode)
    for columns in (7, 2, 3, 1, 0, 4, 8):
        a = np.random.default_rng(columns).normal(size=(6, columns))
        np.testing.assert_array_equal(jitted(a), a[:, -4:-3] * 2)
    assert len(jitted.programs) == 5


def test_slices_beyond_what_is_asked_for_stay_as_they_are():
    jitted = esat.jit(lambda a: a[100:101] * 2, shapes="symbolic", mode="fast_compile")
    for size in (50, 101, 200):
        np.testing.assert_array_equal(jitted(np.ones(size)), np.ones(size)[100:101] * 2)
    assert len(jitted.programs) == 1


def test_arrays_that_may_be_empty_have_parts_of_unknown_size():
    """What a mask leaves may be nothing, and so may what a Variable stands for."""
    jitted = esat.jit(
        lambda a: esat.grad(lambda v: (v[:1] * 2).sum())(a[a > 0]), shapes="symbolic", mode="fast_compile"
    )
    np.testing.assert_array_equal(jitted(np.array([-1.0, 3.0])), [2.0])
    np.testing.assert_array_equal(jitted(np.array([-1.0, -3.0])), [])
    x = esat.vector("x")
    doubled = esat.jit(lambda x: x[:1] * 2, shapes="symbolic")
    compiled = esat.compile(esat.Graph([x], [doubled(x)]), "fast_compile")
    np.testing.assert_array_equal(compiled(np.array([])), [])
    np.testing.assert_array_equal(compiled(np.array([2.0, 3.0])), [4.0])


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
