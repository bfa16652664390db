"""What a native function does as bytes: addresses become places in memory blocks, code, and names of BLAS."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from llvmlite import binding

from esat.base.records import record
from esat.codegen.ground import scipy_functions
from esat.codegen.ground.machine_text import HostFunction, engine_of, initialize
from esat.codegen.native_functions.native_call import NativeRecipe, owned_parts
from esat.codegen.native_functions.native_plan import (
    ArraySpecification,
    KernelStep,
    LoopControl,
    Place,
    PythonStep,
    RoutineStep,
    Step,
)
from esat.errors import CompileError

if TYPE_CHECKING:
    from esat.codegen.cache.machine_code import MachineCode

Shapes = tuple[tuple[int, ...], ...]

LARGEST = 1 << 21
"""Bytes of code and numbers of the largest function that is recorded."""
_BOUNDARY = 64
"""Memory is as far from a cache line's boundary as it was: results do not depend on it, but times do."""


class NotRecordedError(Exception):
    """A native function refers to something that other processes cannot find."""


@record(frozen=True, eq=False)
class NativeRecord:
    """What is recorded of a program for some shapes.

    Attributes
    ----------
    shapes
        Those of the arguments, and of the values of shared variables.
    shared
        The numbers of the shared variables whose values are arguments, and whether each is overwritten.
    updates
        Whether a call changes shared variables.
    wait
        Calls after which the compiler looks for a program that is faster for these shapes; None for never.
    recipe
        What the function does, see :func:`encoded`.
    code
        Machine code and numbers that the recipe names by position.
    """

    shapes: Shapes
    shared: tuple[tuple[int, bool], ...]
    updates: bool
    wait: int | None
    recipe: Mapping[str, Any]
    code: bytes


# ---- to bytes


def encoded(recipe: NativeRecipe) -> tuple[dict[str, Any], bytes]:
    """A recipe as plain data and the bytes that this names by position.

    Raises
    ------
    NotRecordedError
        Where an address belongs to nothing that is known.
    """
    return _Encoder(recipe).encoded()


