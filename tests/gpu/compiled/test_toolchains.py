"""Both toolchains on kernels written by hand: the same resources, the same accesses of memory."""

from collections import Counter

import pytest
from gpu.kernel_files import PRINTED, kernel_of
from gpu.test_emulator import COPY, SUMS, VECTORS, launches

from benchmarks.device_code import instructions
from esat.errors import CompileError
from esat.gpu.launches import Argument, Launch
from esat.gpu.printing import print_launches
from esat.gpu.toolchain import Cubin, Toolchain, default_toolchain
from esat.gpu.toolchain.cache import CubinCache
from esat.gpu.toolchain.linking import _described
from esat.gpu.toolchain.numba_cuda import NumbaCuda
from esat.gpu.toolchain.nvrtc import Nvrtc

TOOLCHAINS = (NumbaCuda(), Nvrtc())
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
def test_toolchains_agree(capability: tuple[int, int]) -> None:
    for launch in (*(launches(text).launches[0] for text in (COPY, VECTORS, SUMS)), everything()):
        made = [toolchain.compile(launch, capability) for toolchain in TOOLCHAINS]
        found = []
        for cubin in made:
            assert cubin.code.startswith(b"\x7fELF")
            assert (cubin.entry, cubin.spilled, cubin.local) == ("kernel", 0, 0)
            assert 8 <= cubin.registers <= 40
            memory = ("LDG", "STG", "LDS", "STS", "SHFL", "BAR", "ATOM", "RED")
            found.append(Counter(one for one in instructions(cubin) if one.startswith(memory)))
        assert found[0] == found[1]
        assert (found[0]["LDG.E.128"] > 0) == ("load4" in launch.text)


@pytest.mark.parametrize("name", PRINTED)
def test_printed_kernels_take_no_more_by_either(name: str) -> None:
    for variant in PRINTED[name].values():
        for launch in print_launches(kernel_of(name), variant).launches:
            ours, theirs = (toolchain.compile(launch, (9, 0)) for toolchain in TOOLCHAINS)
            assert (ours.spilled, ours.local, theirs.spilled, theirs.local) == (0, 0, 0, 0)
            # Loops are unrolled by different factors.
            assert max(ours.registers, theirs.registers) <= 64
            assert abs(ours.shared - theirs.shared) <= 16 * launch.text.count("shared.array")


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=["numba-cuda", "NVRTC"])
def test_products_and_sums_are_rounded_apart_where_that_is_asked_for(toolchain: Toolchain) -> None:
    text = COPY.replace("x0[i0] + float32(1)", "x0[i0] * x0[i0] + float32(1)")
    launch = launches(text).launches[0]
    operations = [
        [one for one in instructions(toolchain.compile(launch, (9, 0), contract=contract)) if one[0] == "F"]
        for contract in (True, False)
    ]
    assert operations == [["FFMA"], ["FMUL", "FADD"]]


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=["numba-cuda", "NVRTC"])
def test_what_cannot_be_compiled_is_an_error(toolchain: Toolchain) -> None:
    with pytest.raises(CompileError, match=r"compute capability 7\.5: kernels are compiled for 8\.0"):
        toolchain.compile(everything(), (7, 5))
    with pytest.raises(CompileError, match="kernel test"):
        toolchain.compile(launches("def kernel(o0):\n    o0[0] = unknown\n").launches[0], (9, 0))


def test_a_linker_of_other_words_is_no_error() -> None:
    told = "info    : used 30 registers, 0 stack, 1056 bytes smem, 416 bytes cmem[0], 0 bytes lmem"
    assert _described(b"code", told) == Cubin(b"code", "kernel", 30, 0, 0, 1056)
    assert _described(b"code", "") == Cubin(b"code", "kernel")


def test_code_is_the_same_from_call_to_call(tmp_path) -> None:
    for toolchain in TOOLCHAINS:
        launch = launches(SUMS).launches[0]
        first = CubinCache(tmp_path).load_or_compile(toolchain, launch, (9, 0))
        assert toolchain.compile(launch, (9, 0)) == first
        assert CubinCache(tmp_path).load_or_compile(toolchain, launch, (9, 0)) == first


def test_numba_cuda_is_the_first_choice() -> None:
    assert isinstance(default_toolchain(), NumbaCuda)
