"""Kernels printed for a device as text files, for the loops of the files in ``tests/codegen/kernels``.

``make kernels`` writes them anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from codegen.kernel_cases import group_of, op, variable
from codegen.kernel_files import FOLDER as LOOPS
from codegen.kernel_files import read

from esat.codegen import lower
from esat.codegen.kernel.loop_ir import Kernel
from esat.gpu.kernel_text.launches import Launch, LaunchVariant
from esat.gpu.printing import print_launches
from esat.ops.arrays.dimshuffle import dimshuffle

FOLDER = Path(__file__).parent / "kernels"
VECTORS, SCALARS, STRIDED = (
    LaunchVariant(True, 512),
    LaunchVariant(False, 512),
    LaunchVariant(False, 512, strided=True),
)
PRINTED: Mapping[str, Mapping[str, LaunchVariant]] = {
    "scaled_sum": {"vectors": VECTORS, "single elements": SCALARS, "strided": STRIDED},
    "rows_and_columns": {"vectors": VECTORS},
    "mean_and_deviation": {"vectors": VECTORS},
    "softmax": {"vectors": VECTORS, "vectors, rows of any length": LaunchVariant(True, 0)},
    "sums_of_columns": {"vectors": VECTORS, "rows shared by blocks": LaunchVariant(True, split=True)},
    "places_of_maxima": {"single elements": SCALARS},
    "integers": {"vectors": VECTORS},
    "transposed": {"vectors": VECTORS},
}
"""Names of files and their variants."""


def kernel_of(name: str) -> Kernel:
    """The loops of a program."""
    if name == "transposed":
        x, y = variable("float32", None, None), variable("float32", None, None)
        return lower(group_of([op("add", x, dimshuffle(y, (1, 0)))], [x, y]))
    return read(LOOPS / f"{name}.kernel")[0]


def text_of(name: str) -> str:
    """What a file says."""
    parts = []
    for variant, chosen in PRINTED[name].items():
        launches = print_launches(kernel_of(name), chosen)
        parts += [f"=== {variant}\n", *map(_text, launches.launches)]
        parts += [f"{where}: {one.size} of {one.dtype}\n" for where, one in launches.workspaces.items()]
    return "".join(parts)


def _text(launch: Launch) -> str:
    return f"--- {launch.family}: blocks {launch.grid}, of {launch.block} threads\n{launch.text}"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.cuda"):
        old.unlink()
    for name in PRINTED:
        (FOLDER / f"{name}.cuda").write_text(text_of(name), encoding="utf-8")
