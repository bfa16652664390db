"""A whole call as one native function: checks of arguments, new arrays, and every step.

For small arrays the interpreter takes longer between kernels than the kernels themselves. For one
combination of shapes all that a call does is known: which arguments it admits, what it allocates, and what
it passes to each kernel. That is written as LLVM IR without a loop in it and called by Python like any
built-in function. Arguments of other types, shapes or layouts go to the function it stands in for. Results
are new, or written into the arrays of a tuple that is given as ``out``.

It makes arrays by NumPy's table of C functions. A call of microseconds holds the interpreter's lock from end
to end. One that takes longer gives it up while steps run. That pays, too: large arrays drive the interpreter
out of the caches, and its way from one step to the next then takes ten microseconds instead of one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.builtin_function import (
    DATA,
    DESCRIPTOR,
    FLAGS,
    INTERRUPTED,
    ITEMS,
    LENGTH,
    NUMBER,
    RANK,
    REFERENCES,
    SIZES,
    TYPE,
    Memory,
    builtin_function,
    definition,
    is_available,
    pointer,
    python_function,
    scalar_types,
)
from esat.codegen.native_functions.native_plan import ArraySpecification, Step, calls_python
from esat.codegen.native_functions.native_text import (
    DONE,
    REFUSED,
    NativeStepWriter,
    array_bytes,
)

_NEW_FROM_DESCRIPTOR, _SET_BASE = 94, 282
"""Places of ``PyArray_NewFromDescr`` and ``PyArray_SetBaseObject`` in NumPy's table of functions, part of its
stable interface."""
_CONTIGUOUS_AND_ALIGNED, _WRITEABLE = 0x101, 0x400
_OUT = sys.intern("out")
"""The object that all calls name this argument by."""

_OF_INTEGERS = frozenset(map(np.dtype, ("int64", "float64")))
"""What scalar arguments of Python's integers are converted to; other dtypes are rare."""
_EXACT_IN_FLOATS = 1 << 53
"""Integers up to this size are float64, too."""

_numbers = itertools.count(1)


def native_call(
    inputs: Sequence[ArraySpecification],
    outputs: Sequence[ArraySpecification],
    steps: Sequence[Step],
    otherwise: Callable[..., Any],
    kept: object,
    libraries: Sequence[tuple[int, int]] = (),
    unlocked: bool = False,
) -> Callable[..., Any]:
    """A built-in function that runs the steps.

    Parameters
    ----------
    inputs
        The arguments it admits.
    outputs
        The results it makes; one is returned as it is, several in a tuple. Where ``out`` is a tuple of arrays
        like these, which share no memory with arguments or with one another, results are written there, and
        those arrays are returned.
    steps
        What is done, in order.
    otherwise
        Called with the arguments when they are not admitted.
    kept
        What must live as long as the function: owners of code and memory that steps refer to.
    libraries
        Addresses of what tells and of what sets the threads of each library that routines belong to, if it is
        to have one only while steps run: its others are not waited for. A call that holds the lock sees to
        that, and nobody notices. Another one goes to ``otherwise`` where a library has more.
    unlocked
        Whether other Python threads run while steps do. Steps may use memory at fixed addresses all the same:
        a call that comes while another is in progress goes to ``otherwise``, here and where a step is one of
        Python's, which may let other threads run.

    Raises
    ------
    RuntimeError
        When :func:`is_available` denies it.
    """
    if not is_available():
        raise RuntimeError("arrays of this interpreter have an unknown layout")
    memory = Memory((kept, tuple(steps)))
    text = _Text(inputs, outputs, steps, otherwise, memory)
    module = text.unlocked(libraries) if unlocked else text.locked(libraries)
    return builtin_function(definition("run", module, memory), (otherwise, memory.sealed()))


