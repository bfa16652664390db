"""What comparisons with other compilers found missing, in both kinds of mode: what is left, and values."""

from collections import Counter

import numpy as np
import pytest

import esat

MODES = pytest.mark.parametrize("mode", ["fast_run", "greedy"])
SIZE = 6

x, y, z = (esat.vector(name) for name in "xyz")
a, b, c = (esat.matrix(name) for name in "abc")
thin = esat.tensor("thin", shape=(None, 1))
s, t = esat.scalar("s"), esat.scalar("t")
i = esat.vector("i", dtype="int64")
first, second = esat.tensor("first", shape=(30, 30)), esat.tensor("second", shape=(20, 20))
above, below = esat.tensor("above", shape=(150, 150)), esat.tensor("below", shape=(100, 100))
rng = np.random.default_rng(7)
VALUES = {
    one: rng.uniform(0.5, 1.5, tuple(SIZE if size is None else size for size in one.type.shape))
    for one in (x, y, z, a, b, c, thin, s, t, first, second, above, below)
} | {i: np.arange(SIZE)}
VALUES[a] = VALUES[a] @ VALUES[a].T + SIZE * np.eye(SIZE)
for one in (first, second, above, below):
    VALUES[one] /= np.sqrt(len(VALUES[one]))
    VALUES[one] = VALUES[one] @ VALUES[one].T + np.eye(len(VALUES[one]))


def left(output, mode):
    """The ops that are left of an output but views, and how often; the values are as written."""
    inputs = [variable for variable in VALUES if variable in set(esat.graph.inputs_of([output]))]
    program = esat.compile(esat.Graph(inputs, [output]), mode)
    found = program(*(VALUES[variable] for variable in inputs))
    (wanted,) = esat.evaluate([output], {variable: VALUES[variable] for variable in inputs})
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * np.abs(wanted).max(initial=1.0))
    views = ("dimshuffle", "subtensor", "shape_i", "make_vector", "reshape")
    ops = Counter(node.op.name for node in program.optimized.toposort())
    return {name: count for name, count in ops.items() if name not in views}


def kron(one, other):
    return esat.kron(one, other)


GONE = {
    # fills are cut through any elementwise op
    "a multiple of a fill": (lambda: esat.full_like(x, s) * 2 + y, {"fill", "alloc"}),
    "ones times a number": (lambda: esat.ones_like(x) * s + x, {"fill", "alloc", "mul"}),
    "a function of a fill": (lambda: esat.exp(esat.full_like(x, s)) + y, {"fill", "alloc"}),
    "the larger of a fill": (lambda: esat.maximum(esat.full_like(x, s), x), {"fill", "alloc"}),
    "where a fill decides": (
        lambda: esat.where(esat.full_like(x, s) > 0, x, y * esat.ones_like(x)),
        {"fill", "alloc", "mul"},
    ),
    # comparisons of what equals itself
    "less than itself": (lambda: x < x, {"lt"}),
    "greater than itself": (lambda: x > x, {"gt"}),
    "greater than itself, computed": (lambda: esat.exp(x) > esat.exp(x), {"gt", "exp"}),
    "integers equal themselves": (lambda: esat.eq(i, i), {"eq"}),
    "integers are no others": (lambda: esat.neq(i, i), {"ne"}),
    "integers are no less": (lambda: i >= i, {"ge"}),
    "integers are no greater": (lambda: i <= i, {"le"}),
    "the larger of one": (lambda: esat.maximum(x, x), {"maximum"}),
    # signs and order
    "a sign into a constant": (lambda: -(x * 2), {"neg"}),
    "a sign into a divisor": (lambda: -(x / 2), {"neg"}),
    "transposed twice": (lambda: a.T.T * 1.0, {"mul"}),
    "summed twice": (lambda: a.sum(0).sum(0), {"add"}),
    "a product with zeros": (lambda: a @ esat.zeros_like(b), {"matmul"}),
    "a sum of zeros": (lambda: esat.zeros_like(x).sum(), {"sum"}),
    # matrices
    "a diagonal matrix times": (lambda: esat.diag(x) @ b, {"matmul", "diag"}),
    "times a diagonal matrix": (lambda: b @ esat.diag(x), {"matmul", "diag"}),
    "a factor of its product": (
        lambda: esat.linalg.cholesky(esat.linalg.cholesky(a) @ esat.linalg.cholesky(a).T),
        {"matmul", "gram_matmul"},
    ),
    "a sum over a shared axis": (lambda: (b[:, :, None] * c[None]).sum(1), {"sum", "mul"}),
    "a sum over a shared first axis": (lambda: (b[:, :, None] * c[:, None]).sum(0), {"sum", "mul"}),
    "a sum over a shared last axis": (lambda: (b[:, None] * c[None]).sum(2), {"sum", "mul"}),
    "parts of one product": (lambda: (b @ c)[:2] - b[:2] @ c, {"matmul", "sub"}),
    "columns of one product": (lambda: (b @ c)[:, :2] - b @ c[:, :2], {"matmul", "sub"}),
    "functions on a diagonal": (lambda: esat.diagonal(esat.sigmoid(a) + 1.0), set()),
    "a product with an outer product": (lambda: (x[:, None] @ y[None, :]) @ b, {"outer"}),
    "a determinant of factors": (lambda: esat.linalg.det(kron(first, second)), {"alloc"}),
}
"""Expressions, and ops that are not left of them."""


