"""Random programs whose steps run on the stand-in, against NumPy; ``on_device`` has more of them."""

import pytest
from gpu.on_device.random_on_device import check_on_device

from esat.gpu.device import Device


@pytest.mark.parametrize("seeds", [(0, 1), (2, 45)])
def test_random_programs(seeds: tuple[int, ...], stand_in: Device) -> None:
    for seed in seeds:
        check_on_device(seed, 3 + seed % 6, stand_in)
