"""The kernel cache: keys, storage, damage, concurrency and kills."""

from __future__ import annotations

import errno
import gc
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from codegen.targets import HOST, TARGETS
from effort import calls_of
from numba import prange
from numba.core import types
from numba.extending import intrinsic

from esat.base.storage import default_directory, entry_file
from esat.base.storage import directory as directory_module
from esat.codegen import vector_math
from esat.codegen.cache import CacheWarning, CompileOptions, KernelCache, kernel_cache
from esat.codegen.cache.compiled_kernel import compile_kernel, signature_text
from esat.codegen.cache.fingerprint import kernel_key
from esat.errors import CompileError

ARRAY = types.float64[::1]
SIGNATURE = types.void(ARRAY, ARRAY)
SOURCE = """
def kernel(out, x):
    for i in range(out.size):
        out[i] = x[i] * FACTOR
"""
KEY = "ab" * 32


def source(factor: float) -> str:
    return SOURCE.replace("FACTOR", repr(factor))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kernels"


@pytest.fixture
def cache(folder: Path) -> KernelCache:
    return KernelCache(folder)


def load(cache: KernelCache, factor: float = 3.0):
    return cache.load_or_compile(source(factor), "kernel", SIGNATURE, {})


def result(kernel) -> list[float]:
    x, out = np.arange(4.0), np.empty(4)
    kernel.function(out, x)
    return list(out)


def the_entry(folder: Path) -> Path:
    (path,) = folder.glob("*.kernel")
    return path


def test_compile_then_memory_then_disk(cache, folder):
    compiled = load(cache)
    assert not compiled.from_disk
    assert load(cache) is compiled
    cache.forget()
    loaded = load(cache)
    assert loaded.from_disk
    assert result(compiled) == result(loaded) == [0.0, 3.0, 6.0, 9.0]
    assert loaded.source == source(3.0)
    info = cache.info()
    assert (info.path, info.entries, info.hits, info.disk_hits, info.misses) == (folder, 1, 1, 1, 0)
    assert info.bytes == the_entry(folder).stat().st_size > 1000


def test_warm_load_does_little(cache):
    load(cache)  # what is only done once
    cache.forget()
    warm = calls_of(lambda: load(cache))
    cache.clear()
    cold = calls_of(lambda: load(cache))
    assert warm < cold / 20, f"{warm} calls to load a kernel, {cold} to compile it"


def test_clear(cache):
    load(cache)
    cache.clear()
    assert cache.info() == kernel_cache.CacheInfo(cache.info().path, 0, 0, 0, 0, 0)
    assert not load(cache).from_disk


def test_kernels_of_one_name_do_not_collide(cache):
    for factor in (2.0, 5.0):
        load(cache, factor)
    cache.forget()
    double, quintuple = load(cache, 2.0), load(cache, 5.0)
    assert double.from_disk
    assert quintuple.from_disk
    assert result(double)[1] == 2.0
    assert result(quintuple)[1] == 5.0


def test_source_with_several_functions_and_intrinsics(cache):
    text = """
def body(out, x):
    for i in range(out.size):
        out[i] = exp(x[i]) + offset

def driver(out, x):
    body(out, x)
    body(x, out)
"""
    environment = {"exp": vector_math.function("exp", 64), "offset": 0.5}
    options = CompileOptions(HOST, noalias=("body",))
    for _ in range(2):
        kernel = cache.load_or_compile(text, "driver", SIGNATURE, environment, options)
        x, out = np.zeros(5), np.empty(5)
        kernel(out, x)
        np.testing.assert_allclose(out, 1.5)
        np.testing.assert_allclose(x, math.exp(1.5) + 0.5, rtol=1e-15)
        cache.forget()
    assert kernel.from_disk


def test_the_entry_calls_functions_of_its_own_library(cache):
    loops = "".join(
        f"""
    for i in range(out.size):
        out[i] += x[i] * {factor}.0
"""
        for factor in range(40)  # more than LLVM takes into the entry
    )
    text = f"""
def body(out, x):{loops}
def driver(out, x):
    body(out, x)
    body(x, out)
"""
    kernel = cache.load_or_compile(
        text, "driver", SIGNATURE, {}, CompileOptions(HOST, noalias=("body", "driver"))
    )
    lines = str(kernel.code.llvm).splitlines()
    (body,) = [line for line in lines if line.startswith("define") and "body" in line]
    # What another library defines, too, would run in its place until the kernel comes from the disk.
    assert "internal" in body