@MODES
@pytest.mark.parametrize("name", GONE)
def test_what_is_not_left(name, mode):
    build, gone = GONE[name]
    assert not gone & left(build(), mode).keys()


BACKWARDS = [
    (lambda: x[::-1][::-1], x),
    (lambda: esat.flip(esat.flip(a)), a),
    (lambda: esat.exp(x[::-1])[::-1], None),
]


@MODES
@pytest.mark.parametrize(("build", "expected"), BACKWARDS)
def test_reversed_views(build, expected, mode):
    output = build()
    program = esat.compile(esat.Graph([*esat.graph.inputs_of([output])], [output]), mode)
    assert "subtensor" not in {node.op.name for node in program.optimized.toposort()}
    if expected is not None:
        assert str(program.optimized) == f"[{expected}]"


@MODES
def test_floats_are_compared_with_themselves(mode):
    """NaN equals nothing."""
    program = esat.compile(esat.Graph([x], [esat.eq(x, x), x >= x, esat.neq(x, x)]), mode)
    equal, no_less, other = program(np.array([1.0, np.nan]))
    np.testing.assert_array_equal(equal, [True, False])
    np.testing.assert_array_equal(no_less, [True, False])
    np.testing.assert_array_equal(other, [False, True])


@MODES
def test_sums_of_quotients(mode):
    """A divisor stays with the terms of a sum, which may leave the range without it."""
    program = esat.compile(esat.Graph([x, s], [(x / s).sum()]), mode, shapes={x: (100_000,)})
    for arguments, wanted in (
        ((np.ones(5), np.array(0.0)), np.inf),
        ((np.ones(0), np.array(0.0)), 0.0),
        ((np.full(4, 1.5e308), np.array(4.0)), 1.5e308),
    ):
        assert program(*arguments) == wanted


