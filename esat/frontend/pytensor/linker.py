"""The linker and the modes by which ``pytensor.function`` compiles with esat."""

from __future__ import annotations

import copy
import functools
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytensor.compile.aliasing import Supervisor
from pytensor.compile.mode import Mode, predefined_linkers, predefined_modes, register_linker, register_mode
from pytensor.compile.rewriting import functional_rewrite_ofg_inner_graph, rewrite_ofg_inner_graph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.basic import JITLinker
from pytensor.link.utils import raise_with_op
from pytensor.scan.rewriting.inner_graph import (
    functional_rewrite_scan_inner_graph,
    rewrite_scan_inner_graph,
)
from pytensor.tensor.optimize import rewrite_optimize_inner_graph
from pytensor.tensor.rewriting.optimize import jit_rewrite_optimize_inner_graph

from esat.errors import AssertionFailed, LinearAlgebraError, ShapeError
from esat.frontend.graph import Graph
from esat.frontend.pytensor.rules import RULES
from esat.frontend.pytensor.translation import PyTensorTranslation
from esat.frontend.pytensor.types import as_pytensor, is_other, type_of

INCOMPATIBLE = (
    "cxx_only", "BlasOpt", "fusion", "inplace", "local_careduce_fusion",
    "reuse_decomposition_multiple_solves", "scan_make_inplace", "scan_reduce_trace_prealloc",
    "scan_save_mem_prealloc",
)  # fmt: skip
"""Rewrites for other linkers: ops that write into their operands, fused loops, calls of BLAS, and factors
of matrices for several systems, which esat shares itself."""


_REFUSED = re.compile(
    r"does not fit the part of shape|^(solve|solve_triangular|solve_banded)\(.*[Ss]ingular"
    "|perform gives shape",
    re.S,
)
"""What errors say that PyTensor does not raise: of values that are written, of singular systems, and of
users' ops that declare other sizes than they give."""


