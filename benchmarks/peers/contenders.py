"""The contenders by name.

A contender's module has ``prepare(case, dtype) -> Callable``: the case as a function that takes NumPy
arrays and returns a finished NumPy array, or several in a tuple or list; compiled once for all sizes where
the library can. It may raise :class:`Unsupported`, and has ``VERSION``, the library's.
"""

from __future__ import annotations

OURS = "esat"

PEERS: tuple[str, ...] = ("numpy", "numexpr", "jax", "pytensor", "torch")
"""Contenders that esat is compared with."""

BASELINES: tuple[str, ...] = ("handwritten", "greedy")
"""Of the linear algebra benchmark: the best form in NumPy and SciPy, and esat's rules applied one by one."""


class Unsupported(Exception):  # noqa: N818 (an answer rather than an error)
    """The library cannot express a case; the message says why."""


def module_name(contender: str) -> str:
    """The module that speaks for a contender."""
    return f"benchmarks.peers.{contender}_contender"
