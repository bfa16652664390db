"""The library's threads in factorizations: left asleep for small matrices, and for programs of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import esat
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.matmul import lapack
from esat.graph import Op
from esat.ops.linalg.solve import Solve

NUMPYS = one_thread("numpy")
needs_control = pytest.mark.skipif(NUMPYS is None, reason="NumPy's BLAS is not the OpenBLAS of its wheel")


def counted(monkeypatch: pytest.MonkeyPatch, op: Op) -> list[int]:
    """The library's threads at each call of an op."""
    found: list[int] = []
    perform = type(op).perform

    def seen(self: Op, operands: Sequence[Any]) -> tuple[Any, ...]:
        assert NUMPYS is not None
        found.append(NUMPYS.count())
        return perform(self, operands)

    monkeypatch.setattr(type(op), "perform", seen)
    return found


@needs_control
@pytest.mark.parametrize(
    ("threads", "size", "alone"),
    [(2, 8, False), (2, 100, True), (2, 520, False), (1, 8, False), (1, 100, True), (1, 520, True)],
)
def test_threads_of_the_library(
    threads: int, size: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert NUMPYS is not None
    usual = NUMPYS.count()
    found = counted(monkeypatch, Solve())
    matrices = np.random.default_rng(size).normal(size=(2, size, size)) + size * np.eye(size)
    sides = np.ones((size, 3))
    (solved,) = lapack.performer(Solve(), threads)([matrices, sides])
    np.testing.assert_allclose(matrices @ solved, np.broadcast_to(sides, (2, size, 3)), rtol=1e-9)
    assert found == [1 if alone else usual]
    assert NUMPYS.count() == usual


@needs_control
def test_programs_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = counted(monkeypatch, Solve())
    a, b = esat.matrix("a"), esat.matrix("b")
    solve = esat.compile(esat.Graph([a, b], [esat.linalg.solve(a, b)]))
    solve(np.eye(100), np.ones((100, 1)))
    assert found == [1]


def test_errors_pass_and_threads_come_back() -> None:
    usual = None if NUMPYS is None else NUMPYS.count()
    with pytest.raises(esat.errors.LinearAlgebraError):
        lapack.performer(Solve(), 1)([np.zeros((60, 60)), np.ones((60, 1))])
    assert (None if NUMPYS is None else NUMPYS.count()) == usual


def test_other_ops_are_called_as_they_are() -> None:
    addition = (esat.vector("x") + esat.vector("y")).owner.op
    assert lapack.performer(addition, 1) == addition.perform
