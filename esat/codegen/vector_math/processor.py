"""What the processor that kernels are compiled for does in one instruction."""

from __future__ import annotations

import functools

from llvmlite import binding
from numba.core.registry import cpu_target

_SCALING = {"+avx512f", "+avx512dq", "+avx512vl"}
_SCALING_SINCE = 22
"""The version of LLVM that knows how AVX-512 multiplies by powers of two; others call the C library."""


@functools.cache
def scales() -> bool:
    """Whether numbers, and vectors of them, are multiplied by powers of two, rounded once."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return binding.llvm_version_info[0] >= _SCALING_SINCE and set(features.split(",")) >= _SCALING
