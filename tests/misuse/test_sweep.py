"""Bad values of fifty kinds in each position of each public callable.

Whatever a callable is given, it returns, or raises an error of esat's family, TypeError or ValueError, whose
message names the function or the parameter. It does not hang or take memory, and compiling goes on.
"""

import contextlib
import inspect
import io
import random
import resource
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esat
from esat.graph import registry

from .bad_values import MAKERS
from .callables import WRITES, call, good_arguments, public_callables, signature_of

SECONDS = 20.0
"""No call takes so long, on a machine with much else to do."""
MEMORY = 3 << 30
"""Bytes that all calls may take beyond what the process has."""
CHUNKS = 12
COMPILED = 40
"""Of how many results that bad values give one is computed."""

CALLABLES = dict(public_callables())


class TooLongError(BaseException):
    """Not one of those that code under test may catch."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Within, memory is limited, and each call of the function given is ended after some time."""

    def end(signal_number: int, frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, end)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statistics:
        now = int(statistics.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def own_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ops and rules that calls add are forgotten after the test."""
    for table in ("_OPS", "_BY_CONSTRUCTOR"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))
    known = {rule.name for rule in esat.rules.list()}
    yield
    assert {rule.name for rule in esat.rules.list()} == known


def outcome(
    label: str, function: Any, parameters: inspect.Signature, given: dict[str, Any], name: str
) -> Any:
    """The result of a call, None for an error that is allowed; fails for any other."""
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return call(function, parameters, given)
    except esat.EsatError:
        return None
    except OSError as error:
        if label.rpartition(".")[2] not in WRITES:
            raise AssertionError(f"{type(error).__name__}: {error}") from error
    except Exception as error:
        fault = _foreign(error, label.rpartition(".")[2], name)
        if fault:
            raise AssertionError(fault) from error
    except TooLongError:
        raise AssertionError(f"takes more than {SECONDS} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return None


def _foreign(error: Exception, *names: str) -> str:
    """Why an error is not one that users should see; empty where it is."""
    if type(error) not in (TypeError, ValueError):
        return f"{type(error).__name__}: {error}"
    if not any(name in str(error) for name in names):
        return f"none of {', '.join(names)} is named: {error}"
    return ""


def sweep(label: str) -> Iterator[tuple[str, Any]]:
    """What went wrong, and results of calls that went well, by their descriptions."""
    function = CALLABLES[label]
    parameters = signature_of(function)
    good = good_arguments(label, function, parameters)
    if good is None:
        yield label, AssertionError("no arguments are known that it takes")
        return
    for parameter in parameters.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        for kind, make in MAKERS.items():
            described = f"{label}({parameter.name} = {kind})"
            try:
                result = outcome(
                    label, function, parameters, {**good, parameter.name: make()}, parameter.name
                )
            except AssertionError as error:
                yield described, error
                continue
            yield described, result


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that calls write go to a folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("own_tables", "own_folder")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_bad_values_are_refused_or_understood(chunk: int) -> None:
    faults: list[str] = []
    results: list[tuple[str, esat.Variable]] = []
    source = random.Random(chunk)
    with limited():
        for label in list(CALLABLES)[chunk::CHUNKS]:
            for described, result in sweep(label):
                if isinstance(result, AssertionError):
                    faults.append(f"{described}: {result}")
                elif isinstance(result, esat.Variable) and source.randrange(COMPILED) == 0:
                    results.append((described, result))
    assert not faults, "\n".join(faults[:40])
    for described, result in results:
        assert_computed_or_refused(described, result)
    x = esat.vector("x")
    assert esat.compile(esat.Graph([x], x + 1))([1.0]) == [2.0]


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "True"])
def test_nothing_is_measured_for_an_argument_that_is_wrong(kind: str) -> None:
    with pytest.raises(esat.CallError, match="store is a bool"):
        esat.calibrate(MAKERS[kind]())


def assert_computed_or_refused(described: str, result: esat.Variable) -> None:
    """What was built of bad values compiles and runs, or says why it does not."""
    inputs = [one for one in esat.graph.inputs_of([result]) if type(one) is esat.Variable]
    if not all(isinstance(one.type, esat.TensorType) for one in inputs):
        return
    shapes = [[2 if size is None else size for size in one.type.shape] for one in inputs]
    sizes = [
        np.prod(shape, dtype=float)
        for shape in (*shapes, getattr(result.type, "shape", ()))
        if None not in shape
    ]
    if max(sizes, default=0.0) > 1e6:
        return
    arrays = [np.ones(shape, one.dtype) for one, shape in zip(inputs, shapes, strict=True)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function = esat.compile(esat.Graph(inputs, result), "fast_compile")
            with limited():  # results may be as large as was asked for
                function(*arrays)
    except (esat.EsatError, MemoryError):
        pass
    except Exception as error:
        raise AssertionError(f"{described}: {type(error).__name__}: {error}") from error


def test_the_sweep_reaches_everything() -> None:
    assert len(CALLABLES) > 520
    assert len(MAKERS) >= 50
    tried = [label for label, function in CALLABLES.items() if not signature_of(function).parameters]
    assert len(tried) < 0.15 * len(CALLABLES)
