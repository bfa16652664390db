"""Random numbers drawn on a device: NumPy's to the last bit, and the generators go on as on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import esat
from esat.gpu import random
from esat.gpu.device import Device
from esat.gpu.random import Uniforms, draw_of
from esat.graph.random_type import RandomState
from esat.ops.random.distributions import NumberVariable
from tests.gpu.programs import compiled_for, of_host


@pytest.mark.parametrize("count", [1, 31, 700, 5000])
def test_numbers_and_the_state_after_them_are_numpys(
    count: int, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "_MOST_BLOCKS", 4)  # threads go on where they have drawn
    mine, theirs = np.random.default_rng(7), np.random.default_rng(7)
    for one in (mine, theirs):
        one.random(3)
        one.integers(5, dtype="int32")  # leaves half of a number behind
    uniforms = Uniforms(device)
    found = device.download(uniforms.draw(mine, (count,), -2.5, 3.75))
    np.testing.assert_array_equal(found, theirs.uniform(-2.5, 1.25, count))
    assert mine.bit_generator.state == theirs.bit_generator.state


def _noise() -> tuple[esat.Graph, Any]:
    rng = esat.random.RandomStream(3)
    x = esat.matrix("x", dtype="float64")
    kept = rng.bernoulli(0.75, size=(20, 30))
    noise = rng.uniform(-1.0, 1.0, size=(20, 30))
    return esat.Graph([x], [esat.where(kept, x, 0.0) + noise, rng.normal(size=(3,))]), rng


def test_programs_draw_what_the_host_draws_call_after_call(device: Device) -> None:
    x = np.linspace(0, 1, 600).reshape(20, 30)
    here, there = of_host(_noise()[0]), compiled_for(device, _noise()[0])
    for _ in range(3):
        for wanted, found in zip(here(x), there(x), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_no_sample_is_copied_to_the_device(stand_in: Device) -> None:
    function = compiled_for(stand_in, _noise()[0])
    function(np.ones((20, 30)))
    stand_in.arrays.uploads.clear()
    function(np.ones((20, 30)))
    assert stand_in.arrays.uploads == [20 * 30 * 8]


def test_the_host_draws_what_the_device_cannot() -> None:
    uniform, bernoulli = NumberVariable(1, name="uniform"), NumberVariable(1, name="bernoulli")
    pcg, other = RandomState(np.random.PCG64(1)), RandomState(np.random.MT19937(1))
    zero, one, size = np.array(0.0), np.array(1.0), np.array(3)
    assert draw_of(uniform, [pcg, zero, one, size]) is not None
    assert draw_of(uniform, [other, zero, one, size]) is None
    assert draw_of(uniform, [pcg, zero, np.array([1.0, 2.0, 3.0]), size]) is None
    assert draw_of(uniform, [pcg, one, zero, size]) is None
    assert draw_of(bernoulli, [pcg, np.array(1.5), size]) is None
    assert draw_of(NumberVariable(1, name="exponential"), [pcg, one, size]) is None