class ESATLinker(JITLinker):
    """Compiles a whole PyTensor graph into one program of esat's.

    Parameters
    ----------
    mode
        Of ``esat.compile``.
    strict
        Whether an op that esat has no rule for is an error; otherwise PyTensor's own code runs it.
    """

    required_rewrites = ("minimum_compile",)
    incompatible_rewrites = INCOMPATIBLE

    def __init__(self, mode: str = "fast_run", strict: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.mode, self.strict = mode, strict

    def accept(self, fgraph: Any, no_recycling: Any = None, profile: Any = None) -> Any:
        """The linker for a graph; one of the same options, where this one has another graph already."""
        linker = self
        if self.fgraph is not None and self.fgraph is not fgraph:
            linker = copy.copy(self)
            linker.fgraph = None
        return super(ESATLinker, linker).accept(fgraph, no_recycling, profile)

    def fgraph_convert(self, fgraph: Any, *_: Any, **__: Any) -> PyTensorProgram:
        """The program of a graph, called with the values of its inputs."""
        program = self._program(fgraph)
        if not overwritable(fgraph):  # which the first of two calls may have written to
            program.make_careful = functools.partial(self._program, fgraph, True)
        return program

    def _program(self, fgraph: Any, careful: bool = False) -> PyTensorProgram:
        translation = PyTensorTranslation(RULES, self.strict, careful)
        inputs = [type_of(variable).make_variable(variable.name) for variable in fgraph.inputs]
        outputs = translation.run(fgraph, inputs)
        return PyTensorProgram(fgraph, inputs, outputs, translation, self.mode)

    def jit_compile(self, fn: Any) -> Any:
        """The program itself: it is compiled already."""
        return fn

    def create_thunk_inputs(self, storage_map: Mapping[Any, list[Any]]) -> list[Any]:
        """The cells of the inputs' values."""
        return [storage_map[variable] for variable in self.fgraph.inputs]

    def create_jitable_thunk(
        self, compute_map: Any, order: Any, input_storage: Any, output_storage: Any, storage_map: Any
    ) -> tuple[list[Any], list[Any], Any]:
        """One function for the whole graph; errors name the node that they come from."""
        program = self.fgraph_convert(self.fgraph)
        inputs = self.create_thunk_inputs(storage_map)
        outputs = [storage_map[variable] for variable in self.fgraph.outputs]

        def thunk() -> None:
            results = program(*[cell[0] for cell in inputs])
            for cell, value in zip(outputs, results, strict=True):
                cell[0] = value

        thunk.inputs, thunk.outputs, thunk.lazy = inputs, outputs, False  # type: ignore[attr-defined]
        nodes = [variable.owner for variable in self.fgraph.outputs if variable.owner is not None]
        return [thunk], nodes[:1], program


class PyTensorProgram:
    """A compiled PyTensor graph: called with one value an input, it gives one an output.

    Attributes
    ----------
    executable
        Of ``esat.compile``; None for a graph without outputs.
    report
        Which ops PyTensor runs.
    make_careful
        Gives the program for calls that this one refuses and PyTensor does not: with values to write that
        have one element along an axis where no type says so, with singular systems, or with users' ops that
        declare other sizes than they give. What they need would cost all calls. None where there is no such
        program.
    """

    def __init__(
        self,
        fgraph: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        translation: PyTensorTranslation,
        mode: str,
    ) -> None:
        self.report = translation.report
        self._fgraph = fgraph
        self._raises = translation.raises
        self._constants = [value for _, value in translation.arguments]
        self._outputs = list(fgraph.outputs)
        self._convert = [is_other(variable) for variable in self._outputs]
        self._inputs = list(fgraph.inputs)
        self.make_careful: Callable[[], PyTensorProgram] | None = None
        self._careful: PyTensorProgram | None = None
        self.executable: Any = None
        if outputs:
            graph = Graph(
                [*inputs, *(variable for variable, _ in translation.arguments)],
                list(outputs),
                on_unused_input="ignore",
            )
            donated = [inputs[place] for place in overwritable(fgraph)]
            self.executable = importlib.import_module("esat").compile(graph, mode, donate=tuple(donated))

    def __call__(self, *values: Any) -> Sequence[Any]:
        if self.executable is None:
            return ()
        try:
            results: Sequence[Any] = self.executable(*values, *self._constants)
        except AssertionFailed as error:
            raise self._as_pytensor_raises(error) from error
        except (ShapeError, LinearAlgebraError) as error:
            if self.make_careful is None or _REFUSED.search(str(error)) is None:
                raise
            if self._careful is None:
                self._careful = self.make_careful()
            return self._careful(*values)
        except Exception as error:
            node = getattr(error, "pytensor_node", None)
            if node is None:
                raise
            raise_with_op(self._fgraph, node)
        if len(self._outputs) == 1:
            results = (results,)
        if not any(self._convert):
            return results
        return [
            as_pytensor(variable, value) if flag else value
            for variable, value, flag in zip(self._outputs, results, self._convert, strict=True)
        ]

    def c_entry(self, *values: Any) -> Any:
        """The program as a C function, see :meth:`esat.runtime.Executable.c_entry`.

        Raises
        ------
        CallError
            Where a step needs Python.
        """
        return self.executable.c_entry(*values, *self._constants)

    def _as_pytensor_raises(self, error: AssertionFailed) -> Exception:
        """The exception that PyTensor raises for an assertion that failed, with the user's line as a note."""
        text = str(error)
        found = [message for message in self._raises if message in text]
        if not found:
            return error
        kind, message = self._raises[max(found, key=len)]
        made = kind(message)
        made.add_note(text)
        return made


def overwritable(fgraph: Any) -> list[int]:
    """The places of inputs that a call may overwrite, ``In(mutable=True)``.

    Shared variables that are updated are not among them: their values stay what they were where a call fails,
    and programs that overwrite arguments are not recorded on disk.
    """
    protected = next((one.protected for one in fgraph._features if isinstance(one, Supervisor)), None)
    updated = set((getattr(fgraph, "update_mapping", None) or {}).values())
    return [
        place
        for place, variable in enumerate(fgraph.inputs)
        if protected is not None and variable not in protected and place not in updated
    ]


rewrite_ofg_inner_graph.register(ESATLinker)(functional_rewrite_ofg_inner_graph)
rewrite_scan_inner_graph.register(ESATLinker)(functional_rewrite_scan_inner_graph)
rewrite_optimize_inner_graph.register(ESATLinker)(jit_rewrite_optimize_inner_graph)

ESAT = Mode(ESATLinker(), RewriteDatabaseQuery(include=["minimum_compile", "canonicalize_db", "merge"]))
"""Of PyTensor's rewrites only those that it must have, and those asked for by name: PyMC adds one to the
canonical ones, by which parameters out of range have density 0."""

ESAT_AFTER = Mode(ESATLinker(), RewriteDatabaseQuery(include=["fast_run"]))
"""After PyTensor's rewrites, but those that write in place, fuse, or call BLAS."""


def register() -> None:
    """Make the linker and the modes known to PyTensor by their names."""
    if "esat" not in predefined_linkers:
        register_linker("esat", ESATLinker())
    for name, mode in (("ESAT", ESAT), ("ESAT_AFTER", ESAT_AFTER)):
        if name not in predefined_modes:
            register_mode(name, mode)
