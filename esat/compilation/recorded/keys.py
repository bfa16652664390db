"""The key of a record: everything that a compilation depends on, as text.

It is read without the compiler, in every process that compiles: a few milliseconds count.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import binding

from esat.base.interrupts import raise_from_outside
from esat.base.native.own_machine import description, processor_counts
from esat.base.storage import digest_of, package_digest
from esat.extract.prices.machine import profile_path
from esat.frontend.graph import Graph
from esat.graph import Apply, Constant, FunctionGraph, SharedVariable, TensorType, Variable
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import Op
from esat.graph.random_type import RandomState, RandomType
from esat.graph.registry import is_of_package

_PACKAGES = ("egglog", "llvmlite", "numba", "scipy")
_SETTINGS = ("ESAT_", "NUMBA_", "OPENBLAS_", "GOTO_", "OMP_", "MKL_", "BLIS_", "VECLIB_")
"""How environment variables begin that may change a program."""
_OTHERS = ("ESAT_CACHE_DIR", "ESAT_COMPILE_PROCESSES", "ESAT_EGRAPH_CACHE")
"""Those that do not."""
LARGEST_CONSTANTS = 1 << 20
"""Bytes of constants, up to which they are read for a key."""


class NotKeyedError(Exception):
    """Something that a program depends on has no text that stands for it, in this process and others."""


def graph_key(
    graph: Graph, mode: str, shapes: Mapping[Variable, Sequence[int]]
) -> tuple[str, tuple[SharedVariable, ...]]:
    """The key of a graph in a mode, and the graph's shared variables as records number them.

    Raises
    ------
    NotKeyedError
        Where the graph has ops, types or constants that no key stands for.
    """
    if graph.givens:
        raise NotKeyedError("a graph with givens")
    numbering = _Numbering(graph)
    expected = {numbering.number(variable): tuple(shape) for variable, shape in shapes.items()}
    key = digest_of([_process(), mode.lower(), repr(sorted(expected.items())), *numbering.lines])
    return key, tuple(numbering.shared)


class _Numbering:
    """A graph as lines of text, and the numbers that these give its variables."""

    def __init__(self, graph: Graph | FunctionGraph) -> None:
        self._numbers: dict[Variable, int] = {}
        self._bytes = 0
        self.shared: list[SharedVariable] = []
        self.lines: list[str] = []
        for variable in graph.inputs:
            self._add(variable, f"input {_type(variable)} {variable.name!r}")
        pairs = graph.updates if isinstance(graph, Graph) else ()
        for node in toposort([*graph.outputs, *(value for _, value in pairs)], graph.inputs):
            self._add_node(node)
        outputs = [self.number(variable) for variable in graph.outputs]
        updates = [(self.number(target), self.number(value)) for target, value in pairs]
        self.lines.append(f"outputs {outputs} single {graph.single_output} updates {updates}"
                          if isinstance(graph, Graph) else f"outputs {outputs}")  # fmt: skip

    def number(self, variable: Variable) -> int:
        """A variable's number; one that no node computes gets its own line when it is first named."""
        known = self._numbers.get(variable)
        return self._add(variable, self._leaf(variable)) if known is None else known

    def _add(self, variable: Variable, line: str) -> int:
        self._numbers[variable] = number = len(self._numbers)
        self.lines.append(line)
        return number

    def _add_node(self, node: Apply) -> None:
        operands = [self.number(variable) for variable in node.inputs]
        line = f"{_described(node.op)} {operands}"
        for variable in node.outputs:
            self._add(variable, f"{line} {_type(variable)} {variable.name!r}")

    def _leaf(self, variable: Variable) -> str:
        if isinstance(variable, SharedVariable):
            value = variable.look()
            if variable.is_elsewhere or not isinstance(value, np.ndarray | RandomState):
                raise NotKeyedError(f"the value of {variable}")
            self.shared.append(variable)
            if isinstance(value, RandomState):  # of any kind: native functions take where it is
                return f"shared {_type(variable)} {variable.name!r}"
            return f"shared {_type(variable)} {variable.name!r} {value.shape}"
        if isinstance(variable, Constant):
            self._bytes += variable.data.nbytes if isinstance(variable.data, np.ndarray) else 0
            if self._bytes > LARGEST_CONSTANTS or not isinstance(variable.data, np.ndarray):
                raise NotKeyedError(f"the constant {variable}")
            content = hashlib.sha256(variable.data.tobytes()).hexdigest()
            return f"constant {_type(variable)} {variable.name!r} {content}"
        raise NotKeyedError(f"the leaf {variable}")


