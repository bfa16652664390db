"""What the cost model knows of a device, and of the way to it."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from esat.base.records import record
from esat.extract.prices.machine import MachineProfile, profile_path
from esat.extract.prices.stored_profile import StoredProfile


@record(frozen=True, slots=True)
class Link:
    """The way between the host's memory and the device's.

    Attributes
    ----------
    latency
        Seconds that a copy takes, whatever its size, and waiting for it.
    bandwidth
        Bytes a second, from and to memory as NumPy gets it: pages that are locked are five times as fast, but
        an array has to be copied there first.
    """

    latency: float = 1.9e-5
    bandwidth: float = 1.0e10

    def seconds(self, size: float) -> float:
        """Seconds of copying so many bytes, in either direction.

        >>> Link(latency=1e-5, bandwidth=1e10).seconds(1e6)
        0.00011
        """
        return self.latency + size / self.bandwidth


@record(frozen=True, slots=True)
class DeviceProfile(StoredProfile):
    """Rates and overheads of a device; the defaults were measured on an H100.

    Attributes
    ----------
    bandwidth
        Bytes a second that a large copy within the device reads and writes.
    cache_size, cache_bandwidth
        Bytes of the last-level cache, and bytes a second from and to it.
    call
        Seconds of a call besides its steps: checks of arguments, waiting for the last step.
    launch
        Seconds from one kernel to the next.
    matrix_call, library_call
        Seconds that a matrix product, and another library routine, takes besides.
    element_rate
        Additions a second, in float64.
    single_speedup
        How many times faster float32 is.
    matrix_rate, matrix_single_speedup
        Floating-point operations a second of a large float64 matrix product; the factor of float32, in full
        precision.
    matrix_half
        Size of an axis of a matrix product at which it has half that rate, where the others are long.
    transposed_rate
        Elements a second read against their order in memory.
    library_rate
        Operations a second of library routines that sort, search and accumulate.
    link
        The way to the host.
    """

    kind: ClassVar[str] = "device"
    version: ClassVar[int] = 1
    bandwidth: float = 3.0e12
    cache_size: float = 5.0e7
    cache_bandwidth: float = 5.0e12
    call: float = 1.6e-5
    launch: float = 1.8e-6
    matrix_call: float = 8.0e-6
    library_call: float = 2.0e-5
    element_rate: float = 2.5e13
    single_speedup: float = 2.0
    matrix_rate: float = 6.3e13
    matrix_single_speedup: float = 0.82
    matrix_half: float = 240.0
    transposed_rate: float = 1.5e11
    library_rate: float = 5.0e10
    link: Link = field(default_factory=Link)

    def machine(self) -> MachineProfile:
        """The device as the cost model's formulas take a machine: what e-nodes and steps cost on it.

        >>> DeviceProfile(launch=4e-06).machine().kernel_call
        4e-06
        """
        return replace(
            MachineProfile(),
            element_rate=self.element_rate,
            single_speedup=self.single_speedup,
            reduction_rate=self.element_rate,
            row=0.0,
            transposed_rate=self.transposed_rate,
            # Its library reads and writes by index arrays.
            gather_rate=0.0,
            scatter_rate=0.0,
            matrix_rate=self.matrix_rate,
            matrix_single_speedup=self.matrix_single_speedup,
            matrix_half=self.matrix_half,
            structured_call=self.matrix_call,
            cache_sizes=(self.cache_size, self.cache_size),
            bandwidths=(self.cache_bandwidth, self.cache_bandwidth, self.bandwidth),
            kernel_call=self.launch,
            matrix_call=self.matrix_call,
            library_call=self.library_call,
            library_rate=self.library_rate,
            # One op more in a kernel costs its arithmetic: the launch is not longer for it.
            fused_op=1.0e-9,
            call=self.call,
            parallel_speedup=1.0,
            parallel_bandwidth=1.0,
        )


def device_profile_path() -> Path:
    """Where the profile of this machine's device is stored: beside that of the machine."""
    return profile_path().with_suffix(".device.json")


@cache
def device_profile() -> DeviceProfile:
    """The stored profile of this machine's device; the shipped one where there is none that can be read."""
    return DeviceProfile.stored(device_profile_path())


def store_device_profile(profile: DeviceProfile) -> Path:
    """Keep a profile for later processes, in the file returned. Raises OSError."""
    path = profile.store(device_profile_path())
    device_profile.cache_clear()
    return path
