"""What kernels are compiled for, as a value: an instruction set, caches, and the numbers of tuning.

A :class:`Target` is handed down: printing and compiling are functions of it and of the kernel, so that code
for another machine is made, and tested, like code for this one. Its defaults follow from the features of the
instruction set and from the sizes of the caches; :func:`esat.calibrate` measures the numbers.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import replace
from typing import Any

from llvmlite import binding

from esat.base.records import record

_SCALING = {"avx512f", "avx512dq", "avx512vl"}
_SCALING_SINCE = 22
"""The version of LLVM that knows how AVX-512 multiplies by powers of two; others call the C library."""
_X86, _ARM = "x86", "arm"
_LARGE_VECTOR = 64
LONGEST_VECTOR = 128
"""Bytes of the longest vectors that there are elementary functions of: those of several registers."""
# What `TuningNumbers` are where nobody measured; `benchmarks/kernel_tuning.py` compares them.
_ROWS_BYTES = 256 << 10
"""Bytes of the rows of a group, where the second-level cache is large."""
_NEAR_BYTES = 24 << 10
"""Bytes of rows that stay in the first-level cache, where it is large."""
_NEAR_LEVEL1 = 48 << 10
"""Bytes of a first-level cache that has room for lines that are prefetched."""
_PREFETCH_DISTANCE = 8192
_LARGEST_SHARE = 32_000_000
"""Bytes of the last level that one process may have, at most."""
_NON_TEMPORAL_SHARE = 0.75
"""Of the last level: what a kernel reads and writes no longer stays there."""


@record(frozen=True)
class Caches:
    """Bytes of the caches that a core reads through; of the last level, which others use too, all of it."""

    level1: int = 32 << 10
    level2: int = 1 << 20
    last: int = 32 << 20


@record(frozen=True)
class TuningNumbers:
    """The numbers that kernels are tuned by, which :func:`esat.calibrate` measures.

    Attributes
    ----------
    interleave_count
        Vectors of one register that loops of elementary functions compute side by side; 0 where LLVM decides.
    arithmetic_interleave_count
        The same of long loops without such functions.
    preferred_vector_bytes
        Bytes of vectors in loops that compute: LLVM takes half of the longest ones for some processors.
    memory_vector_bytes
        The same in loops that wait for the caches.
    prefetch_distance
        Bytes between what a loop reads of a single array and the line that it prefetches; 0 where none is.
    prefetch_from
        Bytes of an array from which sums prefetch: the core's own cache holds others.
    groups_rows
        Whether rows that are read from memory, and written past the caches, go in groups, the next of which
        is prefetched meanwhile. Elsewhere they go one by one, and the next one is prefetched all the time.
    rows_in_group
        Rows of a group, at most.
    group_bytes
        Bytes of the rows of a group: with those of the next one they stay in the core's own cache.
    reading_places
        From how many places, in all arrays together, sums read memory in turns; 1 for one after another.
    non_temporal_from
        Bytes that a kernel reads and writes from which it writes past the caches.
    """

    interleave_count: int
    arithmetic_interleave_count: int
    preferred_vector_bytes: int
    memory_vector_bytes: int
    prefetch_distance: int
    prefetch_from: int
    groups_rows: bool
    rows_in_group: int
    group_bytes: int
    reading_places: int
    non_temporal_from: int


@record(frozen=True)
class Target:
    """A machine that kernels are compiled for.

    Attributes
    ----------
    triple, cpu, features
        What LLVM is told: its names of the system and of the processor (empty for any), and the features of
        the instruction set, as ``+avx2,+fma``.
    vector_bytes, vector_registers
        Bytes of the longest vectors, and registers for them.
    scales
        Whether vectors are multiplied by powers of two in one instruction, rounded once.
    selects_by_masks
        Whether comparisons give masks, which choose for nothing; elsewhere choosing looks at sign bits.
    rounds_at_once
        Whether rounding to an integer takes no longer than an addition; elsewhere it takes as long as two.
    tiles_products
        Whether products of small matrices are made in tiles of registers, not by BLAS.
    unrolled_product
        Multiplications up to which a product of matrices is code of its own: BLAS takes as long to choose.
    caches
        Sizes of caches.
    tuning
        What is measured.

    Examples
    --------
    >>> Target.of("x86_64-unknown-linux-gnu", "+avx,+avx2,+fma").vector_bytes
    32
    >>> Target.of("aarch64-unknown-linux-gnu", "+neon").tuning.interleave_count
    0
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    scales: bool
    selects_by_masks: bool
    rounds_at_once: bool
    tiles_products: bool
    unrolled_product: int
    caches: Caches
    tuning: TuningNumbers

    @classmethod
    def of(cls, triple: str, features: str = "", cpu: str = "", caches: Caches | None = None) -> Target:
        """The target with this instruction set, tuned by what follows from that and the caches."""
        sizes = Caches() if caches is None else caches
        has = enabled(features)
        family = _family(triple)
        is_wide = "avx512f" in has
        vector_bytes = _LARGE_VECTOR if is_wide else 32 if "avx" in has else 16
        return cls(
            triple,
            cpu,
            features,
            vector_bytes=vector_bytes,
            vector_registers=32 if is_wide or family == _ARM else 16,
            scales=binding.llvm_version_info[0] >= _SCALING_SINCE and has >= _SCALING,
            selects_by_masks=is_wide,
            rounds_at_once=is_wide or family == _ARM,
            # OpenBLAS's kernels for AVX-512 are as good.
            tiles_products=has >= {"avx2", "fma"} and not is_wide,
            unrolled_product=512 if "avx" in has or family == _ARM else 128,
            caches=sizes,
            tuning=_default_tuning(vector_bytes, sizes),
        )

    def tuned(self, **numbers: Any) -> Target:
        """The same target with other numbers of its tuning."""
        return replace(self, tuning=replace(self.tuning, **numbers))

    def is_like(self, other: Target) -> bool:
        """Whether LLVM makes the same code for both, of what is the same."""
        return (self.triple, self.cpu, self.features) == (other.triple, other.cpu, other.features)

    @property
    def near_bytes(self) -> int:
        """Bytes of rows that stay in the first-level cache beside what else a loop reads."""
        return min(_NEAR_BYTES, self.caches.level1 * 3 // 4)

    @property
    def halves_memory_vectors(self) -> bool:
        """Whether loops that wait for memory are told to take vectors of half the length."""
        return self.tuning.memory_vector_bytes * 2 == self.vector_bytes == _LARGE_VECTOR

    @property
    def forces_whole_vectors(self) -> bool:
        """Whether all other loops are told to take the longest vectors, of which LLVM might take halves."""
        return self.tuning.preferred_vector_bytes == self.vector_bytes == _LARGE_VECTOR

    @property
    def interleave_count(self) -> int:
        """Vectors that loops of elementary functions compute side by side, where there are such functions."""
        return min(self.tuning.interleave_count, LONGEST_VECTOR // self.vector_bytes)

    @property
    def calls_formulas(self) -> bool:
        """Whether long formulas stay calls: several vectors side by side need many registers."""
        return self.vector_registers < 32 and self.interleave_count > 1

    @property
    def digest(self) -> str:
        """Text that tells targets apart, in names of machine code."""
        return _digest(self)


@functools.cache
def _digest(target: Target) -> str:
    return hashlib.sha256(repr(target).encode()).hexdigest()[:12]


def enabled(features: str) -> set[str]:
    """The features that LLVM's text of them says there are."""
    return {one[1:] for one in features.split(",") if one.startswith("+")}


def _family(triple: str) -> str:
    architecture = triple.partition("-")[0]
    return _ARM if architecture in ("aarch64", "arm64") else _X86


def _default_tuning(vector_bytes: int, caches: Caches) -> TuningNumbers:
    """What follows from the length of vectors and the caches.

    Vectors of 64 bytes keep the units busy for longer, and there are registers for two; of 32 bytes, four in
    turns fill the units. About others LLVM decides.
    """
    is_wide, is_middle = vector_bytes == _LARGE_VECTOR, vector_bytes == _LARGE_VECTOR // 2
    return TuningNumbers(
        interleave_count=2 if is_wide else 4 if is_middle else 0,
        arithmetic_interleave_count=2 if is_middle or is_wide else 0,
        preferred_vector_bytes=vector_bytes,
        # Halves of lines: what is not aligned lies in two lines only every other time.
        memory_vector_bytes=min(vector_bytes, _LARGE_VECTOR // 2),
        # Lines that are prefetched into the first-level cache must find room beside what a loop works on.
        prefetch_distance=_PREFETCH_DISTANCE if is_wide and caches.level1 >= _NEAR_LEVEL1 else 0,
        prefetch_from=max(caches.level2, 2 << 20),
        groups_rows=True,
        rows_in_group=8 if is_wide else 4,
        group_bytes=min(_ROWS_BYTES, caches.level2 // 2),
        reading_places=4 if is_middle else 1,
        # A virtual machine is told the last level of all of the machine.
        non_temporal_from=int(_NON_TEMPORAL_SHARE * min(caches.last, _LARGEST_SHARE)),
    )