@MODES
def test_products_of_scaled_numbers_stay_in_range(mode):
    """A power of the factor may leave the range of floats where the product does not."""
    program = esat.compile(esat.Graph([x, s], [(s * x).prod(), (x / s).prod()]), mode)
    for found, wanted in zip(program(np.full(200, 1e3), np.array(1e-3)), (1.0, np.inf), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@MODES
@pytest.mark.parametrize(
    "build",
    [
        lambda: esat.cumsum(c, 0) + 2.0 * (a @ b),
        lambda: t * (c @ b) + s * (a @ b),
        lambda: (c @ b) / t + (a @ b) / s,
        lambda: a @ b - esat.linalg.solve(a, c),
    ],
)
def test_any_scales_of_what_is_added_to_a_product(build, mode):
    """In one call for product and sum, where the addend is computed and no kernel's; no step for scales."""
    output = build()
    inputs = [variable for variable in VALUES if variable in set(esat.graph.inputs_of([output]))]
    program = esat.compile(esat.Graph(inputs, [output]), mode)
    names = [node.op.name for node in program.graph.toposort()]
    assert names.count("gemm") == 1
    assert not {"add", "sub", "mul"} & set(names)
    arguments = [VALUES[variable] for variable in inputs]
    (wanted,) = esat.evaluate([output], dict(zip(inputs, arguments, strict=True)))
    np.testing.assert_allclose(program(*arguments), wanted, rtol=1e-10)


@MODES
def test_a_product_with_what_kernels_add_takes_two_steps(mode):
    """A copy and one call of gemm take what a product and one pass of a kernel do, where more is fused."""
    program = esat.compile(esat.Graph([a, b, c, s, t], [esat.exp(t * c + s * (a @ b))]), mode)
    assert [group.kind for group in program.steps].count("library") <= 1
    assert len(program.steps) == 2


def large(program, limit):
    """Results of a program that have more elements than a limit, by its types."""
    sizes = {
        str(node): int(np.prod([size for size in variable.type.shape if size is not None]))
        for node in program.graph.toposort()
        for variable in node.outputs
        if isinstance(variable.type, esat.TensorType)
    }
    return {name for name, size in sizes.items() if size > limit}


@MODES
@pytest.mark.parametrize(
    "build",
    [
        lambda: esat.linalg.det(kron(first, second)),
        lambda: esat.linalg.slogdet(kron(first, second))[1],
        lambda: esat.linalg.solve(kron(first, second), esat.arange(600.0)),
        lambda: esat.diagonal(kron(first, second)),
        lambda: kron(first, second) @ esat.arange(600.0),
        lambda: esat.trace(kron(first, second)),
    ],
)
def test_kronecker_products_are_not_formed(build, mode):
    output = build()
    program = esat.compile(esat.Graph([first, second], [output]), mode)
    (wanted,) = esat.evaluate([output], VALUES)
    np.testing.assert_allclose(program(VALUES[first], VALUES[second]), wanted, rtol=1e-8)
    assert not large(program, 900)


@MODES
def test_products_of_kronecker_products_are_formed_once(mode):
    output = kron(first, second) @ kron(first, second)
    program = esat.compile(esat.Graph([first, second], [output]), mode)
    products = [node for node in program.graph.toposort() if "matmul" in node.op.name]
    assert products
    assert all(node.outputs[0].type.shape in ((30, 30), (20, 20)) for node in products)


def in_blocks(one, other):
    right = esat.zeros((one.shape[0], other.shape[1]))
    left_ = esat.zeros((other.shape[0], one.shape[1]))
    return esat.block([[one, right], [left_, other]])


@MODES
@pytest.mark.parametrize("matrix", [in_blocks, esat.linalg.block_diag])
@pytest.mark.parametrize(
    "build",
    [
        lambda whole: whole @ esat.arange(250.0),
        lambda whole: esat.linalg.solve(whole, esat.arange(250.0)),
        esat.linalg.det,
        lambda whole: esat.linalg.slogdet(whole)[1],
        esat.diagonal,
    ],
)
def test_matrices_of_blocks_are_not_formed(build, matrix, mode):
    output = build(matrix(above, below))
    program = esat.compile(esat.Graph([above, below], [output]), mode)
    (wanted,) = esat.evaluate([output], VALUES)
    np.testing.assert_allclose(program(VALUES[above], VALUES[below]), wanted, rtol=1e-8)
    assert not large(program, 150**2)


def test_a_product_with_thin_matrices_needs_no_product_of_large_ones():
    program = esat.compile(esat.Graph([a, b, thin], [(b - a @ b) @ thin]))
    assert not [
        node
        for node in program.graph.toposort()
        if "matmul" in node.op.name and node.outputs[0].type.shape != (None, 1)
    ]


def test_a_row_of_a_softmax_written_out():
    whole = esat.exp(a) / esat.exp(a).sum(1, keepdims=True)
    for mode in ("fast_run", "greedy"):
        assert left(whole[0], mode) == {"softmax": 1}
