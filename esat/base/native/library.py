"""Functions of the subset, compiled: from disk where they are kept, else by LLVM at once."""

from __future__ import annotations

import ctypes
import inspect
import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from llvmlite import binding

from esat.base.native.annotations import ArrayType, Record, Scalar, name_of, record_of, signature_of
from esat.base.native.own_machine import description, target_machine
from esat.base.storage import SHIPPED, DiskStore, default_directory, digest_of, digest_of_sources
from esat.errors import CompileError

_WORD, _FLOAT = struct.Struct("q"), struct.Struct("d")


class Library:
    """The machine code of some functions and of all that these call.

    Parameters
    ----------
    functions
        Functions of the subset (see :mod:`esat.base.native.translate`). They, what they call and the
        constants they name are of their own packages: object code is made anew when a source there changes.
    store
        Where object code is kept; by default with what else esat keeps on disk.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], store: DiskStore | None = None) -> None:
        self._functions = functions
        self._store = DiskStore(default_directory(), "native", shipped=SHIPPED) if store is None else store

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled form of one of the functions.

        It takes arrays of int64 or float64 that lie in one piece, and changes them; it gives back numbers.
        The interpreter's lock is free meanwhile. An array of another kind is a CompileError.

        Raises
        ------
        CompileError
            For a function that is not of the subset.
        """
        return _Call(function, self._engine.get_function_address(function.__name__), self._engine)

    def address(self, function: Callable[..., Any]) -> int:
        """Where one of the functions is, as C calls it: with its integers, truth values and floats.

        It stays there as long as the library.

        Raises
        ------
        CompileError
            For a function that is not of the subset.
        """
        return int(self._engine.get_function_address(name_of(function)))

    @cached_property
    def _engine(self) -> Any:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        key = self._key()
        code = self._store.load(key, bytes)
        if code is None:
            from esat.base.native.translate import translated  # needed once a machine

            code = _object_code(translated(self._functions))
            self._store.save(key, code)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return engine

    def _key(self) -> str:
        """Of all that object code depends on: sources, the translator, LLVM and the system."""
        names = list(map(name_of, self._functions))
        packages = {Path(inspect.getfile(function)).parent for function in self._functions}
        sources = [digest_of_sources(package) for package in sorted({*packages, Path(__file__).parent})]
        version = ".".join(map(str, binding.llvm_version_info))
        return digest_of([*names, *sources, version, *description()])


def _object_code(text: str) -> bytes:
    """Machine code for LLVM's text.

    The passes are the few that cost next to nothing: variables to registers, and simpler code of what the
    translator writes at length. With all of LLVM's second level it takes nine times as long.
    """
    module = binding.parse_assembly(text)
    machine = target_machine()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    return bytes(machine.emit_object(module))


class _Call:
    """A compiled function, called with arrays and numbers."""

    def __init__(self, function: Callable[..., Any], address: int, kept: object) -> None:
        signature = signature_of(function)
        self._name = function.__qualname__
        self._parameters = tuple(signature.parameters.values())
        self._results = signature.results
        self._native = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._kept = kept

    def __call__(self, *arguments: Any) -> Any:
        words: list[int] = []
        for parameter, argument in zip(self._parameters, arguments, strict=True):
            if isinstance(parameter, Record):
                if record_of(type(argument)) is not parameter:
                    raise CompileError(f"{self._name}: a {type(argument).__qualname__} is another record")
                words.append(argument.address)
            elif isinstance(parameter, ArrayType):
                words += parameter.words(argument)
            else:
                words.append(
                    _WORD.unpack(_FLOAT.pack(argument))[0] if parameter == "float" else int(argument)
                )
        table = (ctypes.c_int64 * max(len(words), len(self._results)))(*words)
        self._native(ctypes.addressof(table))
        if len(self._results) == 1:
            return _result(self._results[0], table[0])
        return tuple(map(_result, self._results, table)) or None


def _result(type: Scalar, word: int) -> int | float | bool:
    if type == "float":
        number: float = _FLOAT.unpack(_WORD.pack(word))[0]
        return number
    return bool(word) if type == "bool" else word
