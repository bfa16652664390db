"""Values of terms, and how far rounding may have moved them.

Two terms that are equal over the reals differ in floating point, by how much depends on the point:
``log(1 + x)`` has no correct digit near zero. So each term is evaluated several times with every
intermediate result moved by a random relative error many times that of rounding; the spread of the results
tells which differences rounding explains. (Monte Carlo arithmetic: D. S. Parker, "Monte Carlo Arithmetic:
exploiting randomness in floating-point arithmetic", UCLA CSD-970002, 1997.) Zeros are moved too, by a tiny
amount, since they may have underflowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.graph import Apply, Constant, Family, Variable
from esat.graph.algorithms.evaluate import apply_node
from esat.graph.algorithms.traversal import toposort
from esat.graph.sparse_type import is_sparse_matrix
from esat.ops.linalg.record import MatrixOp
from esat.ops.sparse.record import with_values
from esat.tools.soundness.samples import Array

TRIALS = 3
TRIALS_OF_CHOICES = 16
"""For integers and bools made from floats: a tie is broken the same way in few trials by chance."""

MARGIN = 4.0
"""Times the spread seen in the trials that a difference may have."""

MAGNITUDE = {"float16": 2.0**-7, "float32": 2.0**-18, "float64": 2.0**-44}
"""Relative error put on intermediate results: some hundred times that of rounding."""


@record(frozen=True)
class Outcome:
    """The value of one Variable.

    Attributes
    ----------
    value
        As NumPy computes it.
    spread
        How far the trials strayed from it; zero for integers and bools.
    steady
        Where all trials agree, for integers and bools; True elsewhere.
    tainted
        Where an intermediate result is not finite: overflow or a singularity.
    """

    value: Array
    spread: NDArray[np.float64]
    steady: NDArray[np.bool_]
    tainted: NDArray[np.bool_]


@record(frozen=True)
class Trials:
    """A value in all its trials, the exact one first, and where it is tainted."""

    trials: tuple[Array, ...]
    tainted: NDArray[np.bool_]

    @property
    def value(self) -> Array:
        return self.trials[0]

    @property
    def outcome(self) -> Outcome:
        value, *others = map(dense, self.trials)
        return summarized(value, others, self.tainted)


def plain(wanted: Sequence[Variable], leaves: Mapping[Variable, Array]) -> list[Array]:
    """Values as NumPy computes them.

    Every operand is made contiguous, so that no op takes another path for another layout.
    """
    values = dict(leaves)
    for node in toposort(wanted, stop=values):
        operands = [_contiguous(_value(variable, values)) for variable in node.inputs]
        values.update(zip(node.outputs, apply_node(node, operands), strict=True))
    return [_value(variable, values) for variable in wanted]


def _contiguous(value: Array) -> Array:
    return value if is_sparse_matrix(value) else np.ascontiguousarray(value).reshape(np.shape(value))


def dense(value: Array) -> Array:
    """A sparse matrix as a dense one, anything else as it is."""
    matrix: Any = value
    result: Array = matrix.toarray() if is_sparse_matrix(value) else value
    return result


def _value(variable: Variable, values: Mapping[Variable, Array]) -> Array:
    if variable in values:
        return values[variable]
    assert isinstance(variable, Constant)
    data: Array = variable.data
    return data


def outcomes(
    wanted: Sequence[Variable],
    leaves: Mapping[Variable, Array],
    generator: np.random.Generator,
    rounded: Collection[Variable] = (),
) -> list[Outcome]:
    """Values with the spread that errors in intermediate results cause, and in leaves that are rounded.

    Such are matrices of which a structure holds up to rounding only.
    """
    chooses = any(getattr(one.type, "kind", "f") in "biu" for one in wanted if one.owner is not None)
    floats = any(value.dtype.kind in "fc" for value in leaves.values())
    count = TRIALS_OF_CHOICES if chooses and floats else TRIALS
    samples: dict[Variable, Trials] = {}
    shaky = set(rounded)
    for leaf, value in leaves.items():
        trials = [shaken(value, generator) if leaf in shaky else value for _ in range(count)]
        samples[leaf] = Trials((value, *trials), not_finite(value))
    for node in toposort(wanted, stop=leaves):
        operands = [_sample(variable, samples, count) for variable in node.inputs]
        results = [apply_node(node, [one.trials[trial] for one in operands]) for trial in range(count + 1)]
        for output, (value, *others) in zip(node.outputs, zip(*results, strict=True), strict=True):
            whole = isinstance(node.op, MatrixOp)
            trials = [disturbed(other, generator, whole) for other in others]
            samples[output] = Trials((value, *trials), _tainted(node, value, operands))
    return [_sample(variable, samples, count).outcome for variable in wanted]


def _sample(variable: Variable, samples: Mapping[Variable, Trials], count: int) -> Trials:
    if variable in samples:
        return samples[variable]
    value = _value(variable, {})
    return Trials((value,) * (count + 1), not_finite(value))


def _tainted(node: Apply, value: Array, operands: Sequence[Trials]) -> NDArray[np.bool_]:
    masks = [operand.tainted for operand in operands]
    if node.op.constructor == "DimShuffle":
        masks = [node.op.perform(masks)[0]]
    moves = node.op.family is Family.ELEMENTWISE or node.op.constructor == "DimShuffle"
    return tainted(value, masks, moves)


def disturbed(array: Array, generator: np.random.Generator, as_a_whole: bool) -> Array:
    """A result with errors: of each element, or as functions of matrices have them, of the whole."""
    return shaken(array, generator) if as_a_whole else perturbed(array, generator)


def shaken(array: Array, generator: np.random.Generator) -> Array:
    """The array with errors on all elements that are small beside the largest, and beside 1."""
    finite = np.abs(array)[np.isfinite(array)]
    largest = max(float(finite.max(initial=0.0)), 1.0)
    return np.asarray(array + (perturbed(np.full(array.shape, largest, array.dtype), generator) - largest))


def perturbed(array: Array, generator: np.random.Generator) -> Array:
    """The array with a random error on every element; integers and bools as they are.

    Of a sparse matrix the stored values get errors.
    """
    if is_sparse_matrix(array):
        stored: Any = array
        result: Array = with_values(stored, perturbed(stored.data, generator))
        return result
    if array.dtype.kind not in "fc":
        return array
    real = np.empty(0, array.dtype).real.dtype
    magnitude, tiny = MAGNITUDE[real.name], float(np.finfo(real).tiny)

    def error() -> Array:
        drawn = generator.random(array.shape) - 0.5
        return np.asarray(drawn + np.copysign(0.5, drawn), real)

    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            return np.asarray(array * (1 + real.type(magnitude) * error()) + real.type(8 * tiny) * error())
        size = np.maximum(np.abs(array.real), np.abs(array.imag)) * real.type(magnitude)
        result = np.array(array)
        result.real = array.real + size * error() + real.type(8 * tiny) * error()
        result.imag = array.imag + size * error() + real.type(8 * tiny) * error()
        return result


def not_finite(array: Array) -> NDArray[np.bool_]:
    """Which elements are infinite or NaN."""
    array = dense(array)
    return np.asarray(~np.isfinite(array)) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)


def tainted(value: Array, operands: Sequence[NDArray[np.bool_]], by_element: bool) -> NDArray[np.bool_]:
    """Where a result depends on something that is not finite, as operands do.

    Parameters
    ----------
    by_element
        Whether each element comes from those at its place.
    """
    found = not_finite(value)
    for operand in operands:
        if operand.any():
            try:
                found = found | np.broadcast_to(operand, found.shape)
            except ValueError:
                return np.ones(found.shape, bool)
    return (
        found if by_element or not any(operand.any() for operand in operands) else np.ones(found.shape, bool)
    )


def summarized(value: Array, trials: Sequence[Array], tainted: NDArray[np.bool_]) -> Outcome:
    """A value with what the trials say of it."""
    if value.dtype.kind not in "fc":
        steady = np.ones(value.shape, bool)
        for other in trials:
            steady &= other == value
        return Outcome(value, np.zeros(value.shape), steady, tainted)
    with np.errstate(all="ignore"):
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        spread = np.zeros(value.shape)
        for other in trials:
            spread = np.maximum(spread, np.abs(other - wide))
    steady = np.isfinite(np.where(tainted, 0.0, spread))
    return Outcome(value, np.where(np.isfinite(spread), spread, np.inf), steady, tainted)
