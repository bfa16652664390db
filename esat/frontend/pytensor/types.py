"""Types and constants of PyTensor's as those of esat."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.scalar.basic import ScalarType
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.type import TensorType as PyTensorType

from esat.frontend.pytensor.steps import NoRuleError
from esat.graph.constants import constant
from esat.graph.random_type import RandomType
from esat.graph.sparse_type import SparseType
from esat.graph.types import TensorType, Type
from esat.graph.variables import Constant, Variable


def type_of(variable: Any) -> Type:
    """The type of a PyTensor variable.

    Raises
    ------
    NoRuleError
        For types that are no arrays, sparse matrices or generators of random numbers.
    DtypeError, ShapeError
        For dtypes and ranks that esat lacks.
    """
    given = variable.type
    if isinstance(given, SparseTensorType):
        return SparseType(given.format, given.dtype, tuple(given.shape))
    if isinstance(given, PyTensorType):
        return TensorType(given.dtype, shape=tuple(given.shape))
    if isinstance(given, ScalarType):
        return TensorType(given.dtype, shape=())
    if isinstance(given, RandomGeneratorType):
        return RandomType()
    raise NoRuleError(f"esat has no type for {given}")


def is_dense(variable: Any) -> bool:
    """Whether a PyTensor variable is an array or a number."""
    given = variable.type
    return isinstance(given, (PyTensorType, ScalarType)) and not isinstance(given, SparseTensorType)


def is_other(variable: Any) -> bool:
    """Whether PyTensor has other values there than esat: numbers, and SciPy's sparse matrices."""
    return isinstance(variable.type, (ScalarType, SparseTensorType))


def constant_of(variable: Any) -> Variable | None:
    """A constant of PyTensor's; None where it is no value of a type of esat's, as None and slices."""
    if is_dense(variable):
        return constant(np.asarray(variable.data), dtype=variable.type.dtype)
    try:
        type = type_of(variable)
    except NoRuleError:
        return None
    return Constant(type, type.filter(variable.data))


def as_pytensor(variable: Any, value: Any) -> Any:
    """A value of esat's as PyTensor's type has it: a number in place of an array without axes, SciPy's
    sparse matrices in place of its sparse arrays."""
    given = variable.type
    if isinstance(given, ScalarType):
        return value[()]
    if isinstance(given, SparseTensorType):
        return given.filter(_MATRICES[given.format](value), allow_downcast=True)
    return value


def _matrix(name: str) -> Any:
    def made(value: Any) -> Any:
        from scipy import sparse

        return getattr(sparse, name)(value)

    return made


_MATRICES = {"csr": _matrix("csr_matrix"), "csc": _matrix("csc_matrix")}
