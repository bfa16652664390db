"""What of arguments is taken apart, and what is kept whole: objects of all makes in jitted functions."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import esat
from esat import jit
from esat.errors import GradientError, InputError, ShapeError

X = np.arange(4.0)


class Slots:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w

    def scaled(self, x):
        return x * self.w


class SlotsAndMore(Slots):
    def __init__(self, w):
        super().__init__(w)
        self.more = w + 1

    def scaled(self, x):
        return x * self.w + self.more


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    w: np.ndarray

    def scaled(self, x):
        return x * self.w


@dataclasses.dataclass
class WithMore:
    w: np.ndarray

    def __post_init__(self):
        self.more = self.w + 1

    def scaled(self, x):
        return x * self.w + self.more


class Renamed:
    """A property over an attribute of the same name, as in ``numpy.poly1d``."""

    def __init__(self, w):
        self.__dict__["w"] = w

    @property
    def w(self):
        return self.__dict__["w"]

    @w.setter
    def w(self, value):
        raise TypeError("not to be set")

    def scaled(self, x):
        return x * self.w


@pytest.mark.parametrize("kind", [Slots, SlotsAndMore, Frozen, WithMore, Renamed])
def test_all_attributes_are_arguments_wherever_they_are_kept(kind):
    f = jit(lambda held, x: held.scaled(x))
    held = kind(np.ones(4))
    for factor in (1.0, 5.0):
        held.w[:] = factor
        np.testing.assert_array_equal(f(held, X), held.scaled(X))
    np.testing.assert_array_equal(f(kind(X), X), kind(X).scaled(X))
    assert len(f.programs) == 1
    np.testing.assert_array_equal(jit(kind.scaled)(held, X), held.scaled(X))


def test_arrays_in_slots_are_written_to_and_have_gradients():
    def add(held):
        held.w += 1

    held = Slots(np.zeros(4))
    jit(add)(held)
    np.testing.assert_array_equal(held.w, np.ones(4))
    gradient = esat.grad(lambda held: (held.w**2).sum())(Frozen(X))
    assert isinstance(gradient, Frozen)
    np.testing.assert_array_equal(gradient.w, 2 * X)


@pytest.mark.parametrize(
    "function", [np.sum, np.linalg.norm, np.fft.rfft, np.exp, np.add.reduce, scipy.special.expit, sum, len]
)
def test_functions_of_numpy_are_arguments(function):
    np.testing.assert_allclose(jit(lambda f, x: f(x))(function, X), function(X), rtol=1e-15)
    by_default = jit(lambda x, f=function: f(x))
    np.testing.assert_allclose(by_default(X), function(X), rtol=1e-15)


class Number(float):
    pass


class Problem(Exception):
    def __init__(self, x):
        super().__init__(x)
        self.x = x


@pytest.mark.parametrize("held", [Number(2.0), Problem(3), np.random.default_rng, np.poly1d([1, 2])])
def test_what_only_c_can_make_is_kept_whole(held):
    np.testing.assert_array_equal(jit(lambda held, x: x * 2)(held, X), X * 2)


@pytest.mark.parametrize("index", [np.s_[1:3], np.s_[::-1], np.s_[..., -2:], slice(np.int64(1), None)])
def test_slices_are_arguments(index):
    np.testing.assert_array_equal(jit(lambda x, index: x[index] * 2)(X, index), X[index] * 2)


def test_what_has_no_hash_is_named():
    for value in (memoryview(bytearray(3)), {1, 2}):
        with pytest.raises(InputError, match="neither an array nor can it be hashed"):
            jit(lambda x, value: x)(X, value)


def _line_of(text):
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_errors_of_derivatives_name_the_line_of_the_call():
    cases = [
        (GradientError, lambda: esat.grad(lambda a: a.sum())(np.arange(3))),  # of integers
        (GradientError, lambda: esat.value_and_grad(lambda a: a)(X)),  # of vectors
        (ShapeError, lambda: esat.vmap(lambda a: a)(np.float64(1))),  # of scalars
    ]
    for (error, call), mark in zip(cases, ("# of integers", "# of vectors", "# of scalars"), strict=True):
        with pytest.raises(error, match=f"^(grad|value_and_grad|vmap).*\n  at {__file__}:{_line_of(mark)}$"):
            call()
