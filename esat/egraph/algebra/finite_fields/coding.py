"""Which e-nodes are ring operations, and what the others are to the loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.algebra.finite_fields.coded import (
    CONJUGATE,
    CONSTANT,
    CONTRACT,
    COPY,
    DIAGONAL,
    FILL,
    FUNCTION,
    LENGTH,
    ON_DIAGONAL,
    OPAQUE,
    POINTWISE,
    POWER,
    PRODUCT,
    REDUCE,
    SHUFFLE,
    SIZE,
    SUM,
    Nodes,
)
from esat.egraph.algebra.finite_fields.reading import NO_SHAPE, UNKNOWN, Attributes, Integers, Reading
from esat.egraph.algebra.finite_fields.transcendental import FUNCTIONS
from esat.egraph.language.constructors import opaque_constructor
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES
from esat.ops.arrays.shape import ShapeI
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.linalg.structured import PRODUCTS

_POSITIVES = {"Add": 2, "Sub": 1, "Neg": 0, "Mul": 2, "Div": 1, "Reciprocal": 0}
LENGTH_OP = opaque_constructor(ShapeI(0), 1)
_CODES = {
    **dict.fromkeys(("Add", "Sub", "Neg", "NarySum"), SUM),
    **dict.fromkeys(("Mul", "Div", "Reciprocal", "NaryProd"), PRODUCT),
    **dict.fromkeys(("Pow", "Sqr"), POWER),
    **dict.fromkeys(FUNCTIONS, FUNCTION),
    "Fill": FILL,
    "K": CONSTANT,
    "Array": CONSTANT,
    "DimShuffle": SHUFFLE,
    "ReduceSum": REDUCE,
    **dict.fromkeys(PRODUCTS, CONTRACT),
    "Diagonal": DIAGONAL,
    "Diag": ON_DIAGONAL,
    LENGTH_OP: LENGTH,
    **dict.fromkeys(("Conj", "Real", "Imag"), CONJUGATE),
}
_PARTS = {"Conj": 0, "Real": 1, "Imag": 2, "Abs": SIZE}
"""Numbers of what is made of a complex number and its conjugate."""
_PARALLEL = {
    "Cast", "Log", "Log1p", "Log2", "Log10", "Sqrt", "Pow", "Sign", "Arctan", "Arcsin", "Arctanh",
    "Arcsinh",
}  # fmt: skip
"""Functions f with f(conj x) = conj f(x), beside those of :data:`FUNCTIONS`: what is 0 has a sign, so that
this holds on both sides of a cut.
"""
_LONGEST_PRODUCT = 3
"""Levels of products and sums of lengths."""
LARGEST_POWER = 64
"""Of the exponents that are taken apart."""

_KINDS = np.array([ord(np.dtype(name).kind) for name in DTYPES] + [ord("?")])
"""By number of a dtype; the last one, number -1, is unknown."""
_BECOMES_COMPLEX = np.array(
    [
        [
            np.dtype(one).kind == "f" and np.dtype(other).kind == "c" and np.can_cast(one, other)
            for other in DTYPES
        ]
        for one in DTYPES
    ]
)
"""By numbers of two dtypes, whether real numbers of the first are complex ones of the second."""


@record(frozen=True, eq=False)
class Coded:
    """The e-nodes of an e-graph for the loops.

    Attributes
    ----------
    nodes
        Them.
    constants
        The floats that ``CONSTANT`` e-nodes stand for, by their numbers.
    is_constant
        bool ``(classes,)``: whether all elements have one known value.
    is_pointwise
        int64 ``(nodes,)``, 1 for what broadcasts its operands.
    is_doubled
        bool ``(classes,)``: what has a conjugate that matters.
    """

    nodes: Nodes
    constants: tuple[complex, ...]
    is_constant: np.ndarray
    is_pointwise: Integers
    is_doubled: np.ndarray


def coded(
    reading: Reading,
    axes: Mapping[int, int],
    told: Collection[tuple[int, int]],
    complexes: Mapping[int, complex],
) -> Coded:
    """What each e-node is to the loops.

    Parameters
    ----------
    reading
        The e-graph.
    axes
        Of ops that tell the length of an axis, by their number: the axis.
    told
        Classes and axes whose length is that which ops on these axes need; other lengths are unknown.
    complexes
        Constant arrays all of whose elements are one complex number, by their number.
    """
    code = np.array([_code_of(name) for name in reading.names], np.int64)[reading.operator]
    dtype = reading.dtype
    is_constant = np.isfinite(reading.value) & (dtype > 0)
    is_pointwise = (code == POINTWISE) | (code == FUNCTION) | (code >= CONJUGATE)
    _refuse_shapes(reading, code, is_pointwise)
    is_pointwise &= code != OPAQUE
    number = _numbers(reading, code)
    _refuse_rings(reading, code, is_constant)
    _functions(reading, code, number)
    _moving(reading, code, number, axes, told)
    _copies(reading, code)
    constants = _constants(reading, code, number, is_constant, complexes)
    is_doubled = _doubled(reading, code, number)
    _powers(reading, code, number, is_constant)
    texts = [_seed(name, attributes) for name, attributes in _names(reading)]
    seed = np.array(texts, np.int64) ^ _dtype_seeds()[dtype[reading.class_of]]
    order = np.argsort(reading.operands, kind="stable")
    parent_start = np.zeros(reading.classes + 1, np.int64)
    np.cumsum(np.bincount(reading.operands, minlength=reading.classes), out=parent_start[1:])
    nodes = Nodes(
        reading.class_of,
        reading.start,
        reading.operands,
        code,
        number,
        seed,
        reading.owner,
        _dividing(reading, code, number, is_constant),
        _parallel(reading, code),
        parent_start,
        reading.owner[order],
    )
    return Coded(nodes, constants, is_constant, is_pointwise.astype(np.int64), is_doubled)


def _names(reading: Reading) -> zip[tuple[str, Attributes]]:
    names = reading.names
    return zip([names[place] for place in reading.operator.tolist()], reading.attributes, strict=True)


def _code_of(name: str) -> int:
    return _CODES.get(name, POINTWISE if name in _pointwise_ops(len(registered_ops())) else OPAQUE)


@cache
def _pointwise_ops(registered: int) -> frozenset[str]:
    """Constructors of ops that do the same for every element; ops are registered, but never taken back."""
    ops = registered_ops()
    return frozenset(op.constructor for op in ops[:registered] if isinstance(op, Elementwise)) | {"Cast"}


@lru_cache(maxsize=1 << 16)
def _seed(name: str, attributes: Attributes) -> int:
    return int.from_bytes(blake2b(repr((name, attributes)).encode(), digest_size=8).digest(), "little") >> 2


@cache
def _dtype_seeds() -> Integers:
    return np.array([_seed(name, ()) for name in (*DTYPES, "")], np.int64)


def ranks_of(words: Integers) -> Integers:
    """int64 ranks that broadcast words mark; 0 for scalars, -1 for what has none yet."""
    lengths = np.frexp(np.maximum(words, 0).astype(np.float64))[1].astype(np.int64) - 1
    return np.where(words > 0, lengths, np.where(words == NO_SHAPE, UNKNOWN, 0))


def _refuse_shapes(reading: Reading, code: Integers, is_pointwise: np.ndarray) -> None:
    """Take for opaque what has an operand of another rank, or what has none yet."""
    ranks = ranks_of(reading.word)
    own, others = ranks[reading.class_of[reading.owner]], ranks[reading.operands]
    wrong = (others == UNKNOWN) | ((others != own) & (others != 0) & is_pointwise[reading.owner])
    code[reading.owner[wrong]] = OPAQUE
    code[(reading.word[reading.class_of] == NO_SHAPE) | (reading.dtype[reading.class_of] == UNKNOWN)] = OPAQUE


def _numbers(reading: Reading, code: Integers) -> Integers:
    """Of sums and products, how many operands are positive."""
    fixed = np.array([_POSITIVES.get(name, 0) for name in reading.names], np.int64)[reading.operator]
    return np.maximum(fixed, reading.positives)


def _refuse_rings(reading: Reading, code: Integers, is_constant: np.ndarray) -> None:
    """Take for unknown functions what computes with bools, divides integers, or mixes them with floats."""
    kinds = _KINDS[reading.dtype]
    own = kinds[reading.class_of]
    is_inexact = (own == ord("f")) | (own == ord("c"))
    is_whole = (own == ord("i")) | (own == ord("u"))
    is_ring = (code == SUM) | (code == PRODUCT) | (code == POWER)
    divides = np.isin(reading.operator, [n for n, name in enumerate(reading.names) if name in _DIVIDING])
    divides |= (code == PRODUCT) & (reading.positives > 0) & (np.diff(reading.start) > reading.positives)
    divides |= (code == PRODUCT) & (np.diff(reading.start) > _numbers(reading, code))
    wrong = is_ring & ~is_inexact & ~(is_whole & ~divides)
    owner, operands = reading.owner, reading.operands
    other, whole = kinds[operands], kinds[reading.class_of[owner]]
    both = np.isin(other, _INEXACT) & np.isin(whole, _INEXACT)
    same = reading.dtype[operands] == reading.dtype[reading.class_of[owner]]
    is_exponent = (code[owner] == POWER) & (np.arange(len(owner)) > reading.start[owner])
    mixed = ~(same | both | is_constant[operands] | is_exponent)
    wrong[owner[mixed & is_ring[owner]]] = True
    wrong |= (code == FILL) & (own == ord("b"))
    code[wrong] = POINTWISE


_DIVIDING = ("Div", "Reciprocal")
_INEXACT = (ord("f"), ord("c"))


def _functions(reading: Reading, code: Integers, number: Integers) -> None:
    """Which functions there are; those of integers, whose sums wrap around, are unknown ones."""
    is_function = code == FUNCTION
    number[is_function] = np.array([FUNCTIONS.get(name, 0) for name in reading.names])[reading.operator][
        is_function
    ]
    kinds = _KINDS[reading.dtype]
    whole = ~np.isin(kinds[reading.operands], _INEXACT)
    owner = reading.owner[whole]
    code[owner[code[owner] == FUNCTION]] = POINTWISE


def _doubled(reading: Reading, code: Integers, number: Integers) -> NDArray[np.bool_]:
    """Number the parts of complex numbers; the classes of complex numbers, if any has such a part."""
    is_complex: NDArray[np.bool_] = _KINDS[reading.dtype] == ord("c")
    sizes = np.flatnonzero(_named(reading, "Abs") & (code == POINTWISE))
    code[sizes[is_complex[reading.operands[reading.start[sizes]]]]] = CONJUGATE
    nodes = np.flatnonzero(code == CONJUGATE)
    number[nodes] = np.array([_PARTS.get(name, 0) for name in reading.names])[reading.operator[nodes]]
    if not is_complex[reading.operands[reading.start[nodes]]].any():
        return np.zeros(reading.classes, np.bool_)
    return is_complex


def _parallel(reading: Reading, code: Integers) -> Integers:
    """int64 ``(nodes,)``, 1 for what does with conjugates what it does, and conjugates the result."""
    known = np.array([name in _PARALLEL or name in FUNCTIONS for name in reading.names])[reading.operator]
    parallel: Integers = ((code >= CONJUGATE) | known).astype(np.int64)
    return parallel


def _constants(
    reading: Reading,
    code: Integers,
    number: Integers,
    is_constant: np.ndarray,
    complexes: Mapping[int, complex],
) -> tuple[complex, ...]:
    """Number the constants; arrays whose elements differ, and what is not finite, are leaves."""
    constants: dict[complex, int] = {}
    for node in np.flatnonzero(code == CONSTANT).tolist():
        klass = int(reading.class_of[node])
        if is_constant[klass]:
            # A class may have several constants that differ by rounding.
            own = reading.attributes[node][0] if reading.names[reading.operator[node]] == "K" else None
            value = float(reading.value[klass] if own is None else own)
            number[node] = constants.setdefault(value, len(constants))
        elif reading.names[reading.operator[node]] == "Array" and reading.attributes[node][0] in complexes:
            number[node] = constants.setdefault(complexes[int(reading.attributes[node][0])], len(constants))
        else:
            code[node] = OPAQUE
    return tuple(constants)


def _moving(
    reading: Reading,
    code: Integers,
    number: Integers,
    axes: Mapping[int, int],
    told: Collection[tuple[int, int]],
) -> None:
    """Numbers of what moves axes; sums and products of bools, or of another dtype, are none."""
    kinds, owners = _KINDS[reading.dtype], reading.class_of[reading.owner]
    own, other = kinds[owners], kinds[reading.operands]
    both = np.isin(own, _INEXACT) & np.isin(other, _INEXACT)
    same = (reading.dtype[owners] == reading.dtype[reading.operands]) & (own != ord("b"))
    adds = ((code == REDUCE) | (code == CONTRACT))[reading.owner]
    code[reading.owner[adds & ~(both | same)]] = OPAQUE
    for node in np.flatnonzero((code >= SHUFFLE) & (code <= LENGTH)).tolist():
        value = int(reading.attributes[node][0])
        if code[node] != LENGTH:
            number[node] = value
        elif (reading.operands_of(node)[0], axes.get(value)) in told:
            number[node] = axes[value]
        else:
            code[node] = OPAQUE


def _copies(reading: Reading, code: Integers) -> None:
    """Casts of real numbers to complex ones of that precision keep their values, and so do those of lengths,
    and of products and sums of them: arrays are not that large.
    """
    casts = _nodes_of(reading, "Cast")
    kinds = _KINDS[reading.dtype]
    source = reading.dtype[reading.operands[reading.start[casts]]]
    target = reading.dtype[reading.class_of[casts]]
    code[casts[(source >= 0) & (target >= 0) & _BECOMES_COMPLEX[source, target]]] = COPY
    lengths = np.zeros(reading.classes, np.bool_)
    lengths[reading.class_of[code == LENGTH]] = True
    if not len(casts) or not lengths.any():
        return
    for _ in range(_LONGEST_PRODUCT):
        computed = np.bincount(reading.owner[~lengths[reading.operands]], minlength=reading.nodes) == 0
        lengths[reading.class_of[computed & (code >= FILL)]] = True
    for node in casts.tolist():
        is_inexact = kinds[reading.class_of[node]] in _INEXACT
        if is_inexact and lengths[reading.operands[reading.start[node]]]:
            code[node] = COPY


def is_sum_of(reading: Reading, node: int, operands: Sequence[int]) -> bool:
    """Whether an e-node that adds classes up does so with numbers of one kind, as arithmetic does."""
    own = int(reading.dtype[reading.class_of[node]])
    others = [int(reading.dtype[operand]) for operand in operands]
    if all(_KINDS[other] in _INEXACT for other in (own, *others)):
        return True
    return _KINDS[own] != ord("b") and all(other == own for other in others)


def _named(reading: Reading, name: str) -> np.ndarray:
    is_named: np.ndarray = np.array([known == name for known in reading.names], np.bool_)[reading.operator]
    return is_named


def _nodes_of(reading: Reading, name: str) -> Integers:
    return np.flatnonzero(_named(reading, name))


def _dividing(reading: Reading, code: Integers, number: Integers, is_constant: np.ndarray) -> Integers:
    """int64 ``(nodes,)``, 1 for products and powers that divide by what is no constant, or by zero."""
    owner = reading.owner
    place = np.arange(len(owner)) - reading.start[owner]
    is_divisor = (code[owner] == PRODUCT) & (place >= number[owner])
    is_safe = is_constant & (reading.value != 0)
    divides = np.zeros(reading.nodes, np.int64)
    divides[owner[is_divisor & ~is_safe[reading.operands]]] = 1
    for node in _nodes_of(reading, "Pow").tolist():
        base, exponent = reading.operands_of(node)
        divides[node] = not is_safe[base] and is_constant[exponent] and reading.value[exponent] < 0
    return divides


def _powers(reading: Reading, code: Integers, number: Integers, is_constant: np.ndarray) -> None:
    """Exponents; powers that are not integers are unknown functions."""
    for node in np.flatnonzero(code == POWER).tolist():
        operands = reading.operands_of(node)
        if len(operands) == 1:
            number[node] = 2
            continue
        value = float(reading.value[operands[1]]) if is_constant[operands[1]] else 0.5
        is_whole = value == int(value) and abs(value) <= LARGEST_POWER
        dtype = int(reading.dtype[reading.class_of[node]])
        if is_whole and (value >= 0 or _KINDS[dtype] in _INEXACT):
            number[node] = int(value)
        else:
            code[node] = POINTWISE
