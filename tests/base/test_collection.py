import gc
import subprocess
import sys
import weakref

import pytest
from interrupts import interrupted_everywhere

import esat
from esat.base.collection import without_collecting, without_old_objects


def test_the_collector_passes_old_objects_by_and_sees_new_ones() -> None:
    old: list[object] = []
    known = gc.get_freeze_count()
    with without_old_objects():
        assert not any(one is old for one in gc.get_objects())
        new: list[object] = []
        assert any(one is new for one in gc.get_objects())
        with without_old_objects():
            assert gc.get_freeze_count() > known
        assert gc.get_freeze_count() > known
    assert any(one is old for one in gc.get_objects())


def test_nothing_is_collected_until_it_ends_and_then_all_is_as_before() -> None:
    assert gc.isenabled()
    with without_collecting():
        with without_collecting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), without_collecting():
        raise KeyError
    assert gc.isenabled()


def test_what_was_made_meanwhile_is_old_to_the_collector_afterwards() -> None:
    with without_collecting():
        made: list[object] = []
        assert any(one is made for one in gc.get_objects(generation=0))
    assert any(one is made for one in gc.get_objects(generation=2))


def test_the_collector_is_as_before_after_a_compilation_that_fails() -> None:
    known = gc.get_freeze_count()
    with pytest.raises(esat.GraphError):
        esat.compile([1, 2])  # type: ignore[arg-type]
    assert gc.get_freeze_count() <= known
    assert gc.isenabled()


def test_what_a_process_keeps_from_the_collector_stays_so() -> None:
    gc.freeze()
    try:
        with without_old_objects(), without_collecting():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_garbage_of_blocks_that_follow_each_other_is_collected() -> None:
    class Kept:
        pass

    def leave_garbage() -> weakref.ref[Kept]:
        one = Kept()
        one.itself = [one] * 2  # type: ignore[attr-defined]
        one.many = [[number] for number in range(10_000)]  # type: ignore[attr-defined]
        return weakref.ref(one)

    gc.collect()
    left = []
    for _ in range(400):
        with without_old_objects():
            left.append(leave_garbage())
            gc.collect(1)  # what Python does for itself where more is made: all of it is old now
    alive = sum(one() is not None for one in left)
    assert alive < 200


DROPPED = """
import weakref, esat, esat.base.collection
esat.base.collection._GROWTH = 1.02
x = esat.vector("x")
functions = []
for number in range(60):
    f = esat.compile(esat.Graph([x], [esat.exp(x * number) + x.sum()]))
    functions.append(weakref.ref(f))
print(sum(one() is not None for one in functions))
"""


def test_functions_that_are_dropped_are_collected() -> None:
    # In a process of its own: what other tests left would be most of the memory that has to grow.
    ended = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 50


@pytest.mark.parametrize("block", [without_old_objects, without_collecting])
def test_the_collector_is_as_before_after_a_block_that_is_cut_off_anywhere(block) -> None:
    def work() -> None:
        with block():
            pass

    known, places = gc.get_freeze_count(), 0
    for _ in interrupted_everywhere(work):
        places += 1
        assert gc.isenabled()
        assert gc.get_freeze_count() <= known
    assert places > 8
