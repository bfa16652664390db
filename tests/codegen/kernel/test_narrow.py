"""Kernels for one size of a short innermost axis, against NumPy."""

import numpy as np
import pytest
from codegen.targets import HOST

import esat
from esat.codegen import compile_narrow, find_narrow, lower
from esat.codegen.kernel.narrow import SMALLEST_WORK
from esat.codegen.printing.print_narrow import print_narrow
from esat.graph import FunctionGraph
from esat.graph.algorithms.evaluate import evaluate
from esat.phases.fusing.group import Group
from esat.runtime.printed.kernel_calls import MAXIMUM_VARIANTS

ROWS = 70


def group_of(inputs, outputs):
    nodes = FunctionGraph(inputs, outputs, clone=False).toposort()
    computed = {variable for node in nodes for variable in node.outputs}
    read = dict.fromkeys(v for node in nodes for v in node.inputs if v not in computed)
    return Group("kernel", tuple(nodes), tuple(read), tuple(outputs))


def run_narrow(inputs, outputs, data, size):
    """The results of the narrow kernel, whatever the shapes are worth."""
    group = group_of(inputs, outputs)
    kernel = lower(group)
    narrow = find_narrow(kernel)
    assert narrow is not None
    values = dict(zip(inputs, data, strict=True))
    wanted = evaluate(outputs, values)
    found = [np.full_like(one, 7) for one in wanted]
    compile_narrow(narrow, size, HOST)(*found, *(values[group.inputs[place]] for place in kernel.operands))
    return found, wanted


def column(vector):
    return vector.dimshuffle(0, "x")


M, Y = (esat.matrix(name) for name in "my")
R, C = (esat.vector(name) for name in "rc")
S = esat.matrix("s", dtype="float32")
K = esat.matrix("k", dtype="int32")
EXPRESSIONS = {
    "distances": (
        [M, Y],
        [esat.sqrt(esat.sum(esat.sqr(M.dimshuffle(0, "x", 1) - Y.dimshuffle("x", 0, 1)), 2))],
    ),
    "softmax": ([M], [esat.softmax(M, axis=1)]),
    "single softmax": ([S], [esat.softmax(S, axis=1)]),
    "centred": ([M], [M - 0.3 * esat.sum(M, axis=1, keepdims=True)]),
    "extrema": ([M], [esat.max(M, axis=1) - esat.min(M, axis=1)]),
    "integers": ([K], [esat.sum(K, axis=1), esat.max(K, axis=1)]),
    "product": ([M], [esat.prod(M, axis=1)]),
    "row and column": ([M, R, C], [(M + R) * column(C)]),
    "outer": ([C, R], [column(C) * R]),
}
GATHERED = {
    "likelihood": ([M], [esat.logsumexp(M, axis=1).sum()]),
    "single likelihood": ([S], [esat.logsumexp(S, axis=1).sum()]),
    "weighted, and themselves": (
        [M, C],
        [(esat.logsumexp(M, axis=1) * C).sum(), esat.logsumexp(M, axis=1)],
    ),
    "squares": ([M], [esat.sqr(esat.max(M, axis=1)).sum()]),
    "all of softmax": ([M], [esat.sum(esat.softmax(M, axis=1) * M)]),
    "largest of sums": ([M], [esat.max(esat.sum(M, axis=1))]),
    "where it is": ([M], [esat.argmax(esat.sum(M, axis=1))]),
    "products": ([M], [esat.prod(1.0 + 1e-3 * esat.max(M, axis=1))]),
    "integers": ([K], [esat.sum(esat.max(K, axis=1))]),
}
"""What rows are gathered to, once for all of them."""


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("size", [1, 3])
def test_narrow_kernels_give_numpys_values(name, size):
    inputs, outputs = EXPRESSIONS[name]
    rng = np.random.default_rng(size)
    shapes = {R: (size,), C: (ROWS,)}
    data = [
        (3 * rng.standard_normal(shapes.get(variable, (ROWS, size)))).astype(variable.type.dtype)
        for variable in inputs
    ]
    found, wanted = run_narrow(inputs, outputs, data, size)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6 if one.dtype == np.float32 else 1e-13, atol=1e-15)


