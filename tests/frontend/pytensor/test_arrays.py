"""Shapes, parts, joins, reductions and orders: each op with its options, of known and unknown sizes."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.basic import PermuteRowElements
from pytensor.tensor.signal import convolve1d

from frontend.pytensor.peer import MODES, compared, slopes, variable

RNG = np.random.default_rng(5)
X, V = RNG.normal(size=(3, 4)), RNG.normal(size=4)
CUBE = RNG.normal(size=(2, 3, 4))
ROWS, COLUMNS = np.array([2, 0, 2]), np.array([1, 3, 1])
MASK = X > 0
ONE, NONE = RNG.normal(size=(1, 4)), np.zeros((0, 4))

PROGRAMS = {
    "dimshuffle": (
        lambda x: [x.T, x.dimshuffle(1, "x", 0), x[None], pt.expand_dims(x, -1), pt.moveaxis(x, 0, 1)],
        X,
    ),
    "squeeze": (lambda x: [pt.squeeze(x, 0), x.dimshuffle(1)], ONE),
    "shapes": (lambda x: [x.shape, x.shape[0] * 2, pt.as_tensor(x.size), x.shape.prod()], X),
    "alloc": (
        lambda x: [
            pt.alloc(x[0], 5, 4),
            pt.zeros_like(x),
            pt.ones((x.shape[0], 2)),
            pt.full((2, 3), x[0, 0]),
        ],
        X,
    ),
    "broadcast": (lambda x: [pt.broadcast_to(x, (5, 3, 4)), pt.tile(x, (2, 1)), pt.tile(x, 3)], X),
    "empty": (lambda x: [pt.set_subtensor(pt.empty((2, 4))[:], x[:2])], X),
    "make_vector": (lambda x: [pt.stack([x[0, 0], x[1, 1], 3.0]), pt.as_tensor([x.shape[0], 5])], X),
    "eye": (lambda n: [pt.eye(3), pt.eye(n, 4, 1), pt.eye(n, k=-1), pt.eye(2, 3, dtype="int8")], np.int64(3)),
    "arange": (
        lambda n: [pt.arange(n), pt.arange(2, n * 3, 2), pt.arange(n, 0, -1), pt.arange(0.0, 2.0, 0.5)],
        np.int64(4),
    ),
    "join": (
        lambda x, v: [
            pt.join(0, x, x * 2),
            pt.join(1, x, x),
            pt.concatenate([v, v, v[:1]]),
            pt.stack([v, v], 1),
        ],
        X,
        V,
    ),
    "join of dtypes": (lambda x, i: [pt.join(0, x[0], i), pt.join(0, i, i)], X, ROWS),
    "join of nothing": (lambda x, y: [pt.join(0, x, y), pt.join(0, y, y)], X, NONE),
    "split at sizes of others": (
        lambda x: [part * 2 for part in pt.split(pt.concatenate([x, x[:1] + 1]), [x.shape[0], 1], axis=0)],
        X,
    ),
    "split": (lambda x: [*pt.split(x, [1, 2], axis=0), *pt.split(x, [1, 0, 3], axis=1)], X),
    "reshape": (
        lambda x: [x.reshape((4, 3)), x.reshape((-1,)), x.flatten(), x.reshape((2, -1)), x.ravel()],
        X,
    ),
    "reshape by sizes": (
        lambda x, n: [x.reshape((n, 12 // n)), x.reshape((n, -1)), x.reshape(pt.stack([n, 12 // n]), ndim=2)],
        X,
        np.int64(2),
    ),
    "reshape to a number": (lambda x: [x[:1, :1].reshape(()), x[0, 0].reshape((1, 1))], X),
    "join_dims": (lambda x: [pt.join_dims(x), pt.join_dims(x, 1), pt.split_dims(x, (2, 2), axis=2)], CUBE),
    "specify_shape": (
        lambda x, n: [pt.specify_shape(x, (3, None)) + 1, pt.specify_shape(x, (n, 4)) * 2],
        X,
        np.int64(3),
    ),
    "repeat": (
        lambda x, i: [
            pt.repeat(x, 2, axis=0),
            pt.repeat(x, i, axis=0),
            pt.repeat(x, 3),
            pt.repeat(x, 2, axis=1),
        ],
        X,
        ROWS,
    ),
    "flip": (lambda x: [x[::-1], x[:, ::-1], pt.roll(x, 1, axis=1)], X),
    "tril": (lambda x: [pt.tril(x), pt.triu(x, 1), pt.tril(x, -1)], X),
    "diagonal": (
        lambda x, c: [
            pt.diagonal(x),
            pt.diagonal(x, 1),
            pt.diag(x[0]),
            pt.diagonal(c, 0, 1, 2),
            pt.diag(x[0], 1),
        ],
        X,
        CUBE,
    ),
    "slices": (lambda x: [x[1], x[1:], x[:, -1], x[::2, 1:3], x[-1, -1], x[::-2], x[5:], x[1:1]], X),
    "computed slices": (
        lambda x, n: [x[n], x[n:], x[:, :n], x[-n:], x[n : n + 1, :: n + 1], x[:n:-1]],
        X,
        np.int64(1),
    ),
    "index arrays": (
        lambda x, i, j: [
            x[i],
            x[:, j],
            x[i, j],
            x[i[:, None], j],
            x[i][:, j],
            pt.take(x, i, axis=0),
            x[1, j],
        ],
        X,
        ROWS,
        COLUMNS,
    ),
    "index arrays of higher rank": (
        lambda x, i, j: [x[i.reshape((3, 1))], x[:, i, j], x[0, :, j], x[i - 1, 1:, j]],
        CUBE,
        np.array([1, 0, 1]),
        COLUMNS,
    ),
    "index arrays of constants": (
        lambda x: [x[[0, 2]], x[[0, -1], [1, 2]], x[np.array([[0, 1], [2, 0]])], x[:, []]],
        X,
    ),
    "small indices": (lambda x, i: [x[i], x[i[0]], pt.set_subtensor(x[i], 1.0)], X, ROWS.astype("int8")),
    "masks": (lambda x, m: [x[m], x[m[:, 0]], x[x > 10], x[:, m[0]], m.nonzero()[0]], X, MASK),
    "set": (
        lambda x, v: [
            pt.set_subtensor(x[1], v),
            pt.set_subtensor(x[:, 1], 0.0),
            pt.set_subtensor(x[1:, ::2], v[:2]),
            pt.set_subtensor(x[-1, -1], 7),
        ],
        X,
        V,
    ),
    "inc": (
        lambda x, v: [pt.inc_subtensor(x[1], v), pt.inc_subtensor(x[:, 1:3], v[1:3]), x[0].inc(2.0)],
        X,
        V,
    ),
    "set by arrays": (
        lambda x, v, i, j: [
            pt.set_subtensor(x[i[:2]], v),
            pt.set_subtensor(x[i[:2], j[:2]], 3.0),
            pt.set_subtensor(x[x > 0], -1.0),
        ],
        X,
        V,
        ROWS,
        COLUMNS,
    ),
    "inc by arrays": (
        lambda x, v, i, j: [
            pt.inc_subtensor(x[i], v),
            pt.inc_subtensor(x[i, j], 1.5),
            pt.inc_subtensor(v[j], v[:3]),
            pt.inc_subtensor(x[:, j], 1.0),
            pt.inc_subtensor(x[i, j], 1.5, ignore_duplicates=True),
        ],
        X,
        V,
        ROWS,
        COLUMNS,
    ),
    "set computed": (
        lambda x, v, n: [
            pt.set_subtensor(x[n], v),
            pt.inc_subtensor(x[n:, :n], 2.0),
            pt.set_subtensor(x[n, n], v[0]),
        ],
        X,
        V,
        np.int64(1),
    ),
    "nonzero": (lambda x: [*pt.nonzero(x > 0), pt.flatnonzero(x > 5), *x.nonzero()], X),
    "raveled": (
        lambda i: [
            *pt.unravel_index(i, (2, 3)),
            *pt.unravel_index(i, (2, 3), order="F"),
            pt.ravel_multi_index((i, i), (3, 4)),
            pt.ravel_multi_index((i, i), (2, 2), mode="clip"),
        ],
        ROWS,
    ),
    "sums": (
        lambda x: [
            x.sum(),
            x.sum(0),
            x.sum((0, 1)),
            x.sum(axis=1, keepdims=True),
            x.mean(),
            x.var(axis=0),
            x.std(),
        ],
        X,
    ),
    "products": (lambda x: [x.prod(), x.prod(axis=1), pt.prod(x, axis=0, no_zeros_in_input=True)], X),
    "extrema": (
        lambda x: [
            x.max(),
            x.min(axis=0),
            x.max((0, 1)),
            pt.max(x, axis=1, keepdims=True),
            pt.ptp(x, axis=0),
        ],
        X,
    ),
    "extrema of a cube": (
        lambda x: [x.max((0, 2)), x.argmax((1,)), x.argmin(axis=2), x.argmax(), *pt.max_and_argmax(x, 1)],
        CUBE,
    ),
    "argmax over several axes": (lambda x: [pt.argmax(x, axis=(0, 2)), pt.argmax(x, axis=(1, 2))], CUBE),
    "logical": (lambda m: [m.all(), m.any(axis=0), (~m).all(axis=1), m.sum(), m.mean()], MASK),
    "bits": (
        lambda n: [
            pt.elemwise.CAReduce(op.scalar_op, axis=axis)(part)
            for op in (pt.bitwise_and, pt.bitwise_or, pt.bitwise_xor)
            for axis in (None, (0,), (1,))
            for part in (n, pt.cast(n, "uint8"), pt.cast(n, "int16"), n > 5, n[:0])
        ],
        np.array([[7, -3, 12], [5, 1 << 40, -(1 << 63)]]),
    ),
    "diagonals that are filled": (
        lambda x, v: [
            *(pt.fill_diagonal(one, v) for one in (x, x.T, x[:, :1], x[:0])),
            *(pt.fill_diagonal_offset(one, v, k) for one in (x, x.T) for k in (-1, 1, 2)),
            pt.fill_diagonal_offset(x, v, pt.cast(x.shape[0] - 2, "int32")),
        ],
        X,
        np.array(2.0),
    ),
    "rows in an order": (
        lambda x, n: [permute(x, n) for permute in (PermuteRowElements(False), PermuteRowElements(True))],
        X,
        np.array([[2, 0, 1, 3], [1, 0, 2, 3], [0, 1, 3, 2]])[: len(X), : X.shape[1]],
    ),
    "norms": (lambda x: [x.norm(2), pt.logsumexp(x, axis=1)], X),
    "logsumexp": (lambda x: [pt.logsumexp(x), pt.logsumexp(x, axis=0, keepdims=True)], X),
    "softmax": (lambda x: [pt.special.softmax(x, axis=-1), pt.special.softmax(x, axis=0)], X),
    "log_softmax": (lambda x: [pt.special.log_softmax(x, axis=1), pt.special.log_softmax(x)], X),
    "softmax over several axes": (lambda c: [pt.special.softmax(c, axis=(0, 2))], CUBE),
    "running": (
        lambda x: [pt.cumsum(x), pt.cumsum(x, 0), pt.cumprod(x, axis=1), pt.diff(x, axis=1), pt.diff(x, n=2)],
        X,
    ),
    "orders": (
        lambda x: [
            pt.sort(x),
            pt.sort(x, axis=0),
            pt.argsort(x),
            pt.argsort(x, axis=0, kind="stable"),
            pt.sort(x, axis=None),
        ],
        X,
    ),
    "searchsorted": (
        lambda v, x: [
            pt.searchsorted(pt.sort(v), x),
            pt.searchsorted(pt.sort(v), x, side="right"),
            pt.searchsorted(v, x[0], sorter=pt.argsort(v)),
        ],
        V,
        X,
    ),
    "counts": (lambda i: [pt.bincount(i), pt.bincount(i, minlength=6)], ROWS),
    "convolved": (
        lambda v: [
            convolve1d(v, v[:2]),
            convolve1d(v, v[:2], mode="valid"),
            convolve1d(v, v[:3], mode="same"),
        ],
        V,
    ),
    "padded": (lambda x: [pt.pad(x, 1), pt.pad(x, ((0, 1), (2, 0)), mode="edge")], X),
    "padded in turns": (lambda x: [pt.pad(x, 2, mode="wrap")], X),
    "choices": (
        lambda x, v: [
            pt.where(x > 0, x, v),
            pt.switch(v > 0, 1, v),
            pt.choose([0, 1, 0, 1], pt.stack([v, v * 2])),
        ],
        X,
        V,
    ),
    "einsum": (
        lambda x, c: [
            pt.einsum("ij,kij->k", x, c),
            pt.einsum("ij,ik->jk", x, x),
            pt.tensordot(c, x, axes=[[1, 2], [0, 1]]),
            pt.outer(x[0], x[1]),
        ],
        X,
        CUBE,
    ),
}
FOREIGN = {"choices": ("Choose",)}
WITHOUT_SLOPES = {
    "arange",
    "argmax over several axes",
    "bits",
    "choices",
    "counts",
    "eye",
    "logical",
    "nonzero",
    "raveled",
    "searchsorted",
    "shapes",
}
"""Of integers, or for which PyTensor has no gradient."""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("known", [False, True])
def test_values(name, known):
    build, *values = PROGRAMS[name]
    inputs = [variable(value, known) for value in values]
    compared(inputs, build(*inputs), values, foreign=FOREIGN.get(name, ()))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WITHOUT_SLOPES])
def test_gradients(name):
    build, *values = PROGRAMS[name]
    inputs = [variable(value) for value in values]
    real = [one for one in build(*inputs) if one.dtype == "float64"]
    compared(inputs, slopes(real, inputs), values, foreign=("Blockwise{Convolve1d}", "Convolve1d", "Scan"))


REDUCED = {
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(),
    "all": lambda x: (x > 0).all(1),
    "any": lambda x: (x > 0).any(),
    "cumsum": lambda x: pt.cumsum(x, 0),
    "sort": lambda x: pt.sort(x, 0),
    "argsort": lambda x: pt.argsort(x, 0),
    "join": lambda x: pt.join(0, x, x),
    "rows": lambda x: x[::2],
    "dot": lambda x: pt.dot(x, x.T),
    "var": lambda x: x.var(1),
    "set": lambda x: pt.set_subtensor(x[:, 0], 2.0),
    "reshape": lambda x: x.reshape((-1, x.shape[1])),
    "softmax": lambda x: pt.special.softmax(x, axis=1),
    "logsumexp": lambda x: pt.logsumexp(x, axis=1),
    "nonzero": lambda x: x.nonzero()[0],
    "repeat": lambda x: pt.repeat(x, 2, axis=0),
    "tril": pt.tril,
}


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (4, 1), (1, 1)])
def test_of_nothing_and_of_one(shape):
    value = RNG.normal(size=shape)
    x = variable(value)
    compared([x], [build(x) for build in REDUCED.values()], [value])


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32", "bool", "complex128"])
def test_reductions_of_other_dtypes(dtype):
    value = RNG.integers(0, 3, (3, 4)).astype(dtype)
    x = variable(value)
    outputs = [x.sum(), x.sum(0), x.prod(1), x.sum((0, 1))]
    if dtype != "complex128":
        outputs += [x.max(), x.min(0), pt.sort(x, 1), pt.argmax(x, 1)]
    if dtype in ("int8", "uint32", "float32"):
        outputs += [x.sum(dtype="float64"), pt.sum(x, acc_dtype="float64"), x.mean()]
    compared([x], outputs, [value])


def test_reductions_of_bits_by_pytensor():
    x = variable(ROWS)
    outputs = [pt.all(x > 0), pt.elemwise.CAReduce(pt.bitwise_xor.scalar_op, axis=(0,))(x)]
    compared([x], outputs, [ROWS], foreign=("CAReduce{XOR}",))


def test_extrema_of_nothing():
    """An error, unless there is something to begin with."""
    x = pt.dmatrix()
    compared([x], [pt.max(x, axis=0, initial=-np.inf), pt.min(x, initial=np.inf)], [np.zeros((0, 3))])
    for mode in MODES:
        function = pytensor.function([x], x.max(axis=0), mode=mode)
        with pytest.raises(ValueError, match="nothing to reduce"):
            function(np.zeros((0, 3)))


ERRORS = {
    "index": (lambda x: x[pt.constant(7)], IndexError),
    "index array": (lambda x: x[pt.argmax(x, 0) * 9 + 5], IndexError),
    "reshape": (lambda x: x.reshape((5, 2)), ValueError),
    "join": (lambda x: pt.join(0, x, pt.ones((2, 5)) + x[0, 0]), ValueError),
    "split": (lambda x: pt.split(x, [1, 1], axis=0)[0], ValueError),
    "dot": (lambda x: pt.dot(x, x), ValueError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_pytensors_users(name):
    """Of the same kinds, with the user's line: sizes are found to be wrong when the program runs."""
    build, kind = ERRORS[name]
    x = pt.dmatrix()
    for mode in MODES:
        function = pytensor.function([x], build(x), mode=mode)
        with pytest.raises(kind) as caught:
            function(X)
        notes = "\n".join(getattr(caught.value, "__notes__", ()))
        assert __file__ in f"{caught.value}{notes}"


def test_ops_that_pytensor_runs():
    outputs = {
        "Unique": pt.unique,
        "FillDiagonal": lambda x: pt.fill_diagonal(pt.stack([x[:, :3]] * 3), 2.0),
        "Bartlett": lambda x: pt.bartlett(pt.cast(x.shape[0], "int64")),
    }
    x = variable(X)
    compared([x], [build(x) for build in outputs.values()], [X], foreign=outputs)
