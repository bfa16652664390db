"""The emulator on kernels written by hand: right ones in any order, and how faults are told."""

from fractions import Fraction

import numpy as np
import pytest
from gpu.emulator import run_launches
from gpu.emulator.translation import translated

from esat.errors import EmulationError
from esat.gpu.kernel_text.launches import Argument, Launch, Launches, Workspace

ORDERS = (None, 1, 2)
"""Orders of threads: one after the other, and two others."""

COPY = """\
def kernel(o0, x0, n0):
    i0 = int64(cuda.blockIdx.x) * 64 + cuda.threadIdx.x
    if i0 < n0:
        o0[i0] = x0[i0] + float32(1)
"""
VECTORS = """\
def kernel(o0, x0, n0):
    i0 = (int64(cuda.blockIdx.x) * 32 + cuda.threadIdx.x) * 4
    held = cuda.local.array(4, float32)
    if i0 + 4 <= n0:
        held[0], held[1], held[2], held[3] = load4(x0, i0)
        for lane in range(4):
            held[lane] = held[lane] * float32(2)
        store4(o0, i0, (held[0], held[1], held[2], held[3]))
"""
SUMS = """\
def kernel(o0, x0, n0):
    parts = cuda.shared.array(2, float32)
    total = float32(0)
    i0 = int64(cuda.threadIdx.x)
    while i0 < n0:
        total = total + x0[cuda.blockIdx.x * n0 + i0]
        i0 += 64
    for step in range(5):
        total = total + shfl_xor_float32(total, 16 >> step)
    if cuda.threadIdx.x % 32 == 0:
        parts[cuda.threadIdx.x // 32] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        o0[cuda.blockIdx.x] = parts[0] + parts[1]
"""


def launches(text: str, block: int = 64, grid: str = "-(-n0 // 64)", dtype: str = "float32", **workspaces):
    names = text[text.index("(") + 1 : text.index(")")].split(", ")
    arguments = (Argument(name, dtype if name[0] in "oxw" else "") for name in names)
    return Launches((Launch("test", text, tuple(arguments), block, grid),), workspaces)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, "float32")


def refused(what, arrays, sizes, seed=None) -> EmulationError:
    with pytest.raises(EmulationError) as caught:
        run_launches(what, arrays, sizes, seed=seed)
    return caught.value


@pytest.mark.parametrize("seed", ORDERS)
def test_every_thread_of_every_block_runs(seed: int | None) -> None:
    x0, o0 = np.arange(1000, dtype="float32"), ones(1000)
    run_launches(launches(COPY), {"o0": o0, "x0": x0}, {"n0": 1000}, seed=seed)
    assert np.array_equal(o0, x0 + 1)


@pytest.mark.parametrize("seed", ORDERS)
def test_warps_exchange_and_blocks_wait(seed: int | None) -> None:
    x0, o0 = np.arange(300, dtype="float32").reshape(3, 100), ones(3)
    run_launches(launches(SUMS, grid="n1"), {"o0": o0, "x0": x0}, {"n0": 100, "n1": 3}, seed=seed)
    assert np.array_equal(o0, x0.sum(1))


def test_an_access_outside_an_array_is_told_by_line_block_and_thread() -> None:
    what = launches(COPY.replace("i0 < n0", "i0 < n0 + 1"))
    error = refused(what, {"o0": ones(100), "x0": ones(100)}, {"n0": 100})
    assert (error.family, error.line, error.block, error.thread) == ("test", 4, 1, 36)
    assert "element 100 is outside an array of 100" in str(error)
    assert "o0[i0] = x0[i0] + float32(1)" in str(error)


def test_there_is_no_element_before_the_first() -> None:
    error = refused(launches(COPY.replace("x0[i0]", "x0[i0 - 1]")), {"o0": ones(9), "x0": ones(9)}, {"n0": 9})
    assert "element -1 is outside an array of 9" in str(error)