def test_parallel_kernel(cache):
    text = """
def part(out, x, start, stop):
    for i in range(stop - start):
        out[start + i] = 2.0 * x[start + i]

def kernel(out, x):
    for p in prange(4):
        part(out, x, p * out.size // 4, (p + 1) * out.size // 4)
"""
    for from_disk in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel = cache.load_or_compile(
                text, "kernel", SIGNATURE, {"prange": prange}, CompileOptions(HOST, parallel=True)
            )
        assert kernel.from_disk == from_disk
        x, out = np.arange(103.0), np.empty(103)
        kernel.function(out, x)
        assert np.array_equal(out, 2 * x)
        cache.forget()


def test_zero_division_follows_numpy(cache):
    kernel = cache.load_or_compile(source(1.0).replace("* 1.0", "/ (x[i] - x[i])"), "kernel", SIGNATURE, {})
    out = np.empty(2)
    kernel.function(out, np.array([0.0, 1.0]))
    assert np.isnan(out[0])
    assert np.isinf(out[1])


def test_key_covers_everything(monkeypatch):
    exp, log = vector_math.function("exp", 64), vector_math.function("log", 64)
    readonly = types.Array(types.float64, 1, "C", readonly=True)
    mutable, frozen = signature_text(types.void(ARRAY)), signature_text(types.void(readonly))
    base = ("s", "f", mutable, {"f": exp, "c": 1.0}, repr(CompileOptions(HOST)))
    changes = [
        ("t", *base[1:]),
        ("s", "g", *base[2:]),
        (*base[:2], frozen, *base[3:]),
        (*base[:3], {"f": log, "c": 1.0}, base[4]),
        (*base[:3], {"f": vector_math.function("exp", 32), "c": 1.0}, base[4]),
        (*base[:3], {"f": exp, "c": 1}, base[4]),
        (*base[:3], {"f": exp, "c": -0.0}, base[4]),
        (*base[:3], {"f": exp, "d": 1.0}, base[4]),
        (*base[:4], repr(CompileOptions(HOST, parallel=True))),
        *((*base[:4], repr(CompileOptions(other))) for other in (*TARGETS.values(), replace(HOST, cpu=""))),
        (*base[:4], repr(CompileOptions(HOST.tuned(group_bytes=1)))),
    ]
    keys = {kernel_key(*change) for change in [base, *changes]}
    assert len(keys) == len(changes) + 1
    monkeypatch.setattr("esat.codegen.cache.fingerprint.host_fingerprint", lambda: "another version")
    assert kernel_key(*base) not in keys
    assert all(len(key) == 64 for key in keys)


@pytest.mark.parametrize("value", [lambda x: x, np.zeros(3), object(), {}])
def test_environment_without_identity_is_refused(cache, value):
    with pytest.raises(CompileError, match="no lasting identity"):
        cache.load_or_compile(SOURCE, "kernel", SIGNATURE, {"FACTOR": value})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def kernel(:", "does not run"),
        ("value = 1", "defines no such function"),
        ("def kernel(out, x):\n    out[0] = unknown(x)", "numba refused"),
    ],
)
def test_wrong_source(cache, text, reason):
    for _ in range(2):
        with pytest.raises(CompileError, match=reason):
            cache.load_or_compile(text, "kernel", SIGNATURE, {})
    assert cache.info().entries == 0


