"""Native functions as text: their steps in order, and what each calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np

from esat.codegen.cache import CompiledKernel
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.matmul.small_products import routine_at
from esat.codegen.native_functions.native_call import NativeRecipe, owned_parts
from esat.codegen.native_functions.native_plan import (
    CheckStep,
    ChoiceStep,
    GuardedSteps,
    KernelStep,
    MoveStep,
    Place,
    PlaceStep,
    PythonStep,
    RepeatedSteps,
    RoutineStep,
    Step,
)

SHOWN = 8
"""Elements up to which constants are printed in full."""


class GeneratedFunctions:
    """Numbers functions that are code of our own, in the order in which they are named."""

    def __init__(self) -> None:
        self._numbers: dict[HostFunction, int] = {}
        self._variants: dict[str, list[str]] = {}

    def name(self, function: HostFunction) -> str:
        """``function_0``, or what a function of another library is."""
        if not function.text():
            return str(function)
        return f"function_{self._numbers.setdefault(function, len(self._numbers))}"

    def variant(self, kernel: str, source: str) -> str:
        """``kernel_1_variant_0``, the kernel's text for other strides or certain sizes."""
        known = self._variants.setdefault(kernel, [])
        if source not in known:
            known.append(source)
        return f"{kernel}_variant_{known.index(source)}"

    def texts(self) -> list[str]:
        """What each is, and its text."""
        variants = [
            f"# {self.variant(kernel, source)}\n{source}"
            for kernel, sources in self._variants.items()
            for source in sources
        ]
        return variants + [
            f"# function_{number}\n# {function}\n{function.text()}"
            for function, number in self._numbers.items()
        ]


def recipe_text(
    recipe: NativeRecipe,
    inputs: Sequence[str],
    titles: Sequence[tuple[str, str, CompiledKernel | None]],
    functions: GeneratedFunctions,
) -> str:
    """The steps of a native function, a line each.

    Parameters
    ----------
    inputs
        Names of the arguments.
    titles
        Of each step of the program, what it is, the name of its kernel, and the kernel for contiguous arrays.
    functions
        Gives names to code of our own.
    """
    writer = _StepLines(recipe, inputs, functions)
    lines, start = list[str](), 0
    for (title, kernel, plain), count in zip(titles, recipe.counts, strict=True):
        writer.plain = plain
        lines += [f"# {title}", *writer.lines(recipe.steps[start : start + count], kernel)]
        start += count
    rest = list(writer.lines(recipe.steps[start:], ""))
    if rest:
        lines += ["# results", *rest]
    return "\n".join([*writer.constants, *lines])


