"""Calls of functions that have a namesake in NumPy or SciPy, made of esat's and of these alike.

Each is one expression: ``x`` is an array, or the Variable that stands for it; ``m`` has the functions.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy.linalg
import scipy.special

import esat

OF_SCIPY = (
    "cosm1", "digamma", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "expit", "gamma", "gammaln", "i0e",
    "i1", "i1e", "j0", "j1", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "polygamma",
    "psi", "softmax", "xlogy", "beta", "betainc", "betaln", "gammainc", "gammaincc",
    "betaincinv", "gammaincinv", "gammainccinv", "owens_t", "jv", "yv", "iv", "ive", "kv", "kve",
)  # fmt: skip
OF_SCIPY_LINALG = ("block_diag", "cho_solve", "expm", "lu", "solve_triangular")


def reference() -> SimpleNamespace:
    """NumPy's functions, and those of SciPy that are in esat."""
    linalg = {name: getattr(np.linalg, name) for name in dir(np.linalg)}
    linalg |= {name: getattr(scipy.linalg, name) for name in OF_SCIPY_LINALG}
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    names |= {name: getattr(scipy.special, name) for name in OF_SCIPY}
    return SimpleNamespace(**{**names, "linalg": SimpleNamespace(**linalg)})


REFERENCE = reference()

_REDUCED = ("axis=None", "axis=0", "axis=-1", "axis=1", "axis=(0, 1)", "axis=(-1, 0)", "axis=()", "axis=4",
            "axis=(0, 0)", "keepdims=True", "axis=0, keepdims=True")  # fmt: skip
_ALONG = ("", "axis=0", "axis=-1", "axis=1", "axis=4", "axis=-5")

REDUCTIONS = [
    f"m.{name}(x, {options})"
    for name in (
        "sum", "prod", "max", "min", "amax", "amin", "any", "all", "mean", "var", "std", "ptp", "median",
        "count_nonzero", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian",
        "average",
    )
    for options in _REDUCED
]  # fmt: skip
SELECTED = [
    f"m.{name}(x, {options})"
    for names, choices in (
        (
            ("sum", "prod", "max", "min", "amax", "nansum", "nanprod", "nanmax", "nanmin"),
            (
                "initial=2", "initial=2.5", "axis=0, initial=-1", "initial=None", "axis=-1, initial=True",
                "where=x > 0", "initial=3, where=x > 0", "axis=0, initial=1, where=x != 1",
                "axis=(0, 1), keepdims=True, initial=0, where=x < 1", "initial=1, where=x[0] > 0",
                "axis=-1, initial=1, where=x[..., 0][..., None] > 0", "axis=(), initial=2, where=x > 0",
                "where=True",
                "where=False, initial=4", "initial=1, where=[True, False]", "initial=1, where=x[None] > 0",
                "initial=1j", "initial=300", "initial=-1", "initial=None, where=x > 0",
                "initial=np.nan", "where=x", "initial=1, where=m.ones_like(x)",
            ),
        ),
        (
            ("max", "min", "nanmax", "nanmin"),
            ("initial=np.inf, where=x > 0", "axis=-1, initial=-np.inf", "where=[1, 1, 0, 0], initial=0"),
        ),
        (
            ("any", "all", "mean", "var", "std", "nanmean", "nanvar", "nanstd"),
            (
                "where=x > 0", "axis=0, where=x != 1", "axis=-1, keepdims=True, where=x < 1",
                "where=x[0] > 0", "axis=0, where=x[..., 0][..., None] > 0", "axis=(-1, 0), where=x > 0",
                "where=True",
                "where=False", "where=[True, False]", "where=x[None] > 0", "where=x", "axis=(), where=x > 0",
            ),
        ),
        (
            ("var", "std", "nanvar", "nanstd"),
            (
                "mean=1", "mean=0.5, where=x > 0", "axis=0, mean=m.mean(x, axis=0, keepdims=True)",
                "axis=-1, mean=[1.0, 2]", "ddof=1, where=x > 0", "correction=1, mean=2, where=x < 1",
            ),
        ),
        (
            ("sum", "prod", "nansum"),
            ("dtype='float32', initial=0.1", "dtype='int8', initial=2.5, where=x > 0"),
        ),
        (("mean",), ("dtype='float32', where=x > 0",)),
    )
    for name in names
    for options in choices
]  # fmt: skip
PLACES = [
    f"m.{name}(x, {options})"
    for name in ("argmax", "argmin", "nanargmax", "nanargmin")
    for options in ("", "axis=0", "axis=-1", "axis=1", "axis=4", "keepdims=True", "axis=0, keepdims=True")
]
ALONG = [
    f"m.{name}(x{', ' if options else ''}{options})"
    for name in (
        "sort", "argsort", "cumsum", "cumprod", "nancumsum", "nancumprod", "diff", "squeeze", "flip",
        "unwrap", "trapezoid", "gradient", "cumulative_sum", "cumulative_prod", "softmax", "log_softmax",
        "logsumexp", "unstack",
    )
    for options in _ALONG
]  # fmt: skip

