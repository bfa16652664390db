"""Forms are judged in complex dtypes, over axes, and in softmax-like families alike."""

import numpy as np
import pytest

import esat
from esat.extract.accuracy.judge import judged
from esat.extract.extraction import SaturatedGraph


def saturated(inputs: list[esat.graph.Variable], outputs: list[esat.graph.Variable]) -> SaturatedGraph:
    extraction = esat.compile(esat.Graph(inputs, outputs)).report.extraction
    assert extraction is not None
    graph: SaturatedGraph = extraction.graph
    return graph


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_forms_are_judged(dtype: str) -> None:
    z = esat.vector("z", dtype=dtype)
    graph = saturated([z], [z * (z + 1), z * z + z])
    assert graph.verdicts is not None
    assert graph.verdicts.outputs[0].points > 0
    value = np.array([-1 + 1e-3j, -1 - 2e-4j], dtype)
    for result in esat.compile(esat.Graph([z], [z * (z + 1), z * z + z]))(value):
        wide = value.astype(np.clongdouble)
        np.testing.assert_allclose(result, wide * (wide + 1), rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("sized", [False, True])
def test_softmax_families_do_not_overflow(sized: bool) -> None:
    x = esat.tensor("x", shape=(2, 3) if sized else (None, None))
    powers = esat.exp(x)
    total = esat.sum(powers, axis=1, keepdims=True)
    outputs = [esat.softmax(x, axis=1), powers / total, esat.log(total), esat.log(powers / total)]
    value = np.array([[1000.0, 999.0, -3.0], [-800.0, -801.0, -900.0]])
    shifted = value - value.max(axis=1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    softmax, highest = np.exp(shifted - log_total), value.max(axis=1, keepdims=True)
    right = [softmax, softmax, log_total + highest, shifted - log_total]
    for result, wanted in zip(esat.compile(esat.Graph([x], outputs))(value), right, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-13, atol=1e-300)


def test_verdicts_do_not_depend_on_what_is_computed_beside() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    alone = saturated([x, y], [x * y + x]).verdicts
    beside = saturated([x, y], [x * y + x, esat.exp(x) / esat.exp(y), x * (y + 1)]).verdicts
    assert alone is not None
    assert beside is not None
    assert alone.outputs[0].best == pytest.approx(beside.outputs[0].best, abs=0.5)


def test_the_order_of_a_sum_over_an_axis_is_no_matter_of_accuracy() -> None:
    matrices = [esat.matrix(f"m{place}") for place in range(4)]
    product = matrices[0]
    for matrix in matrices[1:]:
        product = product @ matrix
    graph = saturated(matrices, [product, esat.sum(product)])
    assert not graph.bits_too_many.any()


def test_verdicts_are_the_same_each_time() -> None:
    x = esat.vector("x")
    graph = saturated([x], [1 - esat.sigmoid(x), esat.log(1 + esat.exp(x))])
    first, second = judged(graph), judged(graph)
    np.testing.assert_array_equal(first.loss, second.loss)
    assert first.places == second.places


def test_reports_say_what_was_gained() -> None:
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], [1 - esat.sigmoid(x)]))
    (output,) = function.report.accuracy
    assert output.written > 5
    assert output.best < 1
    assert "output 0 loses" in str(function.report)
    assert "bits at x = " in str(function.explain())