class _StepLines:
    def __init__(self, recipe: NativeRecipe, inputs: Sequence[str], functions: GeneratedFunctions) -> None:
        self.inputs, self.functions = inputs, functions
        self.scratch = recipe.scratch
        self.owned = [one for one in owned_parts(recipe.kept) if isinstance(one, np.ndarray)]
        self.kernels = {one.address: one for one in recipe.kept if isinstance(one, CompiledKernel)}
        self.plain: CompiledKernel | None = None
        self.constants: dict[str, None] = {}

    def lines(self, steps: Sequence[Step], kernel: str) -> Iterator[str]:
        """``kernel`` is the name of what a kernel step calls."""
        for step in steps:
            if isinstance(step, GuardedSteps):
                paths = [
                    " and ".join(("" if wanted else "not ") + self.place(one) for one, wanted in path)
                    for path in step.alternatives
                ]
                yield f"if {' or '.join(paths)}:"
                yield from ("    " + line for line in self.lines(step.steps, kernel))
            elif isinstance(step, RepeatedSteps):
                moving = ", ".join(
                    f"chosen_{number} from {self.place(place)} by {strides} bytes"
                    for number, place, strides in step.cursors
                )
                yield f"{self.head(step)}  # {moving}" if moving else self.head(step)
                yield from ("    " + line for line in self.lines(step.steps, kernel))
                yield from self.handed(step)
            else:
                yield self.line(step, kernel)

    def head(self, step: RepeatedSteps) -> str:
        """The line that begins a loop."""
        control = step.control
        if control is None:
            return f"for index in ndindex{step.sizes}:"
        steps = str(step.sizes[0]) if control.limit is None else self.place(control.limit)
        if control.condition is not None:
            return f"while {self.place(control.condition)}:  # at most {steps} steps"
        return f"for index in {'reversed(' * control.reverse}range({steps}){')' * control.reverse}:"

    def handed(self, step: RepeatedSteps) -> Iterator[str]:
        """The lines that hand places on, at the end of a loop."""
        for number, place, after in () if step.control is None else step.control.handed:
            yield f"    chosen_{number} = chosen_{after}  # {self.place(place)} before the first step"

    def line(self, step: Step, kernel: str) -> str:
        if isinstance(step, KernelStep):
            arrays = [
                self.place(place) + ("" if array.strides is None else f" by {array.strides} bytes")
                for place, array in step.arrays
            ]
            code = self.kernels.get(step.address)
            if code is not None and self.plain is not None and code.source != self.plain.source:
                kernel = self.functions.variant(kernel, code.source)
            return f"{kernel}({', '.join([*arrays, *map(str, step.integers)])})"
        if isinstance(step, RoutineStep):
            arguments = ", ".join([*map(self.place, step.pointers), *map(str, step.integers)])
            refuses = step.returns_status or step.refusal is not None
            return f"{self.routine(step.address)}({arguments})" + "  # or the driver's steps" * refuses
        if isinstance(step, MoveStep):
            source = self.place(step.source) + f" by {step.source_strides} bytes"
            part = "" if step.part == "all" else f"  # {step.part}"
            target = f"{self.place(step.target)} by {step.target_strides} bytes"
            return f"move({target}, {source}, {step.sizes}, {step.dtype}{', adds' * step.adds}){part}"
        if isinstance(step, PythonStep):
            return (
                f"python {step.function}({', '.join(map(self.place, step.places))})  # or the driver's steps"
            )
        if isinstance(step, CheckStep):
            return f"all({self.place(step.place)}[:{step.count}])  # or the driver's steps"
        if isinstance(step, ChoiceStep):
            then, condition, otherwise = map(self.place, (step.then, step.condition, step.otherwise))
            return f"chosen_{step.number} = {then} if {condition} else {otherwise}"
        if isinstance(step, PlaceStep):
            moved = "".join(f" + {stride} * {self.place(one)}" for one, *_, stride in step.indices)
            return f"chosen_{step.number} = {self.place(step.base)}{moved}  # or the driver's steps"
        values = ((one.name, getattr(step, one.name)) for one in fields(step))
        arguments = ", ".join(f"{name}={self.place(v) if isinstance(v, Place) else v}" for name, v in values)
        return f"{type(step).__name__.removesuffix('Step').lower()}({arguments})"

    def routine(self, address: int) -> str:
        routine = routine_at(address)
        if isinstance(routine, HostFunction):
            return self.functions.name(routine)
        return "unknown" if routine is None else f"{routine[0]}.{routine[1]}"

    def place(self, place: Place) -> str:
        """A place by name, or the constant there."""
        if place.kind == "fixed":
            return self.fixed(place.number + place.offset)
        name = {"input": "", "output": "out_", "chosen": "chosen_"}[place.kind]
        name = self.inputs[place.number] if place.kind == "input" else f"{name}{place.number}"
        return f"{name} + {place.offset}" if place.offset else name

    def fixed(self, address: int) -> str:
        for name, arrays in (("scratch", self.scratch), ("constant", self.owned)):
            for number, array in enumerate(arrays):
                within = address - int(array.ctypes.data)
                if not 0 <= within < max(array.nbytes, 1):
                    continue
                if name == "constant" and array.dtype == np.uint8 and array.size == 2:
                    return repr(chr(array[0]))  # a letter, as BLAS takes it
                if name == "constant" and array.size == 1:
                    return str(array.item())
                if name == "constant":
                    text = np.array2string(array.ravel(), threshold=SHOWN, separator=", ").replace("\n", "")
                    self.constants.setdefault(f"constant_{number} = {text}  # {array.dtype}{array.shape}")
                return f"{name}_{number}" + (f" + {within}" if within else "")
        return "memory"
