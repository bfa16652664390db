"""Native functions for callers without an interpreter: C functions over pointers to elements.

A native function of Python's has memory of its own at fixed addresses, so one call of it runs at a time. Here
each call allocates that memory, and calls in several threads do not know of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.builtin_function import pointer
from esat.codegen.ground.machine_text import engine_of_text
from esat.codegen.native_functions.native_call import NativeRecipe
from esat.codegen.native_functions.native_plan import Place, Step
from esat.codegen.native_functions.native_text import NativeStepWriter

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
        program makes a number and a vector as long of a vector; else zero.
    mapping_address
        Of ``int64_t (uint64_t n, uint64_t m, const double *x, double *result, void *user)``, where it makes
        one vector of a vector; else zero.
    kept
        Owners of the code, and of memory that it reads.
    """

    address: int
    density_address: int
    mapping_address: int
    kept: tuple[object, ...]


def entry_code(recipe: NativeRecipe, held: Sequence[np.ndarray[Any, Any]] = ()) -> EntryCode:
    """The machine code of an entry that does what a recipe says, and nothing by Python.

    Parameters
    ----------
    held
        Values of the inputs after the first, for functions that take a vector.
    """
    shapes = [one.shape for one in (*recipe.inputs[:1], *recipe.outputs) if one.dtype == np.float64]
    text = _EntryText(recipe.steps, recipe.scratch).module(len(recipe.inputs), len(recipe.outputs))
    is_whole = len(shapes) == 1 + len(recipe.outputs) and len(shapes[0]) == 1
    adapter = ""
    if is_whole and shapes[1:] == [(), shapes[0]]:
        adapter = "density"
        text += _adapter(adapter, shapes[0], ("value", "gradient"), "ptr %gradient, ptr %value", held)
    elif is_whole and len(shapes) == 2 and len(shapes[1]) == 1:
        adapter = "mapping"
        text += _adapter(adapter, (*shapes[0], *shapes[1]), ("result",), "ptr %result", held)
    engine = engine_of_text(text, optimization=1)
    run, density, mapping = (
        int(engine.get_function_address(name)) if name in ("run", adapter) else 0
        for name in ("run", "density", "mapping")
    )
    return EntryCode(run, density, mapping, (engine, recipe.kept, recipe.steps, tuple(held)))


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

    def module(self, inputs: int, outputs: int) -> str:
        """The module, for so many inputs and outputs."""
        self.prepare_steps(self.steps)
        for kind, count in (("input", inputs), ("output", outputs)):
            for number in range(count):
                slot = self.value(f"getelementptr ptr, ptr %{kind}s, i64 {number}")
                self.starts[kind, number] = self.value(f"load ptr, ptr {slot}")
        self.run_steps(self.steps)
        body = "\n".join(self.lines)
        return f"""
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

    def address(self, place: Place) -> str:
        """A place; those of scratch memory in the block of the call."""
        if place.kind == "fixed":
            for (start, size), offset in self._blocks.items():
                if start <= place.number < start + max(size, 1):
                    distance = offset + place.number - start + place.offset
                    return self.value(f"getelementptr i8, ptr %scratch, i64 {distance}")
            return pointer(place.number + place.offset)
        return super().address(place)


def _adapter(
    name: str,
    sizes: Sequence[int],
    outputs: Sequence[str],
    parameters: str,
    held: Sequence[np.ndarray[Any, Any]],
) -> str:
    """A function of a vector, which says -1 where it is told of other sizes, and calls the other function."""
    counts = ", ".join(f"i64 %n{axis}" for axis in range(len(sizes)))
    lines = [f"  %fits{axis} = icmp eq i64 %n{axis}, {size}" for axis, size in enumerate(sizes)]
    joint = "%fits0"
    if len(sizes) == 2:
        lines.append("  %fits = and i1 %fits0, %fits1")
        joint = "%fits"
    slots = [("inputs", "%x"), *(("inputs", pointer(int(array.ctypes.data))) for array in held)]
    slots += [("outputs", f"%{output}") for output in outputs]
    places = {"inputs": 0, "outputs": 0}
    stores = []
    for number, (table, value) in enumerate(slots):
        stores.append(f"  %slot{number} = getelementptr ptr, ptr %{table}, i64 {places[table]}")
        stores.append(f"  store ptr {value}, ptr %slot{number}")
        places[table] += 1
    body = "\n".join([f"  %inputs = alloca [{places['inputs']} x ptr]",
                      f"  %outputs = alloca [{places['outputs']} x ptr]", *stores])  # fmt: skip
    checks = "\n".join(lines)
    return f"""
define i64 @{name}({counts}, ptr %x, {parameters}, ptr %user) {{
{checks}
  br i1 {joint}, label %runs, label %refused
refused:
  ret i64 -1
runs:
{body}
  %status = call i64 @run(ptr %inputs, ptr %outputs)
  ret i64 %status
}}
"""