OTHERS = """
m.sum(x, dtype="float32") | m.sum(x, 0, "int8") | m.prod(x, dtype="uint8") | m.mean(x, dtype="float32")
m.mean(x, 0, "int64") | m.var(x, ddof=1) | m.var(x, correction=1) | m.std(x, 0, None, ddof=2)
m.nanvar(x, mean=0.5) | m.nanstd(x, mean=2)
m.var(x, dtype="float32") | m.nanvar(x, ddof=1) | m.nanstd(x, 0, correction=1) | m.std(x, axis=0, ddof=0.5)
m.average(x, weights=m.ones_like(x)) | m.average(x, 0, [1.0, 2]) | m.average(x, -1, returned=True)
m.average(x, (0, 1), x) | m.average(x, returned=True, keepdims=True) | m.average(x, weights=[1, 2, 3, 4, 5])
m.sort(x, stable=True) | m.argsort(x, axis=0, stable=True) | m.sort(x, axis=None)
m.argsort(x, axis=None, stable=True) | m.sort(x, kind="mergesort") | m.sort(x, kind="best")
m.cumsum(x, 0, "float32") | m.cumsum(x, dtype="int8") | m.cumulative_sum(x, axis=0, include_initial=True)
m.cumulative_prod(x, axis=-1, dtype="float64") | m.cumulative_prod(x, include_initial=True)
m.logsumexp(x, b=2.0) | m.logsumexp(x * 3) | m.logsumexp(x, b=x) | m.logsumexp(x, 0, x, True, True)
m.logsumexp(x, return_sign=True) | m.reshape(x, -1) | m.reshape(x, (-1, 2)) | m.reshape(x, (2, 5))
m.reshape(x, shape=(1, -1)) | m.reshape(x, (0, -1)) | m.reshape(x, (-1, -1)) | m.reshape(x, -1, copy=True)
m.ravel(x) | m.transpose(x) | m.transpose(x, (1, 0)) | m.transpose(x, (0, -1, 1)) | m.transpose(x, (0, 0))
m.permute_dims(x, axes=(1, 0)) | m.matrix_transpose(x) | m.swapaxes(x, 0, -1) | m.swapaxes(x, 1, 2)
m.moveaxis(x, 0, -1) | m.moveaxis(x, (0, 1), (1, 0)) | m.moveaxis(x, [0], [0, 1]) | m.expand_dims(x, 0)
m.expand_dims(x, -1) | m.expand_dims(x, (0, 2)) | m.expand_dims(x, 7) | m.expand_dims(x, (0, 0))
m.atleast_1d(x) | m.atleast_2d(x) | m.atleast_3d(x) | m.atleast_1d(x, 3) | m.atleast_2d(x, [1, 2])
m.broadcast_to(x, (2, 2, 3, 4)) | m.broadcast_to(x, (5,)) | m.broadcast_to(x, (4, 5))
m.broadcast_arrays(x, x) | m.broadcast_arrays(x, 1.5) | m.broadcast_arrays() | m.concatenate([x, x])
m.concatenate([x, x], axis=1) | m.concatenate([x, x], axis=None) | m.concatenate((x,), -1)
m.concatenate([x, x], axis=0, dtype="float64") | m.concat([x, x], axis=4) | m.concatenate([])
m.concatenate(x) | m.stack([x, x]) | m.stack([x, x], axis=-1) | m.stack([x, x], 1, dtype="complex128")
m.stack([x, x], axis=7) | m.hstack([x, x]) | m.vstack([x, x]) | m.dstack([x, x]) | m.column_stack([x, x])
m.hstack((x,), dtype="float64") | m.vstack([x, 1]) | m.split(x, 2) | m.split(x, [1, 2]) | m.split(x, 3, -1)
m.array_split(x, 3) | m.split(x, 7) | m.array_split(x, 2, axis=-1) | m.array_split(x, [1], 1)
m.hsplit(x, 2) | m.vsplit(x, 2) | m.dsplit(x, 2) | m.hsplit(x, [1]) | m.tile(x, 2) | m.tile(x, (2, 1))
m.tile(x, (1, 2, 1, 2)) | m.tile(x, 0) | m.tile(x, ()) | m.repeat(x, 2) | m.repeat(x, 2, axis=0)
m.repeat(x, 3, axis=-1) | m.repeat(x, [1, 2], axis=0) | m.repeat(x, -1) | m.roll(x, 1)
m.roll(x, -2, axis=0) | m.roll(x, (1, 2), axis=(0, 1)) | m.roll(x, 7, axis=-1) | m.roll(x, 2, (0, 1))
m.roll(x, (1, 2), axis=0) | m.flip(x, (0, 1)) | m.flip(x, ()) | m.fliplr(x) | m.flipud(x) | m.rot90(x)
m.rot90(x, 2) | m.rot90(x, -1, (0, -1)) | m.rot90(x, k=3, axes=(1, 0)) | m.rot90(x, 1, (0, 0))
m.rot90(x, 4) | m.take(x, [0, 1]) | m.take(x, [[0], [-1]], axis=0) | m.take(x, 0, axis=-1)
m.take(x, [7, -9], mode="wrap") | m.take(x, [7, -9, 0], axis=0, mode="clip") | m.take(x, 3, axis=9)
m.take(x, [0, 1], 0, mode="odd") | m.take_along_axis(x, m.argsort(x, axis=-1))
m.take_along_axis(x, m.argsort(x, axis=0), axis=0)
m.take_along_axis(x, m.argsort(x, axis=None), axis=None) | m.compress([True, False], x)
m.compress([0, 1], x, axis=0) | m.compress([1, 1], x, axis=-1) | m.diagonal(x) | m.diagonal(x, 1)
m.diagonal(x, -1, 1, 0) | m.diagonal(x, 0, 0, 2) | m.diagonal(x, axis1=0, axis2=0) | m.trace(x)
m.trace(x, 1) | m.trace(x, 0, 1, 2) | m.trace(x, dtype="float64") | m.diag(x) | m.diag(x, 1)
m.diag(x, k=-2) | m.diagflat(x) | m.diagflat(x, -1) | m.tril(x) | m.triu(x, 1) | m.tril(x, k=-1)
m.vander(x) | m.vander(x, 3) | m.vander(x, N=2, increasing=True) | m.zeros_like(x) | m.ones_like(x, "int8")
m.full_like(x, 3) | m.full_like(x, 2.7, dtype="float32") | m.full_like(x, fill_value=1, shape=(2, 2))
m.zeros_like(x, shape=3) | m.clip(x, 0, 1) | m.clip(x, None, 1) | m.clip(x, min=0)
m.clip(x, max=2, min=-1) | m.clip(x, -1, x) | m.clip(x) | m.round(x) | m.round(x, 1) | m.around(x, -1)
m.round(x, decimals=2) | m.fix(x) | m.real(x) | m.imag(x) | m.angle(x) | m.angle(x, True)
m.angle(x, deg=True) | m.conj(x) | m.copy(x) | m.isreal(x) | m.iscomplex(x) | m.isposinf(x) | m.isneginf(x)
m.nan_to_num(x) | m.nan_to_num(x, nan=1) | m.nan_to_num(x, True, 2.0, 3.0, -3.0) | m.isclose(x, x)
m.isclose(x, 1.0, atol=0.5) | m.isclose(x, x, 0.1, 0.1, True) | m.allclose(x, x) | m.allclose(x, 0)
m.array_equal(x, x) | m.array_equal(x, x, True) | m.array_equal(x, [1, 2]) | m.isin(x, [1, 2])
m.isin(x, x, True, True) | m.isin(x, 2, invert=True) | m.isin(x, [], assume_unique=True) | m.isin([1, 2], x)
m.heaviside(x, 0.5) | m.float_power(x, 2) | m.divmod(x, 2) | m.modf(x) | m.fabs(x) | m.sinc(x) | m.i0(x)
m.select([x > 0], [x], 7) | m.select([x > 0, x < 0], [x, 1.5]) | m.where(x) | m.where(x, x, 1)
m.where(x > 0, 1, 2.5) | m.where(x > 1, x, 0.5) | m.nonzero(x) | m.flatnonzero(x) | m.argwhere(x)
m.unravel_index(x, (2, 9)) | m.searchsorted([-1, 0, 2], x) | m.searchsorted([-1.0, 0.5], x, side="right")
m.searchsorted(x, [0, 1]) | m.searchsorted([3, 1, 2], x, sorter=[1, 2, 0]) | m.digitize(x, [-1, 0, 2])
m.digitize(x, [2, 0, -1], right=True) | m.bincount(x) | m.bincount(x, minlength=9) | m.bincount(x, x)
m.histogram(x) | m.histogram(x, 4, (-1, 2)) | m.histogram(x, [-3, 0, 3]) | m.histogram(x, density=True)
m.histogram(x, 3, weights=x) | m.interp(x, [-1, 0, 2], [3, 4, 5]) | m.interp(x, [0, 1], [0, 1j])
m.interp(x, [-1, 0, 2], [3, 4, 5], left=9, right=8) | m.interp(0.5, x, x) | m.quantile(x, 0.3)
m.quantile(x, [0.1, 0.5], axis=0) | m.quantile(x, 0.5, axis=-1, keepdims=True)
m.quantile(x, 0.4, method="lower") | m.percentile(x, 30)
m.percentile(x, [10, 90], axis=(0, 1), method="nearest") | m.nanquantile(x, 0.25, axis=0)
m.nanpercentile(x, 75, method="hazen") | m.quantile(x, 1.5) | m.quantile(x, 0.5, 9) | m.cov(x)
m.cov(x, rowvar=False) | m.cov(x, bias=True) | m.cov(x, x) | m.cov(x, ddof=0) | m.cov(x, dtype="float32")
m.corrcoef(x) | m.corrcoef(x, x) | m.corrcoef(x, rowvar=False) | m.diff(x, 2) | m.diff(x, n=0)
m.diff(x, 1, 0) | m.diff(x, prepend=0) | m.diff(x, append=1, axis=0) | m.diff(x, -1) | m.ediff1d(x)
m.ediff1d(x, 9, [7, 8]) | m.gradient(x, 2.0) | m.gradient(x, axis=(0, 1)) | m.gradient(x, 1, 2)
m.gradient(x, edge_order=2) | m.trapezoid(x, dx=0.5) | m.trapezoid(x, x) | m.unwrap(x, period=4)
m.unwrap(x, discont=2) | m.convolve(x, [1, 2]) | m.convolve([1, 2, 3], x, "same") | m.correlate(x, x)
m.correlate(x, [1, 2], mode="full") | m.polyval([1, 2, 3], x) | m.polyval(x, 2) | m.dot(x, x) | m.dot(x, 2)
m.dot(x, [1, 2]) | m.dot(2.0, x) | m.vdot(x, x) | m.vdot(x, 2) | m.inner(x, x) | m.inner(x, 2)
m.outer(x, x) | m.outer(x, [1, 2]) | m.kron(x, [1, 2]) | m.kron(x, x) | m.matmul(x, x)
m.matmul(x, m.matrix_transpose(x)) | m.matmul(x, [1, 2, 3, 4]) | m.matmul([1, 2], x) | m.tensordot(x, x)
m.tensordot(x, x, 0) | m.tensordot(x, x, axes=1) | m.tensordot(x, x, ([0], [0])) | m.tensordot(x, x, (0, 0))
m.tensordot(x, x, axes=([0, 1], [0, 1])) | m.tensordot(x, x, 7) | m.vecdot(x, x) | m.vecdot(x, [1])
m.vecdot(x, x, axis=0) | m.vecdot(x, 2) | m.matvec(x, x) | m.vecmat(x, x) | m.matvec(x, [1, 2, 3, 4])
m.vecmat([1, 2, 3], x) | m.cross(x, x) | m.cross(x, [1, 2, 3]) | m.cross(x, x, axis=0)
m.cross(x, x, 1, 1, 0) | m.einsum("...i->...", x) | m.einsum("ij->ji", x) | m.einsum("ij,ij", x, x)
m.einsum("ii", x) | m.einsum("i,i->i", x, x) | m.einsum("ij,jk", x, x) | m.einsum("...,...->...", x, 2)
m.append(x, x) | m.append(x, x, axis=0) | m.append(x, [1]) | m.delete(x, 0) | m.delete(x, [0, 1], axis=0)
m.delete(x, slice(1), axis=-1) | m.delete(x, 99) | m.insert(x, 1, 5) | m.insert(x, 0, 2, axis=0)
m.insert(x, 1, x) | m.insert(x, 1, 7, axis=-1) | m.pad(x, 1) | m.pad(x, (1, 2)) | m.pad(x, ((1, 0), (0, 2)))
m.pad(x, 2, "edge") | m.pad(x, 1, "reflect") | m.pad(x, 2, "symmetric") | m.pad(x, 3, "wrap")
m.pad(x, 1, constant_values=7) | m.pad(x, 1, constant_values=(1, 2))
m.pad(x, 1, "constant", constant_values=((1, 2), (3, 4))) | m.pad(x, -1) | m.meshgrid(x, x)
m.meshgrid(x, [1, 2], indexing="ij") | m.meshgrid(x, sparse=True) | m.linspace(0, x, 3)
m.linspace(x, 2, 4, endpoint=False, retstep=True) | m.linspace(x, x, 3, axis=-1)
m.linspace(0, x, 3, dtype="int32") | m.logspace(0, x, 3) | m.logspace(0, 1, 3, base=x)
m.full(x.shape[:0], x) | m.full((2, 5), x) | m.asarray(x) | m.asarray(x, "float32")
m.asarray(x, device="cpu") | m.array(x, dtype="complex128", ndmin=3) | m.astype(x, "int16")
m.astype(x, "float64", copy=False) | m.size(x) | m.size(x, 0) | m.size(x, axis=7) | m.expit(x) | m.logit(x)
m.xlogy(x, x) | m.xlogy(x, 2.0) | m.xlogy(2, x) | m.polygamma(1, x) | m.erf(x) | m.gammaln(x) | m.ndtr(x)
m.psi(x) | m.j0(x) | m.i1(x) | m.log_ndtr(x) | m.erfcx(x) | m.gamma(x) | m.nextafter(x, 2) | m.maximum(x, 1)
m.cosm1(x) | m.ndtri(x) | m.betaln(x, 2.0) | m.gammainc(x, 1.5) | m.gammaincc(2.0, x)
m.fmin(x, 0.5) | m.power(x, 2) | m.power(2.0, x) | m.arctan2(x, 1) | m.hypot(x, 2) | m.copysign(x, -1.0)
m.logaddexp(x, 1) | m.floor_divide(x, 2) | m.remainder(x, 2.5) | m.fmod(x, 2) | m.left_shift(x, 1)
m.bitwise_and(x, 3) | m.invert(x) | m.logical_xor(x, 1) | m.equal(x, 1) | m.less(x, 0.5) | m.signbit(x)
m.reciprocal(x) | m.square(x) | m.sqrt(x)
m.gcd(x, 6) | m.lcm(x, 4) | m.bitwise_count(x) | m.packbits(x) | m.packbits(x, axis=-1)
m.packbits(x, 0, "little") | m.unpackbits(x) | m.unpackbits(x, axis=0, count=9)
m.unpackbits(x, count=-3, bitorder="little") | m.array_equiv(x, x) | m.array_equiv(x, x[..., :1])
m.array_equiv(x, [1, 2]) | m.apply_over_axes(m.sum, x, (0, -1)) | m.apply_over_axes(m.cumsum, x, 0)
m.resize(x, 7) | m.resize(x, (2, 3)) | m.sort_complex(x) | m.histogram_bin_edges(x, 4)
m.histogram_bin_edges(x, 3, (0, 2)) | m.histogram_bin_edges(x, [1, 2, 4]) | m.diag_indices_from(x)
m.tril_indices_from(x) | m.triu_indices_from(x, 1) | m.tril_indices_from(x, k=-1)
m.ravel_multi_index((x, [1]), (9, 4), mode="clip") | m.ravel_multi_index((x, x), (5, 9), "wrap", order="F")
m.ravel_multi_index((x, x), (9, 4), mode=("clip", "wrap")) | m.ravel_multi_index((x,), (7,)) | m.ix_(x)
m.ix_(x, [0, 1])
"""  # fmt: skip

