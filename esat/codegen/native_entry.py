"""Native functions for callers without an interpreter: C functions over pointers to elements.

A native function of Python's has memory of its own at fixed addresses, so one call of it runs at a time. Here
each call allocates that memory, and calls in several threads do not know of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.codegen.ground.builtin_function import pointer
from esat.codegen.ground.machine_text import engine_of_text
from esat.codegen.native_call import NativeRecipe
from esat.codegen.native_plan import Place, Step
from esat.codegen.native_text import NativeStepWriter
from esat.records import record

NO_MEMORY = 0x7FFE
"""What an entry returns where there is no memory for what it computes on the way."""
_LINE = 64


@record(frozen=True, eq=False)
class EntryCode:
    """Machine code of C functions; the addresses are valid as long as the object lives.

    Attributes
    ----------
    address
        Of ``int64_t (const void *const *inputs, void *const *outputs)``.
    density_address
        Of ``int64_t (uint64_t n, const double *x, double *gradient, double *value, void *user)``, where the
        program has one vector as its input, and a number and a vector as its outputs; else zero.
    kept
        Owners of the code, and of memory that it reads.
    """

    address: int
    density_address: int
    kept: tuple[object, ...]


def entry_code(recipe: NativeRecipe) -> EntryCode:
    """The machine code of an entry that does what a recipe says, and nothing by Python."""
    count = _vector_length(recipe)
    text = _EntryText(recipe.steps, recipe.scratch).module(len(recipe.inputs), len(recipe.outputs), count)
    engine = engine_of_text(text, optimization=1)
    density = 0 if count is None else engine.get_function_address("density")
    kept = engine, recipe.kept, recipe.steps
    return EntryCode(int(engine.get_function_address("run")), int(density), kept)


def _vector_length(recipe: NativeRecipe) -> int | None:
    """The length of the vector of which a program computes a number and another vector, both float64."""
    arrays = (*recipe.inputs, *recipe.outputs)
    shapes = [array.shape for array in arrays]
    if len(arrays) != 3 or len(recipe.inputs) != 1 or any(array.dtype != np.float64 for array in arrays):
        return None
    is_density = len(shapes[0]) == 1 and shapes[1:] == [(), shapes[0]]
    return shapes[0][0] if is_density else None


class _EntryText(NativeStepWriter):
    """The IR of the functions."""

    calls_interpreter = False

    def __init__(self, steps: Sequence[Step], scratch: Sequence[np.ndarray[Any, Any]]) -> None:
        super().__init__()
        self.steps = steps
        self._blocks: dict[tuple[int, int], int] = {}
        self.scratch_bytes = 0
        for array in scratch:
            owner = array
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            start = int(owner.ctypes.data)
            if (start, owner.nbytes) not in self._blocks:
                # As far from a line's boundary as it was, which times depend on.
                self._blocks[start, owner.nbytes] = self.scratch_bytes + start % _LINE
                self.scratch_bytes += -(-(owner.nbytes + start % _LINE) // _LINE) * _LINE

    def module(self, inputs: int, outputs: int, vector_length: int | None) -> str:
        """The module, for so many inputs and outputs."""
        self.prepare_steps(self.steps)
        for kind, count in (("input", inputs), ("output", outputs)):
            for number in range(count):
                slot = self.value(f"getelementptr ptr, ptr %{kind}s, i64 {number}")
                self.starts[kind, number] = self.value(f"load ptr, ptr {slot}")
        self.run_steps(self.steps)
        body = "\n".join(self.lines)
        functions = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)

define i64 @run(ptr %inputs, ptr %outputs) {{
  %nothing = alloca ptr
  %block = alloca ptr
  %failed = call i32 @posix_memalign(ptr %block, i64 {_LINE}, i64 {max(self.scratch_bytes, _LINE)})
  %scratch = load ptr, ptr %block
  %lacks = icmp ne i32 %failed, 0
  br i1 %lacks, label %without, label %with
without:
  ret i64 {NO_MEMORY}
with:
{body}
  call void @free(ptr %scratch)
  %found = load i32, ptr %status
  %result = sext i32 %found to i64
  ret i64 %result
}}
"""
        return functions if vector_length is None else functions + _density(vector_length)

    def address(self, place: Place) -> str:
        """A place; those of scratch memory in the block of the call."""
        if place.kind == "fixed":
            for (start, size), offset in self._blocks.items():
                if start <= place.number < start + max(size, 1):
                    distance = offset + place.number - start + place.offset
                    return self.value(f"getelementptr i8, ptr %scratch, i64 {distance}")
            return pointer(place.number + place.offset)
        return super().address(place)


def _density(length: int) -> str:
    """The function of a density's signature, which calls the other one."""
    return f"""
define i64 @density(i64 %n, ptr %x, ptr %gradient, ptr %value, ptr %user) {{
  %fits = icmp eq i64 %n, {length}
  br i1 %fits, label %runs, label %refused
refused:
  ret i64 -1
runs:
  %inputs = alloca [1 x ptr]
  %outputs = alloca [2 x ptr]
  store ptr %x, ptr %inputs
  store ptr %value, ptr %outputs
  %second = getelementptr ptr, ptr %outputs, i64 1
  store ptr %gradient, ptr %second
  %result = call i64 @run(ptr %inputs, ptr %outputs)
  ret i64 %result
}}
"""
