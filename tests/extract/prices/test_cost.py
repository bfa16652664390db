"""The cost model: orders that every machine has, and what views cost."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.extract.prices.class_values import term_values, transposes
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.pricing import predicted_seconds
from esat.extract.prices.value import Value
from esat.graph import FunctionGraph
from esat.graph.types import DTYPE_NUMBER
from esat.rules.language.macros import permutation_word

F64, F32, HALF = DTYPE_NUMBER["float64"], DTYPE_NUMBER["float32"], DTYPE_NUMBER["float16"]
MODEL = CostModel(MachineProfile())


def elementwise(constructor: str, *shape: float, dtype: int = F64, transposed: bool = False) -> float:
    operand = Value(shape, dtype, transposed)
    return MODEL.price(constructor, (), [operand], Value(shape, dtype))


def product(m: float, k: float, n: float, dtype: int = F64, batch: tuple[float, ...] = ()) -> float:
    left, right = Value((*batch, m, k), dtype), Value((*batch, k, n), dtype)
    return MODEL.price("MatMul", (2 + len(batch),), [left, right], Value((*batch, m, n), dtype))


def test_elementwise_ops_by_work_dtype_and_size() -> None:
    assert elementwise("Neg", 256, 256) < elementwise("Sqrt", 256, 256) < elementwise("Exp", 256, 256)
    assert elementwise("Exp", 256, 256, dtype=F32) < elementwise("Exp", 256, 256)
    assert elementwise("Exp", 256, 256) < elementwise("Exp", 256, 256, dtype=HALF)
    assert elementwise("Exp") == MODEL.machine.fused_op  # a scalar: almost free
    assert 0.0 < elementwise("Neg", 1, 8) < MODEL.machine.kernel_call


def test_products_by_shape() -> None:
    assert product(8, 8, 8) < 2 * MODEL.machine.matrix_call
    rate = [2 * n**3 / product(n, n, n) for n in (8.0, 64.0, 512.0)]
    assert rate == sorted(rate)
    assert product(512, 512, 512, F32) < product(512, 512, 512)
    # Skinny products run at a lower rate; a vector costs the bytes of the matrix.
    assert product(512, 512, 4) > 4 / 512 * product(512, 512, 512)
    assert product(512, 512, 1) < 0.1 * product(512, 512, 512)
    assert product(64, 64, 64, batch=(10.0,)) > 5 * product(64, 64, 64)
    integers = DTYPE_NUMBER["int64"]
    assert product(64, 64, 64, integers) > product(64, 64, 64)


@pytest.mark.parametrize("size", [25.0, 100.0, 250.0, 1000.0])
@pytest.mark.parametrize("columns", [4.0, 12.0])
def test_systems_by_shape(size: float, columns: float) -> None:
    """With few columns they take no more for each operation than with many."""

    def seconds(constructor: str, *attributes: int, count: float = columns) -> float:
        matrix, sides = Value((size, size), F64), Value((size, count), F64)
        operands = [matrix] if constructor in ("Inv", "Cholesky") else [matrix, sides]
        return MODEL.price(constructor, (*attributes, 2), operands, operands[-1])

    half = seconds("SolveTriangular", 1)
    assert half < seconds("CholeskySolve", 1) < seconds("Solve") < seconds("Inv")
    assert half < 10 * product(size, size, columns)
    assert seconds("Cholesky", 0) < seconds("Solve")
    assert half < seconds("SolveTriangular", 1, count=size) < 10 * product(size, size, size)


def test_a_transposed_view_is_free_for_products_and_dear_for_others() -> None:
    word = permutation_word((1, 0), 2)
    assert transposes(word, (3.0, 4.0))
    assert not transposes(word, (1.0, 4.0))
    assert not transposes(permutation_word(("x", 0, 1), 2), (3.0, 4.0))
    assert elementwise("Neg", 256, 256, transposed=True) > 2 * elementwise("Neg", 256, 256)
    flat, turned = (Value((256.0, 256.0), F64, transposed) for transposed in (False, True))
    assert MODEL.price("MatMul", (2,), [turned, flat], flat) == MODEL.price(
        "MatMul", (2,), [flat, flat], flat
    )
    total = Value((256.0, 1.0), F64)
    assert MODEL.price("ReduceSum", (2,), [turned], total) > MODEL.price("ReduceSum", (2,), [flat], total)


def test_a_transposed_input_is_known_as_such() -> None:
    x = esat.matrix("x")
    terms = encode(esat.Graph([x], [esat.tanh(x.T) + esat.tanh(x).T]).function_graph())
    values = term_values(terms)
    marked = [term.constructor for term, value in zip(terms.terms, values, strict=True) if value.transposed]
    assert marked == ["DimShuffle", "DimShuffle"]


@pytest.mark.parametrize("constructor", ["ReduceSum", "ReduceMax", "Softmax", "LogSumExp", "ArgMax"])
def test_a_reduction_costs_its_operand(constructor: str) -> None:
    small, large = (
        MODEL.price(constructor, (2,), [Value((n, n), F64)], Value((n, 1.0), F64)) for n in (64.0, 1024.0)
    )
    assert MODEL.machine.kernel_call < small < large / 50


def test_nary_terms_cost_their_steps() -> None:
    matrix, scalar = Value((64.0, 64.0), F64), Value((), F64)
    two, three = (MODEL.price("NarySum", (n,), [matrix] * n, matrix) for n in (2, 3))
    assert three == pytest.approx(2 * two)
    with_scalars = MODEL.price("NarySum", (4,), [matrix, matrix, scalar, scalar], matrix)
    assert with_scalars == pytest.approx(2 * two + MODEL.machine.fused_op)
    power = MODEL.price("NaryProd", (8,), [matrix] * 8, matrix, [1] * 8)
    assert power == pytest.approx(3 * two, rel=0.2)


@pytest.mark.parametrize(
    ("name", "rows", "inner", "columns", "pays"),
    [
        ("MatMulUpper", 8, 1024, 1024, True),  # half the matrix is read
        ("UpperMatMul", 1024, 1024, 8, False),  # half the operations, and slower: measured 1.3 times
        ("UpperMatMul", 512, 512, 512, True),
        ("MatMulUpper", 64, 64, 64, False),  # plain products as small as this need not be packed
    ],
)
def test_half_the_operations_are_taken_where_they_are_faster(
    name: str, rows: int, inner: int, columns: int, pays: bool
) -> None:
    left, right = Value((float(rows), float(inner)), F64), Value((float(inner), float(columns)), F64)
    result = Value((float(rows), float(columns)), F64)
    plain, structured = (MODEL.price(kind, (2,), [left, right], result) for kind in ("MatMul", name))
    assert (structured < plain) is pays


def loop_seconds(body: Callable[..., Any], steps: int, size: int = 32) -> float:
    rows = esat.tensor(dtype="float64", shape=(steps, size))
    matrix = esat.tensor(dtype="float64", shape=(size, size))
    last = esat.scan(lambda h, x: (body(h, x, matrix), None), rows[0], rows)[0]
    terms = encode(FunctionGraph([rows, matrix], [last]))
    return predicted_seconds(terms, CostModel(MODEL.machine, terms.opaque))


def test_a_loop_takes_its_steps_times_its_body() -> None:
    short, long = (loop_seconds(lambda h, x, w: np.tanh(w @ h + x), steps) for steps in (100, 10_000))
    assert long == pytest.approx(100 * short, rel=0.05)
    larger = loop_seconds(lambda h, x, w: np.tanh(w @ (w @ (w @ h)) + x), 10_000)
    assert 2 * long < larger < 4 * long
    assert (
        loop_seconds(lambda h, x, w: esat.fori_loop(0, 50, lambda i, h: np.tanh(w @ h), h), 200) > 25 * short
    )
