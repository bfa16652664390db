"""Kernel texts as CUDA C++: types are those of numba."""

import pytest

from esat.errors import CompileError
from esat.gpu.launches import Argument, Launch
from esat.gpu.toolchain.cpp import PRELUDE, cpp_of

HEAD = "def kernel(o0, x0, u0, n0):\n    i0 = int64(cuda.threadIdx.x)\n"


def body(*lines: str, dtype: str = "float32") -> list[str]:
    """The C++ of lines of kernel text, without declarations of what all have."""
    arguments = (Argument("o0", dtype), Argument("x0", dtype), Argument("u0", "uint64"), Argument("n0"))
    launch = Launch("test", HEAD + "".join(f"    {line}\n" for line in lines), arguments, 32, "1")
    written = cpp_of(launch).removeprefix(PRELUDE).splitlines()
    return [line[4:] for line in written[1:-1] if "i0;" not in line and "threadIdx" not in line]


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("o0[i0] = x0[i0] * float32(2)", ["o0[i0] = (x0[i0] * (float)(2LL));"]),
        ("o0[i0] = x0[i0] / n0", ["o0[i0] = ((double)(x0[i0]) / (double)(n0));"]),
        ("o0[i0] = exp(x0[i0])", ["o0[i0] = expf(x0[i0]);"]),
        ("o0[i0] = math.exp(i0)", ["o0[i0] = exp((double)(i0));"]),
        ("o0[i0] = x0[i0 // 3 % n0]", [
            "o0[i0] = x0[floor_remainder<long long>(floor_divided<long long>(i0, 3LL), n0)];"
        ]),
        ("o0[i0] = float32(x0[i0] > 0) if x0[i0] == x0[i0] else -x0[i0]", [
            "o0[i0] = ((x0[i0] == x0[i0]) ? (float)(((double)(x0[i0]) > (double)(0LL))) : (-x0[i0]));"
        ]),
        ("u0[i0] = u0[i0] >> uint64(63) ^ ~u0[0]", [
            "u0[i0] = ((u0[i0] >> (unsigned long long)(63LL)) ^ (~u0[0LL]));"
        ]),
        ("atomic_add(u0, i0, uint64(1))", ["atomicAdd(u0 + i0, (unsigned long long)(1LL));"]),
        ("store4(o0, i0, (x0[0], x0[1], x0[2], x0[3]))", [
            "*(Vector<float, 4>*)(o0 + i0) = Vector<float, 4>{{x0[0LL], x0[1LL], x0[2LL], x0[3LL]}};"
        ]),
        ("a, b = load2(x0, i0)", [
            "float a;", "float b;", "Vector<float, 2> vector1 = *(const Vector<float, 2>*)(x0 + i0);",
            "a = vector1.at[0];", "b = vector1.at[1];",
        ]),
        ("a, o0[0] = n0, x0[0]", [
            "long long a;", "long long given1 = n0;", "float given2 = x0[0LL];",
            "a = given1;", "o0[0LL] = given2;",
        ]),
        ("cuda.syncwarp()", ["__syncwarp();"]),
        ("o0[i0] = math.inf", ["o0[i0] = __longlong_as_double(0x7ff0000000000000LL);"]),
    ],
)  # fmt: skip
def test_expressions(line: str, written: list[str]) -> None:
    assert body(line) == written


def test_variables_have_the_common_type_of_all_they_are_given() -> None:
    lines = body("v = float32(1)", "while v < n0:", "    w = v", "    v = v * 2.0", "o0[0] = w")
    assert lines[:2] == ["double v;", "double w;"]
    assert "v = (double)((float)(1LL));" in lines


def test_ranges_count_apart_from_their_variables() -> None:
    lines = body("for k in range(1, n0):", "    k = k + 1", "    o0[k] = x0[k]")
    assert lines[1] == "for (long long counter1 = 1LL, end1 = n0; counter1 < end1; counter1 += 1LL) {"
    assert lines[2:4] == ["    k = counter1;", "    k = (k + 1LL);"]


@pytest.mark.parametrize(
    "line",
    [
        "o0[i0] = u0[i0] + n0",  # numba makes a float of it
        "o0[i0] = x0[i0] // x0[0]",
        "o0[i0] = x0[i0] ** 2",
        "o0[i0] = gamma(x0[i0])",
        "o0[i0] = 0 < x0[i0] < 1",
        "o0[i0] = unknown",
        "del i0",
        "atomic_max(o0, 0, x0[0])",
    ],
)
def test_what_has_no_cpp_is_refused_by_line(line: str) -> None:
    with pytest.raises(CompileError, match=r"kernel test, line 3: no CUDA C\+\+ for"):
        body(line)
