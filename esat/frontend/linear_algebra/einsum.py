"""Einstein summation by DimShuffle, sums, products and MatMul."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, ShapeError, describe
from esat.frontend.linear_algebra.linear import as_matrix, from_matrix
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import SharedVariable, Variable
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL
from esat.ops.control import assert_
from esat.ops.inference.broadcasting import broadcast_types
from esat.ops.inference.promotion import common_dtype
from esat.ops.reduction import SUM, reduce

_UNKNOWN_SIZE = 32
"""Stands for a size known only at run time when the order of contractions is chosen."""
_OPTIMAL_UP_TO = 6
"""Operands up to which the best of all orders is found; their number grows as that of binary trees."""


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> Variable:
    """Sum of products over named axes, as ``numpy.einsum``.

    Operands are contracted pairwise, in the order that ``numpy.einsum_path`` finds best for the sizes that
    types and the values of constants and shared variables tell.

    Parameters
    ----------
    subscripts
        Such as ``"ij,jk->ik"``: a letter for each axis of each operand, ``...`` for axes that broadcast, and
        after the arrow the axes of the result. Without an arrow these are the letters that occur once, in
        alphabetical order.
    operands
        Variables or arrays.
    optimize
        Means nothing: a good order is found always.

    Raises
    ------
    DtypeError
        When the subscripts are no string.
    ShapeError
        When the subscripts do not fit the operands, or sizes of one letter are known to differ.
    """
    if not isinstance(subscripts, str):
        raise DtypeError(describe("einsum", [subscripts], "the subscripts come first, as a string"))
    variables = [as_variable(operand) for operand in operands]
    inputs, output = _parse(subscripts, variables)
    _check_sizes(subscripts, inputs, variables)
    dtype = common_dtype("einsum", variables)
    terms = [
        _without_repeats(cast(variable, dtype), labels)
        for variable, labels in zip(variables, inputs, strict=True)
    ]
    for pair in _path(inputs, output, variables):
        chosen = [terms[position] for position in pair]
        terms = [term for position, term in enumerate(terms) if position not in pair]
        kept = set(output).union(*(labels for _, labels in terms))
        first, *others = (
            _summed(term, kept.union(*(t[1] for t in chosen if t is not term))) for term in chosen
        )
        for other in others:
            first = _contract(first, other, kept)
        terms.append(first)
    (result,) = terms
    variable, labels = _summed(result, set(output))
    return dimshuffle(cast(variable, dtype), [labels.index(label) for label in output])


Term = tuple[Variable, str]
"""A Variable and the letters of its axes, each once."""


def _parse(subscripts: str, operands: Sequence[Variable]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with letters of their own for ``...``."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    letters = set(text) - set(",.->")
    if not letters <= set(string.ascii_letters) or (not arrow and (">" in text or "-" in text)):
        raise ShapeError(describe("einsum", [repr(subscripts)], "axes are named by letters"))
    if len(inputs) != len(operands):
        reason = f"{len(inputs)} terms for {len(operands)} operands"
        raise ShapeError(describe("einsum", [repr(subscripts)], reason))
    spare = [letter for letter in string.ascii_letters if letter not in letters]
    widths = [
        _ellipsis_width(subscripts, labels, operand) for labels, operand in zip(inputs, operands, strict=True)
    ]
    broadcast = "".join(spare[: max(widths, default=0)])
    expanded = [
        labels.replace("...", broadcast[len(broadcast) - width :])
        for labels, width in zip(inputs, widths, strict=True)
    ]
    if arrow:
        result = output.replace("...", broadcast)
    else:
        counts = Counter("".join(labels.replace("...", "") for labels in inputs))
        result = broadcast + "".join(sorted(letter for letter, count in counts.items() if count == 1))
    if len(set(result)) != len(result) or not set(result) <= set("".join(expanded)) or "." in result:
        reason = "each axis of the result is one of the operands', named once"
        raise ShapeError(describe("einsum", [repr(subscripts)], reason))
    return expanded, result


def _ellipsis_width(subscripts: str, labels: str, operand: Variable) -> int:
    rank = operand.tensor_type.ndim
    named = len(labels.replace("...", "", 1))
    if "." in labels.replace("...", "", 1) or named > rank or ("..." not in labels and named != rank):
        reason = f"{labels!r} does not name the {rank} axes of its operand"
        raise ShapeError(describe("einsum", [repr(subscripts), operand.type], reason))
    return rank - named


def _check_sizes(subscripts: str, inputs: Sequence[str], operands: Sequence[Variable]) -> None:
    known: dict[str, int] = {}
    for labels, operand in zip(inputs, operands, strict=True):
        repeated = {label for label, count in Counter(labels).items() if count > 1}
        for label, size in zip(labels, operand.tensor_type.shape, strict=True):
            if size is None or (size == 1 and label not in repeated):
                continue
            if known.setdefault(label, int(size)) != size:
                types = [variable.type for variable in operands]
                reason = f"sizes {known[label]} and {size} of {label!r} in {subscripts!r} do not match"
                raise ShapeError(describe("einsum", types, reason))


def _path(inputs: Sequence[str], output: str, operands: Sequence[Variable]) -> list[tuple[int, ...]]:
    if len(operands) <= 2:
        return [tuple(range(len(operands)))]
    sizes: dict[str, int] = {}
    for labels, operand in zip(inputs, operands, strict=True):
        for label, size in zip(labels, _expected_shape(operand), strict=True):
            if size is not None:
                sizes[label] = max(sizes.get(label, 1), size)
    examples = [
        np.broadcast_to(0.0, [sizes.get(label, _UNKNOWN_SIZE) for label in labels]) for labels in inputs
    ]
    method = "optimal" if len(operands) <= _OPTIMAL_UP_TO else "greedy"
    path, _ = np.einsum_path(",".join(inputs) + "->" + output, *examples, optimize=method)
    return [tuple(pair) for pair in path[1:]]


def _expected_shape(operand: Variable) -> tuple[int | None, ...]:
    """Sizes by the type, or else those of the present value of a shared variable."""
    if isinstance(operand, SharedVariable):
        shape: tuple[int | None, ...] = np.shape(operand.look())
        return shape
    return operand.tensor_type.shape


def _without_repeats(variable: Variable, labels: str) -> Term:
    """The operand with the diagonal taken for each letter that it has twice, whose sizes must be equal."""
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            sizes = [variable.tensor_type.shape[axis] for axis in (first, second)]
            if None in sizes:
                equal = op_named("eq")(size_of(variable, first), size_of(variable, second))
                message = f"einsum: sizes of {label!r} in one operand differ"
                variable = assert_(variable, equal, message=message, error=ShapeError)
            variable = diagonal(variable, 0, first, second)
            rest = [other for position, other in enumerate(labels) if position not in (first, second)]
            labels = "".join(rest) + label
    return variable, labels


def _summed(term: Term, kept: set[str]) -> Term:
    """The term summed over the letters that nothing else needs."""
    variable, labels = term
    axes = tuple(position for position, label in enumerate(labels) if label not in kept)
    if not axes:
        return term
    dtype = variable.tensor_type.dtype
    total = cast(reduce(SUM, variable, axes), dtype)
    return total, "".join(label for label in labels if label in kept)


def _contract(left: Term, right: Term, kept: set[str]) -> Term:
    """The product of two terms, summed over the letters that both have and nothing else needs.

    Where these are several, and no others are left in either term, it is a sum of products of elements. A row
    times a column would have to be made of both first, which hides from the rules what they are made of.
    """
    summed = [label for label in left[1] if label in right[1] and label not in kept]
    batch = [label for label in left[1] if label in right[1] and label in kept]
    rows = [label for label in left[1] if label not in right[1]]
    columns = [label for label in right[1] if label not in left[1]]
    is_inner = len(summed) > 1 and not rows and not columns
    if not summed or is_inner or _stretched(left, right, summed):
        multiplied = _multiplied(left, right)
        return _summed(multiplied, kept)
    product = MATMUL(_matrix(left, batch, rows, summed), _matrix(right, batch, summed, columns))
    shape = broadcast_types("einsum", [_batch_type(left, batch), _batch_type(right, batch)])
    parted = from_matrix(
        product,
        [size_of(left[0], left[1].index(label)) for label in rows],
        [size_of(right[0], right[1].index(label)) for label in columns],
        [_batch_size(label, left, right, size) for label, size in zip(batch, shape, strict=True)],
    )
    return parted, "".join([*batch, *rows, *columns])


def _stretched(left: Term, right: Term, labels: Sequence[str]) -> bool:
    """Whether one operand has size 1 where the other has not, so that there is no matrix product."""
    flags = [
        [term[0].tensor_type.broadcastable[term[1].index(label)] for label in labels]
        for term in (left, right)
    ]
    return flags[0] != flags[1]


def _multiplied(left: Term, right: Term) -> Term:
    labels = left[1] + "".join(label for label in right[1] if label not in left[1])
    aligned = [
        dimshuffle(variable, [own.index(label) if label in own else "x" for label in labels])
        for variable, own in (left, right)
    ]
    return op_named("mul")(*aligned), labels


def _matrix(term: Term, batch: Sequence[str], rows: Sequence[str], columns: Sequence[str]) -> Variable:
    variable, labels = term
    places = [[labels.index(label) for label in group] for group in (rows, columns, batch)]
    return as_matrix(variable, *places)


def _batch_type(term: Term, batch: Sequence[str]) -> Any:
    type = term[0].tensor_type
    return type.with_shape(tuple(type.shape[term[1].index(label)] for label in batch))


def _batch_size(label: str, left: Term, right: Term, known: int | None) -> Any:
    """The size of a letter that both have: that of the one that is not stretched."""
    if known is not None:
        return known
    variable, labels = left if not left[0].tensor_type.broadcastable[left[1].index(label)] else right
    return size_of(variable, labels.index(label))
