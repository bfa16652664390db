"""Engines are used again, thread by thread, and dropped after failures."""

import threading

import pytest

import esat.egraph.pool as pool_module
from esat.egraph.engine import Engine
from esat.egraph.pool import ENGINES_PER_THREAD, EnginePool
from esat.errors import RuleError


class Builder:
    """Counts the engines it builds; an engine must be dropped by the thread it was built in."""

    def __init__(self):
        self.built = []

    def __call__(self):
        engine = Engine()
        engine.load("(sort T) (constructor A (i64) T)")
        self.built.append(id(engine))
        return engine


def test_what_a_block_adds_is_gone():
    pool, build = EnginePool(), Builder()
    for _ in range(5):
        with pool.engine("rules", build) as engine:
            engine.execute("(A 1) (A 2)")
            assert engine.sizes()["A"] == 2
    assert len(build.built) == 1


def test_engines_are_replaced_after_their_uses():
    pool, build = EnginePool(uses=3), Builder()
    for _ in range(10):
        with pool.engine("rules", build):
            pass
    assert len(build.built) == 4


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_engine_whose_block_raised_is_dropped(error):
    pool, build = EnginePool(), Builder()
    with pytest.raises(error), pool.engine("rules", build):
        raise error
    with pool.engine("rules", build) as engine:
        assert engine.sizes()["A"] == 0
    assert len(build.built) == 2


def test_a_failing_builder_leaves_nothing():
    pool, build = EnginePool(), Builder()

    def refuse():
        raise RuleError("no")

    with pytest.raises(RuleError), pool.engine("rules", refuse):
        pass
    with pool.engine("rules", build):
        pass
    assert len(build.built) == 1


def test_nested_use_gets_another_engine():
    pool, build = EnginePool(), Builder()
    with pool.engine("rules", build) as outer:
        outer.execute("(A 1)")
        with pool.engine("rules", build) as inner:
            assert inner is not outer
            assert inner.sizes()["A"] == 0
        assert outer.sizes()["A"] == 1
    with pool.engine("rules", build) as again:
        assert again is outer


def test_keys_are_bounded():
    pool, build = EnginePool(), Builder()
    for key in range(ENGINES_PER_THREAD + 1):
        with pool.engine(key, build):
            pass
    with pool.engine(ENGINES_PER_THREAD, build):
        pass
    assert len(build.built) == ENGINES_PER_THREAD + 1
    with pool.engine(0, build):
        pass
    assert len(build.built) == ENGINES_PER_THREAD + 2


def test_threads_have_their_own():
    pool, build = EnginePool(), Builder()
    seen, errors = [], []

    def work(number):
        try:
            for _ in range(20):
                with pool.engine("rules", build) as engine:
                    engine.execute(f"(A {number})")
                    assert engine.sizes()["A"] == 1
                    seen.append((number, id(engine)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len({number for number, _ in seen}) == len(build.built) == 4


@pytest.mark.parametrize("rows", [20, 21])
def test_much_is_cleared_at_once_and_little_when_the_engine_is_used_again(monkeypatch, rows):
    monkeypatch.setattr(pool_module, "ROWS_LEFT", 20)
    pool, build = EnginePool(), Builder()
    with pool.engine("rules", build) as engine:
        engine.execute(" ".join(f"(A {number})" for number in range(rows)))
    assert engine.sizes()["A"] == (20 if rows == 20 else 0)
    with pool.engine("rules", build) as again:
        assert again is engine
        assert again.sizes()["A"] == 0


def test_an_engine_that_cannot_be_cleared_is_replaced():
    pool, build = EnginePool(), Builder()

    def extend(engine):
        if not engine.sizes()["A"]:
            engine.execute("(A 1)")

    for _ in range(2):
        with pool.engine("rules", build, extend) as engine:
            engine.execute("(A 2)")  # to a table that was not empty: which of its rows to delete?
    assert len(build.built) == 2
