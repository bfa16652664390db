"""The toolchain on kernels written by hand and printed ones: resources, and accesses of memory."""

from collections import Counter

import pytest
from gpu.kernel_files import PRINTED, kernel_of
from gpu.test_emulator import COPY, SUMS, VECTORS, launches

from benchmarks.device_code import instructions
from esat.errors import CompileError
from esat.gpu.kernel_text.launches import Argument, Launch
from esat.gpu.printing import print_launches
from esat.gpu.toolchain import Cubin
from esat.gpu.toolchain.cache import CubinCache
from esat.gpu.toolchain.linking import _described
from esat.gpu.toolchain.numba_cuda import NumbaCuda

TOOLCHAIN = NumbaCuda()
EVERYTHING = """\
def kernel(o0, x0, x1, x2, n0):
    i0 = int64(cuda.threadIdx.x)
    if i0 < n0 and not x2[i0] == uint8(0):
        o0[i0] = to_half(fma(from_half(x0[i0]), from_half(x0[i0 + 1]), float32(1)))
        before = atomic_add(x1, i0 % 7, mul_rn(float32(i0), float32(0.5)))
        if isnan(before) or before > float32(math.inf):
            return
    cuda.syncwarp()
"""


def everything() -> Launch:
    dtypes = {"o0": "float16", "x0": "float16", "x1": "float32", "x2": "bool", "n0": ""}
    return Launch("test", EVERYTHING, tuple(Argument(*one) for one in dtypes.items()), 32, "1")


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
def test_kernels_take_few_registers_and_access_memory_as_written(capability: tuple[int, int]) -> None:
    for launch in (*(launches(text).launches[0] for text in (COPY, VECTORS, SUMS)), everything()):
        cubin = TOOLCHAIN.compile(launch, capability)
        assert cubin.code.startswith(b"\x7fELF")
        assert (cubin.entry, cubin.spilled, cubin.local) == ("kernel", 0, 0)
        assert 8 <= cubin.registers <= 40
        assert (Counter(instructions(cubin))["LDG.E.128"] > 0) == ("load4" in launch.text)


@pytest.mark.parametrize("name", PRINTED)
def test_printed_kernels_spill_no_registers(name: str) -> None:
    for variant in PRINTED[name].values():
        for launch in print_launches(kernel_of(name), variant).launches:
            cubin = TOOLCHAIN.compile(launch, (9, 0))
            assert (cubin.spilled, cubin.local) == (0, 0)
            assert cubin.registers * launch.block <= 1 << 16  # what a multiprocessor has


def test_products_and_sums_are_rounded_apart_where_that_is_asked_for() -> None:
    text = COPY.replace("x0[i0] + float32(1)", "x0[i0] * x0[i0] + float32(1)")
    launch = launches(text).launches[0]
    operations = [
        [one for one in instructions(TOOLCHAIN.compile(launch, (9, 0), contract=contract)) if one[0] == "F"]
        for contract in (True, False)
    ]
    assert operations == [["FFMA"], ["FMUL", "FADD"]]


def test_what_cannot_be_compiled_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"compute capability 7\.5: kernels are compiled for 8\.0"):
        TOOLCHAIN.compile(everything(), (7, 5))
    with pytest.raises(CompileError, match="kernel test"):
        TOOLCHAIN.compile(launches("def kernel(o0):\n    o0[0] = unknown\n").launches[0], (9, 0))


def test_a_linker_of_other_words_is_no_error() -> None:
    told = "info    : used 30 registers, 0 stack, 1056 bytes smem, 416 bytes cmem[0], 0 bytes lmem"
    assert _described(b"code", told) == Cubin(b"code", "kernel", 30, 0, 0, 1056)
    assert _described(b"code", "") == Cubin(b"code", "kernel")


def test_code_is_the_same_from_call_to_call(tmp_path) -> None:
    launch = launches(SUMS).launches[0]
    first = CubinCache(tmp_path).load_or_compile(TOOLCHAIN, launch, (9, 0))
    assert TOOLCHAIN.compile(launch, (9, 0)) == first
    assert CubinCache(tmp_path).load_or_compile(TOOLCHAIN, launch, (9, 0)) == first
