"""What the emulator finds: printed kernels without one of their barriers, with bounds or alignment broken.

Each row takes a block, and columns and the whole of an array are gathered through shared memory, so that the
barriers of all families are here. Each mutant is run once, in one order of threads.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from gpu.emulator import run_launches

from esat.codegen import lower
from esat.codegen.kernel.loop_ir import Kernel
from esat.errors import EmulationError
from esat.gpu.kernel_text.launches import Launches
from esat.gpu.printing import print_launches, sizes_in, variant_for
from esat.ops.reduction import SUM, reduce

SHAPES = {"rows": (3, 5000), "columns": (70, 36), "full": (5, 1200)}
AXES = {"rows": 1, "columns": 0, "full": None}


def program(family: str) -> tuple[Kernel, np.ndarray, tuple[int, ...]]:
    """Sums of squares along rows, columns or all axes; their data, and the shape of the results."""
    x = variable("float32", None, None)
    kernel = lower(group_of([reduce(SUM, op("sqr", x), AXES[family])], [x]))
    data = np.random.default_rng(0).standard_normal(SHAPES[family]).astype("float32")
    return kernel, data, data.sum(AXES[family]).shape


def result(kernel: Kernel, launches: Launches, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    o0 = np.full(shape, 77, "float32")
    run_launches(launches, {"o0": o0, "x0": data}, sizes_in(kernel, [shape, data.shape]), seed=1)
    return o0


def mutants(family: str, text: str) -> Iterator[tuple[str, str]]:
    """Texts with one fault each; alignment is checked in the same way in all families."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if "syncthreads" in line:
            yield f"barrier of line {number + 1}", "".join(lines[:number] + lines[number + 1 :])
    bounds = [bound for bound in ("<= n0", "< n0", "< n1") if bound in text]
    for bound in bounds[:1]:
        yield f"bound {bound}", text.replace(bound, f"{bound} + 128", 1)
    if family == "rows" and "load4(x0, " in text:
        yield "alignment", text.replace("load4(x0, ", "load4(x0, 1 + ", 1)


@pytest.mark.parametrize("family", SHAPES)
def test_mutants_are_found(family: str) -> None:
    kernel, data, shape = program(family)
    variant = variant_for(kernel, [shape, data.shape])
    launches = print_launches(kernel, variant)
    assert launches.launches[0].family == family
    right = result(kernel, launches, data, shape)
    np.testing.assert_allclose(right, (data.astype(float) ** 2).sum(AXES[family]), rtol=2e-6)
    found = {}
    for number, launch in enumerate(launches.launches):
        for name, text in mutants(family, launch.text):
            parts = list(launches.launches)
            parts[number] = replace(launch, text=text)
            try:
                got = result(kernel, replace(launches, launches=tuple(parts)), data, shape)
                found[name, number] = not np.array_equal(got, right)
            except EmulationError as error:
                found[name, number] = error.line > 0
    assert {name.split()[0] for name, _ in found} >= {"barrier", "bound"}
    assert all(found.values()), [name for name, was_found in found.items() if not was_found]
