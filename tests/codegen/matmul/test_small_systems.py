"""Linear algebra of small matrices as code of its own: LAPACK's accuracy, and what it refuses is refused."""

import functools

import numpy as np
import pytest
import scipy.linalg

from esat.codegen.ground.machine_text import function_at
from esat.codegen.matmul.small_systems import small_results, system_code
from esat.errors import LinearAlgebraError
from esat.ops.linalg.factor import Cholesky
from esat.ops.linalg.inverse import Determinant, Inverse, PseudoInverse, SignLogDeterminant
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, Solve, SolveTriangular

pytestmark = pytest.mark.usefixtures("libraries_without_threads")

EPSILON = np.finfo(np.float64).eps
ORDERS = (1, 2, 3, 4, 5, 6, 7, 9, 17)  # the last ones as loops over a batch
KINDS = ("random", "ill-conditioned", "graded", "nearly singular", "tied")
MANY = 24


def matrices(kind, order, seed=0, count=MANY):
    """A batch of square matrices."""
    rng = np.random.default_rng([seed, order])
    values = rng.standard_normal((count, order, order))
    scales = 10.0 ** -np.linspace(0, 13, order)
    if kind == "ill-conditioned":
        left, _, right = np.linalg.svd(values)
        return left * scales @ right
    if kind == "graded":
        return values * scales[:, None] * rng.permuted(np.tile(scales, (count, 1)), axis=1)[:, None, :]
    if kind == "nearly singular":
        values[:, -1] = values[:, 0] * (1 + 1e-13 * rng.standard_normal((count, order)))
    return np.sign(np.round(values)) + 2.0 * np.eye(order) * (kind == "tied") if kind == "tied" else values


def positive(kind, order):
    """A batch of symmetric, positive definite matrices."""
    values = matrices(kind, order).astype(np.longdouble)
    product = (values @ np.swapaxes(values, -1, -2)).astype(np.float64)
    size = np.trace(product, axis1=-2, axis2=-1)[:, None, None]
    return product + 8 * order * EPSILON * size * np.eye(order)


def norm(values):
    return np.sqrt(np.sum(np.asarray(values, np.longdouble) ** 2, axis=(-2, -1)))


def product(left, right):
    return np.asarray(left, np.longdouble) @ np.asarray(right, np.longdouble)


def lapacks(op, *operands):
    return op.perform(operands)


def ours(op, *operands):
    results = small_results(op, operands)
    assert results is not None
    return results


