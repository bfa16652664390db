"""Distributions of numbers, one record each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.graph.op import Array
from esat.graph.registry import op_named
from esat.graph.variables import Apply, Variable
from esat.ops.random.variable import Kind, RandomVariable
from esat.ops.reduction import sum_to

Generator = np.random.Generator
Draw = Callable[..., Any]


@record(frozen=True)
class Distribution:
    """One distribution of numbers.

    Attributes
    ----------
    name
        Of NumPy's method, and of the op.
    kinds
        Of each parameter.
    dtype
        Of the numbers.
    draw
        ``draw(generator, *parameters, size)``.
    location, scale
        Positions of such parameters, where the sample is ``location + scale * z`` and ``z`` is the sample
        with the parameters ``standard``.
    standard
        Parameters of ``z``; those that are neither location nor scale stay as they are, and are None.
    is_exponential
        Whether this holds of the sample's logarithm.
    """

    name: str
    kinds: tuple[Kind, ...]
    dtype: str
    draw: Draw
    location: int | None = None
    scale: int | None = None
    standard: tuple[float | None, ...] = ()
    is_exponential: bool = False


def _bernoulli(generator: Generator, p: Array, size: tuple[int, ...] | None) -> Any:
    if np.any(~((p >= 0) & (p <= 1))):
        raise ValueError("p < 0, p > 1 or p is NaN")
    return generator.random(np.shape(p) if size is None else size) < p


R: Kind = "real"
N: Kind = "integer"
DISTRIBUTIONS: dict[str, Distribution] = {
    record.name: record
    for record in (
        Distribution("normal", (R, R), "float64", Generator.normal, 0, 1, (0.0, 1.0)),
        Distribution("exponential", (R,), "float64", Generator.exponential, None, 0, (1.0,)),
        Distribution("laplace", (R, R), "float64", Generator.laplace, 0, 1, (0.0, 1.0)),
        Distribution("gumbel", (R, R), "float64", Generator.gumbel, 0, 1, (0.0, 1.0)),
        Distribution("logistic", (R, R), "float64", Generator.logistic, 0, 1, (0.0, 1.0)),
        Distribution("gamma", (R, R), "float64", Generator.gamma, None, 1, (None, 1.0)),
        Distribution("lognormal", (R, R), "float64", Generator.lognormal, 0, 1, (0.0, 1.0), True),
        Distribution("rayleigh", (R,), "float64", Generator.rayleigh, None, 0, (1.0,)),
        Distribution("vonmises", (R, R), "float64", Generator.vonmises, 0),
        Distribution("uniform", (R, R), "float64", Generator.uniform),
        Distribution("beta", (R, R), "float64", Generator.beta),
        Distribution("weibull", (R,), "float64", Generator.weibull),
        Distribution("pareto", (R,), "float64", Generator.pareto),
        Distribution("power", (R,), "float64", Generator.power),
        Distribution("standard_t", (R,), "float64", Generator.standard_t),
        Distribution("chisquare", (R,), "float64", Generator.chisquare),
        Distribution("f", (R, R), "float64", Generator.f),
        Distribution("wald", (R, R), "float64", Generator.wald),
        Distribution("triangular", (R, R, R), "float64", Generator.triangular),
        Distribution("poisson", (R,), "int64", Generator.poisson),
        Distribution("binomial", (N, R), "int64", Generator.binomial),
        Distribution("geometric", (R,), "int64", Generator.geometric),
        Distribution("negative_binomial", (R, R), "int64", Generator.negative_binomial),
        Distribution("hypergeometric", (N, N, N), "int64", Generator.hypergeometric),
        Distribution("logseries", (R,), "int64", Generator.logseries),
        Distribution("zipf", (R,), "int64", Generator.zipf),
        Distribution("bernoulli", (R,), "bool", _bernoulli),
    )
}
"""Distributions by name."""


def _constructor(name: str) -> str:
    return f"Random{name.title().replace('_', '')}"


@record(frozen=True, eq=False, repr=False)
class NumberVariable(RandomVariable):
    """A draw of numbers from one of :data:`DISTRIBUTIONS`.

    Attributes
    ----------
    name
        Of the distribution.
    """

    name: str = ""
    constructor = ""
    variants = MappingProxyType({_constructor(name): name for name in DISTRIBUTIONS})

    def __post_init__(self) -> None:
        RandomVariable.__post_init__(self)
        object.__setattr__(self, "constructor", _constructor(self.name))

    @property
    def distribution(self) -> Distribution:
        """The record."""
        return DISTRIBUTIONS[self.name]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return self.distribution.kinds

    @property
    def dtype(self) -> str:
        return self.distribution.dtype

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        return self.distribution.draw(generator, *parameters, size)

    def pathwise(self, node: Apply, cotangent: Variable) -> list[Variable | None]:
        _, parameters, _ = self.split(node.inputs)
        record = self.distribution
        if record.is_exponential:
            cotangent = cotangent * node.outputs[1]
        if self.name == "uniform":
            # low + (high - low) * z
            standard = self._again(node, (0.0, 1.0))
            by_high = cotangent * standard
            slopes: list[Variable | None] = [cotangent - by_high, by_high]
        else:
            slopes = [
                cotangent
                if place == record.location
                else cotangent * self._again(node, record.standard)
                if place == record.scale
                else self.undifferentiable(node, place)
                for place in range(len(parameters))
            ]
        return [
            None if slope is None else sum_to(slope, parameter.tensor_type.broadcastable)
            for slope, parameter in zip(slopes, parameters, strict=True)
        ]

    def _again(self, node: Apply, standard: Sequence[float | None]) -> Variable:
        """The sample from the same state with standard parameters."""
        state, parameters, sizes = self.split(node.inputs)
        replaced = [
            parameter if value is None else op_named("fill")(parameter, value)
            for parameter, value in zip(parameters, standard, strict=True)
        ]
        _, sample = self(state, *replaced, *sizes)
        result: Variable = op_named("log")(sample) if self.distribution.is_exponential else sample
        return result


@record(frozen=True, eq=False, repr=False)
class Integers(RandomVariable):
    """Integers from ``low`` up to but without ``high``, equally likely; parameters ``(low, high)``.

    Attributes
    ----------
    integer_dtype
        Of the sample. NumPy draws different numbers for different ones.
    """

    integer_dtype: str = "int64"
    name, constructor = "integers", "RandomIntegers"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("integer", "integer")

    @property
    def dtype(self) -> str:
        return self.integer_dtype

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        low, high = (array[()] for array in parameters)
        return generator.integers(low, high, size, dtype=np.dtype(self.integer_dtype).type)
