"""Helper processes: they compile ahead, and nothing that happens to one changes a result."""

import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from caches import with_rules

import esat
from esat.codegen import helpers
from esat.errors import CompileError

PATIENCE = 60.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="helpers are forked on Linux only")


@pytest.fixture(autouse=True)
def free_machine(monkeypatch):
    """Two processors, one of them idle, a cache on disk, and jobs that count as compilations."""
    misses = [0]
    monkeypatch.setattr(helpers.cache, "misses", lambda: misses[0])
    monkeypatch.setattr(helpers.cache, "is_stored", lambda: True)
    monkeypatch.setattr(helpers, "LARGEST_PROCESS", 1 << 60)
    monkeypatch.setattr(
        threading, "active_count", lambda: 1
    )  # those of the runner of the tests do not matter
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.delenv(helpers.PROCESSES_VARIABLE, raising=False)
    return misses


@pytest.fixture
def forks(monkeypatch):
    """The helpers that were started."""
    started = []
    fork = os.fork

    def counted():
        child = fork()
        if child:
            started.append(child)
        return child

    monkeypatch.setattr(os, "fork", counted)
    return started


def jobs_for(folder, misses, in_helper=lambda number: None, wait_for=()):
    """Eight jobs; in a helper each leaves a file with its process, and the parent waits for some of them."""
    parent = os.getpid()

    def job(number):
        misses[0] += 1
        if os.getpid() != parent:
            in_helper(number)
            (folder / f"{number}").write_text(str(os.getpid()))
            return None
        ended = time.monotonic() + PATIENCE
        while number == 1 and not all((folder / str(one)).exists() for one in wait_for):
            assert time.monotonic() < ended, "no helper came"
            time.sleep(0.01)
        return number

    return [lambda number=number: job(number) for number in range(8)]


def assert_gone(children):
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_a_helper_begins_at_the_last_and_is_gone_at_the_end(tmp_path, free_machine, forks):
    jobs = jobs_for(tmp_path, free_machine, wait_for=(7, 6, 5))
    assert list(helpers.with_helpers(jobs)) == list(range(8))
    assert len(forks) == 1
    order = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert [path.name for path in order[:3]] == ["7", "6", "5"]
    assert not (tmp_path / "0").exists(), "what was there before a helper started is not compiled again"
    assert_gone(forks)


def test_several_helpers_share_what_is_left(tmp_path, free_machine, forks, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    jobs = jobs_for(tmp_path, free_machine, wait_for=range(1, 8))
    assert list(helpers.with_helpers(jobs)) == list(range(8))
    assert len(forks) == 7 // helpers.LEAST_LEFT
    by = {int(path.name): int(path.read_text()) for path in tmp_path.iterdir()}
    assert sorted(by) == list(range(1, 8))
    assert all(by[number] == forks[(7 - number) % 2] for number in by)
    assert_gone(forks)


def hang(number):
    time.sleep(10 * PATIENCE)


def fail(number):
    raise RuntimeError("as numba does")


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("fate", [hang, fail, die])
def test_the_fate_of_a_helper_changes_nothing(tmp_path, free_machine, forks, fate, capfd):
    begun = time.monotonic()
    jobs = jobs_for(tmp_path, free_machine, in_helper=fate)
    assert list(helpers.with_helpers(jobs)) == list(range(8))
    assert time.monotonic() - begun < PATIENCE
    assert len(forks) == 1
    assert_gone(forks)
    assert capfd.readouterr().err == ""


def test_an_error_of_a_job_ends_the_helper(tmp_path, free_machine, forks):
    jobs = jobs_for(tmp_path, free_machine, in_helper=hang)

    def broken():
        raise CompileError("numba refused the source")

    jobs[4] = broken
    with pytest.raises(CompileError, match="refused"):
        list(helpers.with_helpers(jobs))
    assert len(forks) == 1
    assert_gone(forks)


def nothing_is_missing(monkeypatch):
    monkeypatch.setattr(helpers.cache, "misses", lambda: 0)


def another_thread_runs(monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 2)


def someone_looks_after_children(monkeypatch):
    monkeypatch.setattr(signal, "getsignal", lambda _: lambda *_: None)


def is_a_worker(monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)


def no_disk(monkeypatch):
    monkeypatch.setattr(helpers.cache, "is_stored", lambda: False)


def one_process(monkeypatch):
    monkeypatch.setenv(helpers.PROCESSES_VARIABLE, "1")


def busy(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 0.1, 0.1))


def large(monkeypatch):
    monkeypatch.setattr(helpers, "LARGEST_PROCESS", 1 << 20)


@pytest.mark.parametrize(
    "reason",
    [
        nothing_is_missing,
        another_thread_runs,
        someone_looks_after_children,
        is_a_worker,
        no_disk,
        one_process,
        busy,
        large,
    ],
)
def test_no_helper_where_it_would_disturb_or_not_help(tmp_path, free_machine, forks, monkeypatch, reason):
    reason(monkeypatch)
    assert list(helpers.with_helpers(jobs_for(tmp_path, free_machine))) == list(range(8))
    assert not forks


def test_few_kernels_are_compiled_alone(tmp_path, free_machine, forks):
    jobs = jobs_for(tmp_path, free_machine)[: helpers.LEAST_LEFT]
    assert list(helpers.with_helpers(jobs)) == [0, 1, 2]
    assert not forks


def test_a_setting_that_is_no_number_is_an_error(tmp_path, free_machine, monkeypatch):
    monkeypatch.setenv(helpers.PROCESSES_VARIABLE, "many")
    with pytest.raises(CompileError, match="ESAT_COMPILE_PROCESSES is 'many'"):
        list(helpers.with_helpers(jobs_for(tmp_path, free_machine)))


def test_a_refused_fork_is_no_error(tmp_path, free_machine, monkeypatch):
    def refused():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refused)
    assert list(helpers.with_helpers(jobs_for(tmp_path, free_machine))) == list(range(8))


def test_libraries_that_warn_of_forks_are_not_heard(tmp_path, free_machine, monkeypatch):
    fork = os.fork

    def warned():
        warnings.warn("a fork in a process with threads", DeprecationWarning, stacklevel=2)
        return fork()

    monkeypatch.setattr(os, "fork", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(helpers.with_helpers(jobs_for(tmp_path, free_machine))) == list(range(8))


def program():
    given = x = esat.matrix("x")
    for axis in (0, 1, 0, 1, 0):
        x = x - esat.sum(x * x, axis=axis, keepdims=True) * (1.5 + axis)
    f = esat.compile(esat.Graph([given], x), mode="greedy")
    return f(np.random.default_rng(0).standard_normal((5, 7)))


MAIN = """
import os
os.getloadavg, os.sched_getaffinity = lambda: (0.0, 0.0, 0.0), lambda _: {0, 1}
forks, fork = [], os.fork
os.fork = lambda: (forks.append(None), fork())[1]
print(program().tobytes().hex(), len(forks))
"""


def test_programs_compiled_with_helpers_are_those_compiled_alone(tmp_path):
    script = tmp_path / "program.py"
    imports = "import numpy as np\nimport esat\n"
    script.write_text(f"{imports}{inspect.getsource(program)}{MAIN}")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={
            **os.environ,
            "ESAT_CACHE_DIR": str(with_rules(tmp_path / "cache")),
            helpers.PROCESSES_VARIABLE: "2",
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    told = [line for line in done.stderr.splitlines() if not line.startswith("esat: compiling")]
    assert told == []  # but that it takes more than three seconds, where it does
    assert done.stdout.split() == [program().tobytes().hex(), "1"]
