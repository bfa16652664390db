"""Formulas over the rows of a sparse matrix, each computed in one pass: no product with it is formed apart.

The gradient and the loss of a sparse matrix's factorization are of this kind: ``x @ v`` beside
``u @ (v.T @ v)``, where ``u`` is as long as the sparse matrix and the square factor as small as the rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, describe
from esat.graph.algorithms.copying import clone
from esat.graph.op import Shapes, Work
from esat.graph.registry import function_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.reduction import SUM, reduce
from esat.ops.sparse.products import STRUCTURED_DOT, ProductOp
from esat.ops.sparse.record import WITH_DENSE, Kind, bytes_of, count, dense_type, match
from esat.ops.sparse.structure import STORED_VALUES, Cotangents

DTYPES = ("float32", "float64")
"""Of formulas that rules choose: there are kernels for these, and integers that overflow stay apart."""

_KINDS: Mapping[str, Kind] = {"sparse": "sparse", "alpha": 0, "beta": 0}
_HIDDEN = 0.2
"""Of the operations of a small product: most are done while the next row's values are on their way."""


@record(frozen=True, eq=False, repr=False)
class SparsePass(ProductOp):
    """What a formula makes of each row of a sparse matrix and of dense ones, or the sum over all rows.

    A formula is text. It names numbers, ``alpha`` and ``beta``; the product ``sparse @ dense``; matrices with
    a row for each of the sparse one, and their products with a small ``square`` matrix. A formula of sums is
    a number; ``sum(sparse**2)`` is that of the squared values. In sums over rows, a row without stored values
    has no product: whatever that would meet counts as nothing.

    Attributes
    ----------
    operands
        The names, in the order of the operands.
    formula
        Of these names.
    any_dtype
        Whether operands may be of any dtype, or of :data:`DTYPES` alone.
    is_number
        Whether the formula is one of sums.
    """

    name: str
    constructor: str
    operands: tuple[str, ...]
    formula: str
    any_dtype: bool = False
    typing: str = field(init=False)
    kinds: tuple[Kind, ...] = field(init=False)
    is_number: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_number", self.formula.startswith("sum("))
        object.__setattr__(self, "typing", "number" if self.is_number else "usmm")
        object.__setattr__(self, "kinds", tuple(_KINDS.get(name, 2) for name in self.operands))

    def properties(self) -> tuple[object, ...]:
        return ()  # its name says all

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        named, types = self._named(inputs), [variable.type for variable in inputs]
        (product,) = STRUCTURED_DOT.infer_types([named.pop("sparse"), named.pop("dense")])
        assert isinstance(product, TensorType)
        if not self.any_dtype and product.dtype not in DTYPES:
            raise DtypeError(describe(self.name, types, f"operands have a dtype of {', '.join(DTYPES)}"))
        rows, columns = product.shape
        for name, variable in named.items():
            sizes = dense_type(self.name, variable, 0 if name in _KINDS else 2).shape
            if name == "square":
                match(self.name, types, (sizes[0], sizes[1]), (columns, sizes[0]), (columns, sizes[1]))
            elif sizes:
                match(self.name, types, (rows, sizes[0]), (columns, sizes[1]))
                rows = sizes[0] if rows is None else rows
                columns = sizes[1] if columns is None else columns
        return (product.with_shape(() if self.is_number else (rows, columns)),)

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.operands, values, strict=True))

    def check_sizes(self, *matrices: Any) -> None:
        """Raise ShapeError unless the sizes of run-time operands fit, which are given but for the numbers."""
        names = [name for name in self.operands if _KINDS.get(name) != 0]
        shapes = {name: matrix.shape for name, matrix in zip(names, matrices, strict=True)}
        (rows, inner), (length, columns) = shapes.pop("sparse"), shapes.pop("dense")
        wanted = {"square": (columns, columns)}
        fits = [shape == wanted.get(name, (rows, columns)) for name, shape in shapes.items()]
        self.refuse(matrices, inner == length and all(fits))

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        self.check_sizes(*[value for value, kind in zip(inputs, self.kinds, strict=True) if kind != 0])
        return (np.asarray(self.computed(inputs)),)

    def computed(self, inputs: Sequence[Any]) -> Any:
        """The formula of operands whose sizes fit."""
        named = self._named(inputs)
        with np.errstate(all="ignore"):
            result = self._of_arrays(named)
            if self.is_number and not np.isfinite(result):
                result = self._without_absent_rows(named)
        return result

    def _of_arrays(self, named: Mapping[str, Any]) -> Any:
        sparse = named["sparse"]
        matrix = _Matrix(sparse.__matmul__, sparse.data)
        return value_of(self.formula, {**named, "sparse": matrix, "sum": np.sum})

    def _without_absent_rows(self, named: Mapping[str, Any]) -> Any:
        """The formula, rows with and without stored values apart."""
        sparse = named["sparse"].tocsr()
        stored = np.diff(sparse.indptr) > 0
        rows = [name for name in self.operands if name not in (*_KINDS, "dense", "square")]
        there = {**named, "sparse": sparse[stored], **{name: named[name][stored] for name in rows}}
        others = {**named, **{name: named[name][~stored] for name in rows}}
        others["sparse"] = _Matrix(lambda _dense: ABSENT, ABSENT)
        return self._of_arrays(there) + value_of(self.formula, {**others, "sum": _sum_of_present})

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(node.inputs)
        # Of stand-ins: one variable may be several operands.
        inputs = [operand.type.make_variable() for operand in node.inputs]
        named, seed = self._named(inputs), cotangent.type.make_variable()
        sparse = named["sparse"]
        matrix = _Matrix(lambda dense: STRUCTURED_DOT(sparse, dense), STORED_VALUES(sparse))
        value = value_of(self.formula, {**named, "sparse": matrix, "sum": lambda part: reduce(SUM, part)})
        pulled = function_named("vjp")([value], inputs, [seed], "zero")
        return list(clone(pulled, dict(zip((*inputs, seed), (*node.inputs, cotangent), strict=True)))[0])

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        named = self._named(inputs)
        rows, columns = named["sparse"][0], named["dense"][1]
        products = rows * columns * self.formula.count("@ square")
        # Of a sum what follows a row's product takes no time of its own, and what is only added is read in
        # passing, as by the fused sum that would stand there instead.
        free = {"added", "output"} if self.is_number else {"added"}
        names, shapes = (*self.operands, "output"), (*inputs, *outputs)
        moved = [
            bytes_of(shape, size)
            for name, shape, size in zip(names, shapes, itemsizes, strict=True)
            if name not in free
        ]
        return Work(
            flops=2.0 * columns * (count(named["sparse"]) + _HIDDEN * products),
            bytes=sum(moved),
            calls=1,
            share=WITH_DENSE,
        )


