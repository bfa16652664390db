"""Values of a graph in the wide format, with what rounding in its own formats may have done to them.

First-order bounds of rounding errors are linear in the unit of the format. So the bound that the wide format
has, times the quotient of the units, is what rounding explains in a program that computes the graph as it is
written; a result that is further off has lost digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.errors import EsatError
from esat.extract.accuracy.wide_format import wide
from esat.extract.accuracy.wide_format.formats import REAL, UNIT, UNKNOWN, widened
from esat.extract.accuracy.wide_format.operations import UNFIT
from esat.graph import Apply, Constant, Family, SharedVariable, Variable
from esat.graph.algorithms.traversal import toposort
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.cast import Cast
from esat.ops.contraction import MatMul
from esat.ops.elementwise.records.scipy_functions import quiet
from esat.ops.index.write import Adding
from esat.ops.reduction import SUM, Reduction

Array = NDArray[Any]

MARGIN = 16.0
"""Times what rounding explains that a result may be off: kernels' functions err by some units, too."""
_ARRANGING = (Family.VIEW, Family.INDEX)


class Wide(NamedTuple):
    """A value in the wide format, the bound of its error there, and the unit of the coarsest format used."""

    value: Array
    bound: Array
    unit: float

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which elements are numbers that are known."""
        found: NDArray[np.bool_] = np.isfinite(self.value) & (self.bound < UNKNOWN)
        return found

    def allowed(self, dtype: np.dtype[Any]) -> Array:
        """How far a result of this dtype may be off."""
        unit = max(self.unit, unit_of(dtype))
        tiny = float(np.finfo(dtype).tiny) if dtype.kind in "fc" else 0.0
        allowed: Array = MARGIN * ((self.bound / UNIT) * unit + unit * np.abs(self.value)) + tiny
        return allowed


def unit_of(dtype: np.dtype[Any]) -> float:
    """Relative error of one rounding; 0 for what is no float."""
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


def wide_values(outputs: Sequence[Variable], known: Mapping[Variable, Any]) -> dict[Variable, Wide]:
    """Values of all that the outputs need and that can be computed so.

    Parameters
    ----------
    known
        Arrays of the inputs.
    """
    found: dict[Variable, Wide] = {}
    for variable, value in known.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            found[variable] = _exactly(value)
    with quiet():
        for node in toposort(outputs, stop=known):
            operands = [_operand(variable, found) for variable in node.inputs]
            if len(node.outputs) != 1 or any(operand is None for operand in operands):
                continue
            result = _result(node, [operand for operand in operands if operand is not None])
            if result is not None:
                found[node.outputs[0]] = result
    return found


def _exactly(value: Array) -> Wide:
    return Wide(widened(value), np.zeros(value.shape, REAL), unit_of(value.dtype))


def _operand(variable: Variable, found: Mapping[Variable, Wide]) -> Wide | None:
    if variable in found:
        return found[variable]
    if isinstance(variable, SharedVariable):
        data: Any = variable.look()
    elif isinstance(variable, Constant):
        data = variable.data
    else:
        return None
    is_array = isinstance(data, np.ndarray) and data.dtype.kind in "biufc"
    return _exactly(data) if is_array else None


def _result(node: Apply, operands: Sequence[Wide]) -> Wide | None:
    """The value of a node's output; None where it cannot be computed in the wide format."""
    type = node.outputs[0].type
    dtype = getattr(type, "numpy_dtype", None)
    if dtype is None:
        return None
    xs, ts = [operand.value for operand in operands], [operand.bound for operand in operands]
    selects = node.op.family in _ARRANGING or node.op.constructor in wide.SELECTING

    def rule(xs: Sequence[Array], ts: Sequence[Array]) -> tuple[Array, Array]:
        return _bounded(node, dtype, xs, ts)

    try:
        value, bound = wide.applied(rule, xs, ts, selects)
    except (*UNFIT, EsatError):
        return None
    return Wide(value, bound, max([unit_of(dtype), *(operand.unit for operand in operands)]))


def _bounded(
    node: Apply, dtype: np.dtype[Any], xs: Sequence[Array], ts: Sequence[Array]
) -> tuple[Array, Array]:
    """A node's output and its bound.

    Raises
    ------
    TypeError
        If they cannot be computed.
    """
    op = node.op
    kinds = [variable.tensor_type.numpy_dtype for variable in node.inputs]
    if dtype.kind in "biu" and all(kind.kind in "biu" for kind in kinds):
        exact = not any(error.any() for error in ts)
        own = op.perform([x.astype(kind) for x, kind in zip(xs, kinds, strict=True)])[0]
        if not exact:
            raise TypeError("integers that are not known")
        return widened(own), np.zeros(own.shape, REAL)
    if isinstance(op, Cast):
        return wide.cast(dtype, xs[0], ts[0])
    if isinstance(op, DimShuffle) or op.family in _ARRANGING:
        # Besides the first operand, floats are arranged: parts that are written or joined. Indices are not.
        moved = [place == 0 or kind.kind in "fc" for place, kind in enumerate(kinds)]
        if any(error.any() for error, moves in zip(ts, moved, strict=True) if not moves):
            raise TypeError("indices that are not known")

        def arranged(values: Sequence[Array]) -> Array:
            operands = zip(values, xs, kinds, moved, strict=True)  # copies: the op may work in place
            return op.perform([one.copy() if moves else x.astype(kind) for one, x, kind, moves in operands])[
                0
            ]

        bound = arranged(ts)
        return arranged(xs), bound + UNIT * arranged([*map(np.abs, xs)]) if isinstance(op, Adding) else bound
    if isinstance(op, Reduction):
        return wide.reduction(lambda x: op.perform([x])[0], op.reducer is SUM)(xs, ts)
    if isinstance(op, MatMul):
        return wide.matrix_product(np.matmul, xs, ts)
    rule = wide.rule_of(op)
    if rule is None:
        raise TypeError(f"{op} has no wide format")
    return rule(xs, ts)


def loses_digits(
    outputs: Sequence[Variable], known: Mapping[Variable, Any], values: Mapping[Variable, Any]
) -> Apply | None:
    """The first node whose value has lost half its digits although its operands had them; None if none.

    Parameters
    ----------
    known
        Arrays of the inputs.
    values
        What the graph computes in its own formats, of every Variable.
    """
    truths = wide_values(outputs, known)
    for node in toposort(outputs, stop=known):
        loses = len(node.outputs) == 1 and _lost(node.outputs[0], truths, values)
        if loses and not any(_lost(variable, truths, values) for variable in node.inputs):
            return node
    return None


def _lost(variable: Variable, truths: Mapping[Variable, Wide], values: Mapping[Variable, Any]) -> bool:
    truth, value = truths.get(variable), values.get(variable)
    if truth is None or not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return False
    with quiet():
        gap = np.abs(value - truth.value)
        far = ~(gap <= unit_of(value.dtype) ** 0.5 * np.abs(truth.value) + 4 * truth.bound)
    return bool((far & truth.known).any())
