"""Machine code of devices by key: first from this process's memory, then from disk, else compiled."""

from __future__ import annotations

import functools
import json
import threading
from concurrent.futures import Future
from pathlib import Path

from esat.base.interrupts import delayed_interrupts
from esat.base.storage import DEFAULT_LIMIT, DiskStore, default_directory, digest_of, digest_of_sources
from esat.gpu.kernel_text.launches import Launch
from esat.gpu.toolchain.interface import Cubin, Toolchain


class CubinCache:
    """A cache of cubins beside that of the host's kernels; safe for several threads and processes.

    Parameters
    ----------
    path
        An absolute directory for the entries, or None to keep cubins in memory only.
    limit
        Bytes that the entries of all kinds may take on disk.
    """

    def __init__(self, path: Path | None, limit: int = DEFAULT_LIMIT) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Future[Cubin]] = {}
        self._store = DiskStore(path, "cubin", limit)
        self.misses = 0
        """Kernels that this cache had to compile."""

    def load_or_compile(
        self, toolchain: Toolchain, launch: Launch, capability: tuple[int, int], *, contract: bool = True
    ) -> Cubin:
        """The machine code of a kernel; parameters and errors are those of :meth:`Toolchain.compile`."""
        key = cubin_key(toolchain, launch, capability, contract)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                mine: Future[Cubin] = Future()
                self._known[key] = mine
        if known is not None:
            return known.result()
        try:
            cubin = self._store.load(key, _decoded)
            if cubin is None:
                with delayed_interrupts():
                    cubin = toolchain.compile(launch, capability, contract=contract)
                self._store.save(key, _encoded(cubin))
                with self._lock:
                    self.misses += 1
        except BaseException as error:
            with self._lock:
                self._known.pop(key, None)
            mine.set_exception(error)
            raise
        mine.set_result(cubin)
        return cubin

    def forget(self) -> None:
        """Forget the cubins in memory; those on disk stay."""
        with self._lock:
            self._known.clear()


@functools.cache
def process_cubins() -> CubinCache:
    """The process's cache, in the directory of all that esat keeps."""
    return CubinCache(default_directory())


def cubin_key(toolchain: Toolchain, launch: Launch, capability: tuple[int, int], contract: bool) -> str:
    """What machine code depends on: 64 hexadecimal digits."""
    dtypes = ",".join(one.dtype or "size" for one in launch.arguments)
    return digest_of(
        [
            toolchain.version,
            _toolchain_digest(),
            launch.text,
            dtypes,
            f"{launch.block} threads, {capability}, contract {contract}",
        ]
    )


@functools.cache
def _toolchain_digest() -> str:
    """Of the sources of the toolchain: what kernels call is written there."""
    return digest_of_sources(Path(__file__).parent)


def _encoded(cubin: Cubin) -> bytes:
    told = {
        "entry": cubin.entry,
        "registers": cubin.registers,
        "spilled": cubin.spilled,
        "local": cubin.local,
        "shared": cubin.shared,
    }
    return json.dumps(told).encode() + b"\n" + cubin.code


def _decoded(payload: memoryview) -> Cubin:
    told, _, code = bytes(payload).partition(b"\n")
    return Cubin(code, **json.loads(told))