class _Matrix:
    """The sparse matrix of a formula, which asks for products with it and for the squares of its values."""

    def __init__(self, product: Callable[[Any], Any], values: Any) -> None:
        self._product, self._values = product, values

    def __matmul__(self, dense: Any) -> Any:
        return self._product(dense)

    def __pow__(self, exponent: int) -> Any:
        return self._values * self._values


class Absent:
    """What is not there, and makes what it is multiplied by absent."""

    __array_ufunc__ = None  # arrays leave operations with it to it

    def __add__(self, other: Any) -> Any:
        return other

    def __mul__(self, other: Any) -> Any:
        return self

    __radd__, __rmul__, __matmul__ = __add__, __mul__, __mul__


ABSENT = Absent()


def _sum_of_present(part: Any) -> Any:
    return part if part is ABSENT else np.sum(part)


_NO_BUILTINS: dict[str, Any] = {"__builtins__": {}}


def value_of(formula: str, names: Mapping[str, Any]) -> Any:
    """What a formula is where its names stand for arrays, for Variables, or for code that computes them."""
    return eval(_compiled(formula), _NO_BUILTINS, names)


@cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, "<formula of a sparse pass>", "eval")


_PRODUCT = "alpha * (sparse @ dense)"
_SQUARES = "sum(sparse**2)"
_SCALED = ("alpha", "sparse", "dense")
USMM = SparsePass("usmm", "Usmm", (*_SCALED, "added"), f"{_PRODUCT} + added", any_dtype=True)
USMM_PRODUCT = SparsePass(
    "usmm_product", "UsmmProduct", (*_SCALED, "left", "square"), f"{_PRODUCT} + left @ square"
)
USMM_SHIFTED_PRODUCT = SparsePass(
    "usmm_shifted_product",
    "UsmmShiftedProduct",
    (*_SCALED, "left", "square", "beta"),
    f"{_PRODUCT} + left @ square + beta * left",
)
SPARSE_BILINEAR = SparsePass(
    "sparse_bilinear", "SparseBilinear", ("sparse", "dense", "other"), "sum((sparse @ dense) * other)"
)
SQUARES_AND_BILINEAR = SparsePass(
    "squares_and_bilinear",
    "SquaresAndBilinear",
    (*_SCALED, "other"),
    f"{_SQUARES} + alpha * sum((sparse @ dense) * other)",
)
SQUARES_AND_QUADRATIC = SparsePass(
    "squares_and_quadratic",
    "SquaresAndQuadratic",
    (*_SCALED, "other", "square"),
    f"{_SQUARES} + sum(({_PRODUCT} + other @ square) * other)",
)
"""With ``alpha`` -2 and ``square`` the product ``dense.T @ dense`` the squared distance of the sparse matrix
from ``other @ dense.T``."""
PASSES = (
    USMM,
    USMM_PRODUCT,
    USMM_SHIFTED_PRODUCT,
    SPARSE_BILINEAR,
    SQUARES_AND_BILINEAR,
    SQUARES_AND_QUADRATIC,
)
