"""Memory of results that a program keeps and uses again."""

import mmap

import numpy as np
import pytest

from esat.phases.memory import ALIGNMENT
from esat.runtime.buffers import HUGE_PAGE, KEPT_PER_OUTPUT, allocator, raw_buffer

LARGE = (HUGE_PAGE + 8,)


@pytest.mark.parametrize("size", [0, 1, 1000, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 1])
def test_buffers_are_aligned_and_long_enough(size):
    base, offset = raw_buffer(size)
    boundary = HUGE_PAGE if size >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE") else ALIGNMENT
    assert (base.ctypes.data + offset) % boundary == 0
    assert base.size >= offset + size
    base[offset : offset + size] = 1


def test_where_the_system_has_no_huge_pages_buffers_are_numpys(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("no memory of this kind")

    monkeypatch.setattr(mmap, "mmap", refuse)
    base, offset = raw_buffer(2 * HUGE_PAGE)
    assert base.base is None
    assert (base.ctypes.data + offset) % ALIGNMENT == 0


@pytest.mark.parametrize(
    "hold",
    [lambda array: array, lambda array: array[3:9], memoryview, lambda array: array.view(np.uint8)[:1]],
    ids=["array", "part", "memory", "bytes"],
)
def test_memory_is_used_again_only_when_nobody_sees_it(hold):
    take = allocator(LARGE, np.dtype(np.uint8))
    seen = hold(take())
    address = np.asarray(seen).ctypes.data // HUGE_PAGE
    others = [take() for _ in range(2 * KEPT_PER_OUTPUT)]
    assert all(other.ctypes.data // HUGE_PAGE != address for other in others)
    del seen, others, take
    take = allocator(LARGE, np.dtype(np.uint8))
    first = take().ctypes.data
    assert take().ctypes.data == first


def test_the_memory_handed_out_last_is_taken_first():
    take = allocator(LARGE, np.dtype(np.uint8))
    several = [take() for _ in range(KEPT_PER_OUTPUT)]
    last = several[-1].ctypes.data
    del several
    assert {take().ctypes.data for _ in range(5)} == {last}
    # Where each result lives until the next one is there, two places take turns.
    places, result = [], None
    for _ in range(6):
        result = take()
        places.append(result.ctypes.data)
    assert len(set(places)) == 2
    assert places[:2] == places[2:4] == places[4:]
