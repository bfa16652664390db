"""The cache of device code, with a toolchain that only counts."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from esat.base.storage import CacheWarning
from esat.errors import CompileError
from esat.gpu.kernel_text.launches import Argument, Launch
from esat.gpu.toolchain import Cubin
from esat.gpu.toolchain.cache import CubinCache

LAUNCH = Launch("flat", "def kernel(o0): pass\n", (Argument("o0", "float32"),), 256, "1")


class Counting:
    """Makes code that names what it is of."""

    def __init__(self, version: str = "1", seconds: float = 0.0) -> None:
        self.version, self.seconds, self.calls = version, seconds, 0

    def compile(self, launch: Launch, capability: tuple[int, int], *, contract: bool = True) -> Cubin:
        self.calls += 1
        time.sleep(self.seconds)
        if "refused" in launch.text:
            raise CompileError("refused")
        code = f"{launch.text}\n{capability} {contract} {self.version}".encode()
        return Cubin(code, "kernel", registers=24, spilled=0, local=8, shared=1024)


def test_cubins_are_compiled_once_and_found_by_other_processes(tmp_path: Path) -> None:
    toolchain, cache = Counting(), CubinCache(tmp_path)
    made = cache.load_or_compile(toolchain, LAUNCH, (9, 0))
    assert cache.load_or_compile(toolchain, LAUNCH, (9, 0)) is made
    cache.forget()
    assert cache.load_or_compile(toolchain, LAUNCH, (9, 0)) == made
    assert CubinCache(tmp_path).load_or_compile(toolchain, LAUNCH, (9, 0)) == made
    assert (toolchain.calls, cache.misses) == (1, 1)


@pytest.mark.parametrize(
    ("launch", "capability", "contract", "version"),
    [
        (replace(LAUNCH, text="def kernel(o0): return\n"), (9, 0), True, "1"),
        (replace(LAUNCH, arguments=(Argument("o0", "float64"),)), (9, 0), True, "1"),
        (replace(LAUNCH, block=128), (9, 0), True, "1"),
        (LAUNCH, (8, 0), True, "1"),
        (LAUNCH, (9, 0), False, "1"),
        (LAUNCH, (9, 0), True, "2"),
    ],
)
def test_what_changes_the_code_is_in_the_key(launch, capability, contract, version, tmp_path: Path) -> None:
    toolchain, cache = Counting(version), CubinCache(tmp_path)
    cache.load_or_compile(Counting(), LAUNCH, (9, 0))
    cache.load_or_compile(toolchain, launch, capability, contract=contract)
    assert toolchain.calls == 1


def test_damaged_entries_are_made_again(tmp_path: Path) -> None:
    toolchain = Counting()
    made = CubinCache(tmp_path).load_or_compile(toolchain, LAUNCH, (9, 0))
    (file,) = tmp_path.glob("*.cubin")
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.warns(CacheWarning, match="made again"):
        assert CubinCache(tmp_path).load_or_compile(toolchain, LAUNCH, (9, 0)) == made
    assert toolchain.calls == 2


def test_errors_are_not_kept() -> None:
    toolchain, cache = Counting(), CubinCache(None)
    for _ in range(2):
        with pytest.raises(CompileError, match="refused"):
            cache.load_or_compile(toolchain, replace(LAUNCH, text="refused"), (9, 0))
    assert toolchain.calls == 2


def test_threads_wait_for_one_compilation() -> None:
    toolchain, cache, made = Counting(seconds=0.05), CubinCache(None), []

    def ask() -> None:
        made.append(cache.load_or_compile(toolchain, LAUNCH, (9, 0)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert toolchain.calls == 1
    assert all(one is made[0] for one in made)
