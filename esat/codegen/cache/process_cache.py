"""The one cache that a process uses by default, opened on first use."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from numba.core.typing.templates import Signature

from esat.codegen.cache.compiled_kernel import CompiledKernel, CompileOptions
from esat.codegen.cache.kernel_cache import CacheInfo, KernelCache
from esat.storage import default_directory


@functools.cache
def process_cache() -> KernelCache:
    """The process's cache in :func:`default_directory`."""
    return KernelCache(default_directory())


def load_or_compile(
    source: str,
    entry: str,
    signature: Signature,
    environment: Mapping[str, object],
    options: CompileOptions | None = None,
) -> CompiledKernel:
    """See :meth:`KernelCache.load_or_compile`."""
    return process_cache().load_or_compile(source, entry, signature, environment, options)


def info() -> CacheInfo:
    """See :meth:`KernelCache.info`."""
    return process_cache().info()


def misses() -> int:
    """See :attr:`KernelCache.misses`."""
    return process_cache().misses


def is_stored() -> bool:
    """See :attr:`KernelCache.is_stored`."""
    return process_cache().is_stored


def clear() -> None:
    """See :meth:`KernelCache.clear`."""
    process_cache().clear()
