"""Kernels by key: first from this process's memory, then from disk, else compiled."""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from weakref import WeakValueDictionary

from numba.core.typing.templates import Signature

from esat.base.forks import GATE
from esat.base.interrupts import delayed_interrupts
from esat.base.records import record
from esat.base.storage import DEFAULT_LIMIT, DiskStore, default_directory
from esat.codegen.cache.compiled_kernel import (
    CompiledKernel,
    CompileOptions,
    NumbaCode,
    compile_kernel,
    deserialize_kernel,
    serialize_kernel,
    signature_text,
)
from esat.codegen.cache.fingerprint import kernel_key
from esat.codegen.cache.machine_code import MachineCode
from esat.codegen.ground.host import host_target, runs_here
from esat.errors import CompileError

RECENT_KERNELS = 64
"""Kernels that are kept though nothing uses them; others go with the last function that does."""


@record(frozen=True)
class CacheInfo:
    """The state of a cache.

    Attributes
    ----------
    path
        The directory, or None for a cache in memory only.
    entries, bytes
        Kernels on disk and the room they take.
    memory_hits, disk_hits, misses
        How this process's requests were answered; a miss is a compilation.
    """

    path: Path | None
    entries: int
    bytes: int
    memory_hits: int
    disk_hits: int
    misses: int

    @property
    def hits(self) -> int:
        """Requests answered without compiling."""
        return self.memory_hits + self.disk_hits


class KernelCache:
    """A cache of compiled kernels; safe for use by several threads and several processes.

    Parameters
    ----------
    path
        An absolute directory for the entries, or None to keep kernels in memory only. A directory
        that cannot be used safely gives a :class:`CacheWarning` and a cache in memory.
    limit
        Bytes that the entries may take on disk.
    """

    def __init__(self, path: Path | None, limit: int = DEFAULT_LIMIT) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, Future[CompiledKernel]] = {}
        self._recent: OrderedDict[str, CompiledKernel] = OrderedDict()
        # What functions in use hold; machine code that nothing holds any more is gone from here.
        self._codes: WeakValueDictionary[str, MachineCode | NumbaCode] = WeakValueDictionary()
        self._memory_hits = 0
        self._disk_hits = 0
        self._misses = 0
        self._store = DiskStore(path, "kernel", limit)

    def load_or_compile(
        self,
        source: str,
        entry: str,
        signature: Signature,
        environment: Mapping[str, object],
        options: CompileOptions | None = None,
    ) -> CompiledKernel:
        """The compiled function ``entry`` of ``source``.

        Parameters
        ----------
        source
            Python source of one or more functions, in numba's nopython subset.
        entry
            The function to be called from outside.
        signature
            Its numba signature, return type included.
        environment
            The objects that the source names: intrinsics, numba types, modules, scalars.
        options
            Flags of the compilation; None for those of :class:`CompileOptions` for this machine.

        Raises
        ------
        CompileError
            When the source cannot be compiled, the environment holds an object that cannot be told apart
            from others by a key, or this machine cannot run code for the target.
        """
        with delayed_interrupts(), GATE.busy():
            chosen = CompileOptions(host_target()) if options is None else options
            if not runs_here(chosen.target):
                raise CompileError(f"kernel {entry}: this machine cannot run code for {chosen.target.triple}")
            return self._load_or_compile(source, entry, signature, environment, chosen)

    def _load_or_compile(
        self,
        source: str,
        entry: str,
        signature: Signature,
        environment: Mapping[str, object],
        options: CompileOptions,
    ) -> CompiledKernel:
        key = kernel_key(source, entry, signature_text(signature), environment, repr(options))
        with self._lock:
            known = self._recent.get(key)
            code = self._codes.get(key) if known is None else known.code
            if known is None and code is not None:
                from_disk = isinstance(code, MachineCode) and not code.bitcode
                known = CompiledKernel.of(code, key, source, entry, signature, options, from_disk)
            if known is not None:
                self._remember(known)
                self._memory_hits += 1
                return known
            pending = self._pending.get(key)
            if pending is not None:
                self._memory_hits += 1
            else:
                mine: Future[CompiledKernel] = Future()
                self._pending[key] = mine
        if pending is not None:
            return pending.result()
        try:
            kernel = self._load(key, source, entry, signature, options)
            if kernel is None:
                kernel = compile_kernel(key, source, entry, signature, environment, options)
                self._save(kernel)
        except BaseException as error:
            with self._lock:
                self._pending.pop(key, None)
            mine.set_exception(error)
            raise
        with self._lock:
            self._pending.pop(key, None)
            self._remember(kernel)
            self._disk_hits += kernel.from_disk
            self._misses += not kernel.from_disk
        mine.set_result(kernel)
        return kernel

    def _remember(self, kernel: CompiledKernel) -> None:
        self._codes[kernel.key] = kernel.code
        self._recent[kernel.key] = kernel
        self._recent.move_to_end(kernel.key)
        while len(self._recent) > RECENT_KERNELS:
            self._recent.popitem(last=False)

    def info(self) -> CacheInfo:
        """Counts of this process and the present content of the directory."""
        files = self._store.files()
        total = sum(file.size for file in files)
        return CacheInfo(
            self._store.path, len(files), total, self._memory_hits, self._disk_hits, self._misses
        )

    @property
    def misses(self) -> int:
        """Kernels that this process has compiled."""
        return self._misses

    @property
    def is_stored(self) -> bool:
        """Whether what is compiled now can be written to disk."""
        return self._store.path is not None and os.access(self._store.path, os.W_OK)

    def clear(self) -> None:
        """Forget all kernels, in memory and on disk, and start counting anew."""
        self.forget()
        self._store.clear()

    def forget(self) -> None:
        """Forget the kernels in memory and start counting anew; those on disk stay."""
        with self._lock:
            self._recent.clear()
            self._codes.clear()
            self._memory_hits = self._disk_hits = self._misses = 0

    def _load(
        self, key: str, source: str, entry: str, signature: Signature, options: CompileOptions
    ) -> CompiledKernel | None:
        return self._store.load(
            key, lambda payload: deserialize_kernel(key, payload, source, entry, signature, options)
        )

    def _save(self, kernel: CompiledKernel) -> None:
        payload = serialize_kernel(kernel) if self._store.path is not None else None
        if payload is not None:
            self._store.save(kernel.key, payload)


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
