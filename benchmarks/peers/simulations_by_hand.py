"""Steps of simulations as somebody would write them for numba."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from benchmarks.peers.simulation_cases import SOFTENING

Array = Any


@numba.njit(error_model="numpy")
def horizontal_diffusion(field: Array, coefficient: Array) -> Array:
    planes, rows, columns = field.shape
    out = np.empty((planes, rows - 4, columns - 4), field.dtype)
    laplacian = np.empty((rows - 2, columns - 2), field.dtype)
    down = np.empty((rows - 3, columns - 4), field.dtype)
    across = np.empty((rows - 4, columns - 3), field.dtype)
    for k in range(planes):
        for i in range(rows - 2):
            for j in range(columns - 2):
                beside = field[k, i + 1, j + 2] + field[k, i + 1, j]
                neighbours = field[k, i + 2, j + 1] + field[k, i, j + 1] + beside
                laplacian[i, j] = 4.0 * field[k, i + 1, j + 1] - neighbours
        for i in range(rows - 3):
            for j in range(columns - 4):
                flux = laplacian[i + 1, j + 1] - laplacian[i, j + 1]
                against = flux * (field[k, i + 2, j + 2] - field[k, i + 1, j + 2]) > 0.0
                down[i, j] = 0.0 if against else flux
        for i in range(rows - 4):
            for j in range(columns - 3):
                flux = laplacian[i + 1, j + 1] - laplacian[i + 1, j]
                against = flux * (field[k, i + 2, j + 2] - field[k, i + 2, j + 1]) > 0.0
                across[i, j] = 0.0 if against else flux
        for i in range(rows - 4):
            for j in range(columns - 4):
                change = down[i + 1, j] - down[i, j] + across[i, j + 1] - across[i, j]
                out[k, i, j] = field[k, i + 2, j + 2] - coefficient[k, i, j] * change
    return out


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def forces(positions: Array, masses: Array) -> tuple[Array, Array, Array]:
    count = len(masses)
    first, second, third = np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        x, y, z = 0.0, 0.0, 0.0
        for j in range(count):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            squared = dx * dx + dy * dy + dz * dz + SOFTENING
            pull = masses[j] / (squared * math.sqrt(squared))
            x += dx * pull
            y += dy * pull
            z += dz * pull
        first[i], second[i], third[i] = x, y, z
    return first, second, third
