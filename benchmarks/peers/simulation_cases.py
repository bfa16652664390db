"""Steps of simulations: a stencil with a limiter, and forces between all pairs of bodies.

Both are among the programs of A. Ziogas, T. Ben-Nun, T. Schneider, T. Hoefler, "NPBench: a benchmarking suite
for high-performance NumPy", 2021, where they are written much as here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.cases import Case, Input

PLANES = 8
SOFTENING = 0.01


def _unwritten() -> Callable[..., Any]:
    raise NotImplementedError


@dataclass(frozen=True)
class Simulation(Case):
    """One step.

    Attributes
    ----------
    by_hand
        Makes a function of the arrays, compiled by numba: loops as somebody would write them.
    """

    by_hand: Callable[[], Callable[..., Any]] = _unwritten


def horizontal_diffusion(xp: Any, field: Any, coefficient: Any) -> Any:
    """Fourth-order diffusion in each plane, without fluxes against the gradient (COSMO's dynamical core)."""
    neighbours = field[:, 2:, 1:-1] + field[:, :-2, 1:-1] + field[:, 1:-1, 2:] + field[:, 1:-1, :-2]
    laplacian = 4.0 * field[:, 1:-1, 1:-1] - neighbours
    flux = laplacian[:, 1:, 1:-1] - laplacian[:, :-1, 1:-1]
    down = xp.where(flux * (field[:, 2:-1, 2:-2] - field[:, 1:-2, 2:-2]) > 0.0, 0.0, flux)
    flux = laplacian[:, 1:-1, 1:] - laplacian[:, 1:-1, :-1]
    across = xp.where(flux * (field[:, 2:-2, 2:-1] - field[:, 2:-2, 1:-2]) > 0.0, 0.0, flux)
    change = down[:, 1:, :] - down[:, :-1, :] + across[:, :, 1:] - across[:, :, :-1]
    return field[:, 2:-2, 2:-2] - coefficient * change


def forces(xp: Any, positions: Any, masses: Any) -> Any:
    """The acceleration of each body by the gravity of all, by axes."""
    apart = [positions[:, axis][None, :] - positions[:, axis][:, None] for axis in range(3)]
    squared = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + SOFTENING
    inverse = squared**-1.5
    return tuple(xp.matmul(one * inverse, masses) for one in apart)


def _hand(name: str) -> Callable[[], Callable[..., Any]]:
    def made() -> Callable[..., Any]:
        from benchmarks.peers import simulations_by_hand

        found: Callable[..., Any] = getattr(simulations_by_hand, name)
        return found

    return made


SIMULATIONS: tuple[Simulation, ...] = (
    Simulation(
        "horizontal diffusion",
        horizontal_diffusion,
        (Input(lambda n: (PLANES, n, n), 0.0), Input(lambda n: (PLANES, n - 4, n - 4), 0.0)),
        by_hand=_hand("horizontal_diffusion"),
    ),
    Simulation(
        "forces between bodies",
        forces,
        (Input(lambda n: (n, 3)), Input(lambda n: (n,), 0.1)),
        by_hand=_hand("forces"),
    ),
)
