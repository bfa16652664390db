"""Expected shapes: what the user says of the sizes that types leave open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from operator import add, index, mul, sub
from typing import Any

import numpy as np

from esat.egraph.language.terms import Dimension, Term, TermGraph
from esat.errors import GraphError, ShapeError
from esat.extract.prices.class_values import Hints
from esat.extract.prices.value import UNKNOWN_SIZE
from esat.graph import SharedVariable, TensorType, Variable
from esat.graph.sparse_type import SparseType, is_sparse_matrix
from esat.ops.arrays.join import Join
from esat.ops.arrays.shape import ShapeI
from esat.ops.index.basic import Subtensor, region_shape
from esat.ops.linalg.functions import BlockDiagonal
from esat.ops.sparse.record import EXPECTED_DENSITY

_OF_SIZES: Mapping[str, Callable[..., float]] = {
    "Mul": mul,
    "Add": add,
    "Sub": sub,
    "Maximum": max,
    "Minimum": min,
}
LARGEST_SIZE = 2.0**40
"""Elements along an axis, more than any memory holds: sizes that are computed from others have no bound."""
Expected = tuple[tuple[int, ...] | None, ...]
"""Shape of each input of a graph, by position, as far as it is known."""


def expected_shapes(shapes: Mapping[Variable, Sequence[int]], inputs: Sequence[Variable]) -> Expected:
    """The expected shape of each input.

    Parameters
    ----------
    shapes
        Input -> its shape. Programs stay right for every other shape; they are chosen for this one. For a
        sparse matrix a third number may follow, how many values are stored.
    inputs
        The inputs of the graph.

    Raises
    ------
    GraphError
        For a key that is no input.
    ShapeError
        For a shape that a value of the input's type cannot have, and for what maps no inputs to shapes.
    """
    if not isinstance(shapes, Mapping):
        raise ShapeError(f"shapes: {type(shapes).__name__} is no mapping of inputs to their shapes")
    known = set(inputs)
    for variable in shapes:
        if variable not in known:
            names = ", ".join(map(str, inputs)) or "none"
            raise GraphError(f"shapes: {variable} is no input of the graph; its inputs are: {names}")
    return tuple(_checked(variable, shapes[variable]) if variable in shapes else None for variable in inputs)


def _checked(variable: Variable, shape: Sequence[int]) -> tuple[int, ...]:
    type = variable.type
    if not isinstance(type, TensorType | SparseType):
        raise ShapeError(f"shapes: {variable} is neither a tensor nor a sparse matrix but a {type}")
    try:
        sizes = tuple(index(size) for size in shape)
    except TypeError:
        raise ShapeError(f"shapes: {variable}: {shape!r} is no sequence of whole numbers") from None
    by_type: tuple[int | None, ...] = type.shape
    if isinstance(type, SparseType) and len(sizes) == 3:
        by_type = (*by_type, None)
    if len(sizes) != len(by_type):
        raise ShapeError(f"shapes: {variable}: {sizes} has {len(sizes)} sizes for {len(by_type)} axes")
    for axis, (size, known) in enumerate(zip(sizes, by_type, strict=True)):
        if size < 0:
            raise ShapeError(f"shapes: {variable}: axis {axis} cannot have size {size}")
        if known is not None and size != known:
            raise ShapeError(f"shapes: {variable}: axis {axis} has size {known} by its type, not {size}")
    return sizes


def hints_of(terms: TermGraph, expected: Expected) -> Hints:
    """Sizes of the axes that types leave open, from expected shapes and the values of shared variables.

    Parameters
    ----------
    expected
        By position among the graph's inputs, which stand first among those of the terms.

    Raises
    ------
    ShapeError
        For expected sizes of axes that the graph needs equal, and that differ.
    """
    hints: dict[tuple[int, int], float] = {}
    source: dict[tuple[int, int], Variable] = {}
    leaves = [(number, term) for number, term in enumerate(terms.terms) if term.constructor == "In"]
    for number, term in leaves:
        position = int(term.attributes[0])
        shape = expected[position] if position < len(expected) else None
        for axis, (size, symbol) in enumerate(zip(shape or (), terms.types[number].shape, strict=False)):
            if isinstance(symbol, int):
                continue
            variable = terms.inputs[position]
            if hints.get(symbol, size) != size:
                raise ShapeError(
                    f"shapes: axis {axis} of {variable} is said to have size {size}, but the graph needs it"
                    f" as long as an axis of {source[symbol]}, said to have size {hints[symbol]:g}"
                )
            hints[symbol], source[symbol] = float(size), variable
    for number, term in leaves:
        leaf = terms.inputs[int(term.attributes[0])]
        value = leaf.look() if isinstance(leaf, SharedVariable) else None
        for size, symbol in zip(_sizes_of(value), terms.types[number].shape, strict=False):
            if not isinstance(symbol, int):
                hints.setdefault(symbol, float(size))
    _expect_stored_values(terms, hints)
    # What is best for empty arrays is best for nothing else.
    return with_parts(terms, {symbol: max(size, 1.0) for symbol, size in hints.items()})


def with_parts(terms: TermGraph, hints: Hints) -> Hints:
    """The same, and the sizes of parts of arrays between bounds that are fixed, and those that are computed
    from sizes."""
    found = dict(hints)
    numbers: dict[int, float | None] = {}
    for place, (term, type) in enumerate(zip(terms.terms, terms.types, strict=True)):
        numbers[place] = _expected_number(terms, term, found, numbers)
        for symbol, size in zip(type.shape, _computed_sizes(terms, term, found, numbers), strict=False):
            # What the user says of inputs stands.
            if (
                size is not None
                and not isinstance(symbol, int)
                and terms.terms[symbol[0]].constructor != "In"
            ):
                found[symbol] = min(max(size, 1.0), LARGEST_SIZE)
        op = _slicing(terms, term)
        source = terms.types[term.operands[0]].shape if op is not None else ()
        if op is None or len(source) != len(op.entries):
            continue
        sizes = [size if isinstance(size, int) else found.get(size, UNKNOWN_SIZE) for size in source]
        whole = TensorType("float64", shape=tuple(map(int, sizes)))
        for symbol, length in zip(type.shape, region_shape(op.name, op.entries, whole), strict=False):
            if not isinstance(symbol, int) and length is not None:
                found[symbol] = max(float(length), 1.0)
    return found


def _computed_sizes(
    terms: TermGraph, term: Term, hints: Hints, numbers: Mapping[int, float | None]
) -> Sequence[float | None]:
    """Expected sizes of an array that is made with given ones, or of others side by side; none of another."""
    kind = term.constructor.rpartition("_")[0] or term.constructor
    if kind == "Alloc":
        return [numbers[size] for size in term.operands[1:]]
    if kind == "Reshape":
        vector = terms.terms[term.operands[1]]
        made = vector.operands if vector.constructor.startswith("MakeVector") else ()
        return [numbers[size] for size in made]
    op = terms.opaque[int(term.attributes[-1])].op if kind in ("Join", "BlockDiag") else None
    if not isinstance(op, Join | BlockDiagonal):
        return ()
    types = [terms.types[part] for part in term.operands]
    rank = max(len(type.shape) for type in types)
    # What has one element stands for itself in the terms, whatever its rank.
    shapes = [[_expected_size(size, hints) for size in type.shape or (1,) * rank] for type in types]
    along = op.axis if isinstance(op, Join) else None
    axes = enumerate(zip(*shapes, strict=True))
    return [sum(sizes) if along in (axis, None) else None for axis, sizes in axes]


def _expected_size(size: Dimension, hints: Hints) -> float:
    return float(size) if isinstance(size, int) else hints.get(size, UNKNOWN_SIZE)


def _expected_number(
    terms: TermGraph, term: Term, hints: Hints, numbers: Mapping[int, float | None]
) -> float | None:
    """The value of a scalar that is computed from sizes; None for what is computed from anything else."""
    if term.constructor == "K":
        number = float(term.attributes[0])
        return number if isfinite(number) else None
    op = terms.opaque[int(term.attributes[-1])].op if term.constructor.startswith("ShapeI") else None
    if isinstance(op, ShapeI):
        return _expected_size(terms.types[term.operands[0]].shape[op.axis], hints)
    if term.constructor not in _OF_SIZES:
        return None
    values = [numbers[operand] for operand in term.operands]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    number = float(_OF_SIZES[term.constructor](*known))
    return min(max(number, -LARGEST_SIZE), LARGEST_SIZE)


def _slicing(terms: TermGraph, term: Term) -> Subtensor | None:
    """The op of a term that takes a part of an array between fixed bounds."""
    number = int(term.attributes[-1]) if term.attributes and len(term.operands) == 1 else -1
    known = 0 <= number < len(terms.opaque) and term.constructor.startswith("Subtensor")
    op = terms.opaque[number].op if known else None
    return op if isinstance(op, Subtensor) else None


def _sizes_of(value: Any) -> tuple[int, ...]:
    """Sizes of the value of a shared variable; of a sparse matrix also the number of stored values."""
    if is_sparse_matrix(value):
        return (*value.shape, value.nnz)
    return value.shape if isinstance(value, np.ndarray) else ()


def _expect_stored_values(terms: TermGraph, hints: dict[tuple[int, int], float]) -> None:
    """Where nothing is said of a sparse matrix, it stores the usual share of its elements."""

    def known(size: Dimension) -> float:
        return float(size) if isinstance(size, int) else hints.get(size, UNKNOWN_SIZE)

    for type in terms.types:
        if len(type.shape) == type.rank + 1 and not isinstance(type.shape[-1], int):
            rows, columns = map(known, type.shape[:2])
            hints.setdefault(type.shape[-1], EXPECTED_DENSITY * rows * columns)
