import subprocess
import sys
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from codegen.targets import HOST

from esat.codegen.ground import blas_library
from esat.codegen.matmul import blas
from esat.codegen.routines import routine_for
from esat.graph import TensorType
from esat.ops.accumulate import AccumulateProduct
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.contraction import MATMUL

ORDERS = {
    "C": lambda a: a,
    "F": lambda a: np.swapaxes(np.swapaxes(a, -1, -2).copy(), -1, -2),
    "strided": lambda a: np.repeat(np.repeat(a, 2, -1), 2, -2)[..., ::2, ::2],
    "reversed": lambda a: a[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
}
SIZES = [0, 1, 3, 8]


def random(shape: tuple[int, ...], dtype: str) -> Any:
    generator = np.random.default_rng(7)
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0, 100, shape).astype(dtype)
    values = generator.normal(size=shape)
    return (values + 1j * generator.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(
        dtype
    )


def routine(left: Any, right: Any, flags: bool) -> Any:
    """The routine for operands of these shapes; with ``flags`` the types know which sizes are 1."""
    types = [
        TensorType(a.dtype, shape=tuple(1 if size == 1 and flags else None for size in a.shape))
        for a in (left, right)
    ]
    return routine_for(MATMUL.make_node(*(type("x") for type in types)), HOST)


def check(left: Any, right: Any, flags: bool = True) -> None:
    expected = np.matmul(left, right)
    output = np.full(expected.shape, np.nan if expected.dtype.kind in "fc" else 99).astype(expected.dtype)
    kept = left.copy(), right.copy()
    routine(left, right, flags)(left, right, output)
    tolerance = 1e-4 if expected.dtype.itemsize // (1 + (expected.dtype.kind == "c")) <= 4 else 1e-12
    assert np.allclose(output, expected, rtol=tolerance, atol=tolerance)
    assert np.array_equal(left, kept[0])
    assert np.array_equal(right, kept[1])


@pytest.mark.parametrize("orders", list(product(ORDERS, repeat=2)), ids="-".join)
def test_products_of_all_layouts_and_sizes(orders: tuple[str, str]) -> None:
    for m, k, n, flags in product(SIZES, SIZES, SIZES, (True, False)):
        left = ORDERS[orders[0]](random((m, k), "float64"))
        check(left, ORDERS[orders[1]](random((k, n), "float64")), flags)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "complex64", "complex128", "int8", "int64", "uint16"]
)
def test_products_of_all_dtypes(dtype: str) -> None:
    for m, n in ((3, 2), (3, 1), (1, 2)):
        check(random((m, 4), dtype), random((4, n), dtype))
        check(ORDERS["F"](random((m, 4), dtype)), ORDERS["F"](random((4, n), dtype)))


def test_booleans_are_joined_by_or() -> None:
    left, right = np.eye(3, dtype=bool), np.ones((3, 2), bool)
    output = np.zeros((3, 2), bool)
    routine(left, right, True)(left, right, output)
    assert output.all()


