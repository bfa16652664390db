"""Kernels as built-in functions: what they take, what they refuse, and what they hold."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from numba.core import types

from esat.codegen.cache import KernelCache
from esat.codegen.ground.kernel_entry import entry_function, kinds_of

_VECTOR, _MATRIX = types.float64[::1], types.Array(types.float32, 2, "A")
_SIGNATURE = types.void(_VECTOR, _MATRIX, types.Array(types.int64, 0, "C"), types.int64)
_SOURCE = """
def kernel(out, x, scale, shift):
    for place in range(out.shape[0]):
        out[place] = x[place, 1] * scale[()] + shift
"""
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


class Inherits(np.ndarray):
    pass


@pytest.fixture(scope="module")
def kernel() -> Any:
    return KernelCache(None).load_or_compile(_SOURCE, "kernel", _SIGNATURE, {})


@pytest.mark.parametrize("x", [MATRIX, MATRIX[:, ::-1], MATRIX.T.copy().T, MATRIX.view(Inherits)])
@pytest.mark.parametrize("shift", [3, -1, np.int64(-5)])
def test_arrays_and_integers_arrive(kernel: Any, x: Any, shift: Any) -> None:
    out = np.empty(4)
    assert kernel.function(out, x, np.array(2), shift) is None
    assert out.tolist() == (2.0 * np.asarray(x)[:, 1] + shift).tolist()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((np.empty(4), MATRIX, np.array(2)), TypeError),
        ((np.empty(4), MATRIX, np.array(2), 1, 1), TypeError),
        ((np.empty(4), MATRIX[0], np.array(2), 1), TypeError),
        ((np.empty(4), [[1.0]], np.array(2), 1), TypeError),
        ((np.empty(4), None, np.array(2), 1), TypeError),
        ((np.empty(4), MATRIX, np.array(2), 1.5), TypeError),
        ((np.empty(4), MATRIX, np.array(2), 2**70), OverflowError),
    ],
)
def test_other_arguments_are_refused(kernel: Any, arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        kernel.function(*arguments)
    with pytest.raises(TypeError, match="takes an array of 1 axes, an array of 2 axes"):
        kernel.function(*arguments[:3], shift=1)


def test_failing_kernels_say_so() -> None:
    source = "def kernel(out):\n    out[0] = np.empty(out.size << 58).sum()\n"
    signature = types.void(_VECTOR)
    made = KernelCache(None).load_or_compile(source, "kernel", signature, {"np": np})
    with pytest.raises(MemoryError, match="no memory"):
        made.function(np.empty(8))


def test_other_signatures_keep_the_wrapper_of_numba() -> None:
    assert kinds_of(types.void(types.UniTuple(types.int64, 2))) is None
    assert kinds_of(types.void(types.float64)) is None
    assert kinds_of(types.int64(types.int64)) is None
    assert kinds_of(_SIGNATURE) == ((1, 8), (2, 4), (0, 8), None)


def test_other_threads_run_meanwhile() -> None:
    source = (
        "def kernel(value):\n"
        "    for _ in range(10**8):\n"
        "        value[0] = value[0] * 0.999 + 1.0\n"  # each needs the one before: a few tenths of a second
    )
    made = KernelCache(None).load_or_compile(source, "kernel", types.void(_VECTOR), {})
    caller = threading.Thread(target=made.function, args=(np.zeros(1),))
    caller.start()
    turns = 0
    while caller.is_alive():
        turns += 1
    assert turns > 1000


@pytest.mark.usefixtures("only_new_objects")
def test_functions_hold_the_code_and_nothing_holds_them(kernel: Any) -> None:
    class Owner:
        pass

    owner = Owner()
    made = entry_function(kernel.address, kinds_of(_SIGNATURE) or (), owner)
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is not None
    made(np.empty(4), MATRIX, np.array(1), 0)
    del made
    gc.collect()
    assert alive() is None
