"""Programs for a stand-in of a device, which tests compare with the host's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import esat
from esat.codegen.ground.host import host_target
from esat.codegen.routines import routine_for
from esat.gpu.device import Device
from esat.gpu.execution.link import has_form, link_placed
from esat.gpu.kernel_text.kernels import CudaKernels
from esat.gpu.kernel_text.vector_products import vector_products_as_sums
from esat.gpu.rules import DeviceRules
from esat.graph import TensorType
from esat.phases.fusing.fusion import fuse
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import ROWS, work_in_place
from esat.phases.placement import Ends, PlanSides, with_transfers
from esat.runtime import Executable
from esat.runtime.printed.kernel_calls import Kernels

Data: TypeAlias = list[np.ndarray[Any, Any]]
Built: TypeAlias = tuple[esat.Graph, Data]
"""A graph, and arrays for one call."""
SETTINGS = {"variants": 0, "invariants": False, "threads": 1}


def compiled_for(
    device: Device, graph: esat.Graph, *, ends: Ends | None = None, donated: tuple[int, ...] = ()
) -> Executable:
    """A graph, everything of which that can run on the device does."""
    optimized = vector_products_as_sums(of_host(graph).optimized)
    permissions = Permissions(frozenset(donated), graph.updated)
    final = work_in_place(optimized, permissions, frozenset(ROWS))
    plan = fuse(final, DeviceRules(), permissions=permissions)
    kernels = CudaKernels(device)
    steps = tuple("device" if has_form(group, kernels, device) else "host" for group in plan.groups)
    homes = tuple("device" if isinstance(one.type, TensorType) else "host" for one in permissions.updated)
    placement = with_transfers(plan, final, PlanSides(steps, homes, ends or Ends()), permissions)
    routines = partial(routine_for, target=host_target(), threads=1)
    return Executable(link_placed(placement, final, device, Kernels(threads=1), routines, permissions))


def of_host(graph: esat.Graph) -> Executable:
    """The same for the host."""
    return esat.compile(graph, esat.Mode(**SETTINGS))


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    """Numbers of a normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def elementwise() -> Built:
    """A kernel over a matrix, and a sum along its rows."""
    x, y = esat.matrix("x", dtype="float32"), esat.vector("y", dtype="float32")
    return esat.Graph([x, y], [esat.tanh(x) * y + esat.exp(x), (x * y).sum(axis=1)]), [
        numbers(30, 40),
        numbers(40, seed=1),
    ]


def logistic_regression() -> Built:
    """A training step: the loss, and weights that get new values."""
    x, y = esat.matrix("x", dtype="float32"), esat.vector("y", dtype="float32")
    w = esat.shared(np.zeros(16, "f"), name="w")
    p = esat.sigmoid(x @ w)
    loss = -(y * esat.log(p) + (np.float32(1) - y) * esat.log(np.float32(1) - p)).mean()
    graph = esat.Graph([x, y], [loss], updates={w: w - np.float32(0.1) * esat.grad(loss, w)})
    return graph, [numbers(50, 16), (numbers(50, seed=1) > 0).astype("f")]


def perceptron() -> Built:
    """A training step of two layers."""
    x, y = esat.matrix("x", dtype="float32"), esat.matrix("y", dtype="float32")
    weights = [
        esat.shared(numbers(*shape, seed=place) * np.float32(0.3), name=f"w{place}")
        for place, shape in enumerate([(12, 20), (20,), (20, 3), (3,)])
    ]
    first, bias, second, shift = weights
    hidden = esat.tanh(x @ first + bias)
    loss = ((hidden @ second + shift - y) ** 2).mean()
    updates = {w: w - np.float32(0.05) * esat.grad(loss, w) for w in weights}
    return esat.Graph([x, y], [loss], updates=updates), [numbers(32, 12), numbers(32, 3, seed=9)]


def attention() -> Built:
    """A training step of one head of attention."""
    x, y = esat.matrix("x", dtype="float32"), esat.matrix("y", dtype="float32")
    start = [numbers(8, 8, seed=place) * np.float32(0.3) for place in range(3)]
    weights = [esat.shared(values, name=f"w{place}") for place, values in enumerate(start)]
    q, k, v = (x @ w for w in weights)
    found = esat.softmax(q @ k.T * np.float32(0.35), axis=1) @ v
    loss = ((found - y) ** 2).mean()
    updates = {w: w - np.float32(0.05) * esat.grad(loss, w) for w in weights}
    return esat.Graph([x, y], [loss, found], updates=updates), [numbers(24, 8), numbers(24, 8, seed=5)]


def black_scholes() -> Built:
    """Prices of options."""
    price, strike, years = (esat.vector(name, dtype="float64") for name in ("price", "strike", "years"))
    rate, volatility = 0.02, 0.3
    deviation = volatility * esat.sqrt(years)
    above = (esat.log(price / strike) + (rate + volatility**2 / 2) * years) / deviation
    below = above - deviation

    def normal(z: Any) -> Any:
        return 0.5 * (1 + esat.erf(z / np.sqrt(2)))

    discounted = strike * esat.exp(-rate * years)
    call = price * normal(above) - discounted * normal(below)
    put = discounted * normal(-below) - price * normal(-above)
    data = [np.random.default_rng(place).uniform(*bounds, 300) for place, bounds in enumerate(_BOUNDS)]
    return esat.Graph([price, strike, years], [call, put]), data


_BOUNDS = ((10.0, 50.0), (10.0, 50.0), (1.0, 2.0))


def gaussian_process() -> Built:
    """The mean and the variance of a Gaussian process between observations."""
    seen, values, wanted = (esat.vector(name, dtype="float64") for name in ("seen", "values", "wanted"))

    def covariance(a: Any, b: Any) -> Any:
        return esat.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / 0.3)

    matrix = covariance(seen, seen) + 0.1 * esat.eye(20)
    across = covariance(wanted, seen)
    mean = across @ esat.linalg.solve(matrix, values)
    factor = esat.linalg.cholesky(matrix)
    half = esat.linalg.solve(factor, across.T)
    variance = 1.0 - (half**2).sum(axis=0)
    rng = np.random.default_rng(3)
    data = [rng.uniform(-2, 2, 20), rng.standard_normal(20), np.linspace(-2, 2, 9)]
    return esat.Graph([seen, values, wanted], [mean, variance]), data


PROGRAMS: dict[str, Callable[[], Built]] = {
    function.__name__: function
    for function in (
        elementwise,
        logistic_regression,
        perceptron,
        attention,
        black_scholes,
        gaussian_process,
    )
}
