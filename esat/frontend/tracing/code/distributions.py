"""Distributions of ``scipy.stats`` in traced functions: ``norm.logpdf(x, mu, sigma)`` and frozen ones."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from esat.errors import DtypeError, describe
from esat.frontend.scipy_functions.densities import (
    DISTRIBUTIONS,
    multivariate_normal_logpdf,
    multivariate_normal_pdf,
)
from esat.frontend.tracing.values.convert import given, handed_out, holds_traced
from esat.graph.calls.callers import user_line

_VECTORS: dict[str, Callable[..., Any]] = {
    "logpdf": multivariate_normal_logpdf,
    "pdf": multivariate_normal_pdf,
}


def _name_of(distribution: Any) -> str | None:
    """The public name of a distribution of SciPy's; None of all else."""
    stats = sys.modules.get("scipy.stats")
    if stats is None or not type(distribution).__module__.startswith("scipy.stats."):
        return None
    names = (*DISTRIBUTIONS, "multivariate_normal")
    return next((name for name in names if type(getattr(stats, name)) is type(distribution)), None)


def _function(name: str, method: str) -> Callable[..., Any]:
    found = _VECTORS.get(method) if name == "multivariate_normal" else DISTRIBUTIONS[name].function(method)
    if found is None:
        reason = (
            "it is not known for traced arrays; of distributions logpdf, pdf, logpmf, pmf, cdf and sf are"
        )
        raise DtypeError(describe(f"scipy.stats.{name}.{method}", [], reason, user_line()))
    return found


def _called(name: str, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    values = given(list(arguments)), given(named)
    return handed_out(_function(name, method)(*values[0], **values[1]))


class _Frozen:
    """A distribution with parameters that are traced."""

    def __init__(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._name, self._arguments, self._named = name, arguments, named

    def __getattr__(self, method: str) -> Any:
        _function(self._name, method)
        return lambda x: _called(self._name, method, (x, *self._arguments), self._named)


def method_of_distribution(method: types.MethodType) -> Any:
    """What stands for a method of a distribution; anything else is itself."""
    owner: Any = method.__self__
    name = method.__name__
    distribution, arguments, named = owner, (), {}
    if not type(owner).__module__.startswith("scipy.stats."):
        return method
    if hasattr(owner, "dist"):
        distribution, arguments, named = owner.dist, owner.args, owner.kwds
    known = _name_of(distribution)
    if known is None:
        return method

    def call(*values: Any, **options: Any) -> Any:
        if not holds_traced([values, options]):
            return method(*values, **options)
        return _called(known, name, (*values, *arguments), {**named, **options})

    return call


def frozen(distribution: Any) -> Any:
    """What stands for a distribution that is called with its parameters; anything else is itself."""
    name = _name_of(distribution)
    if name is None:
        return distribution

    def freeze(*arguments: Any, **named: Any) -> Any:
        if not holds_traced([arguments, named]):
            return distribution(*arguments, **named)
        return _Frozen(name, arguments, named)

    return freeze
