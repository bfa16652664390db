"""What the processor that kernels are compiled for does in one instruction, and what it does by itself."""

from __future__ import annotations

import functools

from llvmlite import binding
from numba.core.registry import cpu_target

from esat.records import record

_SCALING = {"+avx512f", "+avx512dq", "+avx512vl"}
_SCALING_SINCE = 22
"""The version of LLVM that knows how AVX-512 multiplies by powers of two; others call the C library."""
_WIDTHS = {"+avx512f": 64, "+avx": 32}
"""What a processor has, and bytes of a vector, the longest first."""


@record(frozen=True)
class _Measured:
    """What was measured of a processor; where nothing was, all of it is false.

    Attributes
    ----------
    waits_at_pages
        It gains from announced pages. Zen 3 loses a fifth, which others might, too.
    fetches_little
        It gains where all lines of a single array are announced.
    reads_rows_one_by_one
        It gains where rows are announced all the time, and go one by one.
    loads_whole_vectors
        It loses where vectors of 64 bytes are loaded in halves.
    is_given_half_vectors
        It gains from vectors of 64 bytes, but LLVM gives it half of these.
    takes_turns
        It has vectors of 64 bytes, and gains where two of them take turns.
    """

    waits_at_pages: bool = False
    fetches_little: bool = False
    reads_rows_one_by_one: bool = False
    loads_whole_vectors: bool = False
    is_given_half_vectors: bool = False
    takes_turns: bool = False


_MEASURED = {
    "znver4": _Measured(waits_at_pages=True),
    "znver5": _Measured(fetches_little=True, reads_rows_one_by_one=True, loads_whole_vectors=True),
    "emeraldrapids": _Measured(fetches_little=True, is_given_half_vectors=True, takes_turns=True),
}
"""By LLVM's names of processors."""


@functools.cache
def scales() -> bool:
    """Whether numbers, and vectors of them, are multiplied by powers of two, rounded once."""
    return binding.llvm_version_info[0] >= _SCALING_SINCE and _features() >= _SCALING


@functools.cache
def vector_bytes() -> int:
    """Bytes of the longest vectors."""
    return next((width for feature, width in _WIDTHS.items() if feature in _features()), 16)


@functools.cache
def tiles_products() -> bool:
    """Whether products of small matrices shall be made in tiles of registers, not by BLAS.

    Those of OpenBLAS for AVX-512 are as good.
    """
    return {"+avx2", "+fma"} <= _features() and vector_bytes() == _WIDTHS["+avx"]


@functools.cache
def chooses_by_masks() -> bool:
    """Whether vectors have masks of their own, which comparisons give, and which choose for nothing.

    Where they have not, choosing is an operation of its own, and looks at sign bits.
    """
    return "+avx512f" in _features()


@functools.cache
def rounds_at_once() -> bool:
    """Whether rounding to an integer takes no longer than an addition; elsewhere it takes as long as two."""
    return "+avx512f" in _features()


@functools.cache
def waits_at_pages() -> bool:
    """Whether it reads memory sooner where the first lines of the next pages are announced."""
    return _measured().waits_at_pages


@functools.cache
def fetches_little() -> bool:
    """Whether it reads one array sooner where each line is announced, not just where pages begin."""
    return _measured().fetches_little


@functools.cache
def reads_rows_one_by_one() -> bool:
    """Whether rows that are written past the caches are read sooner one by one, as sums are taken, too.

    Others read them in groups, and the next group while they write one.
    """
    return _measured().reads_rows_one_by_one


def reads_faster_from_many_places() -> bool:
    """Whether it reads memory sooner from a few places in turns than from one end to the other.

    Where vectors have 64 bytes that was not measured.
    """
    return vector_bytes() == _WIDTHS["+avx"]


@functools.cache
def prefers_half_vectors() -> bool:
    """Whether vectors of half the length serve loops that wait for the caches."""
    return not _measured().loads_whole_vectors


@functools.cache
def is_given_half_vectors() -> bool:
    """Whether LLVM uses vectors of half the length by itself, though whole ones are faster."""
    return _measured().is_given_half_vectors


@functools.cache
def takes_turns_in_long_vectors() -> bool:
    """Whether elementary functions are computed sooner of two vectors of 64 bytes in turns."""
    return vector_bytes() == _WIDTHS["+avx512f"] and _measured().takes_turns


def _measured() -> _Measured:
    return _MEASURED.get(_name(), _Measured())


def _name() -> str:
    _, name, _ = cpu_target.target_context.codegen().magic_tuple()
    return str(name)


def _features() -> set[str]:
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return set(features.split(","))
