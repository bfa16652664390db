"""Products by cuBLAS and factorizations by cuSOLVER, through cupy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.gpu.device import Device
from esat.gpu.forms.form import DeviceForm, Former
from esat.graph import Apply, Constant
from esat.graph.op import Op
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul
from esat.ops.linalg.factor import QR, Cholesky, CholeskyPullback
from esat.ops.linalg.inverse import Determinant, Inverse, SignLogDeterminant, TriangularInverse
from esat.ops.linalg.normal import NormalProduct
from esat.ops.linalg.record import MatrixOp
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, Solve, SolveTriangular
from esat.ops.linalg.spectral import SVD, Eigenvalues, Eigenvectors, SingularValues
from esat.ops.linalg.structured import StructuredProduct
from esat.ops.linalg.whitening import Whiten, by_eigenvectors

_DTYPES = frozenset(["float32", "float64", "complex64", "complex128"])
"""Of products and factorizations that cuBLAS and cuSOLVER have."""


_SINGULAR = "Singular matrix"


def _matmul(op: MatMul, device: Device, node: Apply) -> DeviceForm:
    return DeviceForm(lambda operands: (device.product(*operands),))


def _normal_product(op: NormalProduct, device: Device, node: Apply) -> DeviceForm:
    multiply = device.product
    return DeviceForm(lambda operands: (multiply(operands[0].T, multiply(*operands)),))


def _accumulate(op: AccumulateProduct, device: Device, node: Apply) -> DeviceForm:
    in_blas = node.outputs[0].tensor_type.dtype in _DTYPES

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        target, alpha, left, right, beta = operands
        if target.size == 0:
            return (target if op.inplace else target.copy(),)
        if in_blas and left.size:
            # cuBLAS reads where it writes only what it multiplies by beta.
            result = target if op.inplace and target.flags.c_contiguous else target.copy()
            shape = (left.shape[0], right.shape[1])
            device.add_product(result.reshape(shape), number(alpha), left, right, number(beta))
        else:
            result = beta * target + alpha * device.arrays.matmul(left, right).reshape(target.shape)
        if op.inplace and result is not target:
            target[...] = result
        return (target if op.inplace else result,)

    def number(factor: Any) -> Any:
        return factor.item() if isinstance(factor, np.ndarray) else factor

    factors = frozenset(place for place in (1, 4) if isinstance(node.inputs[place], Constant))
    return DeviceForm(compute, factors)


def _algebra(function: Callable[[Any, Any, Any], Any], failure: str = "") -> Former:
    """An op that cuSOLVER computes: ``function(op, device, operands)``, errors as on the host.

    ``failure`` is what NumPy says where cuSOLVER gives the number of a row.
    """

    def former(op: MatrixOp, device: Device, node: Apply) -> DeviceForm | None:
        if any(variable.tensor_type.dtype not in _DTYPES for variable in node.inputs):
            return None

        def call(*arrays: Any) -> Any:
            try:
                with device.checked_algebra():
                    return function(op, device, arrays)
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(failure or str(error)) from error

        def compute(operands: Sequence[Any]) -> Sequence[Any]:
            results = op.call(call, *operands)
            return results if isinstance(results, tuple) else (results,)

        return DeviceForm(compute, is_recordable=False)

    return former


def _cholesky(op: Cholesky, device: Device, operands: Sequence[Any]) -> Any:
    (matrix,) = operands
    if not op.upper:
        return device.arrays.linalg.cholesky(matrix)
    swap = device.arrays.swapaxes
    return swap(device.arrays.linalg.cholesky(swap(matrix, -1, -2).conj()), -1, -2).conj()


def _solve_triangular(op: SolveTriangular, device: Device, operands: Sequence[Any]) -> Any:
    matrix, sides = operands
    trans = 1 if op.transpose else 0
    return device.solve_triangular(matrix, sides, trans, op.lower, op.unit_diagonal)


def _cholesky_solve(op: CholeskySolve, device: Device, operands: Sequence[Any]) -> Any:
    factor, sides = operands
    complex_ = factor.dtype.kind == "c"
    order = (0, 2 if complex_ else 1) if op.lower else (2 if complex_ else 1, 0)
    for trans in order:
        sides = device.solve_triangular(factor, sides, trans, op.lower, False)
    return sides


def _whiten(op: Whiten, device: Device, node: Apply) -> DeviceForm | None:
    """Of single matrices; those of a batch may differ in whether they have factors."""
    if any(variable.tensor_type.ndim > 2 for variable in node.inputs):
        return None
    return _algebra(_whitened, _SINGULAR)(op, device, node)


def _whitened(op: Whiten, device: Device, operands: Sequence[Any]) -> Any:
    matrix, sides = operands
    try:
        factor = device.arrays.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return by_eigenvectors(device.arrays, matrix, sides).astype(sides.dtype)
    return device.solve_triangular(factor, sides, 0, True, False)


def _cholesky_pullback(op: CholeskyPullback, device: Device, operands: Sequence[Any]) -> Any:
    arrays, swap = device.arrays, device.arrays.swapaxes
    factor, cotangent = map(arrays.tril, operands)
    middle = arrays.tril(swap(factor, -1, -2) @ cotangent)
    middle = middle - 0.5 * arrays.triu(middle)
    half = device.solve_triangular(factor, middle, 1, True, False)
    full = device.solve_triangular(factor, swap(half, -1, -2), 1, True, False)
    return 0.5 * (full + swap(full, -1, -2))


def _qr(op: QR, device: Device, operands: Sequence[Any]) -> Any:
    found = device.arrays.linalg.qr(operands[0], mode=op.mode)
    return found if op.mode == "r" else (found[0], found[1])


def _svd(op: SVD, device: Device, operands: Sequence[Any]) -> Any:
    left, values, right = device.arrays.linalg.svd(operands[0], full_matrices=op.full_matrices)
    return left, values, right


def _eigenvectors(op: Eigenvectors, device: Device, operands: Sequence[Any]) -> Any:
    values, vectors = device.arrays.linalg.eigh(operands[0], UPLO=op.triangle)
    return values, vectors


def _slogdet(op: SignLogDeterminant, device: Device, operands: Sequence[Any]) -> Any:
    sign, logarithm = device.arrays.linalg.slogdet(operands[0])
    return sign, logarithm


ALGEBRA: Mapping[type[Op], Former] = {
    MatMul: _matmul,
    StructuredProduct: _matmul,
    NormalProduct: _normal_product,
    AccumulateProduct: _accumulate,
    Cholesky: _algebra(_cholesky, "Matrix is not positive definite"),
    CholeskyPullback: _algebra(_cholesky_pullback, _SINGULAR),
    QR: _algebra(_qr),
    **dict.fromkeys(
        (Inverse, TriangularInverse),
        _algebra(lambda op, device, operands: device.arrays.linalg.inv(*operands), _SINGULAR),
    ),
    Determinant: _algebra(lambda op, device, operands: device.arrays.linalg.det(*operands)),
    SignLogDeterminant: _algebra(_slogdet),
    **dict.fromkeys(
        (Solve, SemidefiniteSolve),
        _algebra(lambda op, device, operands: device.arrays.linalg.solve(*operands), _SINGULAR),
    ),
    SolveTriangular: _algebra(_solve_triangular, _SINGULAR),
    CholeskySolve: _algebra(_cholesky_solve),
    Whiten: _whiten,
    Eigenvalues: _algebra(
        lambda op, device, operands: device.arrays.linalg.eigvalsh(operands[0], UPLO=op.triangle)
    ),
    Eigenvectors: _algebra(_eigenvectors),
    SingularValues: _algebra(
        lambda op, device, operands: device.arrays.linalg.svd(operands[0], compute_uv=False)
    ),
    SVD: _algebra(_svd),
}
