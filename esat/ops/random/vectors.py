"""Draws of several numbers that depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.shape import known_size, sizes_of
from esat.ops.arrays.view import reshape
from esat.ops.linalg.algebra import product, transposed
from esat.ops.linalg.factor import CHOLESKY
from esat.ops.random.distributions import NumberVariable
from esat.ops.random.variable import Kind, RandomVariable, Shape
from esat.ops.reduction import SUM, reduce


@record(frozen=True, eq=False, repr=False)
class Choice(RandomVariable):
    """Places among ``n``: parameters ``(n,)``, or ``(n, p)`` with a vector of ``n`` probabilities.

    Attributes
    ----------
    with_replacement
        Whether a place can be drawn twice.
    weighted
        Whether there are probabilities.
    shuffle
        Whether places drawn without replacement come in random order.
    """

    with_replacement: bool = True
    weighted: bool = False
    shuffle: bool = True
    name, constructor = "choice", "RandomChoice"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("integer", "real") if self.weighted else ("integer",)

    @property
    def parameter_ranks(self) -> tuple[int, ...]:
        return (0, 1) if self.weighted else (0,)

    @property
    def dtype(self) -> str:
        return "int64"

    def infer_types(self, inputs: Sequence[Variable]) -> Any:
        _, parameters, _ = self.split(inputs)
        _without_batch(self, parameters)
        return RandomVariable.infer_types(self, inputs)

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        weights = parameters[1] if self.weighted else None
        count = int(parameters[0])
        return generator.choice(count, size, self.with_replacement, weights, shuffle=self.shuffle)


@record(frozen=True, eq=False, repr=False)
class Permutation(RandomVariable):
    """The numbers below ``n`` in random order; parameter ``(n,)``."""

    name, constructor = "permutation", "RandomPermutation"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("integer",)

    @property
    def dtype(self) -> str:
        return "int64"

    def infer_types(self, inputs: Sequence[Variable]) -> Any:
        _, parameters, _ = self.split(inputs)
        _without_batch(self, parameters)
        return (inputs[0].type, TensorType("int64", shape=(known_size(parameters[0]),)))

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        return generator.permutation(int(parameters[0]))


@record(frozen=True, eq=False, repr=False)
class Multinomial(RandomVariable):
    """How often each of ``k`` outcomes comes in ``n`` trials; parameters ``n`` and ``(..., k)`` shares."""

    name, constructor = "multinomial", "RandomMultinomial"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("integer", "real")

    @property
    def parameter_ranks(self) -> tuple[int, ...]:
        return (0, 1)

    @property
    def dtype(self) -> str:
        return "int64"

    def event_shape(self, parameters: Sequence[TensorType]) -> Shape:
        return parameters[1].shape[-1:]

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        trials, probabilities = parameters
        return generator.multinomial(trials, probabilities, size)


@record(frozen=True, eq=False, repr=False)
class Dirichlet(RandomVariable):
    """Vectors of positive numbers whose sum is 1; parameter ``(..., k)``."""

    name, constructor = "dirichlet", "RandomDirichlet"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("real",)

    @property
    def parameter_ranks(self) -> tuple[int, ...]:
        return (1,)

    @property
    def dtype(self) -> str:
        return "float64"

    def event_shape(self, parameters: Sequence[TensorType]) -> Shape:
        return parameters[0].shape[-1:]

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        (alpha,) = parameters
        if alpha.ndim == 1:
            return generator.dirichlet(alpha, size)
        shape = alpha.shape if size is None else (*size, alpha.shape[-1])
        rows = np.broadcast_to(alpha, shape).reshape(-1, alpha.shape[-1])
        return np.array([generator.dirichlet(row) for row in rows]).reshape(shape)


NormalMethod = Literal["svd", "eigh", "cholesky"]


@record(frozen=True, eq=False, repr=False)
class MultivariateNormal(RandomVariable):
    """Normal vectors; parameters ``(mean, covariance)`` of ``(k,)`` and ``(k, k)``.

    Attributes
    ----------
    method
        How NumPy factors the covariance. Only ``cholesky`` has a derivative by it.
    """

    method: NormalMethod = "svd"
    name, constructor = "multivariate_normal", "RandomMultivariateNormal"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("real", "real")

    @property
    def parameter_ranks(self) -> tuple[int, ...]:
        return (1, 2)

    @property
    def dtype(self) -> str:
        return "float64"

    def infer_types(self, inputs: Sequence[Variable]) -> Any:
        if self.method not in ("svd", "eigh", "cholesky"):
            raise DtypeError(describe(self.name, [self.method], "method is svd, eigh or cholesky"))
        _, parameters, _ = self.split(inputs)
        _without_batch(self, parameters)
        mean, covariance = (variable.tensor_type for variable in parameters)
        if len({*mean.shape, *covariance.shape} - {None}) > 1:
            raise ShapeError(describe(self.name, [mean, covariance], "mean and covariance differ in size"))
        return RandomVariable.infer_types(self, inputs)

    def event_shape(self, parameters: Sequence[TensorType]) -> Shape:
        known = {*parameters[0].shape, *parameters[1].shape} - {None}
        return (known.pop() if known else None,)

    def draw(
        self, generator: np.random.Generator, parameters: Sequence[Array], size: tuple[int, ...] | None
    ) -> Any:
        mean, covariance = parameters
        try:
            return generator.multivariate_normal(
                mean, covariance, size, check_valid="raise", method=self.method
            )
        except np.linalg.LinAlgError as error:
            raise ValueError("the covariance is not symmetric positive semidefinite") from error

    def pathwise(self, node: Apply, cotangent: Variable) -> list[Variable | None]:
        state, (mean, covariance), sizes = self.split(node.inputs)
        batch = tuple(range(cotangent.tensor_type.ndim - 1))
        by_mean = reduce(SUM, cotangent, batch) if batch else cotangent
        if self.method != "cholesky":
            return [by_mean, self.undifferentiable(node, 1)]
        # mean + factor @ z, where z are the standard normal numbers the draw begins with
        (size,) = sizes_of(mean)
        standard = NumberVariable((self.size_rank or 0) + 1, name="normal")(state, 0.0, 1.0, *sizes, size)[1]
        rows = [reshape(part, (-1, size)) for part in (cotangent, standard)]
        factored = CHOLESKY.make_node(covariance)
        by_factor = product(transposed(rows[0]), rows[1])
        return [by_mean, *CHOLESKY.vjp(factored, [by_factor])]


def _without_batch(op: RandomVariable, parameters: Sequence[Variable]) -> None:
    """Raise ShapeError when parameters have more axes than one draw takes."""
    types = [variable.tensor_type for variable in parameters]
    if any(type.ndim != core for type, core in zip(types, op.parameter_ranks, strict=True)):
        ranks = ", ".join(map(str, op.parameter_ranks))
        raise ShapeError(describe(op.name, types, f"parameters have {ranks} axes"))
