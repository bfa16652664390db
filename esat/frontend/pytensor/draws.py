"""Rules of random variables: the numbers that PyTensor draws, from the same generators in the same order.

Some are a method of NumPy's generators. Of others SciPy computes the numbers from those of such a method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from esat.errors import ParameterError
from esat.frontend.elements import elementwise as own
from esat.frontend.elements import random, reductions
from esat.frontend.elements.number_draws import Draw
from esat.frontend.linear_algebra import eigenvalues
from esat.frontend.linear_algebra import linalg_functions as linalg
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule
from esat.graph.variables import Variable
from esat.ops.arrays.cumulative import cumsum
from esat.ops.arrays.shape import sizes_of
from esat.ops.arrays.view import expand_dims
from esat.ops.cast import cast
from esat.ops.contraction import matmul
from esat.ops.control import assert_


def _given(step: PyTensorStep) -> tuple[Any, Any, list[Variable]]:
    """The state, the size, and the parameters; a size is None, or a vector of known length."""
    state, size, *parameters = step.operands
    return state, None if size is None else _sizes(size, step.node.inputs[1]), parameters


def _sizes(size: Variable, variable: Any) -> tuple[Variable, ...]:
    rank = variable.type.shape[0]
    if rank is None:
        raise NoRuleError("a size of unknown length")
    return tuple(size[place] for place in range(rank))


def _drawn(draw: Callable[..., Draw]) -> Rule:
    """The state after a draw, and the sample."""

    def rule(step: PyTensorStep) -> Any:
        state, size, parameters = _given(step)
        return draw(state, *parameters, size=size)

    return rule


# ---- numbers that SciPy computes of others


def _shifted(
    draw: Callable[..., Draw],
    value: Callable[..., Any],
    right: Callable[..., Sequence[Variable]] = lambda *_: (),
) -> Rule:
    """``loc + scale * value(z, *parameters)``, where parameters end with ``loc`` and ``scale``.

    Parameters
    ----------
    draw
        ``draw(state, *parameters, size=...)`` draws ``z``.
    value
        Of ``z`` and the parameters but the last two.
    right
        Conditions that these parameters must meet.
    """

    def rule(step: PyTensorStep) -> Any:
        state, size, parameters = _given(step)
        *shapes, location, scale = _stretched(parameters)
        after, sample = draw(state, *shapes, size=sizes_of(location) if size is None else size)
        conditions = [own.ge(scale, 0), *right(*shapes)]
        sample = own.add(own.mul(value(sample, *shapes), scale), location)
        return after, _checked(sample, conditions)

    return rule


def _checked(sample: Variable, conditions: Sequence[Variable]) -> Variable:
    message = "Domain error in arguments: the scale, or another parameter, is out of range"
    return assert_(sample, *conditions, message=message, error=ParameterError)


def _stretched(parameters: Sequence[Variable]) -> list[Variable]:
    """Parameters of one common shape, of which SciPy draws as many numbers as there are elements."""
    return [
        reduce(
            lambda found, other: own.fill(other, found), [*parameters[:place], *parameters[place + 1 :]], one
        )
        for place, one in enumerate(parameters)
    ]


def _uniform(state: Variable, *_: Variable, size: Any) -> Draw:
    return random.uniform(state, size=size)


def _normal(state: Variable, size: Any) -> Draw:
    return random.normal(state, size=size)


def _positive(*parameters: Variable) -> list[Variable]:
    return [own.gt(one, 0) for one in parameters]


def _generalized_gamma(step: PyTensorStep) -> Any:
    """PyTensor's parameters are others than SciPy's."""
    state, size, parameters = _given(step)
    alpha, power, scale = _stretched(parameters)
    shape = own.div(alpha, power)
    after, sample = random.gamma(state, shape, 1.0, size=size)
    sample = own.mul(own.pow(sample, own.div(1.0, power)), scale)
    return after, _checked(sample, [*_positive(shape), own.ne(power, 0), own.ge(scale, 0)])


def _inverse_gamma(step: PyTensorStep) -> Any:
    state, size, (shape, scale) = _given(step)
    after, sample = random.gamma(state, shape, own.div(1.0, scale), size=size)
    return after, own.div(1.0, sample)


def _pareto(step: PyTensorStep) -> Any:
    """No location is given."""
    state, size, parameters = _given(step)
    shape, scale = _stretched(parameters)
    after, sample = random.uniform(state, size=sizes_of(shape) if size is None else size)
    sample = own.mul(own.pow(own.sub(1.0, sample), own.div(-1.0, shape)), scale)
    return after, _checked(sample, [*_positive(shape), own.ge(scale, 0)])


def _truncated(sample: Variable, bound: Variable) -> Variable:
    found: Variable = own.neg(own.log1p(own.mul(sample, own.expm1(own.neg(bound)))))
    return found


# ---- integers


def _bernoulli(step: PyTensorStep) -> Any:
    state, size, (share,) = _given(step)
    return random.binomial(state, 1, share, size=size)


def _beta_binomial(step: PyTensorStep) -> Any:
    """A share for each number, and then all the numbers."""
    state, size, parameters = _given(step)
    trials, first, second = _stretched(parameters)
    after, shares = random.beta(state, first, second, size=size)
    return random.binomial(after, cast(trials, "int64"), shares, size=size)


def _categorical(step: PyTensorStep) -> Any:
    """The place in running sums of shares at which a number of [0, 1) belongs."""
    state, size, (shares,) = _given(step)
    after, sample = random.uniform(state, size=sizes_of(shares)[:-1] if size is None else size)
    below = own.lt(cumsum(shares, axis=-1), expand_dims(sample, -1))
    return after, reductions.sum(cast(below, "int64"), axis=-1)


# ---- vectors


def _normal_vectors(step: PyTensorStep) -> Any:
    """A factor of the covariance times standard normal numbers; parameters may be batches."""
    state, size, (mean, covariance) = _given(step)
    if size is None:
        size = sizes_of(own.fill(covariance[..., 0], mean))[:-1]
    after, sample = random.normal(state, size=(*size, sizes_of(mean)[-1]))
    factor = _factor(step.op.method, covariance)
    return after, own.add(matmul(factor, expand_dims(sample, -1))[..., 0], mean)


def _factor(method: str, covariance: Variable) -> Variable:
    if method == "cholesky":
        return linalg.cholesky(covariance)
    if method == "svd":
        vectors, values, _ = linalg.svd(covariance)
    else:
        values, vectors = eigenvalues.eigh(covariance)
    factor: Variable = own.mul(vectors, expand_dims(own.sqrt(values), -2))
    return factor


def _without_replacement(step: PyTensorStep) -> Any:
    state, size, (source, *shares, shape) = _given(step)
    ranks = step.op.ndims_params
    if size not in (None, ()) or source.tensor_type.ndim != ranks[0]:
        raise NoRuleError("batches of arrays to choose from")
    if shares and shares[0].tensor_type.ndim != 1:
        raise NoRuleError("batches of shares")
    sizes = _sizes(shape, step.node.inputs[-1]) or None
    return random.choice(state, source, sizes, replace=False, p=shares[0] if shares else None)


def _permuted(step: PyTensorStep) -> Any:
    state, size, (source,) = _given(step)
    if size not in (None, ()) or source.tensor_type.ndim != step.op.ndims_params[0]:
        raise NoRuleError("batches of arrays to permute")
    return random.permutation(state, source)


RULES: dict[str, Rule] = {
    "bernoulli": _bernoulli,
    "beta": _drawn(random.beta),
    "beta_binomial": _beta_binomial,
    "binomial": _drawn(random.binomial),
    "categorical": _categorical,
    "cauchy": _shifted(_uniform, lambda z: own.tan(own.mul(np.pi, own.sub(z, 0.5)))),
    "choice_without_replacement": _without_replacement,
    "dirichlet": _drawn(random.dirichlet),
    "exponential": _drawn(random.exponential),
    "gamma": _drawn(random.gamma),
    "gengamma": _generalized_gamma,
    "geometric": _drawn(random.geometric),
    "gumbel": _shifted(_uniform, lambda z: own.neg(own.log(own.neg(own.log(z))))),
    "halfcauchy": _shifted(_uniform, lambda z: own.tan(own.mul(np.pi / 2, z))),
    "halfnormal": _shifted(_normal, own.abs),
    "hypergeometric": _drawn(random.hypergeometric),
    "integers": _drawn(random.integers),
    "invgamma": _inverse_gamma,
    "laplace": _drawn(random.laplace),
    "logistic": _drawn(random.logistic),
    "lognormal": _drawn(random.lognormal),
    "multinomial": _drawn(random.multinomial),
    "multivariate_normal": _normal_vectors,
    "negative_binomial": _drawn(random.negative_binomial),
    "normal": _drawn(random.normal),
    "pareto": _pareto,
    "permutation": _permuted,
    "poisson": _drawn(random.poisson),
    "t": _shifted(random.standard_t, lambda z, df: z, _positive),
    "triangular": _drawn(random.triangular),
    "truncexpon": _shifted(_uniform, _truncated, _positive),
    "uniform": _drawn(random.uniform),
    "vonmises": _drawn(random.vonmises),
    "wald": _drawn(random.wald),
    "weibull": _drawn(random.weibull),
}
