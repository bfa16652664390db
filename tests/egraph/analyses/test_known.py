"""What is known of the numbers of Variables, asked without a rule."""

import numpy as np
import pytest

import esat
from esat.egraph.analyses import known


@pytest.mark.parametrize("question", ["positive", "nonnegative", "negative", "finite", "ranges"])
def test_each_question_is_asked_once(monkeypatch, question):
    """Though signs of products have several reasons, each with signs of two operands."""
    first, second = esat.vector("first"), esat.vector("second")
    for _ in range(10):
        first, second = first * second, second * first + first
    asked, value_of = [], known.value_of

    def counted(variable):
        asked.append(variable)
        return value_of(variable)

    monkeypatch.setattr(known, "value_of", counted)
    if question == "ranges":
        assert not known.is_exponential(first * second)
    else:
        assert not known.has_fact(first, question)
    assert len(asked) < 1_000


def test_signs_are_found_through_several_ops():
    x, y = esat.vector("x"), esat.vector("y")
    assert known.has_fact(esat.exp(x) * (esat.exp(y) + esat.sqr(x)), "nonnegative")
    assert known.has_fact(-esat.exp(x) * -esat.exp(y), "nonnegative")
    assert known.has_fact(-esat.exp(x) - esat.exp(y), "nonpositive")
    assert not known.has_fact(x * y, "nonnegative")
    assert known.overflows(esat.exp(x) + esat.exp(y))
    assert not known.overflows(esat.exp(x) - esat.exp(y))


def test_signs_of_sums_and_products_follow_from_whichever_operand_is_known_last():
    """So their absolute values are themselves."""
    x, y = esat.vector("x"), esat.vector("y")
    squares, late = x * x, esat.softplus(y) * esat.exp(esat.exp(x) + y * y)
    for value in (
        3 * squares, late * squares, late / squares, 3 / squares, 1 / (squares * late), squares * y * y,
        esat.exp(x) / late, squares + late, 2 * late + squares,
    ):  # fmt: skip
        graph = esat.Graph([x, y], [esat.abs(value)], on_unused_input="ignore")
        assert "abs" not in {node.op.name for node in esat.compile(graph).optimized.toposort()}
    for value in (x * y, squares * y, x / squares, squares - late):
        graph = esat.Graph([x, y], [esat.abs(value)], on_unused_input="ignore")
        optimized = esat.compile(graph).optimized
        assert any(node.op.name == "abs" for node in optimized.toposort())


@pytest.mark.parametrize("mode", ["greedy", "fast_run", "o3", "unsafe"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_what_is_known_of_functions_of_real_numbers_is_not_of_complex_ones(mode, dtype):
    z = esat.TensorType(dtype, shape=(4,))("z")
    values = np.array([1 - 2.5j, -3 + 0.25j, -0.5j, 2], dtype)
    for inner in ("angle", "imag", "real"):
        part = getattr(esat, inner)(z)
        outputs = [abs(part), esat.floor(part), esat.maximum(part, 0), esat.sqrt(part**2), esat.sign(part)]
        wanted = getattr(np, inner)(values)
        results = esat.compile(esat.Graph([z], outputs), mode)(values)
        named = [np.abs, np.floor, lambda x: np.maximum(x, 0), np.abs, np.sign]
        for got, function in zip(results, named, strict=True):
            np.testing.assert_allclose(got, function(wanted), rtol=1e-6)