def _type(variable: Variable) -> str:
    if type(variable.type) not in (TensorType, RandomType):
        raise NotKeyedError(f"the type {variable.type}")
    return repr(variable.type)


def _described(value: object) -> str:
    """Text for an op or a parameter of one, equal only for equal ones of this version of the package."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    if isinstance(value, np.dtype):
        return f"dtype {value.str}"
    if isinstance(value, Enum) and type(value).__module__.startswith("esat."):
        return str(value)
    if isinstance(value, type) and value.__module__.startswith("esat."):  # of the error of an assertion
        return f"class {value.__module__}.{value.__qualname__}"
    if isinstance(value, Op) and is_of_package(value):
        return f"op {value.name}"
    if isinstance(value, FunctionGraph):  # the body of a loop
        body = _Numbering(value)
        if body.shared:
            raise NotKeyedError("a body with shared variables")
        return f"body {digest_of(body.lines)}"
    if callable(value) and (named := _function(value)) is not None:
        return named
    kind = type(value)
    if kind.__module__.startswith("esat.") and is_dataclass(value) and not isinstance(value, type):
        given = [f"{one.name}={_described(getattr(value, one.name))}" for one in fields(value) if one.init]
        return f"{kind.__module__}.{kind.__qualname__}({', '.join(given)})"
    raise NotKeyedError(f"{value!r}")


def _function(function: Any) -> str | None:
    """Text for a function of this package or of NumPy, the code of which the key covers; None for others."""
    home = "numpy" if isinstance(function, np.ufunc) else str(getattr(function, "__module__", ""))
    if home.partition(".")[0] not in ("esat", "numpy") or isinstance(function, type):
        return None
    if isinstance(function, FunctionType) and function.__closure__ is None and not function.__defaults__:
        code = function.__code__  # which tells functions without a name of their own apart
        return f"function {home}.{function.__qualname__} {code.co_firstlineno} {code.co_code.hex()}"
    name = str(getattr(function, "__name__", ""))
    return f"function {home}.{name}" if vars(sys.modules[home]).get(name) is function else None


@functools.cache
def _process() -> str:
    """Everything about this process that changes programs; what may change while it runs is not in it."""
    parts = [
        package_digest(),
        f"{sys.implementation.cache_tag} {sys.version}",
        f"numpy {np.__version__} llvm {binding.llvm_version_info}",
        *map(_version, _PACKAGES),
        *description(),
        repr(processor_counts()),
        *_settings(),
        *map(_content, (profile_path(), profile_path().with_suffix(".tuning.json"))),
        _content(Path(".numba_config.yaml")),
        repr(numba_before()),
    ]
    return digest_of(parts)


def _version(package: str) -> str:
    """The name of the folder that installers leave beside a package, which has its version."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise NotKeyedError(f"{package}, which is not installed")
    folder = Path(found.origin).parent.parent
    names = [name for name in _names(str(folder)) if name.startswith(f"{package}-")]
    if not names:
        raise NotKeyedError(f"{package}, the version of which is not known")
    return " ".join(names)


@functools.cache
def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))))


def _settings() -> Iterator[str]:
    for name in sorted(os.environ):
        if name.startswith(_SETTINGS) and name not in _OTHERS:
            yield f"{name}={os.environ[name]}"


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise_from_outside(error)
        return "none"


def compiler_state() -> tuple[Any, ...]:
    """What users may have changed of the compiler's databases and settings while the process runs.

    It loads the compiler.
    """
    from esat.classic.standard import optdb
    from esat.egraph.preparation.rule_database import RULES

    return _entries(optdb), tuple(map(id, RULES.files())), _numba_settings()


@functools.cache
def numba_before() -> tuple[Any, ...] | None:
    """What numba was told before anything was compiled; None in processes that had not imported it.

    PyTensor imports it for functions of its own. It is part of keys: such processes have their own records.
    """
    return numba_state()


def numba_state() -> tuple[Any, ...] | None:
    """What numba was told that changes programs; None where it is not imported."""
    return _numba_settings() if "numba" in sys.modules else None


def _numba_settings() -> tuple[Any, ...]:
    from numba.core import config

    from esat.codegen.cache.fingerprint import NUMBA_SETTINGS
    from esat.codegen.threads import granted_threads

    return (*(repr(getattr(config, name, None)) for name in NUMBA_SETTINGS), granted_threads(None))


def _entries(database: Any) -> tuple[Any, ...]:
    return tuple(
        (entry.name, id(entry.object), entry.tags, entry.position, _entries(entry.object))
        for entry in getattr(database, "entries", ())
    )
