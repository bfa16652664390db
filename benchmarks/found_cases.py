"""Sixty expressions in which there is something to be found: written by what PyTensor's rewrites are about.

Each is a function of a library's namespace and of inputs, which letters name:

==========  ===========================================================
``a b``     matrices of m rows and n columns
``k``       a matrix of n rows and k columns
``p``       a square matrix of n rows
``g h``     square matrices of k rows
``u``       a vector of m elements
``v w``     vectors of n elements
``s t``     scalars
==========  ===========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SHAPES: Mapping[str, str] = {
    **dict.fromkeys("ab", "mn"),
    "k": "nk",
    "p": "nn",
    **dict.fromkeys("gh", "kk"),
    "u": "m",
    **dict.fromkeys("vw", "n"),
    **dict.fromkeys("st", ""),
}
"""The sizes of each input."""

SIZES: Mapping[str, Mapping[str, int]] = {
    "small": {"m": 6, "n": 4, "k": 3},
    "medium": {"m": 300, "n": 200, "k": 20},
}
"""Sizes that the types know; programs for unknown ones run at the medium ones."""

KINDS = (*SIZES, "unknown")
"""What is known of sizes."""


@dataclass(frozen=True)
class Findable:
    """One expression.

    Attributes
    ----------
    family
        What tables group it by.
    name
        What it is.
    inputs
        Letters.
    build
        ``build(namespace, *inputs)`` is the expression.
    """

    family: str
    name: str
    inputs: str
    build: Callable[..., Any]

    def shapes(self, kind: str) -> list[tuple[int, ...]]:
        """Shapes of its inputs where sizes are of a kind."""
        sizes = SIZES.get(kind, SIZES["medium"])
        return [tuple(sizes[letter] for letter in SHAPES[one]) for one in self.inputs]


def _gaussian_loss(np: Any, a: Any, v: Any, u: Any) -> Any:
    loss = ((np.matmul(a, v) - u) ** 2).sum() / 2
    return np.grad(loss, v)


def _logistic_loss(np: Any, a: Any, v: Any, u: Any) -> Any:
    p = 1 / (1 + np.exp(-np.matmul(a, v)))
    return np.grad(-(u * np.log(p) + (1 - u) * np.log(1 - p)).sum(), v)


def _softmax_loss(np: Any, a: Any, b: Any) -> Any:
    p = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
    return np.grad(-(b * np.log(p)).sum(), a)


def _hidden_layer(np: Any, a: Any, k: Any) -> Any:
    return np.grad(np.tanh(np.matmul(a, k)).sum(), k)


def _below(one: Any, other: Any) -> Any:
    return one < other


def _family(family: str, *rows: tuple[str, str, Callable[..., Any]]) -> tuple[Findable, ...]:
    return tuple(Findable(family, *row) for row in rows)


FINDABLES: tuple[Findable, ...] = (
    *_family(
        "elementwise",
        ("log(1 + e^x)", "a", lambda np, a: np.log(1 + np.exp(a))),
        ("log(1 - sigmoid)", "a", lambda np, a: np.log(1 - np.sigmoid(a))),
        ("exponentials multiplied", "ab", lambda np, a, b: np.exp(a) * np.exp(b)),
        ("factors cancel", "ab", lambda np, a, b: a * b * a / (b * a)),
        ("numbers gather", "a", lambda np, a: ((a * 2) / 3 - 1 + 4 - a * 3) * 5),
        ("a sign into a number", "a", lambda np, a: -(a * 2.5)),
        ("root of a square", "a", lambda np, a: np.sqrt(a**2) * np.abs(-a)),
        ("1 - erf", "a", lambda np, a: 1 - np.erf(a)),
        ("inverse functions", "a", lambda np, a: np.expm1(np.log1p(np.abs(a))) + np.sinh(np.arcsinh(a))),
        ("powers", "a", lambda np, a: a**2 * a**3 / a**4),
        ("comparison with itself", "a", lambda np, a: np.where(_below(a, a), a * 7, np.exp(a))),
    ),
    *_family(
        "reductions",
        ("a scale leaves a sum", "as", lambda np, a, s: (s * a).sum()),
        ("a sign leaves a sum", "a", lambda np, a: (-a).sum(axis=1)),
        ("sums of sums", "a", lambda np, a: a.sum(axis=0).sum()),
        ("sum of a transpose", "a", lambda np, a: a.T.sum(axis=0)),
        ("maximum of negatives", "a", lambda np, a: (-a).max(axis=1)),
        ("product of scaled", "vs", lambda np, v, s: (v * s).prod()),
        ("an axis of one element", "a", lambda np, a: a[:, None, :].sum(axis=1)),
        ("sum of a constant", "a", lambda np, a: (np.zeros_like(a) + 2).sum(axis=0) + a[0]),
        ("mean of a difference", "as", lambda np, a, s: (a - s).mean()),
    ),
    *_family(
        "subtensors",
        ("a row of a sum", "ab", lambda np, a, b: (a + b)[1]),
        ("a part of functions", "v", lambda np, v: np.exp(np.tanh(v))[1:3]),
        ("a part of a part", "v", lambda np, v: v[1:][1:][0]),
        ("reversed twice", "a", lambda np, a: np.exp(a)[::-1][::-1]),
        ("a row of a product", "ak", lambda np, a, k: np.matmul(a, k)[2]),
        ("an element of a product", "ak", lambda np, a, k: np.matmul(a, k)[1, 2]),
        ("an element of a reduction", "a", lambda np, a: np.exp(a).sum(axis=1)[2]),
        ("a row of a transpose", "a", lambda np, a: np.exp(a.T)[1]),
        ("a written part, read", "av", lambda np, a, v: np.set_subtensor(np.exp(a)[1], v)[1]),
        ("writing the whole", "ab", lambda np, a, b: np.set_subtensor(np.exp(a)[:], b)),
        ("a row of a softmax", "a", lambda np, a: np.softmax(a, axis=1)[1]),
        ("a part of a join", "ab", lambda np, a, b: np.exp(np.concatenate([a, b]))[: a.shape[0]]),
        ("one of a stack", "ab", lambda np, a, b: np.stack([np.exp(a), np.tanh(b)])[1]),
    ),
    *_family(
        "joins",
        ("one part", "a", lambda np, a: np.concatenate([np.exp(a)])),
        (
            "joins of joins",
            "aba",
            lambda np, a, b, c: np.concatenate([a, np.concatenate([b, c])]).sum(axis=0),
        ),
        ("sum of a join", "ab", lambda np, a, b: np.concatenate([np.exp(a), np.exp(b)]).sum()),
        ("cut and joined", "a", lambda np, a: np.exp(np.concatenate([a[:2], a[2:]]))),
    ),
    *_family(
        "linear algebra",
        ("transposed twice", "ak", lambda np, a, k: np.matmul(k.T, a.T).T),
        ("inverse times vector", "pv", lambda np, p, v: np.matmul(np.inv(p), v)),
        ("diagonal scales rows", "vk", lambda np, v, k: np.matmul(np.diag(v), k)),
        ("diagonal scales columns", "av", lambda np, a, v: np.matmul(a, np.diag(v))),
        ("inverse of a diagonal", "v", lambda np, v: np.inv(np.diag(v))),
        ("solving with a diagonal", "vw", lambda np, v, w: np.solve(np.diag(v), w)),
        ("determinant of a diagonal", "v", lambda np, v: np.det(np.diag(v))),
        ("log of a determinant", "p", lambda np, p: np.log(np.abs(np.det(p)))),
        ("diagonal of a diagonal", "v", lambda np, v: np.diagonal(np.diag(np.exp(v)))),
        ("Cholesky of a diagonal", "v", lambda np, v: np.cholesky(np.diag(np.exp(v)))),
        ("chain of products", "akv", lambda np, a, k, v: np.matmul(np.matmul(k.T, a.T), np.matmul(a, v))),
        ("determinant of Kronecker", "gh", lambda np, g, h: np.log(np.abs(np.det(np.kron(g, h))))),
        ("diagonal of Kronecker", "gh", lambda np, g, h: np.diagonal(np.kron(g, h))),
    ),
    *_family(
        "fills and switches",
        ("filled like, with more", "abs", lambda np, a, b, s: np.full_like(a, s) * 2 + b),
        ("ones times a number", "as", lambda np, a, s: np.ones_like(a) * s + a),
        ("zeros added", "a", lambda np, a: np.zeros_like(a) + a * np.ones_like(a)),
        ("a known condition", "ab", lambda np, a, b: np.where(np.ones_like(a) > 0, a, np.exp(b))),
        ("both sides equal", "ab", lambda np, a, b: np.where(b > 0, np.exp(a), np.exp(a))),
    ),
    *_family(
        "gradients",
        ("least squares", "avu", _gaussian_loss),
        ("logistic loss", "avu", _logistic_loss),
        ("softmax, written out", "ab", _softmax_loss),
        ("hidden layer", "ak", _hidden_layer),
        ("one row's sum", "a", lambda np, a: np.grad(np.exp(a)[1].sum(), a)),
        ("sum of a join", "ab", lambda np, a, b: np.grad((np.concatenate([a, b]) ** 2).sum(), a)),
        ("log of a determinant", "p", lambda np, p: np.grad(np.log(np.abs(np.det(p))), p)),
    ),
)