LINALG = """
m.linalg.diagonal(x) | m.linalg.diagonal(x, offset=1) | m.linalg.trace(x)
m.linalg.trace(x, offset=-1, dtype="float64") | m.linalg.outer(x, x) | m.linalg.outer(x, [1, 2])
m.linalg.cross(x, x) | m.linalg.cross(x, x, axis=0) | m.linalg.vecdot(x, x) | m.linalg.vecdot(x, x, axis=0)
m.linalg.tensordot(x, x, axes=1) | m.linalg.matmul(x, x) | m.linalg.matrix_transpose(x) | m.linalg.det(x)
m.linalg.inv(x) | m.linalg.slogdet(x) | m.linalg.qr(x) | m.linalg.qr(x, mode="r")
m.linalg.qr(x, "complete") | m.linalg.qr(x, "best") | m.linalg.svdvals(x) | m.linalg.svd(x).S
m.linalg.svd(x, compute_uv=False) | m.linalg.svd(x, full_matrices=False)[1]
m.linalg.svd(x @ m.linalg.matrix_transpose(x), hermitian=True).S | m.linalg.svd(x, False, False, True)
m.linalg.eigvalsh(x) | m.linalg.eigvalsh(x, UPLO="U") | m.linalg.eigh(x).eigenvalues | m.linalg.eigh(x, "X")
m.linalg.eigvals(x) | m.linalg.eig(x) | m.linalg.eig(x).eigenvalues
m.linalg.tensorinv(x) | m.linalg.tensorinv(x, ind=1) | m.linalg.tensorsolve(x, [1, 2, 3])
m.linalg.tensorsolve(x, m.ones((3,)), axes=(0,))
m.linalg.cholesky(x) | m.linalg.pinv(x) | m.linalg.pinv(x, 0.1) | m.linalg.pinv(x, rtol=None)
m.linalg.pinv(x, rtol=0.1) | m.linalg.matrix_rank(x) | m.linalg.matrix_rank(x, 0.5)
m.linalg.matrix_rank(x, rtol=0.3) | m.linalg.matrix_rank(x, hermitian=True) | m.linalg.matrix_power(x, 3)
m.linalg.matrix_power(x, -1) | m.linalg.matrix_power(x, 0) | m.linalg.matrix_power(x, 1.5)
m.linalg.solve(x, x) | m.linalg.solve(x, [1, 2, 3]) | m.linalg.lstsq(x, x)
m.linalg.lstsq(x, [1, 2, 3], rcond=0.1) | m.linalg.multi_dot([x, x]) | m.linalg.multi_dot([x])
m.linalg.norm(x) | m.linalg.norm(x, axis=0) | m.linalg.norm(x, axis=(0, 1)) | m.linalg.norm(x, 1)
m.linalg.norm(x, -2) | m.linalg.norm(x, "fro") | m.linalg.norm(x, "nuc", (0, 1))
m.linalg.norm(x, np.inf, axis=-1, keepdims=True) | m.linalg.norm(x, 0) | m.linalg.norm(x, 3, axis=0)
m.linalg.norm(x, "odd") | m.linalg.norm(x, keepdims=True) | m.linalg.norm(x, -1, axis=(0, 1))
m.linalg.vector_norm(x) | m.linalg.vector_norm(x, axis=0, ord=1)
m.linalg.vector_norm(x, axis=(0, 1), keepdims=True) | m.linalg.vector_norm(x, ord=np.inf)
m.linalg.vector_norm(x, ord=-2) | m.linalg.matrix_norm(x) | m.linalg.matrix_norm(x, ord=1)
m.linalg.matrix_norm(x, ord="nuc", keepdims=True) | m.linalg.matrix_norm(x, ord=-np.inf) | m.linalg.cond(x)
m.linalg.cond(x, 1) | m.linalg.cond(x, "fro") | m.linalg.cond(x, -2) | m.linalg.expm(x)
m.linalg.block_diag(x, x) | m.linalg.lu(x) | m.linalg.lu(x, permute_l=True)
m.linalg.solve_triangular(x, x) | m.linalg.solve_triangular(x, x, lower=True, unit_diagonal=True)
"""  # fmt: skip