def test_faults_of_threads_that_wait_are_told_as_those_of_others() -> None:
    error = refused(
        launches(SUMS.replace("parts[0]", "parts[2]"), grid="n1"),
        {"o0": ones(2), "x0": ones(2, 70)},
        {"n0": 70, "n1": 2},
    )
    assert (error.line, error.block, error.thread) == (14, 0, 0)


def test_vectors_are_aligned_and_end_inside() -> None:
    x0, o0 = np.arange(20, dtype="float32"), ones(20)
    given = {"o0": o0, "x0": x0}
    run_launches(launches(VECTORS, 32, "1"), given, {"n0": 20})
    assert np.array_equal(o0, 2 * x0)
    misplaced = launches(VECTORS.replace("(x0, i0)", "(x0, i0 + 1)"), 32, "1")
    assert "the address of element 1 is no multiple of 16 bytes" in str(refused(misplaced, given, {"n0": 16}))
    beyond = launches(VECTORS.replace("i0 + 4 <=", "i0 <"), 32, "1")
    assert "element 16 is outside an array of 18" in str(
        refused(beyond, {"o0": o0, "x0": x0[:18]}, {"n0": 18})
    )
    # A base that is not aligned makes every vector so.
    error = refused(launches(VECTORS, 32, "1"), {"o0": o0[:16], "x0": x0[1:17]}, {"n0": 16})
    assert "no multiple of 16 bytes" in str(error)


def test_threads_at_different_barriers_are_an_error() -> None:
    lines = SUMS.splitlines()
    apart = [*lines[:11], "    if cuda.threadIdx.x < 32:", "        cuda.syncthreads()", *lines[11:]]
    error = refused(
        launches("\n".join(apart) + "\n", grid="1"), {"o0": ones(1), "x0": ones(1, 64)}, {"n0": 64}
    )
    assert "it waits in line 14, but the first warp waits in line 13" in str(error)
    within = SUMS.replace("    for step in range(5):", "    for step in range(cuda.threadIdx.x % 2):")
    error = refused(launches(within, grid="1"), {"o0": ones(1), "x0": ones(1, 64)}, {"n0": 64})
    assert "threads at different barriers" in str(error)
    assert (error.block, error.thread) == (0, 1)


def test_what_nothing_wrote_shows() -> None:
    """Shared arrays, a thread's own arrays and workspaces hold NaN at first."""
    text = """\
def kernel(o0, w0):
    own = cuda.local.array(2, float32)
    shared = cuda.shared.array(2, float32)
    o0[0] = own[1]
    o0[1] = shared[1]
    o0[2] = w0[1]
"""
    o0 = ones(3)
    run_launches(launches(text, 1, "1", w0=Workspace("float32", "n0 * 2")), {"o0": o0}, {"n0": 1})
    assert np.isnan(o0).all()
    error = refused(launches(text, 1, "1", w0=Workspace("float32", "n0")), {"o0": o0}, {"n0": 1})
    assert (error.line, "outside an array of 1" in str(error)) == (6, True)


@pytest.mark.parametrize("seed", ORDERS)
def test_a_missing_barrier_is_found_in_any_order(seed: int | None) -> None:
    without = launches(SUMS.replace("    cuda.syncthreads()\n", ""), grid="1")
    given = {"o0": ones(1), "x0": ones(1, 64)}
    error = refused(without, given, {"n0": 64}, seed)
    assert error.line in (11, 13)
    assert "no barrier" in str(error)


@pytest.mark.parametrize(
    ("barriers", "right"),
    [
        (["cuda.syncthreads()", "cuda.syncthreads()"], True),
        (["cuda.syncthreads()", "cuda.syncwarp()"], False),
        (["cuda.syncwarp()", "cuda.syncthreads()"], False),
        (["i0 = shfl_xor_int64(i0, 0)", "cuda.syncthreads()"], False),
    ],
)
def test_memory_is_used_again_after_a_barrier_of_all_that_use_it(barriers: list[str], right: bool) -> None:
    """A barrier of a warp says nothing to other warps, and an exchange nothing of memory."""
    text = f"""\
def kernel(o0, x0):
    shared = cuda.shared.array(64, float32)
    i0 = int64(cuda.threadIdx.x)
    shared[i0] = x0[i0]
    {barriers[0]}
    o0[i0] = shared[63 - i0]
    {barriers[1]}
    shared[i0] = float32(0)
"""
    o0, x0 = ones(64), np.arange(64, dtype="float32")
    if right:
        run_launches(launches(text, 64, "1"), {"o0": o0, "x0": x0}, {})
        assert np.array_equal(o0, x0[::-1])
    else:
        assert "no barrier" in str(refused(launches(text, 64, "1"), {"o0": o0, "x0": x0}, {}))


