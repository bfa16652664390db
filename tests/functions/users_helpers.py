"""A module of a user's, which tests of traced functions reach by its name."""

import functools
import math
from math import atan2

import numpy as np
from numpy import zeros
from scipy.linalg import cholesky, solve_triangular


def shifted(x):
    out = np.zeros(3)
    out[1:] = x[:-1]
    return out


def by_name(x):
    out = zeros(2)
    out[0] = atan2(x[0], x[1])
    out[1] = math.sqrt(x[2])
    return out


def whitened(x):
    return solve_triangular(cholesky(np.diag(x), lower=True), x, lower=True)


def doubling(function):
    @functools.wraps(function)
    def doubled(*arguments):
        out = np.empty(3)
        out[:] = 2.0 * function(*arguments)
        return out

    return doubled


@doubling
def decorated(x):
    return x + 1.0


@functools.lru_cache
def cached(x):
    return shifted(x)


class Base:
    def __init__(self, size):
        self.memory = np.zeros(size)

    def keep(self, x):
        self.memory[0] = x.sum()
        return self


class Filter(Base):
    made = 0

    def __init__(self, size, gain=1.0):
        super().__init__(size)
        self.gain = gain
        self.inner = {"layers": [Layer(size), Layer(size)]}

    def __call__(self, x):
        for layer in self.inner["layers"]:
            x = layer.forward(x)
        return self.gain * x + self.memory

    @property
    def padded(self):
        out = np.zeros(self.memory.size + 1)
        out[1:] = self.memory
        return out

    @padded.setter
    def padded(self, values):
        self.memory = np.zeros(len(values) - 1)
        self.memory[:] = values[1:]

    @functools.cached_property
    def total(self):
        out = np.zeros(1)
        out[0] = self.memory.sum()
        return out

    @classmethod
    def of(cls, x):
        return cls(len(x)).keep(x)

    @staticmethod
    def twice(x):
        return shifted(shifted(x))


class Layer:
    def __init__(self, size):
        self.bias = np.ones(size)

    def forward(self, x):
        out = np.zeros_like(self.bias)
        out[:] = np.tanh(x) + self.bias
        return out


class Slotted:
    __slots__ = ("value",)

    def __init__(self, x):
        self.value = np.zeros(2)
        self.value[0] = x[0]


class Vector:
    def __init__(self, values):
        self.values = np.zeros(3)
        self.values[:] = values

    def __add__(self, other):
        out = np.zeros(3)
        out[:] = self.values + getattr(other, "values", other)
        return Vector(out)

    def __radd__(self, other):
        return self + other

    def __mul__(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        return Vector(other * self.values)

    def __neg__(self):
        return self * -1.0

    def __matmul__(self, other):
        return np.array([self.values @ other.values, 0.0])

    def __imul__(self, other):
        self.values *= other
        return self

    def __eq__(self, other):
        return np.array([self.values, other.values])

    __hash__ = None

    def __iter__(self):
        for value in self.values:
            out = np.zeros(2)
            out[0] = value
            yield out


class Longer(Vector):
    def __radd__(self, other):
        return Longer(other.values * 10.0)


class Negative(ValueError):
    def __init__(self, text, code=0):
        super().__init__(text, code)
        self.code = code


def checked(x):
    if np.any(x < 0):
        raise Negative(f"negative: {x.min():.2f} of {x.sum()}", code=3)
    assert x[0] < 100, "too large"
    if not np.all(np.isfinite(x)):
        raise ZeroDivisionError
    return np.sqrt(x)
