"""Writes to elements that index arrays name, on a device: NumPy's results to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import esat
from esat.gpu.device import Device
from esat.gpu.kernel_text.scatter import SCATTERED, DeviceScatter
from esat.ops.index.advanced import AdvancedSetSubtensor
from tests.gpu.programs import compiled_for, numbers

PLACES = np.array([2, -1, 0, 2, 2, 1, 0, 2, 2, 2, 3, 2])
"""Most of them are named several times; one has more than two runs of four."""

Index = Callable[[Any], Any]
INDICES: dict[str, Any] = {
    "rows": (PLACES,),
    "columns": (slice(None), PLACES),
    "pairs": (PLACES, PLACES[::-1]),
    "apart": (PLACES, slice(1, 3), PLACES[::-1]),
    "a part of a row": (PLACES, slice(None, None, 2)),
    "a number and columns": (1, slice(None), PLACES),
    "a new axis": (PLACES, None, slice(1, None)),
    "none": (PLACES[:0],),
    "a table": (PLACES.reshape(3, 4),),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("adds", [True, False], ids=["add", "set"])
def test_forms_write_what_numpy_writes(name: str, adds: bool, device: Device) -> None:
    index, data = INDICES[name], numbers(4, 5, 4, dtype="float32") * 1e3
    part = numbers(*data[index].shape, dtype="float32")
    x, v = (esat.tensor("x", dtype="float32", shape=(None,) * one.ndim) for one in (data, part))
    written = (esat.inc_subtensor if adds else esat.set_subtensor)(esat.exp(0 * x)[index], v)
    function = compiled_for(device, esat.Graph([x, v], [written]))
    sides = [step.side for step in function.steps if isinstance(step.nodes[0].op, AdvancedSetSubtensor)]
    assert sides == ["device"]
    wanted = np.ones_like(data)
    if adds:
        np.add.at(wanted, index, part)
    else:
        wanted[index] = part
    for _ in range(2):
        np.testing.assert_array_equal(function(data, part), wanted)


@pytest.mark.parametrize(
    ("dtype", "adds"), [(dtype, adds) for dtype in sorted(SCATTERED) for adds in (False, dtype != "bool")]
)
def test_every_dtype(dtype: str, adds: bool, device: Device) -> None:
    target, value = (numbers(*shape, dtype="float64") * 90 for shape in ((4, 3), (12, 3)))
    wanted, value = (np.abs(array).astype(dtype) for array in (target, value))
    on_device = device.upload(wanted)
    DeviceScatter(device, dtype, adds).write(on_device, (device.upload(PLACES),), device.upload(value), 1)
    if adds:
        np.add.at(wanted, PLACES, value)
    else:
        wanted[PLACES] = value
    np.testing.assert_array_equal(device.download(on_device), wanted)


def test_gradients_of_chosen_elements_stay_on_the_device(device: Device) -> None:
    x = esat.vector("x", dtype="float64")
    gradient = esat.grad(esat.sum(esat.exp(x)[PLACES] ** 2), x)
    function, data = compiled_for(device, esat.Graph([x], [gradient])), numbers(4, dtype="float64")
    assert {step.side for step in function.steps if step.kind != "transfer"} == {"device"}
    counts = np.bincount(PLACES % 4, minlength=4)
    np.testing.assert_allclose(function(data), 2 * counts * np.exp(2 * data), rtol=1e-12)
