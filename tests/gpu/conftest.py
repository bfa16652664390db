"""The device that tests run on: a stand-in over NumPy, or with ``ESAT_TEST_DEVICE=cuda`` a real one."""

from __future__ import annotations

import os

import pytest
from gpu.emulator.stand_in import StandIn

from esat.gpu.device import Device, cuda_device

IS_REAL = os.environ.get("ESAT_TEST_DEVICE") == "cuda"


def make_device() -> Device:
    """The real device, or a new stand-in."""
    return cuda_device() if IS_REAL else Device(StandIn())


@pytest.fixture
def device() -> Device:
    """The device."""
    return make_device()


@pytest.fixture
def stand_in() -> Device:
    """The stand-in, for what a real device does not tell or do."""
    if IS_REAL:
        pytest.skip("about the stand-in alone")
    return Device(StandIn())