def test_a_barrier_of_a_warp_is_enough_within_it() -> None:
    text = """\
def kernel(o0, x0):
    shared = cuda.shared.array(64, float32)
    i0 = int64(cuda.threadIdx.x)
    shared[i0] = x0[i0]
    cuda.syncwarp()
    o0[i0] = shared[i0 ^ 1]
    cuda.syncwarp()
    shared[i0] = float32(0)
"""
    o0, x0 = ones(64), np.arange(64, dtype="float32")
    run_launches(launches(text, 64, "1"), {"o0": o0, "x0": x0}, {}, seed=1)
    assert np.array_equal(o0, x0.reshape(32, 2)[:, ::-1].ravel())


def test_inputs_may_have_strides() -> None:
    text = """\
def kernel(o0, x0, n0, n1, s0_0, s0_1):
    i0 = int64(cuda.blockIdx.y)
    i1 = int64(cuda.threadIdx.x)
    if i1 < n1:
        o0[i0 * n1 + i1] = x0[i0 * s0_0 + i1 * s0_1]
"""
    what, whole = launches(text, 32, "(1, n0)"), np.arange(60, dtype="float32").reshape(6, 10)
    for x0 in (
        whole.T,
        whole[::-1, ::2],
        whole[1:, 9:2:-3],
        np.broadcast_to(whole[0], (4, 10)),
        whole[:, :0],
    ):
        o0 = ones(*x0.shape)
        strides = {f"s0_{axis}": x0.strides[axis] // 4 for axis in (0, 1)}
        run_launches(what, {"o0": o0, "x0": x0}, {"n0": x0.shape[0], "n1": x0.shape[1]} | strides, seed=1)
        assert np.array_equal(o0, x0)
    error = refused(launches(COPY), {"o0": ones(3), "x0": ones(6)[::2]}, {"n0": 3})
    assert "x0 is not contiguous" in str(error)


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_atomic_operations_return_what_was_there(dtype: str) -> None:
    text = f"""\
def kernel(o0, x0, n0):
    i0 = int64(cuda.threadIdx.x)
    if i0 < n0:
        o0[i0 + 1] = atomic_add(o0, 0, x0[i0])
        atomic_max(o0, n0 + 1, {dtype}(i0))
        atomic_min(o0, n0 + 2, {dtype}(-i0))
"""
    o0 = np.zeros(13, dtype)
    run_launches(launches(text, 32, "1", dtype), {"o0": o0, "x0": np.full(10, 2, dtype)}, {"n0": 10}, seed=4)
    assert o0[0] == 20
    assert sorted(o0[1:11]) == list(range(0, 20, 2))
    assert list(o0[11:]) == [9, -9]


def test_halves_are_converted_as_numpy_converts_them() -> None:
    text = """\
def kernel(o0, x0, n0):
    for i0 in range(n0):
        o0[i0] = """
    bits = np.arange(2**16, dtype="uint16")
    wide = bits.view("float16").astype("float32")
    arguments = (Argument("o0", "float32"), Argument("x0", "uint16"), Argument("n0"))
    launch = Launch("test", text + "from_half(x0[i0])\n", arguments, 1, "1")
    got = ones(2**16)
    run_launches(Launches((launch,)), {"o0": got, "x0": bits.view("float16")}, {"n0": 2**16})
    assert np.array_equal(got, wide, equal_nan=True)
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(5000).astype("float32") * np.float32(10.0) ** rng.integers(-9, 6, 5000)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.concatenate([numbers, wide, wide + np.spacing(wide) / 2, wide * np.float32(1 + 2**-11)])
        wanted = numbers.astype("float32").astype("float16")
    arguments = (Argument("o0", "uint16"), Argument("x0", "float32"), Argument("n0"))
    launch = Launch("test", text + "to_half(x0[i0])\n", arguments, 1, "1")
    got = np.zeros(len(numbers), "float16")
    run_launches(Launches((launch,)), {"o0": got, "x0": numbers.astype("float32")}, {"n0": len(numbers)})
    assert np.array_equal(got, wanted, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_that_math_or_numba_lacks(dtype: str) -> None:
    text = f"""\
def kernel(o0, x0, n0):
    for i0 in range(n0):
        o0[i0] = fma(x0[i0], x0[i0], -x0[i0] * x0[i0])
        o0[i0 + n0] = fmod({dtype}(7), x0[i0])
        o0[i0 + 2 * n0] = mul_rn(x0[i0], x0[i0])
"""
    x0, o0 = np.array([0.1, -1.7, 3.25], dtype), np.zeros((3, 3), dtype)
    run_launches(launches(text, 1, "1", dtype), {"o0": o0, "x0": x0}, {"n0": 3})
    exact = [Fraction(float(x)) ** 2 - Fraction(float(x * x)) for x in x0]
    assert np.array_equal(o0, [np.array(exact, dtype), np.fmod(np.asarray(7, dtype), x0), x0 * x0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def kernel(o0):\n    o0[0] = cuda.laneid\n", "numba refuses the text"),
        ("def kernel(o0):\n    cuda.grid(1)\n", "no cuda.grid here"),
        ("def kernel(o0):\n    o0[0] = cuda.threadIdx.y\n", "no cuda.threadIdx.y"),
        ("def kernel(o0):\n    if shfl_xor_int32(1, 1):\n        o0[0] = 1\n", "shuffle in a condition"),
        ("def kernel(o0):\n    s = cuda.shared.array(o0[0], float32)\n", "sizes of arrays are numbers"),
        ("def kernel(o0):\n    with o0:\n        pass\n", "a With statement"),
        ("x = 1\n", "not one function"),
        ("def kernel(:\n", "no Python"),
    ],
)  # fmt: skip
def test_texts_that_are_no_kernels_are_refused(text: str, reason: str) -> None:
    what = Launches((Launch("test", text, (Argument("o0", "float32"),), 32, "1"),))
    error = refused(what, {"o0": ones(1)}, {})
    assert reason in str(error)
    assert error.family == "test"


def test_arguments_fit_the_launch() -> None:
    given = {"o0": ones(3), "x0": ones(3)}
    assert "nothing is given for n0" in str(refused(launches(COPY), given, {"n1": 3}))
    wrong = {**given, "x0": np.ones(3)}
    assert "x0 is of float32, not float64" in str(refused(launches(COPY), wrong, {"n0": 3}))


def test_threads_may_return_early() -> None:
    text = """\
def kernel(o0, n0):
    shared = cuda.shared.array(1, float32)
    if cuda.threadIdx.x >= n0:
        return
    o0[cuda.threadIdx.x] = float32(1)
"""
    o0 = np.zeros(3, "float32")
    run_launches(launches(text, 64, "1"), {"o0": o0}, {"n0": 3})
    assert o0.all()
    with_barrier = launches(text.replace("    o0[", "    cuda.syncthreads()\n    o0["), 64, "1")
    assert "has ended" in str(refused(with_barrier, {"o0": o0}, {"n0": 3}))


def test_an_empty_grid_runs_nothing() -> None:
    run_launches(launches(COPY), {"o0": ones(0), "x0": ones(0)}, {"n0": 0})


def test_translations_keep_what_they_do_not_change() -> None:
    kernel = translated(SUMS, ("o0", "x0"))
    assert [one.name for one in kernel.arrays] == ["_seen_parts", "parts", "_exchange_float32"]
    assert [(one.line, one.kind) for one in kernel.waits] == [(9, "exchange"), (9, "exchange"), (12, "block")]
    assert not translated(COPY, ("o0", "x0")).together