def no_worse(found, reference, order):
    """Errors, relative to what rounding explains: not beyond three times the largest of LAPACK's."""
    assert np.max(found) <= 3 * max(np.max(reference), order * EPSILON)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_solutions_are_as_accurate_as_lapacks(kind, order):
    left, sides = matrices(kind, order), matrices("random", order, 1)[..., :1]
    if kind == "tied" or order == 1:
        left += 0.25 * np.eye(order)

    def error(solution):
        return norm(product(left, solution) - sides) / (norm(left) * norm(solution))

    no_worse(error(ours(Solve(), left, sides)[0]), error(lapacks(Solve(), left, sides)[0]), order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_inverses_are_as_accurate_as_lapacks(kind, order):
    left = matrices(kind, order)
    if kind == "tied" or order == 1:
        left += 0.25 * np.eye(order)

    def error(inverse):
        return norm(product(left, inverse) - np.eye(order)) / (norm(left) * norm(inverse))

    no_worse(error(ours(Inverse(), left)[0]), error(lapacks(Inverse(), left)[0]), order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_factors_are_as_accurate_as_lapacks(kind, order):
    square = positive(kind, order)
    sides = matrices("random", order, 1)[..., :1]
    for upper in (False, True):
        (factor,), (reference,) = (run(Cholesky(upper), square) for run in (ours, lapacks))
        assert np.array_equal(factor, (np.triu if upper else np.tril)(factor))
        turned = [np.swapaxes(one, -1, -2) for one in (factor, reference)]
        pairs = (
            zip(turned, (factor, reference), strict=True)
            if upper
            else zip((factor, reference), turned, strict=True)
        )
        errors = [norm(product(*pair) - square) / norm(square) for pair in pairs]
        no_worse(*errors, order)
        solve = CholeskySolve(not upper)

        def error(solution, factor=reference, upper=upper):
            whole = (
                product(factor.swapaxes(-1, -2), factor)
                if upper
                else product(factor, factor.swapaxes(-1, -2))
            )
            return norm(whole @ solution - sides) / (norm(whole) * norm(solution))

        no_worse(*(error(run(solve, reference, sides)[0]) for run in (ours, lapacks)), order)

    def residual(solution):
        return norm(product(square, solution) - sides) / (norm(square) * norm(solution))

    no_worse(*(residual(run(SemidefiniteSolve(), square, sides)[0]) for run in (ours, lapacks)), order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_triangular_solutions_are_as_accurate_as_lapacks(kind, order):
    matrix, sides = matrices(kind, order), matrices("random", order, 1)[..., :2]
    matrix[:, np.arange(order), np.arange(order)] += 0.5
    for lower in (False, True):
        for transpose in (False, True):
            for unit in (False, True):
                op = SolveTriangular(lower, transpose, unit)
                read = np.tril(matrix) if lower else np.triu(matrix)
                if unit:
                    read[:, np.arange(order), np.arange(order)] = 1.0
                read = np.swapaxes(read, -1, -2) if transpose else read

                def error(solution, read=read):
                    return norm(product(read, solution) - sides) / (norm(read) * norm(solution))

                no_worse(*(error(run(op, matrix, sides)[0]) for run in (ours, lapacks)), order)


@pytest.mark.parametrize("kind", ["random", "graded", "tied"])
@pytest.mark.parametrize("order", ORDERS)
def test_determinants_are_numpys(kind, order):
    values = matrices(kind, order) + 0.25 * np.eye(order)
    sign, logarithm = ours(SignLogDeterminant(), values)
    wanted = np.linalg.slogdet(values)
    np.testing.assert_array_equal(sign, wanted.sign)
    condition = np.linalg.cond(values)
    assert np.all(
        np.abs(logarithm - wanted.logabsdet) <= 8 * order * EPSILON * (condition + np.abs(logarithm))
    )
    (found,) = ours(Determinant(), values)
    np.testing.assert_allclose(found, sign * np.exp(logarithm), rtol=4 * EPSILON)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_numbers_lanes_and_all_orders_in_memory_have_the_same_bits(order):
    square, sides = positive("random", order), matrices("random", order, 1)
    ops = [
        (Cholesky(), (square,)),
        (Cholesky(True), (square,)),
        (Solve(), (square, sides)),
        (SemidefiniteSolve(), (square, sides)),
        (SolveTriangular(True), (square, sides)),
        (CholeskySolve(), (square, sides)),
        (Inverse(), (square,)),
        (Determinant(), (square,)),
        (SignLogDeterminant(), (square,)),
    ]
    for op, operands in ops:
        whole = ours(op, *operands)
        for number in range(MANY):
            alone = ours(op, *(one[number] for one in operands))
            turned = ours(op, *(np.asfortranarray(one[number]) for one in operands))
            strided = ours(op, *(np.repeat(one, 2, -1)[number, :, ::2] for one in operands))
            for one, *others in zip(whole, alone, turned, strided, strict=True):
                for other in others:
                    np.testing.assert_array_equal(one[number], other)
        shaped = ours(op, *(one.reshape(4, 6, order, order)[:, ::2] for one in operands))
        for one, other in zip(whole, shaped, strict=True):
            np.testing.assert_array_equal(one.reshape(4, 6, *one.shape[1:])[:, ::2], other)


@pytest.mark.parametrize("order", [12, 17])
def test_loops_give_the_same_for_all_batches_and_orders_in_memory(order):
    square, sides = positive("random", order), matrices("random", order, 1)
    ops = [
        (Cholesky(), (square,)),
        (Cholesky(True), (square,)),
        (Solve(), (square, sides)),
        (SemidefiniteSolve(), (square, sides)),
        (SolveTriangular(True), (square, sides)),
        (SolveTriangular(False, True), (square, sides)),
        (SolveTriangular(True, unit_diagonal=True), (square, sides)),
        (CholeskySolve(), (square, sides)),
        (CholeskySolve(False), (square, sides)),
        (Inverse(), (square,)),
        (Determinant(), (square,)),
    ]
    for op, operands in ops:
        (whole,) = ours(op, *operands)
        wanted = op.perform(operands)[0]
        limit = 1e3 * EPSILON * np.max(np.linalg.cond(square)) * np.max(np.abs(wanted))
        if not isinstance(op, SolveTriangular) or not op.unit_diagonal:
            np.testing.assert_allclose(whole, wanted, rtol=0, atol=limit)
        turned = [np.swapaxes(np.swapaxes(one, -1, -2).copy(), -1, -2) for one in operands]
        strided = [np.repeat(one, 2, -1)[..., ::2] for one in operands]
        for others in (turned, strided):
            np.testing.assert_array_equal(ours(op, *others)[0], whole)
        np.testing.assert_array_equal(ours(op, *(one[3:14] for one in operands))[0], whole[3:14])
        single = ours(op, *(one.astype("float32") for one in operands))[0]
        assert single.dtype == np.float32
        assert small_results(op, [one[0] for one in operands]) is None


def test_batches_are_broadcast():
    left, sides = (
        matrices("random", 3).reshape(4, 1, 6, 3, 3),
        matrices("random", 3, 1)[:5].reshape(5, 1, 3, 3),
    )
    (found,) = ours(Solve(), left, sides)
    np.testing.assert_allclose(found, np.linalg.solve(left, sides), rtol=1e-9)


def test_float32_is_computed_in_float64():
    left, sides = matrices("random", 3).astype("float32"), matrices("random", 3, 1).astype("float32")
    (found,) = ours(Solve(), left, sides)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.solve(left.astype(float), sides.astype(float)), rtol=1e-6)
    (factor,) = ours(CholeskySolve(), np.tril(left), sides)
    whole = np.tril(left).astype(float)
    wanted = scipy.linalg.cho_solve((whole[0], True), sides[0].astype(float))
    np.testing.assert_allclose(factor[0], wanted, rtol=1e-6)


SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])
WRONG = {
    "not positive": (Cholesky(), (-np.eye(3),)),
    "one that is not positive": (Cholesky(), (np.stack([np.eye(3)] * 11 + [-np.eye(3)]),)),
    "semidefinite": (Cholesky(), (np.zeros((2, 2)),)),
    "singular": (Solve(), (SINGULAR, np.ones((3, 1)))),
    "zero": (Inverse(), (np.zeros((2, 2)),)),
    "one of a batch in loops": (Cholesky(), (np.stack([np.eye(12)] * 11 + [-np.eye(12)]),)),
    "singular in loops": (Solve(), (np.ones((9, 12, 12)), np.ones((9, 12, 1)))),
    "zero in loops": (Inverse(), (np.zeros((9, 9, 9)),)),
    "zero diagonal": (SolveTriangular(True), (np.tri(4, k=-1), np.ones((4, 1)))),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_lapack_refuses_is_left_to_it(name):
    op, operands = WRONG[name]
    assert small_results(op, operands) is None
    with pytest.raises(LinearAlgebraError):
        op.perform(operands)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_left_to_lapack(value):
    ops = [
        functools.partial(small_results, Cholesky()),
        functools.partial(small_results, Inverse()),
        functools.partial(small_results, SignLogDeterminant()),
        lambda operands: small_results(Solve(), (*operands, np.ones((3, 1)))),
        lambda operands: small_results(SemidefiniteSolve(), (*operands, np.ones((3, 1)))),
    ]
    for op in ops:
        for place in [(0, 0), (1, 1), (2, 2)]:
            matrix = 3.0 * np.eye(3)
            matrix[place] = value
            assert op((matrix,)) is None
    for op in (Solve(), SemidefiniteSolve(), SolveTriangular(True), CholeskySolve()):
        assert small_results(op, (np.eye(3), np.array([[1.0], [value], [1.0]]))) is None
        if not isinstance(op, Solve):
            wrong = np.eye(3)
            wrong[1, 0] = wrong[0, 1] = value
            assert small_results(op, (wrong, np.ones((3, 1)))) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_in_a_batch_is_left_to_lapack(value):
    batch = np.stack([3.0 * np.eye(10)] * 9)
    batch[4, 7, 7] = value
    sides = np.ones((9, 10, 1))
    assert small_results(Cholesky(), (batch,)) is None
    assert small_results(Inverse(), (batch,)) is None
    assert small_results(SignLogDeterminant(), (batch,)) is None
    for op in (Solve(), SemidefiniteSolve()):
        assert small_results(op, (batch, sides)) is None
    for op in (Solve(), SemidefiniteSolve(), SolveTriangular(True), CholeskySolve()):
        assert small_results(op, (np.stack([np.eye(10)] * 9), value * sides)) is None


def test_others_are_left_alone():
    assert small_results(PseudoInverse(), (np.eye(3),)) is None
    assert small_results(Solve(), (np.eye(12), np.ones((12, 1)))) is None
    assert small_results(Cholesky(), (np.eye(3, dtype=complex),)) is None
    assert small_results(Cholesky(), (np.ones((2, 3)),)) is None
    assert small_results(Cholesky(), (np.ones((0, 0)),)) is None
    assert small_results(Cholesky(), (np.ones((0, 3, 3)),)) is None
    assert small_results(Solve(), (np.eye(3), np.ones((3, 0)))) is None
    assert small_results(Solve(), (np.eye(3), np.ones((2, 1)))) is None


def test_addresses_are_known():
    system = system_code(Inverse(), "float64", [(2, 2), (2, 2)], [(2, 1), (2, 1)], 1)
    assert function_at(system.address()) == system
