"""What the processor that kernels are compiled for does in one instruction, and what it does by itself."""

from __future__ import annotations

import functools

from llvmlite import binding
from numba.core.registry import cpu_target

_SCALING = {"+avx512f", "+avx512dq", "+avx512vl"}
_SCALING_SINCE = 22
"""The version of LLVM that knows how AVX-512 multiplies by powers of two; others call the C library."""
_WIDTHS = {"+avx512f": 64, "+avx": 32}
"""What a processor has, and bytes of a vector, the longest first."""
_WAITING_AT_PAGES = {"znver4"}
"""LLVM's names of processors that were seen to gain from announced pages: Zen 3 loses a fifth, which others
might, too."""
_FETCHING_LITTLE = {"znver5", "emeraldrapids"}
"""The same of those that gain where all lines of a single array are announced."""
_READING_ROWS_ONE_BY_ONE = {"znver5"}
"""The same of those that gain where rows are announced all the time, and go one by one; Emerald Rapids
loses a third."""
_LOADING_WHOLE_VECTORS = {"znver5"}
"""The same of those that lose where vectors of 64 bytes are loaded in halves."""
_GIVEN_HALF_VECTORS = {"emeraldrapids"}
"""The same of those that gain from vectors of 64 bytes, but are given half of these by LLVM."""
_TAKING_TURNS = {"emeraldrapids"}
"""The same of those that have vectors of 64 bytes, and gain where two of them take turns."""


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
    return _name() in _WAITING_AT_PAGES


@functools.cache
def fetches_little() -> bool:
    """Whether it reads one array sooner where each line is announced, not just where pages begin."""
    return _name() in _FETCHING_LITTLE


@functools.cache
def reads_rows_one_by_one() -> bool:
    """Whether rows that are written past the caches are read sooner one by one, as sums are taken, too.

    Others read them in groups, and the next group while they write one.
    """
    return _name() in _READING_ROWS_ONE_BY_ONE


def reads_faster_from_many_places() -> bool:
    """Whether it reads memory sooner from a few places in turns than from one end to the other.

    Where vectors have 64 bytes that was not measured.
    """
    return vector_bytes() == _WIDTHS["+avx"]


@functools.cache
def prefers_half_vectors() -> bool:
    """Whether vectors of half the length serve loops that wait for the caches."""
    return _name() not in _LOADING_WHOLE_VECTORS


@functools.cache
def is_given_half_vectors() -> bool:
    """Whether LLVM uses vectors of half the length by itself, though whole ones are faster."""
    return _name() in _GIVEN_HALF_VECTORS


@functools.cache
def takes_turns_in_long_vectors() -> bool:
    """Whether elementary functions are computed sooner of two vectors of 64 bytes in turns."""
    return vector_bytes() == _WIDTHS["+avx512f"] and _name() in _TAKING_TURNS


def _name() -> str:
    _, name, _ = cpu_target.target_context.codegen().magic_tuple()
    return str(name)


def _features() -> set[str]:
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return set(features.split(","))