@record(frozen=True, eq=False)
class NativeRecipe:
    """What a native function does, as data: the parameters of :func:`native_call`.

    All memory and code that steps refer to by address belongs to something in ``kept`` or ``scratch``, or is
    a function of BLAS, or of :mod:`esat.codegen.matmul.unrolled_products`. A call writes what is in
    ``scratch`` before it reads it.

    Attributes
    ----------
    counts
        How many of ``steps`` belong to each step of the program, where that is known; those after them copy
        results to where they are returned.
    """

    inputs: tuple[ArraySpecification, ...]
    outputs: tuple[ArraySpecification, ...]
    steps: tuple[Step, ...]
    kept: tuple[object, ...]
    libraries: tuple[tuple[int, int], ...] = ()
    unlocked: bool = False
    scratch: tuple[np.ndarray[Any, Any], ...] = ()
    counts: tuple[int, ...] = ()

    def function(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """The built-in function; ``otherwise`` is called with arguments that it does not admit."""
        kept = self.kept, self.scratch
        return native_call(
            self.inputs, self.outputs, self.steps, otherwise, kept, self.libraries, self.unlocked
        )


def owned_parts(kept: object) -> Iterator[Any]:
    """The arrays and the machine code among what a recipe keeps."""
    from esat.codegen.cache import CompiledKernel
    from esat.codegen.cache.machine_code import MachineCode

    if isinstance(kept, np.ndarray):
        yield kept
    elif isinstance(kept, CompiledKernel):
        if isinstance(kept.code, MachineCode):
            yield kept.code
    elif isinstance(kept, tuple | list):
        for one in kept:
            yield from owned_parts(one)
    else:
        yield from owned_parts(tuple(getattr(kept, "kept", ())))


@functools.cache
def _function_of_numpy(place: int) -> str:
    """A function of NumPy's table as an operand."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_size_t * (place + 1)).from_address(
        get(importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    )
    return pointer(table[place])


class _Text(NativeStepWriter):
    """The IR of one function."""

    def __init__(
        self,
        inputs: Sequence[ArraySpecification],
        outputs: Sequence[ArraySpecification],
        steps: Sequence[Step],
        otherwise: Callable[..., Any],
        memory: Memory,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.steps = inputs, outputs, steps
        self.otherwise, self.memory = otherwise, memory
        self.found: dict[int, str] = {}
        """The bases of those results that are made in such, by number, while nothing else holds them."""
        self.places = [self.value("alloca ptr") for _ in outputs]
        self.line("%result = alloca ptr")
        self.scalars = {
            number: (self.value("alloca ptr"), self.value("alloca i64"))
            for number, wanted in enumerate(inputs)
            if not wanted.shape
        }
        """Words of the inputs that may be numbers, by number: for where it is, and for what it is
        converted to."""
        self.line("%overflow = alloca i32")
        self.prepare_steps(steps)

    def locked(self, libraries: Sequence[tuple[int, int]]) -> str:
        """The module of a function that holds the interpreter's lock."""
        self._check_arguments()
        claim = self._free_claim() if calls_python(self.steps) else None
        self._take_outputs("" if claim is None else f"store i64 1, ptr {claim}")
        found = [self.value(f"call i32 {pointer(count)}()") for count, _ in libraries]
        for _, limit in libraries:
            self.line(f"call void {pointer(limit)}(i32 1)")
        self.run_steps(self.steps)
        for threads, (_, limit) in zip(found, libraries, strict=True):
            self.line(f"call void {pointer(limit)}(i32 {threads})")
        return self._ended(claim)

    def unlocked(self, libraries: Sequence[tuple[int, int]]) -> str:
        """The module of a function that gives the lock up while steps run.

        It has the lock where it looks at the word that tells whether a call is in progress, and where it
        changes that. The caller's references keep arguments alive, and the function with all that it uses.
        """
        self._check_arguments()
        for count, _ in libraries:
            threads = self.value(f"call i32 {pointer(count)}()")
            self.require([self.value(f"icmp eq i32 {threads}, 1")], "otherwise")
        claim = self._free_claim()
        self._take_outputs(f"store i64 1, ptr {claim}")
        self.line(f"%state = call ptr {python_function('PyEval_SaveThread')}()")
        self.gives_up_lock = True
        self.run_steps(self.steps)
        self.line(f"call void {python_function('PyEval_RestoreThread')}(ptr %state)")
        return self._ended(claim)

    def _free_claim(self) -> str:
        """The word that tells whether a call is in progress; go elsewhere where one is."""
        claim = pointer(self.memory.claim())
        in_progress = self.value(f"load i64, ptr {claim}")
        self.require([self.value(f"icmp eq i64 {in_progress}, 0")], "otherwise")
        return claim

    def _ended(self, claim: str | None) -> str:
        """The module, after the steps; no call is in progress then."""
        freed = "" if claim is None else f"store i64 0, ptr {claim}"
        self.line(freed)
        self._return()
        return self._module(f"  {freed}\n")

    def _return(self) -> None:
        """Return the results; go elsewhere where a step refused values; fail as the entry of kernels does
        where one had no memory."""
        status = self.value("load i32, ptr %status")
        result = self.value("load ptr, ptr %result")
        self.line(f"br i1 {self.value(f'icmp eq i32 {status}, {DONE}')}, label %complete, label %incomplete")
        self.begin("incomplete")
        self.line(f"call void {python_function('Py_DecRef')}(ptr {result})")
        self.require([self.value(f"icmp ne i32 {status}, {REFUSED}")], "otherwise")
        self.require([self.value(f"icmp ne i32 {status}, {INTERRUPTED}")], "failed")
        text = pointer(self.memory.record(b"a kernel found no memory\0"))
        raising = f"call void {python_function('PyErr_SetString')}"
        self.line(f"{raising}(ptr {pointer(id(MemoryError))}, ptr {text})")
        self.line("br label %failed")
        self.begin("complete")
        self.line(f"ret ptr {result}")

    def _module(self, before_failure: str = "") -> str:
        body = "\n".join(self.lines)
        called = f"call ptr {python_function('PyObject_Vectorcall')}(ptr {pointer(id(self.otherwise))}"
        return (
            f"; call {next(_numbers)}\n"
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
            "define ptr @run(ptr %self, ptr %arguments, i64 %count, ptr %names) {\n"
            "  %nothing = alloca ptr\n"
            f"{body}\n"
            "otherwise:\n"
            f"  %other = {called}, ptr %arguments, i64 %count, ptr %names)\n"
            "  ret ptr %other\n"
            "failed:\n"
            f"{before_failure}"
            "  ret ptr null\n"
            "}\n"
        )

    def _check_arguments(self) -> None:
        self.require([self.value(f"icmp eq i64 %count, {len(self.inputs)}")], "otherwise")
        for number, wanted in enumerate(self.inputs):
            slot = self.value(f"getelementptr ptr, ptr %arguments, i64 {number}")
            given = self.value(f"load ptr, ptr {slot}")
            if wanted.shape or not scalar_types(wanted.dtype):
                self._check_array(given, wanted)
                start = self.value(f"load ptr, ptr {self._data(given)}")
            else:
                start = self._check_scalar(given, wanted, *self.scalars[number])
            self.starts["input", number] = start

    def _check_scalar(self, given: str, wanted: ArraySpecification, found: str, converted: str) -> str:
        """Where the number is that an object is or holds; go elsewhere unless it is one of the type wanted,
        or an array of one. It is written into two words: where the number is, and what it is converted to.
        """
        kind, is_scalar = self.field(given, TYPE, "ptr"), "false"
        for type_ in scalar_types(wanted.dtype):
            same = self.value(f"icmp eq ptr {kind}, {pointer(id(type_))}")
            is_scalar = self.value(f"or i1 {is_scalar}, {same}")
        scalar, array, known = (self.name(name) for name in ("scalar", "array", "known"))
        other = self.name("other") if wanted.dtype in _OF_INTEGERS else array
        self.line(f"br i1 {is_scalar}, label %{scalar}, label %{other}")
        self.begin(scalar)
        inside = self.value(f"getelementptr i8, ptr {given}, i64 {NUMBER}")
        self.line(f"store ptr {inside}, ptr {found}")
        self.line(f"br label %{known}")
        if other != array:
            self.begin(other)
            integer = self.name("integer")
            is_integer = self.value(f"icmp eq ptr {kind}, {pointer(id(int))}")
            self.line(f"br i1 {is_integer}, label %{integer}, label %{array}")
            self.begin(integer)
            self._convert_integer(given, wanted.dtype, converted)
            self.line(f"store ptr {converted}, ptr {found}")
            self.line(f"br label %{known}")
        self.begin(array)
        self._check_array(given, wanted)
        data = self.value(f"load ptr, ptr {self._data(given)}")
        self.line(f"store ptr {data}, ptr {found}")
        self.line(f"br label %{known}")
        self.begin(known)
        return self.value(f"load ptr, ptr {found}")

    def _convert_integer(self, given: str, dtype: np.dtype[Any], word: str) -> None:
        """Have one of Python's integers in a word; go elsewhere where that rounds it."""
        convert = python_function("PyLong_AsLongLongAndOverflow")
        found = self.value(f"call i64 {convert}(ptr {given}, ptr %overflow)")
        overflow = self.value("load i32, ptr %overflow")
        fits = [self.value(f"icmp eq i32 {overflow}, 0")]
        if dtype.kind == "f":
            shifted = self.value(f"add i64 {found}, {_EXACT_IN_FLOATS}")
            fits.append(self.value(f"icmp ule i64 {shifted}, {2 * _EXACT_IN_FLOATS}"))
        self.require(fits, "otherwise")
        converted = f"i64 {found}"
        if dtype.kind == "f":
            converted = f"double {self.value(f'sitofp i64 {found} to double')}"
        self.line(f"store {converted}, ptr {word}")

    def _check_array(self, array: str, wanted: ArraySpecification, flags: int = 0) -> None:
        """Go elsewhere unless an object is an array like the one wanted."""
        kind = self.field(array, TYPE, "ptr")
        self.require([self.value(f"icmp eq ptr {kind}, {pointer(id(np.ndarray))}")], "otherwise")
        descriptor = self.field(array, DESCRIPTOR, "ptr")
        flags |= _CONTIGUOUS_AND_ALIGNED
        masked = self.value(f"and i32 {self.field(array, FLAGS, 'i32')}, {flags}")
        rank = self.field(array, RANK, "i32")
        self.require(
            [
                self.value(f"icmp eq ptr {descriptor}, {pointer(id(wanted.dtype))}"),
                self.value(f"icmp eq i32 {masked}, {flags}"),
                self.value(f"icmp eq i32 {rank}, {len(wanted.shape)}"),
            ],
            "otherwise",
        )
        if wanted.shape:
            sizes = self.field(array, SIZES, "ptr")
            found = [self.field(sizes, 8 * axis, "i64") for axis in range(len(wanted.shape))]
            self.require(
                [
                    self.value(f"icmp eq i64 {one}, {size}")
                    for one, size in zip(found, wanted.shape, strict=True)
                ],
                "otherwise",
            )
        self.memory.kept.append(wanted.dtype)

    def _data(self, array: str) -> str:
        return self.value(f"getelementptr i8, ptr {array}, i64 {DATA}")

    def _take_outputs(self, first: str = "") -> None:
        """Have places for the results, in given arrays or new ones; ``first`` comes before they are made."""
        new, given, ready = (self.name(name) for name in ("new", "given", "ready"))
        self.line(f"br i1 {self.value('icmp eq ptr %names, null')}, label %{new}, label %{given}")
        self.begin(given)
        self._use_given()
        self.line(first)
        self.line(f"br label %{ready}")
        self.begin(new)
        self._find_bases()
        self.line(first)
        self.line(f"store ptr {self._make_outputs()}, ptr %result")
        self.line(f"br label %{ready}")
        self.begin(ready)
        for number, place in enumerate(self.places):
            self.starts["output", number] = self.value(f"load ptr, ptr {place}")

    def _use_given(self) -> None:
        """Check that ``out`` alone is named, and that results can be written there."""
        self._check_tuple("%names", 1)
        name = self.field("%names", ITEMS, "ptr")
        self.require([self.value(f"icmp eq ptr {name}, {pointer(id(_OUT))}")], "otherwise")
        slot = self.value(f"getelementptr ptr, ptr %arguments, i64 {len(self.inputs)}")
        given = self.value(f"load ptr, ptr {slot}")
        kind = self.field(given, TYPE, "ptr")
        self.require([self.value(f"icmp eq ptr {kind}, {pointer(id(tuple))}")], "otherwise")
        self._check_tuple(given, len(self.outputs))
        read = [
            (self.starts["input", number], array_bytes(wanted)) for number, wanted in enumerate(self.inputs)
        ]
        for number, wanted in enumerate(self.outputs):
            array = self.field(given, ITEMS + 8 * number, "ptr")
            self._check_array(array, wanted, _WRITEABLE)
            data = self.value(f"load ptr, ptr {self._data(array)}")
            for other, count in read:
                self._check_apart(data, array_bytes(wanted), other, count)
            read.append((data, array_bytes(wanted)))
            self.line(f"store ptr {data}, ptr {self.places[number]}")
        result = given if len(self.outputs) != 1 else self.field(given, ITEMS, "ptr")
        self.line(f"call void {python_function('Py_IncRef')}(ptr {result})")
        self.line(f"store ptr {result}, ptr %result")

    def _check_tuple(self, found: str, length: int) -> None:
        self.require([self.value(f"icmp eq i64 {self.field(found, LENGTH, 'i64')}, {length}")], "otherwise")

    def _check_apart(self, data: str, count: int, other: str, other_count: int) -> None:
        """Go elsewhere where so many bytes from two addresses overlap."""
        ends = [
            self.value(f"getelementptr i8, ptr {start}, i64 {size}")
            for start, size in ((data, count), (other, other_count))
        ]
        after = self.value(f"icmp uge ptr {data}, {ends[1]}")
        before = self.value(f"icmp uge ptr {other}, {ends[0]}")
        self.require([self.value(f"or i1 {after}, {before}")], "otherwise")

    def _find_bases(self) -> None:
        """Find memory for the results that are made in such; all of it before anything is changed."""
        for number, made in enumerate(self.outputs):
            if made.bases is None:
                continue
            self.memory.kept.append(made.bases)
            found = "null"
            for place in range(len(made.bases)):
                base = self.value(f"load ptr, ptr {pointer(made.bases.ctypes.data + 8 * place)}")
                alone = self.value(f"icmp eq i32 {self.field(base, REFERENCES, 'i32')}, 1")
                found = self.value(f"select i1 {alone}, ptr {base}, ptr {found}")
            self.require([self.value(f"icmp ne ptr {found}, null")], "otherwise")
            self.found[number] = found

    def _make_outputs(self) -> str:
        """Allocate everything before any element is touched: allocation may run code of the user's."""
        held = list(self.found.values())
        for base in held:
            self.line(f"call void {python_function('Py_IncRef')}(ptr {base})")
        several = len(self.outputs) != 1
        result = ""
        if several:
            result = self.value(f"call ptr {python_function('PyTuple_New')}(i64 {len(self.outputs)})")
            self._require_or_drop(result, held)
        for number, made in enumerate(self.outputs):
            array = self.value(self._new_array(made, self.found.get(number)))
            self._require_or_drop(array, [*held, result] if several else held)
            if number in self.found:
                base = held.pop(0)  # the result's from here on
                self.value(f"call i32 {_function_of_numpy(_SET_BASE)}(ptr {array}, ptr {base})")
            if several:
                setter = python_function("PyTuple_SetItem")
                self.value(f"call i32 {setter}(ptr {result}, i64 {number}, ptr {array})")
            data = self.value(f"load ptr, ptr {self._data(array)}")
            self.line(f"store ptr {data}, ptr {self.places[number]}")
        return result if several else array

    def _new_array(self, made: ArraySpecification, base: str | None) -> str:
        """The call that makes an array, in the memory of a base if there is one."""
        self.memory.kept.append(made.dtype)
        descriptor, sizes = pointer(id(made.dtype)), pointer(self.memory.sizes(made.shape))
        self.line(f"call void {python_function('Py_IncRef')}(ptr {descriptor})")
        data, flags = "null", 0
        if base is not None:
            data, flags = self.field(base, DATA, "ptr"), _CONTIGUOUS_AND_ALIGNED | _WRITEABLE
        return (
            f"call ptr {_function_of_numpy(_NEW_FROM_DESCRIPTOR)}(ptr {pointer(id(np.ndarray))},"
            f" ptr {descriptor}, i32 {len(made.shape)}, ptr {sizes}, ptr null, ptr {data},"
            f" i32 {flags}, ptr null)"
        )

    def _require_or_drop(self, made: str, held: Sequence[str]) -> None:
        """Go on where an object was made, else fail without the references held so far."""
        goes_on, lost = self.name("made"), self.name("lost")
        there = self.value(f"icmp ne ptr {made}, null")
        self.line(f"br i1 {there}, label %{goes_on}, label %{lost}")
        self.begin(lost)
        for one in held:
            self.line(f"call void {python_function('Py_DecRef')}(ptr {one})")
        self.line("br label %failed")
        self.begin(goes_on)