class Bomb:
    """Its pickle makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("damage", ["flip", "truncate", "foreign", "empty", "unreadable"])
def test_damaged_entry_is_compiled_again(cache, folder, tmp_path, damage):
    load(cache)
    path = the_entry(folder)
    good = path.read_bytes()
    bomb = tmp_path / "exploded"
    damaged = {
        "flip": good[:500] + bytes([good[500] ^ 4]) + good[501:],
        "truncate": good[:-100],
        "foreign": entry_file.encode(KEY, "kernel", pickle.dumps(Bomb(bomb))),
        "empty": b"",
        "unreadable": entry_file.encode(path.stem, "kernel", b"not a pickle"),
    }[damage]
    path.write_bytes(damaged)
    cache.forget()
    with pytest.warns(CacheWarning, match="made again"):
        kernel = load(cache)
    assert not kernel.from_disk
    assert result(kernel)[1] == 3.0
    assert not bomb.exists()
    cache.forget()
    assert load(cache).from_disk


def test_directory_deleted_meanwhile(cache, folder):
    load(cache)
    shutil.rmtree(folder)
    assert cache.info().entries == 0
    load(cache, 4.0)
    assert cache.info().entries == 1
    assert folder.stat().st_mode & 0o777 == 0o700


def test_files_are_private(cache, folder):
    load(cache)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert the_entry(folder).stat().st_mode & 0o777 == 0o600


def test_directory_that_others_may_write_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(CacheWarning, match="memory only"):
        cache = KernelCache(folder)
    assert result(load(cache))[1] == 3.0
    assert cache.info().path is None
    assert list(folder.iterdir()) == []


def test_entry_that_others_may_write_is_not_read(cache, folder):
    load(cache)
    the_entry(folder).chmod(0o666)
    cache.forget()
    assert not load(cache).from_disk


def test_entry_behind_a_link_is_not_read(cache, folder, tmp_path):
    load(cache)
    path = the_entry(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    cache.forget()
    assert not load(cache).from_disk


def test_directory_that_cannot_be_made():
    with pytest.warns(CacheWarning, match="memory only"):
        cache = KernelCache(Path("/proc/no/such/place"))
    assert result(load(cache))[1] == 3.0
    assert load(cache).from_disk is False
    assert cache.info().memory_hits == 1


def test_directory_from_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ESAT_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_directory() == tmp_path / "chosen"
    monkeypatch.delenv("ESAT_CACHE_DIR")
    assert default_directory().name == "esat"


class FullDisk:
    """A file on a disk that fills up after 1000 bytes."""

    def __init__(self, descriptor: int, mode: str) -> None:
        self.descriptor = descriptor

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        os.close(self.descriptor)

    def write(self, content: bytes) -> int:
        os.write(self.descriptor, content[:1000])
        raise OSError(errno.ENOSPC, "No space left on device")


def test_full_disk(cache, folder, monkeypatch):
    monkeypatch.setattr(directory_module, "open", FullDisk, raising=False)
    with pytest.warns(CacheWarning, match="No space left"):
        kernel = load(cache)
    assert result(kernel)[1] == 3.0
    assert list(folder.iterdir()) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert result(load(cache, 4.0))[1] == 4.0


def test_read_only_directory(cache, folder, monkeypatch):
    load(cache)

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(directory_module.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(directory_module.os, "utime", refuse)
    cache.forget()
    assert load(cache).from_disk
    with pytest.warns(CacheWarning, match="Permission denied"):
        assert result(load(cache, 4.0))[1] == 4.0
    assert cache.info().entries == 1


WORKER = """
import sys
import numpy as np
from numba import prange
from numba.core import types
from pathlib import Path
from esat.codegen import vector_math
from esat.codegen.cache import KernelCache

