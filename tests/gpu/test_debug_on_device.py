"""Debug mode with an emulated device: what kernels do wrong is told."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import esat
from esat import Mode
from esat.errors import DebugError, EmulationError, ModeError
from esat.gpu.device import cuda_device
from esat.gpu.kernel_text import kernels
from esat.gpu.kernel_text.launches import Launches


@pytest.fixture(autouse=True)
def without_cupy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    cuda_device.cache_clear()
    yield
    cuda_device.cache_clear()


def exponentials() -> esat.Graph:
    x = esat.vector("x", dtype="float32")
    return esat.Graph([x], [esat.exp(x) * x])


def test_what_a_kernel_does_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = kernels.print_launches

    def broken(*given) -> Launches:
        """Kernels that write one vector too many."""
        made = printed(*given)
        texts = [one.text.replace("< (n0 // 4)", "< (n0 // 4) + 1") for one in made.launches]
        changed = tuple(replace(one, text=text) for one, text in zip(made.launches, texts, strict=True))
        return replace(made, launches=changed)

    monkeypatch.setattr(kernels, "print_launches", broken)
    function = esat.compile(exponentials(), Mode("debug", device="cuda"))
    with pytest.raises(
        EmulationError, match=r"kernel flat, line \d+, block 0, thread 15: element 60 is outside"
    ):
        function(np.ones(60, "float32"))


def test_the_step_on_the_device_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = kernels.print_launches

    def wrong(*given) -> Launches:
        """Kernels that leave out the last vector."""
        made = printed(*given)
        texts = [one.text.replace("< (n0 // 4)", "< (n0 // 4) - 1") for one in made.launches]
        changed = tuple(replace(one, text=text) for one, text in zip(made.launches, texts, strict=True))
        return replace(made, launches=changed)

    x, y = esat.vector("x", dtype="float32"), esat.matrix("y", dtype="float32")
    graph = esat.Graph([x, y], [y @ esat.concatenate([esat.exp(x) * x, x])])
    esat.compile(graph, Mode("debug", device="cuda"))(np.ones(60, "float32"), np.ones((2, 120), "float32"))
    monkeypatch.setattr(kernels, "print_launches", wrong)
    function = esat.compile(graph, Mode("debug", device="cuda"))
    with pytest.raises(
        DebugError, match=r"(?s)kernel_\d is the first step that is wrong, kernel\(exp, mul"
    ) as raised:
        function(np.ones(60, "float32"), np.ones((2, 120), "float32"))
    assert f"{__file__}:" in str(raised.value)


def test_without_an_emulator_it_is_said_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "entry_points", lambda group: ())
    kernels._emulated_device.cache_clear()
    try:
        with pytest.raises(ModeError, match=r"cupy.*the folder `tests` of esat's sources on PYTHONPATH"):
            esat.compile(exponentials(), Mode("debug", device="cuda"))
    finally:
        kernels._emulated_device.cache_clear()
