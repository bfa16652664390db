"""What the cost model knows of the machine, and where it is kept."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from esat.base.records import record
from esat.extract.prices.stored_profile import StoredProfile

VARIABLE = "ESAT_MACHINE_PROFILE"
"""Environment variable with the path of the profile to use instead of the one in the user's cache."""


@record(frozen=True, slots=True)
class MachineProfile(StoredProfile):
    """Rates and overheads of one thread of a machine; the defaults are those of a server of 2022.

    Attributes
    ----------
    element_rate
        Additions a second in a fused kernel, in float64, operands in cache.
    single_speedup
        How many times faster float32 is.
    moderate, transcendental
        What ops of 2 to 8 flops (division, square root), and of more (exponentials), take, against the
        flops that their records state.
    reduction_rate
        Elements a second that a kernel sums, in float64.
    row
        Seconds that a kernel which reduces along rows takes for each row, whatever its length.
    transposed_rate
        Elements a second read against their order in memory.
    gather_rate, scatter_rate
        Elements a second that a kernel reads by index arrays, and that it adds to places which those say, all
        in the core's own cache. 0 where kernels do neither.
    matrix_rate, matrix_single_speedup
        Floating-point operations a second of a large float64 matrix product; the factor of float32.
    matrix_half
        Size of an axis of a matrix product at which it has half that rate, where the others are long.
    diagonal_block
        Size of the blocks on the diagonal that a product with a triangular matrix, or of a matrix with its
        own transpose, computes in full; elsewhere it does half the work.
    structured_call
        Seconds that a product with a structured matrix takes besides, whatever its size.
    cache_sizes
        Bytes of a core's own cache, and of the last level.
    bandwidths
        Bytes a second from and to the core's own cache, the last level, and memory.
    kernel_call, matrix_call, library_call
        Seconds to enter a generated kernel, a matrix product, and an op that NumPy or SciPy computes.
    library_rate
        Operations a second of NumPy's and SciPy's own loops.
    fused_op
        Seconds that one op more in a kernel takes, whatever its size, or a view of an array.
    fused_traffic
        Share of an elementwise result's bytes that reach memory in spite of fusion: what the choice of
        e-nodes assumes, as it does not know the kernels.
    call
        Seconds of a call besides its steps: checks of arguments, new output arrays.
    parallel_from
        Seconds of a kernel in one thread from which several threads that are awake finish it sooner.
    parallel_after
        Seconds of calls in one thread before code for several is compiled. That takes .2 to .4 s and halves
        what follows at best on two processors: a program that then runs as long again has lost little by it.
    parallel_speedup, parallel_bandwidth
        How many times faster all threads together compute, and read and write memory; 1 where that was
        never measured.
    """

    kind: ClassVar[str] = "machine"
    version: ClassVar[int] = 6
    element_rate: float = 7.5e10
    single_speedup: float = 2.7
    moderate: float = 1.4
    transcendental: float = 2.8
    reduction_rate: float = 6.0e10
    row: float = 3.0e-9
    transposed_rate: float = 9.0e8
    gather_rate: float = 1.2e9
    scatter_rate: float = 1.0e9
    matrix_rate: float = 1.0e11
    matrix_single_speedup: float = 2.0
    matrix_half: float = 12.0
    diagonal_block: float = 40.0
    structured_call: float = 1.0e-6
    cache_sizes: tuple[float, float] = (1.0e6, 3.2e7)
    bandwidths: tuple[float, float, float] = (1.4e11, 1.0e11, 4.0e10)
    kernel_call: float = 2.0e-7
    matrix_call: float = 8.0e-7
    library_call: float = 1.0e-6
    library_rate: float = 4.0e8
    fused_op: float = 2.0e-8
    fused_traffic: float = 0.35
    call: float = 4.0e-7
    parallel_from: float = 7.0e-6
    parallel_after: float = 0.1
    parallel_speedup: float = 1.0
    parallel_bandwidth: float = 1.0

    def bandwidth(self, moved: float) -> float:
        """Bytes a second for a step that moves so many bytes."""
        own, last = self.cache_sizes
        return self.bandwidths[0 if moved <= own else 1 if moved <= last else 2]

    def kernel(self, work: float, traffic: float) -> float:
        """Seconds of a kernel, in one thread or in several, whichever is faster.

        Parameters
        ----------
        work, traffic
            Seconds of one thread for its arithmetic, and for reading and writing memory.
        """
        # Of what makes several threads worth while, one half is lost in starting them: with two, the
        # other half is what is gained.
        together = work / self.parallel_speedup + traffic / self.parallel_bandwidth + self.parallel_from / 2.0
        return min(work + traffic, together)

    def in_threads(self, threads: int) -> MachineProfile:
        """The profile for kernels in at most so many threads."""
        speedup, bandwidth = (
            min(gain, float(threads)) for gain in (self.parallel_speedup, self.parallel_bandwidth)
        )
        return replace(self, parallel_speedup=speedup, parallel_bandwidth=bandwidth)

    def in_loops(self) -> MachineProfile:
        """The profile for steps of loops, which run in native functions: nothing is called from Python."""
        return replace(self, **{name: min(getattr(self, name), most) for name, most in _IN_LOOPS.items()})


_IN_LOOPS = {"kernel_call": 1.5e-8, "matrix_call": 5e-8, "library_call": 5e-8, "fused_op": 3e-9}
"""At most what these take in native loops. With them steps of recurrences, RNN of 32, LSTM of 16, HMM, GARCH
and power iteration are predicted within a factor of 3 on a Xeon of 2022."""


def profile_path() -> Path:
    """Where the profile of this machine is stored."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("esat", appauthor=False)) / "machine.json"


@cache
def machine_profile() -> MachineProfile:
    """The stored profile of this machine; the shipped one where there is none that can be read."""
    return MachineProfile.stored(profile_path())


def store_profile(profile: MachineProfile) -> Path:
    """Keep a profile for later processes, in the file returned. Raises OSError."""
    path = profile.store(profile_path())
    machine_profile.cache_clear()
    return path
