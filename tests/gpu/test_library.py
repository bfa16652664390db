"""Ops that are no kernels: each has a form on the device that computes what the host does, or a reason."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import esat
import esat.ops
from esat.gpu.device import Device
from esat.gpu.library import former_of
from esat.graph.op import Op
from esat.ops.linalg.factor import CHOLESKY_PULLBACK
from esat.ops.linalg.whitening import WHITEN
from tests.gpu.programs import compiled_for, numbers, of_host


def _kinds(base: type[Op] = Op) -> Iterator[type[Op]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def test_every_op_of_the_package_has_a_form_or_a_reason() -> None:
    for module in pkgutil.walk_packages(esat.ops.__path__, "esat.ops."):
        importlib.import_module(module.name)
    own = {kind for kind in _kinds() if kind.__module__.startswith("esat.ops.") and hasattr(kind, "perform")}
    concrete = {kind for kind in own if kind.perform is not Op.perform}
    assert [kind.__name__ for kind in concrete if bool(kind.host_only) == bool(former_of(kind))] == []


def test_reasons() -> None:
    x = esat.matrix("x")
    assert not esat.sort(x).owner.op.host_only
    assert esat.linalg.expm(x).owner.op.host_only == "a rare function of small matrices"


def _symmetric() -> Any:
    matrix = numbers(6, 6, dtype="float64")
    return matrix @ matrix.T + 6 * np.eye(6)


PLACES = np.array([3, 0, -1, 3, 2])
Case = tuple[Callable[[Any], Any], Any]
CASES: dict[str, Case] = {
    "matmul": (lambda x: x @ x.T, numbers(5, 7, dtype="float64")),
    "matmul float32": (lambda x: x @ x.T, numbers(5, 7)),
    "batched matmul": (lambda m: m @ esat.dimshuffle(m, (0, 2, 1)), numbers(3, 4, 5, dtype="float64")),
    "solve": (lambda x: esat.linalg.solve(x, x[:, :2]), _symmetric()),
    "solve of a vector": (lambda x: esat.linalg.solve(x, x[0]), _symmetric()),
    "triangular": (lambda x: esat.linalg.solve_triangular(x, x[:, :2], lower=True), _symmetric()),
    "whitened": (lambda x: WHITEN(x, x[:, :2]), _symmetric()),
    "whitened without a factor": (lambda x: WHITEN(x, x[:, :2]), np.diag([1.0, 2.0, 3.0, -1e-17])),
    "cholesky": (esat.linalg.cholesky, _symmetric()),
    "cholesky's pullback": (lambda x: CHOLESKY_PULLBACK(esat.linalg.cholesky(x), x), _symmetric()),
    "inverse": (esat.linalg.inv, _symmetric()),
    "determinant": (esat.linalg.det, _symmetric()),
    "slogdet": (lambda x: esat.linalg.slogdet(x)[1], _symmetric()),
    "eigenvalues": (esat.linalg.eigvalsh, _symmetric()),
    "eigenvectors": (lambda x: abs(esat.linalg.eigh(x)[1]), _symmetric()),
    "singular values": (esat.linalg.svdvals, numbers(5, 7, dtype="float64")),
    "qr": (lambda x: abs(esat.linalg.qr(x)[1]), numbers(7, 5, dtype="float64")),
    "sort": (lambda x: esat.sort(x, axis=0), numbers(5, 7, dtype="float64")),
    "argsort": (lambda x: esat.argsort(x, axis=1), numbers(5, 7)),
    "argsort of ties": (esat.argsort, np.array([2.0, 1.0, 2.0, 1.0, 1.0, np.nan])),
    "searchsorted": (lambda v: esat.searchsorted(v, v * 0.5, side="right"), np.sort(numbers(9, dtype="d"))),
    "cumsum": (lambda x: esat.cumsum(x, axis=1), numbers(5, 7, dtype="float64")),
    "cumprod": (lambda x: esat.cumprod(x, axis=0), numbers(5, 7, dtype="float64")),
    "take": (lambda x: x[PLACES], numbers(4, 6, dtype="float64")),
    "take of columns": (lambda x: x[1:, PLACES], numbers(4, 6, dtype="float64")),
    "take of pairs": (lambda x: x[PLACES, PLACES], numbers(4, 6, dtype="float64")),
    "mask": (lambda v: v[v > 0], numbers(20, dtype="float64")),
    "add to integers": (lambda v: esat.inc_subtensor(v[PLACES], -3), np.arange(5)),
    "set by a mask": (lambda v: esat.set_subtensor(v[v > 0], 0.5), numbers(20, dtype="float64")),
    "set a part": (lambda x: esat.set_subtensor(x[1:3], 0.5), numbers(4, 6, dtype="float64")),
    "add to a part": (lambda x: esat.inc_subtensor(x[:, ::2], 0.5), numbers(4, 6, dtype="float64")),
    "concatenate": (lambda x: esat.concatenate([x, x * 2.0], axis=1), numbers(4, 6, dtype="float64")),
    "stack": (lambda v: esat.stack([v, v * 2.0]), numbers(6, dtype="float64")),
    "diagonal": (esat.diagonal, numbers(4, 6, dtype="float64")),
    "diagonal matrix": (esat.diag, numbers(4, dtype="float64")),
    "reshape": (lambda x: esat.reshape(x, (3, 8)) * 2.0, numbers(4, 6, dtype="float64")),
    "reversed": (lambda x: x[::-1, ::-2], numbers(4, 6, dtype="float64")),
    "element": (lambda x: esat.stack([x[1, 2], x[0, 0]]), numbers(4, 6, dtype="float64")),
    "fft": (lambda v: abs(esat.fft.rfft(v)), numbers(16, dtype="float64")),
    "convolve": (lambda v: esat.convolve(v, v[:3]), numbers(9, dtype="float64")),
    "logsumexp of rows": (lambda x: esat.logsumexp(x, axis=1), numbers(4, 6, dtype="float64") * 500),
}


@pytest.mark.parametrize("name", CASES)
def test_forms_compute_what_the_host_does(name: str, device: Device) -> None:
    build, data = CASES[name]
    (x,) = [esat.tensor("x", dtype=str(data.dtype), shape=(None,) * data.ndim)]
    graph = esat.Graph([x], [build(x)])
    function = compiled_for(device, graph)
    assert {step.side for step in function.steps if step.kind in ("library", "view")} <= {"device"}
    tolerance = {"rtol": 2e-6, "atol": 1e-6} if data.dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13}
    wanted = of_host(graph)(data)
    for _ in range(2):
        found = function(data)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, **tolerance)


@pytest.mark.parametrize(
    ("build", "data", "error", "message"),
    [
        (
            lambda x: x[esat.argmax(x) + np.array([0, 5])],
            numbers(4),
            esat.IndexingError,
            "out of bounds",
        ),
        (esat.linalg.cholesky, -_symmetric(), esat.LinearAlgebraError, "positive definite"),
    ],
)
def test_errors_are_the_hosts(build: Any, data: Any, error: Any, message: str, device: Device) -> None:
    x = esat.tensor("x", dtype=str(data.dtype), shape=(None,) * data.ndim)
    graph = esat.Graph([x], [build(x)])
    with pytest.raises(error, match=message):
        of_host(graph)(data)
    with pytest.raises(error, match=message):
        compiled_for(device, graph)(data)


def test_complex_numbers_run_where_the_device_has_loops_for_them(device: Device) -> None:
    z = esat.tensor("z", dtype="complex128", shape=(None,))
    data = numbers(5, dtype="float64") + 1j
    graph = esat.Graph([z], [esat.clip(z, 0.0, 0.5), esat.exp(z) * z])
    function = compiled_for(device, graph)
    for found, wanted in zip(function(data), of_host(graph)(data), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    sides = {str(step.nodes[0].op): step.side for step in function.steps if step.kind == "library"}
    assert sides["clip"] == "host"