@pytest.mark.parametrize("name", GATHERED)
@pytest.mark.parametrize("rows", [1, 255, 700])
def test_what_is_gathered_from_rows_is_numpys(name, rows):
    inputs, outputs = GATHERED[name]
    rng = np.random.default_rng(rows)
    data = [
        (3 * rng.standard_normal((rows,) if variable is C else (rows, 3))).astype(variable.type.dtype)
        for variable in inputs
    ]
    found, wanted = run_narrow(inputs, outputs, data, 3)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6 if one.dtype == np.float32 else 1e-13, atol=1e-13)


def test_rows_are_gathered_many_at_a_time():
    inputs, outputs = GATHERED["likelihood"]
    narrow = find_narrow(lower(group_of(inputs, outputs)))
    text = print_narrow(narrow, 3, HOST, comments=False).text
    loop, _, after = text.partition("uintp(min(first0 + 256, n0))):\n")
    assert "part6 = reassociating_add(part6, v5)" in after
    assert "rounding_error" not in after.partition("part6 = reassociating_add")[0]
    assert "block0" in loop


def test_narrow_extrema_and_sums_hand_nan_on():
    data = np.random.default_rng(1).standard_normal((ROWS, 3))
    data[[0, 5, 69], [0, 1, 2]] = np.nan
    data[7] = np.inf, -np.inf, 1.0
    with np.errstate(invalid="ignore"):
        found, _ = run_narrow([M], [esat.max(M, axis=1), esat.sum(M, axis=1)], [data], 3)
        np.testing.assert_array_equal(found[0], data.max(1))
        np.testing.assert_array_equal(np.isnan(found[1]), np.isnan(data.sum(1)))
        for rows, largest in ((data, np.nan), (data[10:60], data[10:60].sum(1).max())):
            found, _ = run_narrow([M], [esat.max(esat.sum(M, axis=1))], [rows], 3)
            np.testing.assert_allclose(found[0], largest, rtol=1e-13)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([M], [esat.sum(M)]),
        ([M], [esat.exp(M)]),
        ([M], [esat.sum(M, axis=0)]),
        ([M], [esat.argmax(M, axis=1)]),
        ([M, Y], [M + Y.T]),
    ],
)
def test_kernels_without_a_short_loop_inside_another_have_no_narrow_form(inputs, outputs):
    assert find_narrow(lower(group_of(inputs, outputs))) is None


def test_a_variant_is_for_short_rows_of_large_arrays():
    narrow = find_narrow(lower(group_of([M], [esat.softmax(M, axis=1)])))
    rows = SMALLEST_WORK // 4
    assert narrow.size_in([(rows, 4), (rows, 4)]) == 4
    assert narrow.size_in([(rows // 2, 4), (rows // 2, 4)]) is None
    assert narrow.size_in([(rows, 40), (rows, 40)]) is None
    assert narrow.size_in([(rows, 0), (rows, 0)]) is None


def test_a_program_takes_variants_for_the_sizes_that_come_first():
    program = esat.compile(esat.Graph([M], esat.logsumexp(M, axis=1)))
    rng = np.random.default_rng(2)
    kernels = set()
    for size in range(1, MAXIMUM_VARIANTS + 3):
        data = rng.standard_normal((SMALLEST_WORK, size))
        np.testing.assert_allclose(program(data), np.log(np.exp(data).sum(1)), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(program(data[::-1]), np.log(np.exp(data[::-1]).sum(1)), atol=1e-15)
        (record,) = [record for key, record in program._calls.table.records.items() if key == (data.shape,)]
        kernels |= {entry for entry in record if callable(entry) and "kernel" in repr(entry)}
    assert len(kernels) == MAXIMUM_VARIANTS
