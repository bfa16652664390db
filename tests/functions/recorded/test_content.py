"""Records as bytes, and Executables made of them: what they admit, and what they leave to the compiler."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import esat
from esat.base.storage import CacheWarning, DiskStore
from esat.codegen.native_functions.native_call import NativeRecipe
from esat.codegen.native_functions.native_plan import KernelStep
from esat.compilation.pipeline import compile as compile_graph
from esat.compilation.recorded import executables
from esat.compilation.recorded.content import (
    NativeRecord,
    NotRecordedError,
    decoded,
    encoded,
    packed,
    unpacked,
)
from esat.compilation.recorded.executables import RecordedExecutable, Request
from esat.runtime import Executable
from esat.runtime.native.direct import recipe_in_one_thread

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
W = np.linspace(0.5, 1.5, 8).reshape(4, 2)


def graph():
    x, w = esat.matrix("x"), esat.matrix("w")
    return esat.Graph([x, w], [esat.tanh(x @ w).sum(axis=0), x.sum()])


@pytest.fixture(scope="module")
def compiled():
    function = compile_graph(graph())
    calls = function._calls
    results = function(X, W)
    return results, recipe_in_one_thread(calls.program, calls.table, ((3, 4), (4, 2)))


def record(compiled, **changes):
    content, code = encoded(compiled[1])
    return replace(NativeRecord(((3, 4), (4, 2)), (), False, None, content, code), **changes)


def executable(*records):
    return RecordedExecutable(Request(graph(), "fast_run", {}, "here"), records)


def agree(results, wanted):
    for one, other in zip(results, wanted, strict=True):
        assert np.array_equal(one, other)


def test_a_recipe_comes_back_from_bytes(compiled):
    results, recipe = compiled
    assert recipe is not None
    content, code = encoded(recipe)
    assert len(content["steps"]) >= 2
    (back,) = unpacked(memoryview(packed([record(compiled)])))
    assert back.shapes == ((3, 4), (4, 2))
    assert back.code == code
    function = decoded(back.recipe, back.code).function(lambda *_: "otherwise")
    agree(function(X, W), results)
    agree(function(X, W), results)
    assert function(X[:2], W) == "otherwise"


def test_addresses_without_owner_are_not_recorded(compiled):
    recipe = compiled[1]
    (step,) = [step for step in recipe.steps if isinstance(step, KernelStep)][:1]
    with pytest.raises(NotRecordedError, match="kernel"):
        encoded(replace(recipe, steps=(replace(step, address=64),)))
    with pytest.raises(NotRecordedError, match="memory"):
        encoded(NativeRecipe(recipe.inputs, recipe.outputs, recipe.steps, recipe.kept))


def test_other_arguments_are_compiled(compiled):
    function = executable(record(compiled))
    assert isinstance(function, Executable)
    agree(function(X, W), compiled[0])
    assert type(function) is RecordedExecutable
    for one, wanted in zip(function(np.asfortranarray(X), W.tolist()), compiled[0], strict=True):
        assert np.allclose(one, wanted, rtol=1e-14)
    assert type(function) is Executable
    with pytest.raises(esat.InputError, match="x"):
        function(X, W, W)


def test_no_record_for_these_shapes(compiled):
    function = executable(record(compiled, shapes=((1, 4), (4, 2))))
    agree(function(X, W), compiled[0])
    assert type(function) is Executable


def test_calls_are_counted_where_a_better_program_may_be_found(compiled):
    function = executable(record(compiled, wait=2))
    kinds = []
    for _ in range(4):
        agree(function(X, W), compiled[0])
        kinds.append(type(function).__name__)
    assert kinds == ["RecordedExecutable", "RecordedExecutable", "Executable", "Executable"]


def test_unusable_records_are_told_of_and_compiled(compiled):
    content, _ = encoded(compiled[1])
    absent = {**content, "kernels": [{**one, "imported": ["esat_nowhere"]} for one in content["kernels"]]}
    function = executable(record(compiled, recipe=absent))
    with pytest.warns(CacheWarning, match="esat_nowhere"):
        agree(function(X, W), compiled[0])
    assert type(function) is Executable


def test_damaged_entries_are_none(compiled, tmp_path, monkeypatch):
    store = DiskStore(tmp_path / "cache", "program")
    monkeypatch.setattr(executables, "store", lambda: store)
    request = Request(graph(), "fast_run", {}, "here")
    assert executables.recorded(request) is None
    store.save(request.key, packed([record(compiled)]))
    agree(executables.recorded(request)(X, W), compiled[0])
    for payload in (b"", b"{not json\n", b"[[1, 2]]\n"):
        store.save(request.key, payload)
        with pytest.warns(CacheWarning, match="made again"):
            assert executables.recorded(request) is None


def test_several_threads_begin_at_once(compiled):
    function = executable(record(compiled))
    found = []
    threads = [threading.Thread(target=lambda: found.append(function(X, W))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for results in found:
        agree(results, compiled[0])
