"""Compiled kernels, kept in memory and on disk."""

from esat.base.storage import CacheWarning
from esat.codegen.cache.compiled_kernel import CompiledKernel, CompileOptions, assembly
from esat.codegen.cache.kernel_cache import (
    RECENT_KERNELS,
    CacheInfo,
    KernelCache,
    clear,
    info,
    is_stored,
    load_or_compile,
    misses,
    process_cache,
)

__all__ = [
    "RECENT_KERNELS", "CacheInfo", "CacheWarning", "CompileOptions", "CompiledKernel", "KernelCache",
    "assembly", "clear", "info", "is_stored", "load_or_compile", "misses", "process_cache",
]  # fmt: skip
