"""Rules of ops for batches and for forward derivatives, of every op there is.

Batched is stacked: what the rule gives for a batch are the results for its elements. Tangents are what finite
differences give, and are to cotangents as a matrix is to its transpose.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import esat
from esat.frontend.derivatives.batching import vectorize
from esat.frontend.derivatives.forward import push_forward
from esat.frontend.derivatives.gradient import vjp
from esat.graph.algorithms.traversal import ancestors, toposort
from esat.graph.op import Op
from esat.graph.types import TensorType
from esat.ops.accumulate import AccumulateProduct
from esat.ops.annotations.as_written import AsWritten
from esat.ops.annotations.gradients import WithGradient
from esat.ops.control import AFTER
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.along import set_along_axis
from esat.ops.inference.vectors import make_vector
from esat.ops.linalg.bands import TRIDIAGONAL_FACTORS, BandedSolve, TridiagonalFactorsSolve
from esat.ops.linalg.factor import CHOLESKY_PULLBACK
from esat.ops.linalg.functions import ORDER_OF_PIVOTS, PIVOTS_OF_ORDER, MatrixFunction
from esat.ops.linalg.inverse import TriangularInverse
from esat.ops.linalg.packed_factors import PACKED_LU, PackedSolve
from esat.ops.linalg.pivoted import PivotedQR
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.linalg.schur import SCHUR, SYLVESTER, TRIANGULAR_SYLVESTER, GeneralizedSchur
from esat.ops.linalg.solve import SemidefiniteSolve
from esat.ops.linalg.structured import StructuredProduct
from esat.ops.linalg.whitening import WHITEN
from esat.ops.loops.record import LoopOp
from esat.ops.random.variable import RandomVariable
from esat.ops.sparse.record import SparseOp
from esat.ops.table import ELEMENTWISE

from ..elementwise.samples import ONCE, ranges

COUNT = 3
rng = np.random.default_rng(5)


def real(*shape):
    return rng.uniform(0.2, 1.5, (COUNT, *shape))


def spd(n):
    a = rng.normal(size=(COUNT, n, n))
    return a @ a.swapaxes(-1, -2) + n * np.eye(n)


def places(high, *shape):
    return rng.integers(0, high, (COUNT, *shape))


LA = esat.linalg
BOOLS = rng.random((COUNT, 2, 3)) < 0.5
CASES = {
    "cast": (lambda x: esat.cast(x, "float32").astype("float64") * 2, [real(2, 3)]),
    "transpose": (lambda x: x.dimshuffle(1, "x", 0), [real(2, 3)]),
    "dropped": (lambda x: x.dimshuffle(1), [real(1, 3)]),
    "reshape": (lambda x: x.reshape((3, 2)), [real(2, 3)]),
    "reshape to sizes": (lambda x, n: x.reshape((n.shape[0], 2)), [real(2, 3), real(3)]),
    "sum": (lambda x: x.sum(axis=1), [real(2, 3)]),
    "sum of all": (lambda x: x.sum(keepdims=True), [real(2, 3)]),
    "prod": (lambda x: x.prod(axis=0), [real(2, 3)]),
    "max": (lambda x: x.max(axis=(0, 1)), [real(2, 3)]),
    "min": (lambda x: x.min(axis=1, keepdims=True), [real(2, 3)]),
    "any": (lambda x: (x > 1).any(axis=1), [real(2, 3)]),
    "all": (lambda x: (x > 0.5).all(axis=0), [real(2, 3)]),
    "argmax": (lambda x: x.argmax(axis=1), [real(2, 3)]),
    "argmin of all": (lambda x: x.argmin(), [real(2, 3)]),
    "argmax of all, kept": (lambda x: x.argmax(keepdims=True), [real(2, 3)]),
    "logsumexp": (lambda x: esat.logsumexp(x, axis=1), [real(2, 3)]),
    "softmax": (lambda x: esat.softmax(x, axis=1), [real(2, 3)]),
    "log_softmax": (lambda x: esat.log_softmax(x, axis=0), [real(2, 3)]),
    "cumsum": (lambda x: x.cumsum(axis=0), [real(2, 3)]),
    "cumprod": (lambda x: x.cumprod(axis=1), [real(2, 3)]),
    "sort": (lambda x: esat.sort(x, axis=0), [real(4, 3)]),
    "argsort": (esat.argsort, [real(2, 3)]),
    "exchanges of rows": (
        lambda x: ORDER_OF_PIVOTS(PIVOTS_OF_ORDER(esat.argsort(x))) * x,
        [real(5)],
    ),
    "matmul": (esat.matmul, [real(2, 3), real(3, 4)]),
    "matmul of batches": (esat.matmul, [real(2, 3), real(5, 3, 4)]),
    "matrix by vector": (esat.dot, [real(2, 3), real(3)]),
    "vector by matrix": (esat.dot, [real(3), real(3, 2)]),
    "matmul of integers": (lambda x, y: esat.dot(x.astype("int8"), y.astype("int8")), [real(3), real(3)]),
    "matmul of vectors": (esat.dot, [real(3), real(3)]),
    "convolve": (esat.convolve, [real(4), real(3)]),
    "convolve, the shorter first": (esat.convolve, [real(2), real(5)]),
    "convolve integers": (lambda x, y: esat.convolve(x.astype("int8"), y.astype("int8")), [real(4), real(3)]),
    "convolve unknown sizes": (esat.convolve, [real(3), real(4)]),
    "join": (lambda x, y: esat.concatenate([x, y], axis=1), [real(2, 3), real(2, 1)]),
    "split": (lambda x: esat.split(x, 3, axis=1)[1], [real(2, 3)]),
    "diagonal": (lambda x: esat.diagonal(x, 1), [real(3, 4)]),
    "diag": (lambda x: esat.diag(x, -1), [real(3)]),
    "alloc": (lambda x: esat.alloc(x, 4, 3), [real(3)]),
    "make_vector": (lambda x, y: make_vector([x, y, 2.0]), [real(), real()]),
    "shape": (lambda x: x * x.shape[0] / x.size, [real(2, 3)]),
    "assert": (lambda x, y: esat.assert_(x, y > 0), [real(2, 3), real()]),
    "after": (AFTER, [real(2, 3), real()]),
    "specify_shape": (lambda x: esat.specify_shape(x, (2, None)), [real(2, 3)]),
    "assume": (lambda x: esat.assume(x, "positive"), [real(2, 3)]),
    "ifelse": (esat.ifelse, [np.array([True, False, True]), real(3), real(3)]),
    "searchsorted, right": (
        lambda x, y: esat.searchsorted(esat.sort(esat.log(x - 0.5)), esat.log(y - 0.5), "right"),
        [real(4), real(2, 3)],
    ),
    "searchsorted": (esat.searchsorted, [np.sort(real(4)), real(2, 3)]),
    "repeat": (esat.repeat, [real(2), np.array([[1, 2], [2, 1], [0, 3]])]),
    "stop_gradient": (lambda x: esat.stop_gradient(x) * x, [real(2, 3)]),
    "slices": (lambda x: x[:, 2:0:-1], [real(2, 3)]),
    "integers": (lambda x: x[1, -1], [real(2, 3)]),
    "computed integer": (lambda x, i: x[:, i], [real(2, 3), places(3)]),
    "computed slice": (lambda x, i: x[i:][:1].sum(), [real(4), np.array([1, 1, 1])]),
    "index array": (lambda x, i: x[i], [real(5, 2), places(5, 3)]),
    "index arrays apart": (lambda x, i, j: x[i, :, j], [real(3, 2, 4), places(3, 2), places(4, 2)]),
    "index arrays of ranks": (lambda x, i, j: x[:, i, j], [real(2, 3, 4), places(3, 2, 1), places(4, 3)]),
    "index with an integer": (lambda x, i: x[1, :, i], [real(3, 2, 4), places(4, 2)]),
    "mask": (lambda x: x[np.array([True, False, True])], [real(3, 2)]),
    "set slice": (lambda x, y: esat.set_subtensor(x[1:, :2], y), [real(3, 3), real(2)]),
    "set computed": (lambda x, y, i: esat.set_subtensor(x[i], y), [real(3, 2), real(2), places(3)]),
    "inc slice": (lambda x, y: esat.inc_subtensor(x[:, 0], y), [real(3, 2), real()]),
    "inc computed": (lambda x, y, i: esat.inc_subtensor(x[:, i], y), [real(3, 2), real(3), places(2)]),
    "set at places": (lambda x, y, i: esat.set_subtensor(x[i], y), [real(5), real(2), places(5, 2)]),
    "inc at places": (lambda x, y, i: esat.inc_subtensor(x[i], y), [real(3, 2), real(4, 2), places(3, 4)]),
    "inc apart": (
        lambda x, y, i, j: esat.inc_subtensor(x[i, :, j], y),
        [real(3, 2, 4), real(5, 2), places(3, 5), places(4, 5)],
    ),
    "set mask": (lambda x, y, m: esat.set_subtensor(x[m], y), [real(2, 3), real(), BOOLS]),
    "along": (lambda x, y, i: set_along_axis(x, i, y, 1), [real(2, 3), real(2, 1), places(3, 2, 1)]),
    "inv": (LA.inv, [spd(3)]),
    "inv of a triangle": (lambda x: TriangularInverse()(esat.tril(x)), [spd(3)]),
    "pinv": (LA.pinv, [real(3, 2)]),
    "det": (LA.det, [spd(3)]),
    "slogdet": (lambda x: LA.slogdet(x)[1], [spd(3)]),
    "det's gradient": (lambda x: esat.grad(LA.det(x), x), [spd(3)]),
    "cholesky": (LA.cholesky, [spd(3)]),
    "cholesky or NaN": (lambda x: LA.cholesky(x, on_error="nan"), [spd(3)]),
    "cholesky's gradient": (lambda x: esat.grad((LA.cholesky(x) ** 2).sum(), x), [spd(3)]),
    "cholesky's pullback": (lambda c, x: CHOLESKY_PULLBACK(LA.cholesky(c), x), [spd(3), real(3, 3)]),
    "solve": (LA.solve, [spd(3), real(3, 2)]),
    "solve, semidefinite": (SemidefiniteSolve(), [spd(3), real(3, 2)]),
    "whiten": (WHITEN, [spd(3), real(3, 2)]),
    "packed_solve": (lambda b: PackedSolve()(PACKED_LU(spd(3)), b), [real(3, 2)]),
    "solve, a vector": (LA.solve, [spd(3), real(3)]),
    "solve_triangular": (lambda a, b: LA.solve_triangular(a, b, lower=True), [spd(3), real(3, 2)]),
    "cho_solve": (lambda a, b: LA.cho_solve((LA.cholesky(a), True), b), [spd(3), real(3)]),
    "eigvals": (lambda x: esat.real(LA.eigvals(x)) + esat.imag(LA.eigvals(x)) ** 2, [real(3, 3)]),
    "eig": (lambda x: esat.abs(LA.eig(x)[1]), [real(3, 3)]),
    "eigvalsh": (LA.eigvalsh, [spd(3)]),
    "eigh": (lambda x: LA.eigh(x)[1] ** 2, [spd(3)]),
    "svdvals": (LA.svdvals, [spd(3)]),
    "svd": (lambda x: LA.svd(x)[0] ** 2, [spd(3)]),
    "qr": (lambda x: LA.qr(x)[1], [spd(3)]),
    "lu": (lambda x: LA.lu(x)[2], [spd(3)]),
    "expm": (LA.expm, [spd(2)]),
    "schur": (lambda x: esat.abs(SCHUR(x)[0]), [real(3, 3)]),
    "two Schur forms": (lambda x, y: esat.abs(GeneralizedSchur()(x, y)[0]), [real(3, 3), spd(3)]),
    "solve_sylvester": (SYLVESTER, [spd(2), spd(3), real(2, 3)]),
    "sylvester of triangles": (
        lambda a, b, c: TRIANGULAR_SYLVESTER(esat.triu(a), esat.triu(b), c),
        [spd(2), spd(3), real(2, 3)],
    ),
    "solve_banded": (
        lambda x, b: BandedSolve(1, 2)(x + np.array([[0.0], [0.0], [9.0], [0.0]]), b),
        [real(4, 5), real(5, 2)],
    ),
    "solve_banded, tridiagonal": (
        lambda x, b: BandedSolve(1, 1, True)(x + np.array([[0.0], [9.0], [0.0]]), b),
        [real(3, 5), real(5, 2)],
    ),
    "tridiagonal factors": (
        lambda x, b: TridiagonalFactorsSolve()(TRIDIAGONAL_FACTORS(x), b),
        [real(3, 5), real(5, 2)],
    ),
    "pivoted qr": (lambda x: PivotedQR()(x)[1] ** 2, [spd(3)]),
    "block_diag": (LA.block_diag, [real(2, 1), real(1, 2)]),
    "rfft": (lambda x: esat.real(esat.fft.irfft(esat.fft.rfft(x) * 2j + 1, 4)), [real(2, 4)]),
    "fft": (lambda x: esat.imag(esat.fft.fft(x + 1j * x**2)), [real(2, 4)]),
    "scan": (lambda x, c: esat.scan(lambda c, r: (c * r + 1.0, c), c, x)[1], [real(3, 2), real(2)]),
    "scan, the last": (
        lambda x, c: esat.scan(lambda c, r: (esat.tanh(c) * r, None), c, x, reverse=True)[0],
        [real(3, 2), real(2)],
    ),
    "while_loop": (
        lambda x: esat.while_loop(lambda v: v.sum() < 50.0, lambda v: v * v + 1.0, x, max_steps=9),
        [real(3)],
    ),
    "eye": (lambda n: esat.eye(n.shape[0]) * n, [real(3)]),
    "arange": (lambda n: esat.arange(n.shape[0]) * n, [real(3)]),
}  # fmt: skip
NO_TANGENT = {
    "matmul of integers",
    "repeat",
    "set mask",
    "schur",
    "two Schur forms",
    "tridiagonal factors",
}
"""Where the number of elements, or the choice of them, makes differences of no use; no gradient."""
_ROUGH = {"cast"}
SYMMETRIC = {
    "cholesky",
    "cholesky or NaN",
    "cholesky's gradient",
    "cholesky's pullback",
    "cho_solve",
    "eigvalsh",
    "eigh",
    "solve, semidefinite",
    "whiten",
}
"""Of one triangle of a matrix: it moves as a symmetric one."""
OPEN = {
    "shape",
    "specify_shape",
    "reshape",
    "sum",
    "softmax",
    "argmin of all",
    "matmul",
    "slices",
    "convolve unknown sizes",
    "diag",
    "join",
}
"""Built for operands of unknown sizes."""


def _elementwise(op):
    between = ranges(op, ((0.2, 1.5),))
    arrays = []
    for place in range(op.arity):
        low, high = between[place]
        shape = ((2, 3), (3,), ())[place % 3]
        array = rng.uniform(low, high, (COUNT, *shape))
        if op.operand_typing[place] == "bool" or op.admits("float64") is None:
            array = array > (low + high) / 2 if op.admits("bool") or op.operand_typing[place] == "bool" else (
                array * 5
            ).astype(np.int64)  # fmt: skip
        arrays.append(np.round(array) if op.name == "polygamma" and place == 0 else array)
    return op, arrays


ALL = {**CASES, **{f"elementwise {op.name}": _elementwise(op) for op in ELEMENTWISE}}
named = pytest.mark.parametrize("name", ALL)


def variables(name, arrays):
    return [variable_for(name, a.dtype, a.shape[1:]) for a in arrays]


def variable_for(name, dtype, shape):
    sizes = [None if name in OPEN and size != 1 else size for size in shape]
    return TensorType(dtype, shape=sizes).make_variable()


def results_of(output, inputs, arrays):
    """Results for the elements of batches, stacked."""
    each = [
        esat.evaluate(output, {v: a[k] for v, a in zip(inputs, arrays, strict=True) if used(v, output)})
        for k in range(COUNT)
    ]
    return np.stack(each)


def used(variable, output):
    return variable in {*ancestors([output])}


@named
def test_batched_is_stacked(name):
    function, arrays = ALL[name]
    inputs = variables(name, arrays)
    output = function(*inputs)
    for flags in itertools.product((True, False), repeat=len(arrays)):
        if not any(flags) or (name == "repeat" and flags[1]):
            continue
        # Operands that all elements share have the value of the first.
        chosen = [a if flag else np.stack([a[0]] * COUNT) for a, flag in zip(arrays, flags, strict=True)]
        batches = {
            v: variable_for(name, a.dtype, a.shape)
            for v, a, flag in zip(inputs, arrays, flags, strict=True)
            if flag
        }
        ((batch, depends),) = vectorize([output], batches)
        given = {batches.get(v, v): a if v in batches else a[0] for v, a in zip(inputs, chosen, strict=True)}
        found = esat.evaluate(batch, {v: a for v, a in given.items() if used(v, batch)})
        expected = results_of(output, inputs, chosen)
        expected = expected if depends else expected[0]
        assert found.dtype == expected.dtype
        assert batch.tensor_type.admits_shape(found.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def _continuous(arrays):
    return [place for place, array in enumerate(arrays) if array.dtype.kind == "f"]


@named
def test_tangents_are_differences_and_the_transpose_of_cotangents(name):
    function, batches = ALL[name]
    arrays = [batch[0] for batch in batches]
    inputs = variables(name, batches)
    output = function(*inputs)
    wrt = [inputs[place] for place in _continuous(arrays)]
    if output.tensor_type.kind != "f" or not wrt or name in NO_TANGENT:
        return
    directions = [np.asarray(rng.normal(size=arrays[place].shape)) for place in _continuous(arrays)]
    if name in SYMMETRIC:
        directions[0] = directions[0] + directions[0].T
    given = dict(zip(inputs, arrays, strict=True))
    if isinstance(function, Elementwise) and (function.gradient is None or function.name in ONCE):
        with pytest.raises(esat.GradientError):
            push_forward([output], wrt, directions)
        return
    if isinstance(function, Elementwise):
        wrt, directions = wrt[function.parameters :], directions[function.parameters :]
    (tangent,) = push_forward([output], wrt, directions)
    value = esat.evaluate(tangent, {v: a for v, a in given.items() if used(v, tangent)})
    assert value.shape == esat.evaluate(output, {v: a for v, a in given.items() if used(v, output)}).shape
    if name != "stop_gradient":
        _check_difference(output, given, wrt, directions, value, 1e-2 if name in _ROUGH else 2e-5)
    seed = rng.normal(size=value.shape)
    pulled = vjp([output], wrt, [seed], "zero")
    parts = [esat.evaluate(p, {v: a for v, a in given.items() if used(v, p)}) for p in pulled]
    forward = float(np.sum(seed * value))
    backward = float(sum(np.sum(p * d) for p, d in zip(parts, directions, strict=True)))
    tolerance = 1e-5 if name in _ROUGH else 1e-8
    np.testing.assert_allclose(forward, backward, rtol=tolerance, atol=tolerance)


def _check_difference(output, given, wrt, directions, tangent, tolerance):
    step = 1e-3 if tolerance > 1e-3 else 1e-6

    def at(sign):
        moved = dict(given)
        for variable, direction in zip(wrt, directions, strict=True):
            moved[variable] = given[variable] + sign * step * direction
        return esat.evaluate(output, {v: a for v, a in moved.items() if used(v, output)})

    difference = (at(1) - at(-1)) / (2 * step)
    np.testing.assert_allclose(tangent, difference, rtol=tolerance, atol=tolerance)


def _subclasses(kind):
    for sub in kind.__subclasses__():
        yield sub
        yield from _subclasses(sub)


ELSEWHERE = (
    SparseOp,
    RandomVariable,
    RowBlocks,
    RowsProduct,
    AccumulateProduct,
    StructuredProduct,
    WithGradient,
    AsWritten,
)
"""Without rules of their own: sparse matrices and draws have no batches; others are the compiler's own."""


def _kinds():
    """The classes of ops, but those elsewhere."""
    return {
        kind
        for kind in _subclasses(Op)
        if kind.__module__.startswith("esat.ops")
        and not issubclass(kind, ELSEWHERE)
        and kind not in (LoopOp, MatrixFunction)
        and kind.__dict__.get("perform")
    }


def test_every_op_has_rules_of_its_own():
    """None is applied to the elements of a batch in turn for want of a rule, or has no say in derivatives."""
    without = {kind.__name__ for kind in _kinds() if kind.batch is Op.batch or kind.vjp is Op.vjp}
    # Sizes: those of a batch are its other axes, and results of several sizes make no batch. Packed factors
    # come from rules, which see graphs that are differentiated already.
    assert without == {"ShapeI", "ARange", "DiagonalMatrix", "RepeatedPlaces", "PackedLU"}


def test_every_op_is_among_the_cases():
    seen = set()
    for name, (function, arrays) in ALL.items():
        seen |= {type(node.op) for node in toposort([function(*variables(name, arrays))])}
    kinds = _kinds()
    assert {kind.__name__ for kind in kinds - seen} == set()
