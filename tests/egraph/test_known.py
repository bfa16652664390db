"""What is known of the numbers of Variables, asked without a rule."""

import pytest

import esat
from esat.egraph import known


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