class _Encoder:
    def __init__(self, recipe: NativeRecipe) -> None:
        self.recipe = recipe
        self.parts: list[bytes] = []
        self.size = 0
        owned = list(owned_parts(recipe.kept))
        self.codes = {one.address: one for one in owned if not isinstance(one, np.ndarray)}
        self.blocks: dict[tuple[int, int], bytes | None] = {}
        for array in owned:
            if isinstance(array, np.ndarray):
                owner = _owner(array)
                self.blocks[_range(owner)] = owner.tobytes()
        for array in recipe.scratch:
            self.blocks.setdefault(_range(_owner(array)), None)
        self.kernels: dict[int, int] = {}

    def encoded(self) -> tuple[dict[str, Any], bytes]:
        steps = [self._step(step) for step in self.recipe.steps]
        content: dict[str, Any] = {
            "inputs": [_specification(one) for one in self.recipe.inputs],
            "outputs": [[*_specification(one), one.bases is not None] for one in self.recipe.outputs],
            "steps": steps,
            "kernels": [self._kernel(self.codes[address]) for address in self.kernels],
            "memory": [
                [size, start % _BOUNDARY, None if numbers is None else self._part(numbers)]
                for (start, size), numbers in self.blocks.items()
            ],
            "libraries": [self._library(one) for one in self.recipe.libraries],
            "unlocked": self.recipe.unlocked,
        }
        return content, b"".join(self.parts)

    def _part(self, content: bytes) -> list[int]:
        """Where some bytes are."""
        start = self.size
        self.parts.append(content)
        self.size += len(content)
        if self.size > LARGEST:
            raise NotRecordedError("too much code")
        return [start, len(content)]

    def _step(self, step: Step) -> dict[str, Any]:
        """A step's fields by name; addresses of code as what they are found by."""
        content = {one.name: self._value(getattr(step, one.name)) for one in fields(step)}
        if isinstance(step, KernelStep):
            if step.address not in self.codes:
                raise NotRecordedError("a kernel without owner")
            content["address"] = self.kernels.setdefault(step.address, len(self.kernels))
        elif isinstance(step, RoutineStep):
            content["address"] = self._routine(step.address)
        elif isinstance(step, PythonStep):
            content["function"] = self._performed(step.function)
        return {"step": type(step).__name__, "content": content}

    def _value(self, value: Any) -> Any:
        """What a step holds, as plain data."""
        if isinstance(value, Place):
            return {"place": self._place(value)}
        if isinstance(value, ArraySpecification):
            return {"array": [*_specification(value), value.strides]}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, tuple):
            return [self._value(one) for one in value]
        if isinstance(value, LoopControl):
            content = {one.name: self._value(getattr(value, one.name)) for one in fields(value)}
            return {"step": LoopControl.__name__, "content": content}
        return self._step(value) if isinstance(value, Step) else value

    def _performed(self, function: object) -> list[int]:
        """What only Python computes: the op, whose class and functions are named by module."""
        try:
            return self._part(pickle.dumps(function))
        except Exception as error:  # pickling runs code of the op's, which may raise anything
            raise NotRecordedError("an op that cannot be pickled") from error

    def _place(self, place: Place) -> list[Any]:
        if place.kind != "fixed":
            return [place.kind, place.number, place.offset]
        for number, (start, size) in enumerate(self.blocks):
            if start <= place.number < start + max(size, 1):
                return ["fixed", number, place.number - start + place.offset]
        raise NotRecordedError("memory without owner")

    def _routine(self, address: int) -> list[Any]:
        from esat.codegen.matmul.small_products import routine_at

        routine = routine_at(address)
        if routine is None:
            raise NotRecordedError("a routine without name")
        if isinstance(routine, HostFunction):
            kind = f"{type(routine).__module__}.{type(routine).__name__}"
            return [kind, [getattr(routine, one.name) for one in fields(routine)]]
        return [*routine]

    def _library(self, functions: tuple[int, int]) -> str:
        from esat.codegen.ground.blas_library import thread_functions

        for package in ("scipy", "numpy"):
            if thread_functions(package) == functions:
                return package
        raise NotRecordedError("a library without name")

    def _kernel(self, code: MachineCode) -> dict[str, Any]:
        from esat.codegen.vector_math import shared_code

        shared = shared_code.codes(code.shared)
        if any(name not in shared and name.startswith("NRT_") for name in code.imported):
            raise NotRecordedError("a kernel that allocates")
        return {
            "symbol": code.symbol,
            "object": self._part(code.object_code),
            "imported": list(code.imported),
            "shared": {name: self._part(one.object_code) for name, one in shared.items()},
        }


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of another one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.dtype.hasobject or not array.flags.c_contiguous:
        raise NotRecordedError("memory of objects, or in pieces")
    return array