def _listed(text: str) -> list[str]:
    return [call.strip() for line in text.strip().splitlines() for call in line.split(" | ")]


CALLS = REDUCTIONS + SELECTED + PLACES + ALONG + _listed(OTHERS)
LINALG_CALLS = _listed(LINALG)

SHAPES = {0: (), 1: (5,), 2: (3, 4), 3: (2, 3, 4), 4: (2, 1, 3, 3)}
SQUARES = {0: (), 1: (3,), 2: (3, 3), 3: (2, 3, 3), 4: (2, 1, 3, 3)}


def sample(dtype: str, shape: tuple[int, ...], seed: int = 5) -> np.ndarray:
    """Small numbers, halves among the floats, none of them negative where the dtype has none."""
    rng = np.random.default_rng(seed)
    halves = rng.integers(-5, 7, shape) / 2
    if dtype == "bool":
        return np.asarray(halves > 0)
    if dtype.startswith("complex"):
        return np.asarray(halves + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    if dtype.startswith("u"):
        return np.asarray(np.abs(halves)).astype(dtype)
    return np.asarray(halves).astype(dtype)


def call(text: str, namespace: object, x: object) -> object:
    """What a call gives, of the functions of a namespace."""
    return eval(text, {"m": namespace, "x": x, "np": np})


def evaluated(result: object, values: dict[esat.Variable, np.ndarray]) -> object:
    """A result with arrays for Variables: of the same kind, a tuple for a tuple."""
    if isinstance(result, esat.Variable):
        return esat.evaluate(result, values)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return result._replace(**{name: evaluated(getattr(result, name), values) for name in result._fields})
    if isinstance(result, (list, tuple)):
        return type(result)(evaluated(part, values) for part in result)
    return result


ELSEWHERE = {
    "arange", "cho_solve", "empty", "empty_like", "eye", "geomspace", "identity", "matrix", "ones", "poly",
    "shape", "softplus", "tri", "zeros",
    "diag_indices", "histogramdd", "indices", "polydiv", "roots", "tril_indices", "triu_indices",
    "apply_along_axis", "argpartition", "block", "choose", "histogram2d", "intersect1d", "lexsort",
    "partition", "piecewise", "polyadd",
    "polyder", "polyfit", "polyint", "polymul", "polysub", "rollaxis", "setdiff1d", "setxor1d", "union1d",
    "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
}  # fmt: skip
"""Functions that are compared in tests of their own: of no arrays, or with results of another kind."""
