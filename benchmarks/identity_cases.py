"""Expressions that are equal to simpler ones, with the fewest operations that are known to suffice.

Each is a function of a namespace and of variables: the namespace may be ``esat``, NumPy's, or that of any
library with functions of the same names. Operations are elementwise ones, reductions and products of the
compiled program; views and fills count nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Build = Callable[..., Any]
FACTS = {"s": "symmetric", "o": "orthogonal"}
"""By letter of an input, what is known of it, where a library can be told."""


@dataclass(frozen=True)
class Identity:
    """One expression.

    Attributes
    ----------
    name, family
        What it is called, and what kind of identity makes it simple.
    build
        The expression, of a namespace and of the inputs.
    inputs
        A letter each: ``v`` a vector, ``z`` a complex one, ``m`` a matrix, ``s`` a symmetric one, ``o`` an
        orthogonal one.
    fewest
        Operations of the simplest form.
    """

    name: str
    family: str
    build: Build
    inputs: str
    fewest: int


def _sigmoid(m: Any, x: Any) -> Any:
    return 1 / (1 + m.exp(-x)) if not hasattr(m, "sigmoid") else m.sigmoid(x)


def _scalars(family: str, cases: dict[str, tuple[Build, int]]) -> list[Identity]:
    return [Identity(name, family, build, "vvvvv", fewest) for name, (build, fewest) in cases.items()]


EXPAND = _scalars(
    "expand",
    {
        "4ab from squares": (lambda m, a, b, c, s, y: (a + b) ** 2 - (a - b) ** 2, 2),
        "zero from squares": (lambda m, a, b, c, s, y: (a + b) * (a - b) - a * a + b * b, 0),
        "distribution": (lambda m, a, b, c, s, y: (a + b) * c - a * c - b * c, 0),
        "cube": (lambda m, a, b, c, s, y: (a + b) ** 3 - a**3 - b**3, 4),
        "binomial": (
            lambda m, a, b, c, s, y: (
                (a + b) ** 4 - a**4 - 4 * a**3 * b - 6 * a * a * b * b - 4 * a * b**3 - b**4
            ),
            0,
        ),
        "product of sums": (lambda m, a, b, c, s, y: (a + b) * (c + s) - a * c - a * s - b * c, 1),
        "square of (a - b) plus 2ab": (lambda m, a, b, c, s, y: (a - b) * (a - b) + 2 * a * b, 3),
        "a*a": (lambda m, a, b, c, s, y: (a + 1) * (a - 1) + 1, 1),
        "Horner's form minus powers": (
            lambda m, a, b, c, s, y: (1 + a * (2 + a * (3 + a))) - (1 + 2 * a + 3 * a * a + a**3),
            0,
        ),
    },
)

FACTOR = _scalars(
    "factor",
    {
        "square of two": (lambda m, a, b, c, s, y: a * a + 2 * a * b + b * b, 2),
        "square of three": (
            lambda m, a, b, c, s, y: a * a + b * b + c * c + 2 * a * b + 2 * b * c + 2 * a * c,
            3,
        ),
        "square of a difference": (lambda m, a, b, c, s, y: c * (a * a - 2 * a * b + b * b), 3),
        "Brahmagupta's identity": (
            lambda m, a, b, c, s, y: (
                (a * c - b * s) ** 2 + (a * s + b * c) ** 2 - (a * a + b * b) * (c * c + s * s)
            ),
            0,
        ),
        "Lagrange's identity": (
            lambda m, a, b, c, s, y: (a * a + b * b) * (c * c + s * s) - (a * c - b * s) ** 2,
            4,
        ),
        "Horner's form": (lambda m, a, b, c, s, y: 1 + a + a**2 + a**3 + a**4, 7),
        "two by two": (lambda m, a, b, c, s, y: a * c + a * s + b * c + b * s, 3),
        "sum of squares": (lambda m, a, b, c, s, y: (a + b) ** 2 + (a - b) ** 2 - 2 * b * b, 2),
    },
)

CANCEL = _scalars(
    "cancel",
    {
        "interpolation": (lambda m, a, b, c, s, y: a * (1 - s) + b * s - a, 2),
        "mixture": (lambda m, a, b, c, s, y: (1 - s) * y + s * y, 0),
        "affine": (lambda m, a, b, c, s, y: (a - b) * s + b * s - a * s + c, 0),
        "running mean": (lambda m, a, b, c, s, y: b + (a - b) * s - b * (1 - s), 1),
        "determinant": (lambda m, a, b, c, s, y: (a + s * b) * y - (c + s * y) * b - (a * y - b * c), 0),
        "residual": (
            lambda m, a, b, c, s, y: (
                (a - b) * c + (c - (a - b)) * (a - b) - 2 * (a - b) * c + (a - b) * (a - b)
            ),
            0,
        ),
        "difference of fourth powers": (
            lambda m, a, b, c, s, y: a**4 - b**4 - (a * a - b * b) * (a * a + b * b),
            0,
        ),
        "momentum": (lambda m, a, b, c, s, y: 0.5 * (a + b) + 0.5 * (a - b) - c, 1),
    },
)

QUOTIENT = _scalars(
    "quotient",
    {
        "parts of one": (lambda m, a, b, c, s, y: a / (a + b) + b / (a + b), 0),
        "difference of quotients": (lambda m, a, b, c, s, y: a / b - c / b - (a - c) / b, 0),
        "sum of reciprocals": (lambda m, a, b, c, s, y: a / (a * b) + c / (b * c) - 2 / b, 0),
        "quotient of squares": (lambda m, a, b, c, s, y: (a * a - b * b) / (a - b), 1),
        "quotient of cubes": (lambda m, a, b, c, s, y: (a**3 - b**3) / (a - b), 4),
        "fifth over third power": (lambda m, a, b, c, s, y: a**5 / a**3 - a * a, 0),
        "common factor of a quotient": (lambda m, a, b, c, s, y: (a * c + b * c) / (a + b) - c, 0),
        "partial fractions": (
            lambda m, a, b, c, s, y: 1 / (a - 1) - 1 / (a + 1) - 2 / (a * a - 1),
            0,
        ),
        "one from parts": (lambda m, a, b, c, s, y: a / (1 + a) + 1 / (1 + a), 0),
        "lens": (lambda m, a, b, c, s, y: a * b / (a + b) - 1 / (1 / a + 1 / b), 0),
    },
)

SHARED = _scalars(
    "shared",
    {
        "squares of sums": (lambda m, a, b, c, s, y: (a + b + c) ** 2 - (a + b) ** 2, 4),
        "products of a sum": (lambda m, a, b, c, s, y: (a + b + c) * (a + b) - (a + b) * (a + b), 2),
        "tanh among sums": (
            lambda m, a, b, c, s, y: 1 - m.tanh(a) ** 2 + m.tanh(a) * (m.tanh(a) - 1) - (1 - m.tanh(a)),
            0,
        ),
        "product with a root": (
            lambda m, a, b, c, s, y: (m.sqrt(a * a + 1) - a) * (m.sqrt(a * a + 1) + a),
            0,
        ),
        "square of a root": (
            lambda m, a, b, c, s, y: (m.sqrt(a * a + b * b) + c) ** 2 - 2 * c * m.sqrt(a * a + b * b),
            5,
        ),
        "exponentials": (lambda m, a, b, c, s, y: m.exp(a + b) * m.exp(-a) - m.exp(b), 0),
    },
)

GRADIENT = _scalars(
    "gradient",
    {
        "logistic": (lambda m, a, b, c, s, y: s * (1 - y) - (1 - s) * y, 1),
        "logistic of a sigmoid": (
            lambda m, a, b, c, s, y: _sigmoid(m, a) * (1 - y) - (1 - _sigmoid(m, a)) * y,
            2,
        ),
        "sigmoid": (lambda m, a, b, c, s, y: _sigmoid(m, a) - _sigmoid(m, a) * _sigmoid(m, a), 4),
        "two classes": (
            lambda m, a, b, c, s, y: s * b - s * (s * b + (1 - s) * y),
            4,
        ),
        "swish": (
            lambda m, a, b, c, s, y: s + a * s * (1 - s) - a * s + a * s * s,
            0,
        ),
        "softmax": (
            lambda m, a, b, c, s, y: a / (a + b) * (1 - a / (a + b)) - (a * b) / ((a + b) * (a + b)),
            0,
        ),
        "Gaussian": (lambda m, a, b, c, s, y: (-0.5 * ((a - b) / c) ** 2) * 2 / (a - b), 4),
        "log density": (
            lambda m, a, b, c, s, y: -(a - b) / c * ((a - b) / c) + (a - b) * (a - b) / (c * c) + 1 / c,
            1,
        ),
        "weight decay": (lambda m, a, b, c, s, y: a - 0.5 * (0.25 * a + b), 3),
        "put and call": (
            lambda m, a, b, c, s, y: (a * s - b * c * s) - (b * c * (1 - s) - a * (1 - s)),
            2,
        ),
    },
)


EXPONENT = _scalars(
    "exponent",
    {
        "hyperbolic one": (
            lambda m, a, b, c, s, y: (m.exp(a) + m.exp(-a)) ** 2 / 4 - (m.exp(a) - m.exp(-a)) ** 2 / 4,
            0,
        ),
        "shift of a softmax": (
            lambda m, a, b, c, s, y: (
                m.exp(a - c) / (m.exp(a - c) + m.exp(b - c)) - m.exp(a) / (m.exp(a) + m.exp(b))
            ),
            0,
        ),
        "tanh of exponentials": (
            lambda m, a, b, c, s, y: (
                (m.exp(2 * a) - 1) / (m.exp(2 * a) + 1) - (m.exp(a) - m.exp(-a)) / (m.exp(a) + m.exp(-a))
            ),
            0,
        ),
        "product of Gaussians": (
            lambda m, a, b, c, s, y: (
                m.exp(-a * a) * m.exp(-b * b) * m.exp(2 * a * b) - m.exp(-((a - b) ** 2))
            ),
            0,
        ),
        "distributed": (
            lambda m, a, b, c, s, y: m.exp(a + b) * (m.exp(-a) + m.exp(-b)) - m.exp(a) - m.exp(b),
            0,
        ),
        "difference of squares": (
            lambda m, a, b, c, s, y: (
                m.exp(2 * a) - m.exp(2 * b) - (m.exp(a) - m.exp(b)) * (m.exp(a) + m.exp(b))
            ),
            0,
        ),
        "mixture of two": (
            lambda m, a, b, c, s, y: m.exp(a) / (m.exp(a) + m.exp(b)) - _sigmoid(m, a - b),
            0,
        ),
        "discounted": (
            lambda m, a, b, c, s, y: (b * m.exp(a * s) - c) * m.exp(-a * s) - b + c * m.exp(-a * s),
            0,
        ),
        "slopes of tanh and sigmoid": (
            lambda m, a, b, c, s, y: (1 - m.tanh(a) ** 2) - 4 * _sigmoid(m, 2 * a) * (1 - _sigmoid(m, 2 * a)),
            0,
        ),
        "odds": (lambda m, a, b, c, s, y: _sigmoid(m, a) / _sigmoid(m, -a) - m.exp(a), 0),
        "sinh of twice": (lambda m, a, b, c, s, y: m.sinh(2 * a) - 2 * m.sinh(a) * m.cosh(a), 0),
        "tanh of a sum": (
            lambda m, a, b, c, s, y: m.tanh(a + b) * (1 + m.tanh(a) * m.tanh(b)) - m.tanh(a) - m.tanh(b),
            0,
        ),
    },
)

CIRCLE = _scalars(
    "circle",
    {
        "square of a sum": (
            lambda m, a, b, c, s, y: (m.sin(a) + m.cos(a)) ** 2 - 2 * m.sin(a) * m.cos(a),
            0,
        ),
        "length of what is rotated": (
            lambda m, a, b, c, s, y: (
                (a * m.cos(s) - b * m.sin(s)) ** 2 + (a * m.sin(s) + b * m.cos(s)) ** 2 - a * a - b * b
            ),
            0,
        ),
        "there and back": (
            lambda m, a, b, c, s, y: (
                m.cos(s) * (a * m.cos(s) - b * m.sin(s)) + m.sin(s) * (a * m.sin(s) + b * m.cos(s))
            ),
            0,
        ),
        "sine of a sum": (
            lambda m, a, b, c, s, y: m.sin(a + b) - m.sin(a) * m.cos(b) - m.cos(a) * m.sin(b),
            0,
        ),
        "two rotations": (
            lambda m, a, b, c, s, y: (
                m.cos(a) * (c * m.cos(b) - y * m.sin(b))
                - m.sin(a) * (c * m.sin(b) + y * m.cos(b))
                - c * m.cos(a + b)
                + y * m.sin(a + b)
            ),
            0,
        ),
        "tangent": (lambda m, a, b, c, s, y: m.tan(a) * m.cos(a) - m.sin(a), 0),
        "secant": (lambda m, a, b, c, s, y: 1 / m.cos(a) ** 2 - m.tan(a) ** 2, 0),
    },
)


def _outer(left: Any, right: Any) -> Any:
    return left[:, None] * right[None, :]


def _matrices(family: str, cases: dict[str, tuple[Build, int]]) -> list[Identity]:
    return [Identity(name, family, build, "mmmvv", fewest) for name, (build, fewest) in cases.items()]


VARIANCE = _matrices(
    "variance",
    {
        "centered sum": (lambda m, a, b, c, x, y: (x - x.mean()).sum(), 0),
        "mean of squares": (
            lambda m, a, b, c, x, y: (x * x).mean() - x.mean() ** 2 - ((x - x.mean()) ** 2).mean(),
            0,
        ),
        "covariance": (
            lambda m, a, b, c, x, y: (
                (x * y).mean() - x.mean() * y.mean() - ((x - x.mean()) * (y - y.mean())).mean()
            ),
            0,
        ),
        "mean of a shift": (lambda m, a, b, c, x, y: (x + y.sum()).mean() - y.sum() - x.mean(), 0),
        "sums of rows and of columns": (
            lambda m, a, b, c, x, y: a.sum(axis=0).sum() - a.sum(axis=1).sum(),
            0,
        ),
    },
)

NORMAL = _matrices(
    "normal equations",
    {
        "squared residual": (
            lambda m, a, b, c, x, y: (
                (a @ x - y) @ (a @ x - y) - x @ (a.T @ (a @ x)) + 2 * (x @ (a.T @ y)) - y @ y
            ),
            0,
        ),
        "gradient": (
            lambda m, a, b, c, x, y: (a.T @ (a @ x) - a.T @ y) @ x - (a @ x - y) @ (a @ x),
            0,
        ),
        "step": (lambda m, a, b, c, x, y: x @ (a.T @ (a @ x - y)) + x @ (a.T @ y) - (a @ x) @ (a @ x), 0),
    },
)

TRACE = _matrices(
    "trace",
    {
        "cyclic": (lambda m, a, b, c, x, y: m.trace(a @ b) - m.trace(b @ a), 0),
        "cyclic of three": (lambda m, a, b, c, x, y: m.trace(a @ b @ c) - m.trace(c @ a @ b), 0),
        "elementwise": (lambda m, a, b, c, x, y: m.trace(a @ b) - (a * b.T).sum(), 0),
        "of a commutator": (lambda m, a, b, c, x, y: m.trace(a @ b - b @ a), 0),
        "of an outer product": (lambda m, a, b, c, x, y: m.trace(_outer(x, y)) - x @ y, 0),
    },
)

QUADRATIC = _matrices(
    "quadratic form",
    {
        "adjoint": (lambda m, a, b, c, x, y: x @ (a @ y) - (a.T @ x) @ y, 0),
        "polarization": (
            lambda m, a, b, c, x, y: (
                (x + y) @ (a @ (x + y)) - x @ (a @ x) - y @ (a @ y) - x @ (a @ y) - y @ (a @ x)
            ),
            0,
        ),
        "symmetric part": (lambda m, a, b, c, x, y: x @ ((a + a.T) @ x) - 2 * (x @ (a @ x)), 0),
        "outer product": (lambda m, a, b, c, x, y: (x @ (_outer(x, y) @ y)) - (x @ x) * (y @ y), 0),
        "sum of an outer product": (lambda m, a, b, c, x, y: _outer(x, y).sum() - x.sum() * y.sum(), 0),
        "square of a sum": (
            lambda m, a, b, c, x, y: ((a + b) @ (a + b) - a @ a - a @ b - b @ a - b @ b).sum(),
            0,
        ),
        "products of sums": (lambda m, a, b, c, x, y: a @ b + a @ c, 2),
        "diagonal matrix": (lambda m, a, b, c, x, y: (m.diag(x) @ y - x * y).sum(), 0),
    },
)

PRODUCT = _matrices(
    "product of sums",
    {
        "of two vectors": (lambda m, a, b, c, x, y: a @ x + a @ y, 2),
        "minus one of two vectors": (lambda m, a, b, c, x, y: a @ (x + y) - a @ y, 1),
        "minus three of four": (lambda m, a, b, c, x, y: (a + b) @ (x + y) - a @ x - b @ y - b @ x, 1),
        "minus one of two matrices": (lambda m, a, b, c, x, y: (a + b) @ c - a @ c, 1),
        "back to one": (lambda m, a, b, c, x, y: a @ (b - c) + a @ c, 1),
        "least squares": (lambda m, a, b, c, x, y: a.T @ (a @ x - y) + a.T @ y, 2),
        "square of a difference": (lambda m, a, b, c, x, y: (a - b) @ (a - b) - a @ a + a @ b + b @ a, 1),
        "common first factor": (lambda m, a, b, c, x, y: a @ b @ x + a @ c @ x, 4),
        "common factors": (lambda m, a, b, c, x, y: a @ b @ c + a @ a @ c, 3),
        "Gram": (
            lambda m, a, b, c, x, y: (a + b).T @ (a + b) - a.T @ a - b.T @ b - a.T @ b - b.T @ a,
            0,
        ),
        "Jacobi's identity": (
            lambda m, a, b, c, x, y: (
                (a @ (b @ c - c @ b) - (b @ c - c @ b) @ a)
                + (b @ (c @ a - a @ c) - (c @ a - a @ c) @ b)
                + (c @ (a @ b - b @ a) - (a @ b - b @ a) @ c)
            ),
            0,
        ),
        "projection": (lambda m, a, b, c, x, y: (x - _outer(y, y) @ x) + y * (y @ x), 0),
    },
)

JOIN = _matrices(
    "joins and slices",
    {
        "sum": (lambda m, a, b, c, x, y: m.concatenate([x, y]).sum() - x.sum() - y.sum(), 0),
        "squared norm": (
            lambda m, a, b, c, x, y: (m.concatenate([x, y]) ** 2).sum() - x @ x - (y * y).sum(),
            0,
        ),
        "product of blocks": (
            lambda m, a, b, c, x, y: m.concatenate([a, b], axis=1) @ m.concatenate([b, c]) - a @ b - b @ c,
            0,
        ),
        "blocks and a vector": (
            lambda m, a, b, c, x, y: (
                m.concatenate([m.concatenate([a, b], axis=1), m.concatenate([c, a], axis=1)])
                @ m.concatenate([x, y])
                - m.concatenate([a @ x + b @ y, c @ x + a @ y])
            ).sum(),
            0,
        ),
        "elementwise": (
            lambda m, a, b, c, x, y: (
                m.concatenate([x, y]) * m.concatenate([y, x]) - m.concatenate([x * y, y * x])
            ).sum(),
            0,
        ),
        "part of a join": (
            lambda m, a, b, c, x, y: m.concatenate([2 * x, y])[x.shape[0] :] - y,
            0,
        ),
        "halves": (lambda m, a, b, c, x, y: m.concatenate([x[:2], x[2:]]) - x, 0),
        "sum of halves": (lambda m, a, b, c, x, y: x[:-2] @ y[:-2] + x[-2:] @ y[-2:] - x @ y, 0),
        "rows of a product": (lambda m, a, b, c, x, y: ((a @ b)[:2] - a[:2] @ b).sum(), 0),
        "reversed twice": (lambda m, a, b, c, x, y: x[::-1][::-1] - x, 0),
        "reversed in a product": (lambda m, a, b, c, x, y: (x[::-1] * y).sum() - (x * y[::-1]).sum(), 0),
        "columns read backwards": (lambda m, a, b, c, x, y: a[:, ::-1] @ x[::-1] - a @ x, 0),
    },
)

COMPLEX = tuple(
    Identity(name, "complex numbers", build, "zzvvv", fewest)
    for name, (build, fewest) in {
        "conjugate of a product": (lambda m, a, b, c, x, y: m.conj(a * b) - m.conj(a) * m.conj(b), 0),
        "parts": (lambda m, a, b, c, x, y: m.real(a) + 1j * m.imag(a) - a, 0),
        "real part": (lambda m, a, b, c, x, y: (a + m.conj(a)) * 0.5 - m.real(a), 0),
        "real part of a product": (
            lambda m, a, b, c, x, y: m.real(a * b) - m.real(a) * m.real(b) + m.imag(a) * m.imag(b),
            0,
        ),
        "squared size": (
            lambda m, a, b, c, x, y: m.real(a * m.conj(a)) - m.real(a) ** 2 - m.imag(a) ** 2,
            0,
        ),
        "squared size of a product": (
            lambda m, a, b, c, x, y: m.abs(a * b) ** 2 - m.abs(a) ** 2 * m.abs(b) ** 2,
            0,
        ),
        "parallelogram": (
            lambda m, a, b, c, x, y: (
                m.abs(a + b) ** 2 + m.abs(a - b) ** 2 - 2 * m.abs(a) ** 2 - 2 * m.abs(b) ** 2
            ),
            0,
        ),
        "real factor": (lambda m, a, b, c, x, y: m.imag(a * c) - m.imag(a) * c, 0),
        "half a turn": (lambda m, a, b, c, x, y: (1j * a) * (1j * b) + a * b, 0),
        "turns": (lambda m, a, b, c, x, y: m.exp(1j * c) * m.conj(m.exp(1j * x)) - m.exp(1j * (c - x)), 0),
        "inner product": (lambda m, a, b, c, x, y: m.conj(m.conj(a) @ b) - m.conj(b) @ a, 0),
    }.items()
)

STRUCTURE = tuple(
    Identity(name, "structure", build, "ssovv", fewest)
    for name, (build, fewest) in {
        "symmetric": (lambda m, a, b, c, x, y: a.T @ x - a @ x, 0),
        "both ways": (lambda m, a, b, c, x, y: x @ (a @ (b @ y)) - y @ (b @ (a @ x)), 0),
        "square of a symmetric one": (lambda m, a, b, c, x, y: ((a @ x) ** 2).sum() - x @ (a @ (a @ x)), 0),
        "a commutator": (
            lambda m, a, b, c, x, y: ((a @ b - b @ a).T @ x + (a @ b - b @ a) @ x).sum(),
            0,
        ),
        "no trace": (lambda m, a, b, c, x, y: m.trace(a @ (_outer(x, y) - _outer(y, x))), 0),
        "a turn back": (lambda m, a, b, c, x, y: c.T @ (c @ x) - x, 0),
        "angles": (lambda m, a, b, c, x, y: (c @ x) @ (c @ y) - x @ y, 0),
        "lengths": (lambda m, a, b, c, x, y: ((c @ (x - y)) ** 2).sum() - ((x - y) ** 2).sum(), 0),
        "trace of a turned one": (lambda m, a, b, c, x, y: m.trace(c @ a @ c.T) - m.trace(a), 0),
        "norm of a turned one": (lambda m, a, b, c, x, y: ((c @ a) ** 2).sum() - (a * a).sum(), 0),
        "turned both": (lambda m, a, b, c, x, y: ((c @ a @ c.T) @ (c @ x) - c @ (a @ x)).sum(), 0),
    }.items()
)

MATRICES = (*PRODUCT, *VARIANCE, *NORMAL, *TRACE, *QUADRATIC, *JOIN)
SCALARS = (*EXPAND, *FACTOR, *CANCEL, *QUOTIENT, *SHARED, *GRADIENT, *EXPONENT, *CIRCLE)
IDENTITIES: tuple[Identity, ...] = (*SCALARS, *MATRICES, *COMPLEX, *STRUCTURE)
