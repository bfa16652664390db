"""Arrays to try rules on: ordinary numbers, and those that break what holds of ordinary ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from esat.egraph.analyses.structure import RELATIONS
from esat.graph.sparse_type import Format, canonical
from esat.ops.inference.structure import RANGES, shaped
from esat.ops.inference.structure import holds as structured

Array = NDArray[Any]
ROUNDINGS = 100.0
"""How much more than one op the ops behind a value may have rounded its structure."""
NARROW = 0.4
"""Share of the arrays with special elements that hold three different ones at most: ties, and zeros alone."""

Population = Literal["ordinary", "finite", "special"]
"""``ordinary``: moderate numbers, small integers and zeros. ``finite``: also what is at the edges of the
dtype. ``special``: infinities and NaN, too."""

_SCALE = {"float16": 1.5, "float32": 3.0, "float64": 4.0}
"""Standard deviation of ordinary numbers: small enough that functions of them seldom overflow."""


def draw(
    dtype: str,
    shape: tuple[int, ...],
    facts: Collection[str],
    population: Population,
    share: float,
    generator: np.random.Generator,
) -> Array:
    """A random array.

    Parameters
    ----------
    dtype, shape
        Of the array.
    facts
        What must be true of every element: ``positive``, ``nonnegative``, ``negative``, ``nonpositive``,
        ``integral``, ``finite``; and structures of matrices. As in the e-graph NaN satisfies all but
        ``finite``, and a positive number may have underflowed to zero: such elements are among the special
        ones.
    population
        Which numbers.
    share
        How many of the elements come from the edges of the dtype, between 0 and 1.
    generator
        Source of randomness.
    """
    array = _unstructured(dtype, shape, facts, population, share, generator)
    return shaped(array, (fact.replace("-", "_") for fact in facts if fact in RELATIONS))


def _unstructured(
    dtype: str,
    shape: tuple[int, ...],
    facts: Collection[str],
    population: Population,
    share: float,
    generator: np.random.Generator,
) -> Array:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return _integers(dtype, shape, population, share, generator)
    if kind == "c":
        real = np.empty(0, dtype).real.dtype.name
        parts = [_floats(real, shape, facts, population, share, generator) for _ in range(2)]
        result = np.empty(shape, dtype)
        result.real, result.imag = parts
        return result
    return _floats(dtype, shape, facts, population, share, generator)


def well_conditioned(array: Array, facts: Collection[str]) -> Array:
    """Square matrices with a diagonal that outweighs the rest, unless a fact says as much."""
    square = array.ndim >= 2 and array.shape[-1] == array.shape[-2] and array.dtype.kind in "fc"
    if not square or {"orthogonal", "orthonormal-columns", "permutation"}.intersection(facts):
        return array
    weight = np.abs(array).sum(axis=-1).max(initial=1.0)
    return np.asarray(array + 2 * weight * np.eye(array.shape[-1])).astype(array.dtype)


def _integers(
    dtype: str, shape: tuple[int, ...], population: Population, share: float, generator: np.random.Generator
) -> Array:
    limits = np.iinfo(dtype)
    low = max(-9, int(limits.min))
    result = generator.integers(low, 10, shape).astype(dtype)
    if population == "ordinary":
        return result
    anywhere = generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    edges = [limits.min, limits.max, limits.max - 1, 0, 1, limits.max // 2 + 1]
    extreme = np.array(edges, dtype)[generator.integers(0, len(edges), shape)]
    kind = generator.random(shape)
    return np.where(kind < share / 2, anywhere, np.where(kind < share, extreme, result))


def _floats(
    dtype: str,
    shape: tuple[int, ...],
    facts: Collection[str],
    population: Population,
    share: float,
    generator: np.random.Generator,
) -> Array:
    scale = _SCALE[dtype]
    result = generator.normal(0.0, scale, shape)
    kind = generator.random(shape)
    result = np.where(kind < 0.2, generator.integers(-3, 4, shape), result)
    result = np.where(kind > 0.9, result / 16, result).astype(dtype)
    if population != "ordinary":
        edges = _edges(dtype, population)
        if generator.random() < NARROW:
            edges, share = edges[generator.integers(0, len(edges), 3)], 1.0
        chosen = edges[generator.integers(0, len(edges), shape)]
        result = np.where(generator.random(shape) < share, chosen, result)
    return with_facts(result, facts, population)


def _edges(dtype: str, population: Population) -> Array:
    limits = np.finfo(dtype)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, float(limits.eps), -float(limits.eps)]
    values += [float(limits.smallest_subnormal), -float(limits.smallest_subnormal)]
    values += [float(limits.tiny), -float(limits.tiny) / 2]
    if population == "special":
        values += [float(limits.max), -float(limits.max), 0.25 / float(limits.eps) + 0.5]
        values += [np.inf, -np.inf, np.nan, np.inf, -np.inf, np.nan, 1.5, -2.5]
    return np.array(values).astype(dtype)


def with_facts(array: Array, facts: Collection[str], population: Population) -> Array:
    """The array with elements moved to where the facts hold."""
    if "finite" in facts:
        array = np.where(np.isfinite(array), array, np.copysign(array.dtype.type(1), array))
    if "integral" in facts:
        array = np.rint(array)
    if "positive" in facts or "nonnegative" in facts:
        array = np.where(array < 0, -array, array)
    if "negative" in facts or "nonpositive" in facts:
        array = np.where(array > 0, -array, array)
    if population != "special" and ("positive" in facts or "negative" in facts):
        one = array.dtype.type(1 if "positive" in facts else -1)
        array = np.where(array == 0, one, array)
    return array


def scattered(values: Array, shape: tuple[int, int], format: Format, generator: np.random.Generator) -> Any:
    """A sparse matrix of this shape that stores the values at random places."""
    places = generator.permutation(shape[0] * shape[1])[: values.size]
    rows, columns = np.divmod(places, max(shape[1], 1))
    return canonical(coo_array((values, (rows, columns)), shape=shape), format, values.dtype)


def satisfied(fact: str, array: Array) -> bool:
    """Whether a fact is true of a value as a whole: matrices without elements have structures, too."""
    if fact in RELATIONS:
        return array.ndim < 2 or structured(fact.replace("-", "_"), array, scale=ROUNDINGS)
    return bool(holds(fact, array, strict=False).all())


def holds(fact: str, array: Array, *, strict: bool) -> NDArray[np.bool_]:
    """Where a fact is true of the elements of a real array; everywhere or nowhere, if it is one of matrices.

    Parameters
    ----------
    fact
        One of the signs, ``integral``, ``finite``, or a structure.
    array
        The values; NaN satisfies every fact but ``finite``.
    strict
        Whether zero is neither positive nor negative. Otherwise it may have underflowed.
    """
    if fact in RELATIONS:
        return np.full(array.shape, satisfied(fact, array))
    if fact in RANGES:
        return np.full(array.shape, True)  # a hint, of which no value is an exception
    if fact == "finite":
        finite: NDArray[np.bool_] = np.isfinite(array)
        return finite
    if fact == "integral":
        whole: NDArray[np.bool_] = ~np.isfinite(array) | (np.rint(array) == array)
        return whole
    signs = {
        "positive": (array > 0) | ((array == 0) & (not strict)),
        "nonnegative": array >= 0,
        "negative": (array < 0) | ((array == 0) & (not strict)),
        "nonpositive": array <= 0,
    }[fact]
    result: NDArray[np.bool_] = signs | np.isnan(array) if array.dtype.kind == "f" else signs
    return result
