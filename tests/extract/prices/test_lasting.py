"""What depends on constants alone costs a call a share of its time, where the program keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import esat
from esat.extract.prices import lasting
from esat.graph import Constant
from esat.ops.contraction import MatMul
from esat.runtime.executable import Executable

KEEPING = "fast_run"


def matrix(rows: int, columns: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(rows + columns).normal(size=(rows, columns))


def applied(left: Any, right: Any, columns: int, mode: Any = KEEPING) -> Executable:
    """x -> left (right x), checked."""
    first, second = (one.get_value() if isinstance(one, esat.Variable) else one for one in (left, right))
    x, given = esat.matrix("x", shape=(second.shape[1], columns)), matrix(second.shape[1], columns)
    compiled = esat.compile(esat.Graph([x], [esat.matmul(left, esat.matmul(right, x))]), mode=mode)
    np.testing.assert_allclose(compiled(given), first @ (second @ given), rtol=1e-9, atol=1e-9)
    return compiled


def products(compiled: Executable) -> int:
    return sum(isinstance(node.op, MatMul) for node in compiled.graph.toposort())


def test_a_product_of_constants_is_made_where_that_saves_one_for_each_call() -> None:
    compiled = applied(matrix(400, 400), matrix(400, 400), 64)
    assert products(compiled) == 1


def test_a_product_of_constants_is_not_made_where_it_is_larger_than_they_are() -> None:
    compiled = applied(matrix(1000, 5), matrix(5, 1000), 1)
    assert products(compiled) == 2
    constants = [v for node in compiled.graph.toposort() for v in node.inputs if isinstance(v, Constant)]
    assert max(np.size(constant.data) for constant in constants) == 5000


@pytest.mark.parametrize("mode", [esat.Mode(KEEPING, invariants=False), "strict"], ids=str)
def test_modes_that_keep_nothing_or_change_no_order(mode: Any) -> None:
    assert products(applied(matrix(400, 400), matrix(400, 400), 64, mode)) == 2


def test_shared_variables_may_change() -> None:
    shared = [esat.shared(matrix(400, 400), name=name) for name in "ab"]
    assert products(applied(*shared, 64)) == 2


def test_what_few_calls_would_not_pay_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "CALLS", 1)
    assert products(applied(matrix(400, 400), matrix(400, 400), 64)) == 2


def test_room_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "LARGEST_BYTES", 400 * 400 * 8 - 1)
    assert products(applied(matrix(400, 400), matrix(400, 400), 64)) == 2


def test_what_runs_under_a_condition_is_not_kept() -> None:
    left, right, given = matrix(400, 400), matrix(400, 400), matrix(400, 64)
    x, condition = esat.matrix("x", shape=given.shape), esat.scalar("condition", dtype="bool")
    both = esat.matmul(left, esat.matmul(right, x))
    compiled = esat.compile(esat.Graph([condition, x], [esat.ifelse(condition, both, x)]))
    np.testing.assert_allclose(compiled(np.True_, given), left @ (right @ given), rtol=1e-9, atol=1e-9)
    assert products(compiled) == 2
