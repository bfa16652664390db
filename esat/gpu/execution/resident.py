"""Shared variables on a device: their values stay there between calls, and come back when they are read."""

from __future__ import annotations

from typing import Any

from esat.gpu.device import Device, DeviceArray
from esat.graph import SharedVariable
from esat.graph.op import Array


class Resident:
    """The value of a shared variable on a device.

    Attributes
    ----------
    device, array
        Where, and the array there.
    version
        That of the variable when both sides had the same value, or this one the newest.
    """

    __slots__ = ("_source", "array", "device", "version")

    def __init__(
        self, device: Device, array: DeviceArray, version: int = -1, source: Array | None = None
    ) -> None:
        self.device = device
        self.array = array
        self.version = version
        self._source = source

    def fetch(self) -> Array:
        """The value as a NumPy array that nobody else holds."""
        self._source = self.device.download(self.array)
        return self._source

    def lend(self) -> Any:
        """The device's array itself."""
        return self.array

    def is_current(self, variable: SharedVariable) -> bool:
        """Whether the variable's value is still the one here."""
        if variable.is_elsewhere:
            return True
        return self.version == variable.version and not variable.lent and variable.look() is self._source


def array_of(variable: SharedVariable, device: Device) -> DeviceArray:
    """The value on a device, to be read now; copied to it where it is not there, or not the newest."""
    holder = variable.elsewhere
    if isinstance(holder, Resident) and holder.device is device and holder.is_current(variable):
        return holder.array
    value = variable.own_value() if variable.is_elsewhere else variable.look()
    array = device.upload(value)
    variable.elsewhere = Resident(device, array, variable.version, value)
    return array


def keep_there(variable: SharedVariable, device: Device, array: DeviceArray) -> None:
    """The newest value is ``array`` on a device, which nobody else holds."""
    holder = Resident(device, array)
    variable.live_elsewhere(holder)
    holder.version = variable.version


def shape_of(variable: SharedVariable) -> tuple[int, ...]:
    """The shape of a shared variable's value, wherever that is."""
    if variable.is_elsewhere:
        assert isinstance(variable.elsewhere, Resident)
        return tuple(variable.elsewhere.array.shape)
    shape: tuple[int, ...] = variable.look().shape
    return shape