def _range(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    return int(array.ctypes.data), array.nbytes


def _specification(array: ArraySpecification) -> list[Any]:
    return [array.dtype.str, list(array.shape)]


# ---- from bytes


def decoded(content: Mapping[str, Any], code: bytes) -> NativeRecipe:
    """The recipe of what :func:`encoded` gave: its code is loaded, its memory is new.

    Raises
    ------
    CompileError
        Where machine code names what is not there.
    """
    return _Decoder(content, code).recipe()


class _Decoder:
    def __init__(self, content: Mapping[str, Any], code: bytes) -> None:
        initialize()
        self.content, self.code = content, code
        self.kernels = [self._kernel(one) for one in content["kernels"]]
        self.blocks = [self._block(*one) for one in content["memory"]]

    def recipe(self) -> NativeRecipe:
        outputs = [self._output(*one) for one in self.content["outputs"]]
        return NativeRecipe(
            tuple(_read_specification(*one) for one in self.content["inputs"]),
            tuple(outputs),
            tuple(self._value(one) for one in self.content["steps"]),
            (tuple(self.blocks), tuple(engine for _, engine in self.kernels)),
            tuple(map(_library_functions, self.content["libraries"])),
            bool(self.content["unlocked"]),
        )

    def _part(self, start: int, length: int) -> bytes:
        return self.code[start : start + length]

    def _kernel(self, kernel: Mapping[str, Any]) -> tuple[int, Any]:
        """The address of a kernel, and what owns its code."""
        for name in kernel["imported"]:
            if binding.address_of_symbol(name) is None:
                binding.add_symbol(name, self._address(name, kernel["shared"]))
        engine = engine_of(self._part(*kernel["object"]))
        return int(engine.get_function_address(kernel["symbol"])), engine

    def _address(self, name: str, shared: Mapping[str, Sequence[int]]) -> int:
        """Of a function that a kernel calls."""
        if name not in shared:
            address = scipy_functions.address_named(name)
            if not address:
                raise CompileError(f"recorded code calls {name}, which is nowhere")
            return address
        engine = engine_of(self._part(*shared[name]))
        _shared.append(engine)
        return int(engine.get_function_address(name))

    def _block(self, size: int, shift: int, part: Sequence[int] | None) -> np.ndarray[Any, Any]:
        memory = np.empty(size + 2 * _BOUNDARY, np.uint8)
        start = (shift - memory.ctypes.data) % _BOUNDARY
        block = memory[start : start + size]
        if part is not None:
            block[...] = np.frombuffer(self._part(*part), np.uint8)
        return block

    def _output(self, dtype: str, shape: Sequence[int], is_pooled: bool) -> ArraySpecification:
        array = _read_specification(dtype, shape)
        if not is_pooled:
            return array
        from esat.runtime.buffers import allocator, pool_of

        pool = pool_of(allocator(array.shape, array.dtype))
        return array if pool is None else ArraySpecification(array.dtype, array.shape, pool.bases)

    def _step(self, name: str, content: Mapping[str, Any]) -> Any:
        values = {field: self._value(value) for field, value in content.items()}
        if name == KernelStep.__name__:
            values["address"] = self.kernels[values["address"]][0]
        elif name == RoutineStep.__name__:
            values["address"] = _routine_address(*values["address"])
        elif name == PythonStep.__name__:
            values["function"] = pickle.loads(self._part(*values["function"]))
        return _STEPS[name](**values)

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(self._value, value))
        if not isinstance(value, dict):
            return value
        if "place" in value:
            return self._place(value["place"])
        if "array" in value:
            return _read_specification(*value["array"])
        return np.dtype(value["dtype"]) if "dtype" in value else self._step(value["step"], value["content"])

    def _place(self, place: Sequence[Any]) -> Place:
        kind, number, offset = place
        if kind == "fixed":
            return Place("fixed", int(self.blocks[number].ctypes.data) + offset)
        return Place(kind, number, offset)


_STEPS: Mapping[str, Any] = {one.__name__: one for one in (*get_args(Step), LoopControl)}
_shared: list[Any] = []
"""Engines with code that several kernels call, by names known to all engines: it stays."""


def _read_specification(
    dtype: str, shape: Sequence[int], strides: Sequence[int] | None = None
) -> ArraySpecification:
    steps = None if strides is None else tuple(strides)
    return ArraySpecification(np.dtype(dtype), tuple(shape), strides=steps)


def _routine_address(package: Any, name: Any) -> int:
    from esat.codegen.matmul.small_products import address_named

    if "." in package:
        module, _, kind = package.rpartition(".")
        described: HostFunction = getattr(import_module(module), kind)(*name)
        return described.address()
    address = address_named(name, package)
    if address is None:
        raise CompileError(f"{package} has no {name}")
    return address


def _library_functions(package: Any) -> tuple[int, int]:
    from esat.codegen.ground.blas_library import thread_functions

    functions = thread_functions(package)
    if functions is None:
        raise CompileError(f"{package} has another BLAS")
    return functions


# ---- all records of a graph


def packed(records: Sequence[NativeRecord]) -> bytes:
    """Records as bytes: a line of JSON, then the code of each."""
    head = [[one.shapes, one.shared, one.updates, one.wait, one.recipe, len(one.code)] for one in records]
    return json.dumps(head).encode() + b"\n" + b"".join(one.code for one in records)


def unpacked(payload: memoryview) -> tuple[NativeRecord, ...]:
    """The records of what :func:`packed` gave."""
    head, _, code = bytes(payload).partition(b"\n")
    found, start = [], 0
    for shapes, shared, updates, wait, recipe, length in json.loads(head):
        read = tuple(tuple(shape) for shape in shapes)
        numbers = tuple((number, is_overwritten) for number, is_overwritten in shared)
        found.append(NativeRecord(read, numbers, updates, wait, recipe, code[start : start + length]))
        start += length
    return tuple(found)
