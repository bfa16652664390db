"""Programs as C functions, for callers in other languages and for threads without the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.native_functions.native_call import NativeRecipe
from esat.codegen.native_functions.native_entry import EntryCode, entry_code
from esat.codegen.native_functions.native_plan import GuardedSteps, PythonStep, RepeatedSteps, Step
from esat.errors import CallError
from esat.runtime.entry.calls import Calls
from esat.runtime.native.direct import recipe_in_one_thread

Array = tuple[np.dtype[Any], tuple[int, ...]]


@record(frozen=True, eq=False)
class CEntry:
    """A program as a C function, for the shapes of the arguments that it was made with.

    It may be called by several threads at once, and does not need the interpreter. Its addresses are valid as
    long as this object lives. It returns 0, or another number where the program would raise an error: what it
    asserts does not hold, a matrix has no factor, or there is no memory. Outputs have no meaning then.

    Attributes
    ----------
    address
        Of ``int64_t entry(const void *const *inputs, void *const *outputs)``: pointers to the elements of
        C-contiguous arrays, as :attr:`inputs` and :attr:`outputs` describe them.
    density_address
        Of ``int64_t density(uint64_t n, const double *x, double *gradient, double *value, void *user)``, as
        samplers call it, for programs whose first input is a float64 vector, and whose outputs are a number
        and a vector as long. Further inputs have the values that the entry was made with. It returns -1 for
        another length, and does not look at ``user``. Zero for other programs.
    mapping_address
        Of ``int64_t mapping(uint64_t n, uint64_t m, const double *x, double *result, void *user)``, the same
        for programs with one output, a vector of m float64 numbers.
    inputs, outputs
        The dtype and shape of each array.
    """

    address: int
    density_address: int
    mapping_address: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    code: EntryCode

    def __call__(
        self, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[np.ndarray[Any, Any]]
    ) -> int:
        """Call the C function without the interpreter's lock, and return what it does.

        Raises
        ------
        CallError
            For arrays that are not as :attr:`inputs` and :attr:`outputs` describe them.
        """
        for role, given, wanted in (("input", inputs, self.inputs), ("output", outputs, self.outputs)):
            found = [(array.dtype, array.shape) for array in given]
            if found != list(wanted) or not all(array.flags.c_contiguous for array in given):
                raise CallError(
                    f"a C entry takes {role}s {_shown(wanted)}, C-contiguous, not {_shown(found)}"
                )
        if not all(array.flags.writeable for array in outputs):
            raise CallError("a C entry: an output is read-only")
        read, written = (
            (ctypes.c_void_p * max(len(given), 1))(*(array.ctypes.data for array in given))
            for given in (inputs, outputs)
        )
        return int(_PROTOTYPE(self.address)(read, written))


_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def c_entry(calls: Calls, arguments: Sequence[Any]) -> CEntry:
    """The C function of a program for arguments that it was called with.

    Raises
    ------
    CallError
        Where a step needs Python, or the program has shared variables.
    """
    program = calls.program
    if program.shared:
        names = ", ".join(str(variable) for variable in program.shared)
        raise CallError(f"c_entry: the program reads shared variables ({names}); make them inputs")
    if program.overwritten:
        raise CallError("c_entry: the program overwrites donated arguments; a C function does not")
    shapes = tuple(np.shape(one) for one in arguments)
    recipe = recipe_in_one_thread(program, calls.table, shapes, must_pay=False)
    by_python = [] if recipe is None else list(_by_python(recipe.steps))
    if recipe is None or by_python:
        steps = f"{', '.join(by_python)} run by Python" if by_python else "it has no native form"
        raise CallError(
            f"c_entry: for shapes {list(shapes)} {steps}; source() shows the steps of the program"
        )
    return entry_of_recipe(recipe, arguments)


def entry_of_recipe(recipe: NativeRecipe, arguments: Sequence[Any]) -> CEntry:
    """The C function that does what a recipe says, nothing of which is done by Python."""
    types = zip(arguments[1:], recipe.inputs[1:], strict=True)
    held = [np.array(one, wanted.dtype, order="C").reshape(wanted.shape) for one, wanted in types]
    code = entry_code(recipe, held)
    inputs, outputs = (
        tuple((array.dtype, array.shape) for array in arrays) for arrays in (recipe.inputs, recipe.outputs)
    )
    return CEntry(code.address, code.density_address, code.mapping_address, inputs, outputs, code)


def _by_python(steps: Sequence[Step]) -> Sequence[str]:
    found: list[str] = []
    for step in steps:
        if isinstance(step, PythonStep):
            found.append(str(step.function))
        elif isinstance(step, GuardedSteps | RepeatedSteps):
            found += _by_python(step.steps)
    return list(dict.fromkeys(found))


def _shown(arrays: Sequence[Array]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in arrays) or "none"
