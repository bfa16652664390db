"""Kernels and their source as text files: loop IR in, source out, for each target.

A file ``kernels/NAME.kernel`` holds the loop IR of a program, as Python text of its records, and the source
of each of its forms, which several targets may share. ``make kernels`` writes them anew.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

from codegen.kernel_cases import group_of, op, variable
from codegen.targets import TARGETS

from esat.codegen import lower, print_kernel
from esat.codegen.ground.target import Target
from esat.codegen.kernel import loop_ir
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.graph import Variable
from esat.ops.index.advanced import AdvancedIncSubtensor, advanced_subtensor
from esat.ops.reduction import ARGMAX, MAX, SUM, reduce

FOLDER = Path(__file__).parent / "kernels"
_WIDTH = 110
_MARK = "=== "
Program = tuple[list[Variable], list[Variable]]
"""Outputs and inputs."""


def _parallel(kernel: Kernel, target: Target, streams: bool) -> str:
    printed = print_parallel_source(kernel, target, "C", True, streams)
    return "" if printed is None else printed.text


FORMS: Mapping[str, Callable[[Kernel, Target], str]] = {
    "in one thread": print_kernel,
    "in one thread, strided": lambda kernel, target: print_kernel(kernel, target, "A"),
    "in parts": lambda kernel, target: _parallel(kernel, target, streams=False),
    "in parts, past the caches": lambda kernel, target: _parallel(kernel, target, streams=True),
}
"""How a kernel can be printed."""


def programs() -> dict[str, Program]:
    """What is printed, by the names of files."""
    x, y = variable("float64", None, None), variable("float64", None, None)
    v, w = variable("float32", None), variable("float32", None)
    row, column = variable("float64", None), variable("float64", None, 1)
    whole = variable("int32", None, None)
    places = variable("int64", None)
    chosen = advanced_subtensor(x, (places,))
    total = reduce(SUM, x, 1, keepdims=True)
    centred = op("sub", x, op("mul", total, 0.01))
    squares = reduce(SUM, op("sqr", centred), 1, keepdims=True)
    powers = op("exp", op("sub", x, reduce(MAX, x, 1, keepdims=True)))
    mean = op("mul", reduce(SUM, v, None, keepdims=True), 0.5)
    held, new = variable("float64", None), variable("float64", None)
    entries = advanced_subtensor(held, (places,)).owner.op.entries
    return {
        "scaled_sum": ([op("add", op("mul", x, 2.5), y)], [x, y]),
        "exponentials": ([op("div", op("exp", v), op("add", op("exp", w), 1.0))], [v, w]),
        "outer_sum": ([op("add", row, column)], [row, column]),
        "rows_and_columns": ([op("mul", op("add", x, row), column)], [x, row, column]),
        "sum_of_squares": ([reduce(SUM, op("sqr", v))], [v]),
        "squared_distance": ([reduce(SUM, op("sqr", op("sub", v, w)))], [v, w]),
        "mean_and_deviation": ([mean, reduce(SUM, op("sqr", op("sub", v, mean)))], [v]),
        "softmax": ([op("div", powers, reduce(SUM, powers, 1, keepdims=True))], [x]),
        "layer_norm": ([op("mul", op("div", centred, op("sqrt", squares)), row)], [x, row]),
        "sums_of_columns": ([reduce(SUM, op("exp", x), 0)], [x]),
        "places_of_maxima": ([reduce(ARGMAX, x, 1)], [x]),
        "chosen_rows": ([reduce(SUM, op("mul", chosen, y), 1)], [x, y, places]),
        "added_elements": (
            [AdvancedIncSubtensor(entries)(held, op("mul", new, 2.0), places)],
            [held, new, places],
        ),
        "integers": ([op("add", op("mul", whole, whole), 1)], [whole]),
    }


def kernel_of(program: Program) -> Kernel:
    """The loops of a program."""
    outputs, inputs = program
    return lower(group_of(outputs, inputs))


def text_of(value: object, depth: int = 0) -> str:
    """A record as Python text, without what has its default."""
    if isinstance(value, tuple) and any(map(is_dataclass, value)):
        inside = "".join(f"{text_of(one, depth + 1)},\n" for one in value)
        return f"(\n{textwrap.indent(inside, '    ')})"
    if not is_dataclass(value):
        return repr(value)
    given = {
        one.name: text_of(getattr(value, one.name), depth)
        for one in fields(value)
        if one.default is MISSING or getattr(value, one.name) != one.default
    }
    name = type(value).__name__
    flat = f"{name}({', '.join(f'{field}={text}' for field, text in given.items())})"
    if "\n" not in flat and len(flat) + 4 * depth <= _WIDTH:
        return flat
    inside = "".join(f"{field}={text},\n" for field, text in given.items())
    return f"{name}(\n{textwrap.indent(inside, '    ')})"


def read(path: Path) -> tuple[Kernel, dict[tuple[str, str], str]]:
    """The kernel of a file, and its source for each form and target."""
    first, *sections = path.read_text(encoding="utf-8").split(f"\n{_MARK}")
    sources = {}
    for section in sections:
        header, _, source = section.partition("\n")
        form, _, names = header.partition(": ")
        sources.update({(form, name): source for name in names.split(", ")})
    kernel = eval(first, vars(loop_ir))
    assert isinstance(kernel, Kernel)
    return kernel, sources


def printed(kernel: Kernel) -> Iterator[tuple[str, str, str]]:
    """Each form, target, and source of a kernel; no forms that are empty."""
    for form, print_form in FORMS.items():
        for name, target in TARGETS.items():
            source = print_form(kernel, target)
            if source:
                yield form, name, source


def write(path: Path, kernel: Kernel) -> None:
    """Write the file of a kernel."""
    shared: dict[tuple[str, str], list[str]] = {}
    for form, name, source in printed(kernel):
        shared.setdefault((form, source), []).append(name)
    text = [f"{text_of(kernel)}\n"]
    text += [f"\n{_MARK}{form}: {', '.join(names)}\n{source}" for (form, source), names in shared.items()]
    path.write_text("".join(text), encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.kernel"):
        old.unlink()
    for name, program in programs().items():
        write(FOLDER / f"{name}.kernel", kernel_of(program))
