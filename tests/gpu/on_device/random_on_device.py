"""Random programs whose steps run on a device, against NumPy.

``python tests/gpu/on_device/random_on_device.py 0 100`` runs the programs of these seeds, on the stand-in, or
with ``ESAT_TEST_DEVICE=cuda`` on a real device.
"""

from __future__ import annotations

import random
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from gpu.conftest import make_device
from gpu.programs import compiled_for
from random_programs import POOL, RandomProgram

import esat
from esat.gpu.device import Device

POOL_THERE = [text for text in POOL if not text.startswith("m.searchsorted(x")]
"""Without searches in what is not sorted: what they find there is how NumPy goes about it."""


class ProgramThere(RandomProgram):
    """A program whose results may be off by what sums in another order, and products rounded once, leave.

    That is a part of the largest number that takes part, also of a result that NumPy finds to be zero.
    """

    def noisy(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "fc":
            return array
        size = np.finfo(array.dtype).eps * np.abs(array).max(initial=0)
        return np.asarray(super().noisy(array) + self.rng.uniform(-1, 1, array.shape) * size).astype(
            array.dtype
        )

    def of_known_types(self, results: Sequence[Any]) -> list[int]:
        """Outputs that were made of nothing but what esat gives the dtype that NumPy and SciPy give it.

        These differ from version to version, which is no matter of a device's.
        """
        same = [True] * 3
        for step, result in zip(self.steps, results[3:], strict=True):
            here = result.type.dtype == self.exact[len(same)].dtype
            same.append(here and all(same[place] for place in step.operands))
        return [place for place in self.outputs if same[place]]


def check_on_device(seed: int, size: int, device: Device) -> int:
    """Run one program; how many of its results were compared.

    Raises
    ------
    AssertionError
        When a result is another than NumPy's.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        program = ProgramThere(seed, size, POOL_THERE)
        variables = program.typed(static=True)
        results = program.built(variables)
        known = program.of_known_types(results)
        places = random.Random(seed).sample(known, min(4, len(known)))
        if not places:
            return 0
        outputs = [results[place] for place in places]
        needed = set(esat.graph.ancestors(outputs))
        given = {v: a for v, a in zip(variables, program.inputs, strict=True) if v in needed}
        function = compiled_for(device, esat.Graph(list(given), outputs))
        for _ in range(2):
            found = function(*given.values())
            for place, value in zip(places, found if len(places) > 1 else [found], strict=True):
                program.check(place, value, "on the device")
        return len(places)


def main(first: int, count: int) -> int:
    """Run the programs of these seeds; how many fail."""
    device, failed, compared = make_device(), 0, 0
    for seed in range(first, first + count):
        try:
            compared += check_on_device(seed, 3 + seed % 6, device)
        except Exception:
            failed += 1
            print(f"seed {seed}:\n{traceback.format_exc()[-1500:]}", flush=True)
    print(f"{count} programs, {compared} results, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2])) else 0)