array = types.float64[::1]
source = '''
def kernel(out, x):
    for i in range(out.size):
        out[i] = sin(x[i])
'''
environment = {"sin": vector_math.function("sin", 64)}
cache = KernelCache(Path(sys.argv[1]))
kernel = cache.load_or_compile(source, "kernel", types.void(array, array), environment)
x, out = np.linspace(-1e300, 1e300, 37), np.empty(37)
kernel.function(out, x)
assert np.allclose(out, np.sin(x), rtol=1e-14, atol=1e-14)
print(kernel.from_disk)
"""


def test_new_processes_load_what_others_compiled(folder):
    def start() -> subprocess.Popen:
        command = [sys.executable, "-c", WORKER, str(folder)]
        root = Path(__file__).parents[2]
        path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    for somebody_compiles in (True, False):
        workers = [start() for _ in range(2)]
        answers = [worker.communicate(timeout=60)[0].strip() for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0]
        assert set(answers) <= {"True", "False"}
        assert ("False" in answers) == somebody_compiles


def _compile_interrupted(*arguments):
    signal.raise_signal(signal.SIGINT)
    return compile_kernel(*arguments)


@pytest.mark.usefixtures("_heeds_interrupts")
def test_an_interrupt_waits_for_the_compilation_it_would_cut_off(cache, monkeypatch):
    monkeypatch.setattr(kernel_cache, "compile_kernel", _compile_interrupted)
    with pytest.raises(KeyboardInterrupt):
        load(cache, 5.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert cache.info().misses == 1
    assert result(load(cache, 5.0)) == [0.0, 5.0, 10.0, 15.0]
    assert cache.info().memory_hits == 1


def test_who_ignores_interrupts_goes_on_doing_so(cache, monkeypatch):
    monkeypatch.setattr(kernel_cache, "compile_kernel", _compile_interrupted)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        load(cache, 6.0)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@intrinsic
def left_by_an_exception(context, value):
    """As an exception of another thread that arrives when numba has just taken its lock."""
    context.callstack._lock.acquire()
    raise KeyboardInterrupt


def test_no_lock_of_numba_stays_taken(cache):
    text = SOURCE.replace("FACTOR", "left_by_an_exception(8)")
    with pytest.raises(KeyboardInterrupt):
        cache.load_or_compile(text, "kernel", SIGNATURE, {"left_by_an_exception": left_by_an_exception})
    thread = threading.Thread(target=lambda: load(cache, 9.0), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_threads_compile_once(cache):
    kernels = []
    threads = [threading.Thread(target=lambda: kernels.append(load(cache, 7.0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kernels) == 8
    assert len({id(kernel) for kernel in kernels}) == 1
    assert cache.info().misses == 1
    assert cache.info().memory_hits == 7


@pytest.mark.usefixtures("only_new_objects")
@pytest.mark.parametrize("from_disk", [False, True])
def test_machine_code_goes_with_the_last_function_that_holds_it(cache, from_disk):
    def left() -> int:
        names = ("CompileResult", "CPUDispatcher", "MachineCode", "CompiledKernel")
        return sum(type(one).__name__ in names for one in gc.get_objects())

    load(cache, 1.0)
    cache.forget()
    gc.collect()
    before = left()
    if from_disk:
        load(cache)
        cache.forget()
    kernel = load(cache)
    assert kernel.from_disk == from_disk
    code, function = weakref.ref(kernel.code), kernel.function
    del kernel
    cache.forget()
    gc.collect()
    assert code() is not None
    out = np.empty(3)
    function(out, np.ones(3))
    assert out.tolist() == [3.0] * 3
    del function
    gc.collect()
    assert code() is None
    assert left() == before


@pytest.mark.usefixtures("only_new_objects")
def test_few_kernels_are_kept_that_nothing_uses(cache, monkeypatch):
    monkeypatch.setattr(kernel_cache, "RECENT_KERNELS", 2)
    codes = [weakref.ref(load(cache, float(number)).code) for number in range(3)]
    held = load(cache, 3.0).function
    codes += [weakref.ref(load(cache, float(number)).code) for number in range(3, 6)]
    gc.collect()
    assert [code() is not None for code in codes] == [False, False, False, True, True, True]
    misses = cache.info().misses
    assert result(load(cache, 3.0)) == [0.0, 3.0, 6.0, 9.0]
    assert cache.info().misses == misses, "what a function holds is found again"
    held(np.empty(2), np.ones(2))


def test_code_that_numba_wraps_is_kept_by_numba(cache):
    """Kernels that return numbers are in numba's engine, and work from memory and from disk."""
    text = "def kernel(x):\n    return x * 2.5\n"
    signature = types.float64(types.float64)
    for _ in range(2):
        assert cache.load_or_compile(text, "kernel", signature, {}).function(2.0) == 5.0
        cache.forget()


ALLOCATING = """
import sys
from pathlib import Path
import numpy as np
from numba.core import types
from esat.codegen.cache import KernelCache

cache = KernelCache(Path(sys.argv[1]))
array = types.float64[::1]
kernel = cache.load_or_compile(sys.argv[2], "kernel", types.void(array, array), {})
out = np.empty(3)
kernel(out, np.arange(3.0))
print(cache.info().disk_hits, *out)
"""
DOUBLED = """
import numpy as np

def kernel(out, x):
    y = np.empty(x.size)
    y[:] = x * 2.0
    out[:] = y
"""


def test_a_process_that_only_loads_finds_numbas_run_time_library(folder):
    """A kernel that allocates calls it: compiled C, and code that numba compiles when it is first wanted."""
    for hits in ("0", "1"):
        command = [sys.executable, "-W", "error", "-c", ALLOCATING, str(folder), DOUBLED]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ran.stdout.split() == [hits, "0.0", "2.0", "4.0"]