@pytest.mark.parametrize("sizes", [(90, 80, 90), (900, 700, 1), (1, 700, 900)], ids=str)
def test_large_products_go_through_numpy(
    sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = sizes
    left, right = random((m, k), "float64"), random((k, n), "float64")
    check(left, right)
    monkeypatch.setattr(blas, "scipy_is_faster", lambda: True)
    check(left, right)


@pytest.mark.parametrize("sizes", [(90, 80, 90), (65, 64, 65), (900, 700, 1), (1, 100, 200)], ids=str)
def test_one_thread_of_a_program_is_one_of_the_library(
    sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = {name: blas_library.one_thread(name) for name in ("numpy", "scipy")}
    if None in libraries.values():
        pytest.skip("NumPy's or SciPy's BLAS is not the OpenBLAS of its wheel")
    entered = []
    monkeypatch.setattr(blas, "one_thread", lambda name="scipy": (entered.append(name), libraries[name])[1])
    m, k, n = sizes
    left, right = random((m, k), "float64"), random((k, n), "float64")
    output = np.empty((m, n))
    types = [
        TensorType("float64", shape=tuple(1 if s == 1 else None for s in a.shape)) for a in (left, right)
    ]
    routine_for(MATMUL.make_node(*(type("x") for type in types)), HOST, threads=1)(left, right, output)
    assert np.allclose(output, left @ right)
    assert len(entered) == 1


@pytest.mark.parametrize("sizes", [(90, 80, 90), (65, 64, 65)], ids=str)
def test_what_is_added_in_one_thread_is_so_of_the_library(
    sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = blas_library.one_thread()
    if library is None:
        pytest.skip("SciPy's BLAS is not the OpenBLAS of its wheel")
    entered = []
    monkeypatch.setattr(blas, "one_thread", lambda: (entered.append("scipy"), library)[1])
    m, k, n = sizes
    left, right, output = (random(size, "float64") for size in ((m, k), (k, n), (m, n)))
    expected = 0.5 * output - 2.0 * left @ right
    blas.accumulate_product(-2.0, left, right, 0.5, output, threads=1)
    assert np.allclose(output, expected)
    assert entered == ["scipy"]


@pytest.mark.parametrize("order", ORDERS)
def test_batches(order: str) -> None:
    for batches in (
        ((5,), (5,)),
        ((5,), (1,)),
        ((1,), (5,)),
        ((2, 3), (1, 1)),
        ((2, 3), (1, 3)),
        ((0,), (1,)),
    ):
        left = ORDERS[order](random((*batches[0], 3, 4), "float64"))
        check(left, random((*batches[1], 4, 2), "float64"))
        check(left, random((*batches[1], 4, 1), "float64"))
    check(random((5, 3, 0), "float64"), random((1, 0, 2), "float64"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_products_are_added_in_place(dtype: str) -> None:
    for (m, k, n), order in product([(3, 4, 2), (3, 1, 2), (1, 1, 1), (3, 0, 2), (0, 2, 2)], ORDERS):
        left, right = ORDERS[order](random((m, k), dtype)), ORDERS[order](random((k, n), dtype))
        for alpha, beta in product((1.0, -0.5), (0.0, 1.0, 0.25)):
            output = random((m, n), dtype) if beta else np.full((m, n), np.nan, dtype)
            expected = alpha * (left @ right) + (beta * output if beta else 0.0)
            blas.accumulate_product(alpha, left, right, beta, output)
            assert np.allclose(output, expected, rtol=1e-5)


def test_infinities_pass_without_warnings() -> None:
    with np.errstate(all="raise"):
        for size in (3, 100):
            left, right = np.full((size, size), np.inf), np.zeros((size, size))
            output = np.empty((size, size))
            routine(left, right, True)(left, right, output)
            assert np.isnan(output).all()


def test_other_ops_have_no_routine() -> None:
    x = TensorType("float64", shape=(None, None))("x")
    assert routine_for(DimShuffle((1, 0), 2).make_node(x), HOST) is None


def test_a_core_type_is_chosen_only_where_openblas_mistakes_the_processor() -> None:
    core_type = partial(blas_library.core_type, is_wide=True)
    assert core_type({}, "Haswell", loaded=False) == "SkylakeX"
    assert core_type({}, "Haswell", loaded=True) is None
    assert core_type({}, "Zen", loaded=False) is None
    assert core_type({}, None, loaded=False) is None
    assert core_type({"OPENBLAS_CORETYPE": ""}, "Haswell", loaded=False) is None
    assert core_type({}, "Haswell", loaded=False, is_wide=False) is None


_LATE = """
{first}
from esat.codegen.ground import blas_library as blas
wide = blas.scipy_is_faster()
assert wide == (blas.numpy_core() == "Haswell" and blas.scipy_core() == "SkylakeX")
assert not wide
"""


@pytest.mark.parametrize("first", ["import scipy.special", "import scipy.linalg"])
def test_a_library_loaded_before_is_not_taken_for_a_faster_one(first: str) -> None:
    text = _LATE.format(first=first)
    subprocess.run([sys.executable, "-c", text], check=True)


def test_importing_esat_leaves_scipys_library_to_be_loaded() -> None:
    text = "import sys, esat, esat.compilation.pipeline; sys.exit('scipy.linalg' in sys.modules)"
    subprocess.run([sys.executable, "-c", text], check=True)


@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (1, 1), (5, 3), (0, 1)])
def test_products_are_added_to_columns_and_rows(shape: tuple[int, int]) -> None:
    rows, columns = shape
    operands = [np.array(-2.0), random((rows, 4), "float64"), random((4, columns), "float64"), np.array(0.5)]
    output = random(shape, "float64")
    types = [TensorType("float64", shape=(None,) * array.ndim)("x") for array in (output, *operands)]
    expected = 0.5 * output - 2.0 * operands[1] @ operands[2]
    found = routine_for(AccumulateProduct(inplace=True).make_node(*types), HOST)
    assert found is not None
    found(*operands, output)
    assert np.allclose(output, expected)


def test_products_do_not_import_the_rest_of_scipy_linalg():
    """That took a quarter of a second of every process; who imports it later finds it whole."""
    program = """
import sys
import numpy as np
import esat

x, y = esat.matrix("x"), esat.matrix("y")
product = esat.compile(esat.Graph([x, y], [x @ y]))
assert (product(np.eye(3), np.ones((3, 2))) == 1).all()
assert "scipy.linalg" not in sys.modules
import scipy.linalg
assert (scipy.linalg.blas.dgemm(1.0, np.eye(2), np.eye(2)) == np.eye(2)).all()
assert (scipy.linalg.solve(np.eye(2), np.ones(2)) == 1).all()
assert scipy.linalg._fblas.dgemm is esat.codegen.ground.blas_library.blas_function("dgemm")
assert (product(np.eye(3), np.ones((3, 2))) == 1).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
