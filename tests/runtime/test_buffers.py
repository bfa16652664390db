"""Memory of results that a program keeps and uses again."""

import mmap

import numpy as np
import pytest

from esat.phases.memory.memory_plan import ALIGNMENT
from esat.runtime.buffers import HUGE_PAGE, KEPT_PER_OUTPUT, aligned_bytes, allocator, pool_of

LARGE = (HUGE_PAGE + 8,)


@pytest.mark.parametrize("size", [0, 1, 1000, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 1])
def test_buffers_are_aligned_and_long_enough(size):
    buffer = aligned_bytes(size)
    boundary = HUGE_PAGE if size >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE") else ALIGNMENT
    assert buffer.ctypes.data % boundary == 0
    assert buffer.shape == (size,)
    buffer[:] = 1


def test_views_of_a_buffer_hold_the_buffer_itself():
    for size in (1000, HUGE_PAGE):
        buffer = aligned_bytes(size)
        assert buffer[3:].view(np.int8)[1:].base is buffer


def test_where_the_system_has_no_huge_pages_buffers_are_numpys(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("no memory of this kind")

    monkeypatch.setattr(mmap, "mmap", refuse)
    buffer = aligned_bytes(2 * HUGE_PAGE)
    assert buffer.ctypes.data % ALIGNMENT == 0
    assert buffer.shape == (2 * HUGE_PAGE,)
    buffer[:] = 1


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


def test_only_large_results_have_a_pool():
    assert pool_of(allocator((3,), np.dtype(np.float32))) is None
    pool = pool_of(allocator(LARGE, np.dtype(np.float32)))
    assert pool.size == 4 * LARGE[0]
    result = pool.take()
    assert result.base is pool.bases[-1]
