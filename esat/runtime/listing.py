"""What runs, as text: the driver, kernels, routines, native functions, and code that LLVM makes of text."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from esat.codegen.matmul.blas import ProductRoutine
from esat.codegen.matmul.small_systems import small_code
from esat.codegen.matmul.unrolled_products import product_code
from esat.codegen.native_functions.native_listing import GeneratedFunctions, recipe_text
from esat.codegen.rowwise.gemv_pair import RowsRoutine
from esat.codegen.rowwise.layers import RowBlocksRoutine
from esat.graph import Constant, TensorType, Variable
from esat.phases.fusing.group import Group
from esat.runtime.entry.calls import Calls
from esat.runtime.native.direct import recipe_in_one_thread
from esat.runtime.native.native_views import Shape
from esat.runtime.printed.driver import step_name, title
from esat.runtime.printed.writer import Writer
from esat.runtime.program import Program


def listing(calls: Calls) -> str:
    """The text of all that runs for the shapes that were seen."""
    program, functions = calls.program, GeneratedFunctions()
    texts = [calls.driver.source]
    for number, group in enumerate(program.steps):
        texts += _step_texts(program, number, group)
    texts += _choices(calls, functions)
    texts += _native_functions(calls, functions)
    return "\n\n".join([*texts, *functions.texts()])


def _step_texts(program: Program, number: int, group: Group) -> list[str]:
    routine = program.routines.get(group.nodes[0])
    texts = []
    if isinstance(routine, RowsRoutine | RowBlocksRoutine):
        texts.append(f"# routine_{number}\n{routine.source()}")
    if group.kind == "kernel":
        call = program.kernels[group]
        texts.append(f"# kernel_{number}\n{call.source()}")
        if call.threaded is not None:
            texts.append(f"# kernel_{number}_in_threads\n{call.threaded.source()}")
    return texts


def _choices(calls: Calls, functions: GeneratedFunctions) -> list[str]:
    """What the driver calls for each step that is no kernel: a method or a routine, and code of our own in
    its place where matrices are small."""
    lines = []
    shapes = [calls.table.shapes(key) for key in calls.table.records]
    for number, group in enumerate(calls.program.steps):
        if group.kind != "library" or group.side != "host":
            continue
        routine = calls.program.routines.get(group.nodes[0])
        called = type(group.nodes[0].op).perform if routine is None else routine
        lines.append(f"# {step_name(calls.program, number)}: {_name(called)}")
        for known in shapes:
            lines += _own_code(calls.program, group, known, functions)
    return ["\n".join(["# routines", *dict.fromkeys(lines)])] if lines else []


def _own_code(
    program: Program, group: Group, shapes: Mapping[Variable, Shape], functions: GeneratedFunctions
) -> list[str]:
    node = group.nodes[0]
    routine = program.routines.get(node)
    if any(not isinstance(one.type, TensorType) or _shape(one, shapes) is None for one in node.inputs):
        return []
    given = [_shape(one, shapes) or () for one in node.inputs]
    dtypes = {one.tensor_type.numpy_dtype for one in node.inputs}
    if len(dtypes) != 1:
        return []
    if routine is None:
        code = small_code(node.op, dtypes.pop(), given)
    elif isinstance(routine, ProductRoutine):
        code = product_code(routine.largest_unrolled, dtypes.pop(), *given)
    else:
        return []
    sizes = ", ".join(map(str, given))
    return [] if code is None else [f"#     for {sizes} in C order: {functions.name(code)}"]


def _shape(variable: Variable, shapes: Mapping[Variable, Shape]) -> Shape | None:
    return variable.data.shape if isinstance(variable, Constant) else shapes.get(variable)


def _native_functions(calls: Calls, functions: GeneratedFunctions) -> list[str]:
    """The native functions that calls have led to; of several threads' the one for one thread."""
    program = calls.program
    known_names = Writer(program.graph.inputs).names
    names = [known_names[variable] for variable in (*program.graph.inputs, *program.shared)]
    kernels = {group: call.code and call.code() for group, call in program.kernels.items()}
    titles = [
        (f"{number}: {title(group)}", step_name(program, number), kernels.get(group))
        for number, group in enumerate(program.steps)
    ]
    texts = list[str]()
    for key, known in list(calls.table.records.items()):
        recipe = recipe_in_one_thread(program, calls.table, key) if known[-2].is_native else None
        if recipe is not None:
            arguments = ", ".join(
                f"{name} {one.dtype}{one.shape}" for name, one in zip(names, recipe.inputs, strict=True)
            )
            body = recipe_text(recipe, names, titles, functions)
            texts.append(f"# native_{len(texts)}\n# for {arguments}\n{body}")
    return texts


def _name(called: object) -> str:
    """The name of a function, or of the class of what is called like one."""
    while isinstance(called, functools.partial):
        called = called.func
    named = called if hasattr(called, "__qualname__") else type(called)
    return f"{named.__module__}.{named.__qualname__}"
