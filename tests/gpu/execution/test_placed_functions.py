"""Functions with a device, from ``esat.compile`` to their reports: a stand-in takes the device's place."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from gpu.emulator.stand_in import StandIn, StandInArray

import esat
from esat import Mode
from esat.errors import ModeError
from esat.extract.prices.machine import MachineProfile
from esat.gpu.device import cuda_device
from esat.gpu.placing import Candidate
from esat.gpu.profile import DeviceProfile, Link
from esat.phases.fusing.fusion import fuse

RNG = np.random.default_rng(0)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in for cupy, which modes find."""
    arrays = StandIn()
    monkeypatch.setitem(sys.modules, "cupy", arrays)
    cuda_device.cache_clear()
    yield arrays
    cuda_device.cache_clear()


@pytest.fixture
def choosing(monkeypatch: pytest.MonkeyPatch) -> Mode:
    """A mode that decides by the shipped profile of a machine, and of a device that is near."""
    near = DeviceProfile(call=1e-5, link=Link(1e-6, 1e11))  # the emulator is slow for many elements
    monkeypatch.setattr("esat.gpu.profile.device_profile", lambda: near)
    return Mode(device="auto", machine=MachineProfile(), threads=1)


def mixed():
    x, y = esat.matrix("x"), esat.vector("y")
    return esat.Graph([x, y], [esat.tanh(x @ y) + 1.0, (esat.exp(x) * 2.0).sum(axis=0), esat.sort(y)])


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        plain = one.get() if isinstance(one, StandInArray) else one
        np.testing.assert_allclose(plain, other, rtol=1e-10)


@pytest.mark.parametrize("name", ["fast_run", "o1"])
def test_modes_with_a_device_compute_the_same(cupy, name):
    x, y = RNG.normal(size=(20, 30)), RNG.normal(size=30)
    function = esat.compile(mixed(), Mode(name, device="cuda"))
    same(function(x, y), esat.compile(mixed(), name)(x, y))
    assert {step.side for step in function.steps if step.kind == "library"} == {"device"}
    assert "on the device" in str(function.report)


def test_arguments_on_the_device_bring_results_there(cupy):
    x, y = RNG.normal(size=(20, 30)), RNG.normal(size=30)
    function = esat.compile(mixed(), Mode(device="cuda"))
    expected = function(x, y)
    assert all(isinstance(result, np.ndarray) for result in expected)
    there = cupy.asarray(x), cupy.asarray(y)
    cupy.uploads.clear()
    cupy.downloads.clear()
    found = function(*there)
    assert all(isinstance(result, StandInArray) for result in found)
    same(found, expected)
    assert not cupy.downloads
    same(function(there[0], y), expected)
    same(function(x.tolist(), y), expected)


def test_auto_keeps_ten_elements_on_the_host_and_takes_many_to_the_device(cupy, choosing):
    x = esat.vector("x")
    y = x
    for _ in range(4):
        y = esat.tanh(esat.exp(y) - 1.0)
    graph = esat.Graph([x], [y])
    function = esat.compile(graph, choosing, shapes={x: (10,)})
    assert {step.side for step in function.steps} == {"host"}
    assert "0 steps on the device" in str(function.report)
    small, large = RNG.normal(size=10), RNG.normal(size=10_000)
    plain = esat.compile(graph)
    np.testing.assert_allclose(function(small), plain(small))
    assert not cupy.uploads
    np.testing.assert_allclose(function(large), plain(large), rtol=1e-10)
    assert cupy.uploads == [large.nbytes]
    assert cupy.downloads == [large.nbytes]
    assert len(function.placements) == 2
    first = esat.compile(graph, choosing, shapes={x: (10_000,)})
    assert [step.side for step in first.steps if step.kind == "transfer"] == ["device", "host"]


def training():
    x, y = esat.matrix("x"), esat.vector("y")
    w = esat.shared(np.zeros(30), "w")
    loss = ((esat.tanh(x @ w) - y) ** 2.0).mean()
    return esat.Graph([x, y], [loss], updates={w: w - 0.1 * esat.grad(loss, w)}), w


def test_a_training_step_copies_data_and_loss_only(cupy):
    x, y = RNG.normal(size=(64, 30)), RNG.normal(size=64)
    graph, weights = training()
    function = esat.compile(graph, Mode(device="cuda"))
    report = function.report.placement
    assert [text.split()[0] for text in report.to_device] == ["x", "y"]
    assert len(report.to_host) == 1
    losses = [float(function(x, y))]
    cupy.uploads.clear()
    cupy.downloads.clear()
    losses += [float(function(x, y)) for _ in range(4)]
    assert sorted(set(cupy.uploads)) <= sorted({x.nbytes, y.nbytes})
    assert set(cupy.downloads) == {8}
    other, own = training()
    host = esat.compile(other)
    np.testing.assert_allclose(losses, [float(host(x, y)) for _ in range(5)], rtol=1e-10)
    np.testing.assert_allclose(weights.get_value(), own.get_value(), rtol=1e-10)


def test_sizes_of_values_on_the_device_are_known_without_them(cupy):
    graph, weights = training()
    esat.compile(graph, Mode(device="cuda"))(RNG.normal(size=(64, 30)), RNG.normal(size=64))
    assert weights.is_elsewhere
    reading = esat.Graph([x := esat.vector("x")], [x * weights]).function_graph()
    cupy.downloads.clear()
    shapes = Candidate(reading, fuse(reading, None)).shapes([(30,)])
    assert {shapes[one] for one in (*reading.inputs, *reading.shared_variables)} == {(30,)}
    assert not cupy.downloads
    assert weights.is_elsewhere


def test_what_runs_where_is_shown(cupy, tmp_path):
    function = esat.compile(mixed(), Mode(device="cuda"))
    text = esat.debugprint(function, file="str")
    assert "to device" in text
    assert "to host" in text
    assert "sort{0} @device" in text
    assert "kernel on the device: " in "\n".join(step.name for step in function.profile.steps)
    function.save_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "copied to the device: " in page
    assert "copy between host and device" in page
    assert "@device" in esat.pydotprint(function, format="dot")
    plain = esat.debugprint(esat.compile(mixed()), file="str")
    assert "@device" not in plain


def test_arguments_that_do_not_fit_are_errors_as_without_a_device(cupy):
    function, host = (esat.compile(mixed(), mode) for mode in (Mode(device="cuda"), "fast_run"))
    x, y = RNG.normal(size=(5, 6)), RNG.normal(size=6)
    for arguments in ((x, x), (x,), (x, y[:5]), (x.astype(complex), y), ("x", y), (x, cupy.asarray(x))):
        with pytest.raises(esat.EsatError) as found:
            function(*arguments)
        if len(arguments) == 1 or isinstance(arguments[1], np.ndarray):
            with pytest.raises(type(found.value)):
                host(*arguments)
    same(function(x, y), host(x, y))


def test_results_that_are_constants(cupy):
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], [esat.exp(x), esat.constant(3.0)]), Mode(device="cuda"))
    for argument in (np.ones(4), cupy.asarray(np.ones(4))):
        for _ in range(6):  # of which later ones may be replayed
            same(function(argument), (np.exp(np.ones(4)), np.array(3.0)))


def test_the_query_leaves_the_device_out(cupy):
    mode = Mode(device="cuda").excluding("gpu_transfer")
    assert "all stays on the processor" in "\n".join(mode.summary())
    function = esat.compile(mixed(), mode)
    assert {step.side for step in function.steps} == {"host"}
    assert "leaves out gpu_transfer" in str(function.report)
    assert "what can runs on the CUDA device" in "\n".join(Mode(device="cuda").summary())
    assert not any(line.startswith("device") for line in Mode().summary())
    stabilization = esat.compile(mixed(), Mode("Stabilization", device="cuda"))
    assert {step.side for step in stabilization.steps} == {"host"}


def test_strict_functions_have_sums_of_their_own_on_the_device(cupy):
    x = RNG.normal(size=(20, 30))
    function = esat.compile(mixed(), Mode("strict", device="cuda"))
    same(function(x, x[0]), esat.compile(mixed(), "strict")(x, x[0]))


def test_copies_of_a_function_run_on_the_device_too(cupy):
    import copy

    x, y = RNG.normal(size=(5, 6)), RNG.normal(size=6)
    function = esat.compile(mixed(), Mode(device="cuda"))
    again = copy.copy(function)
    same(again(x, y), function(x, y))
    assert any(step.side == "device" for step in again.steps)


def test_jitted_functions_take_arrays_of_the_device(cupy):
    @esat.jit(mode=Mode(device="cuda"))
    def step(w, data):
        x, y = data["x"], data["y"]
        w -= 0.1 * (np.tanh(x @ w) - y).sum(axis=0)
        return (w * w).sum(), x.shape[0]

    x, y, w = RNG.normal(size=(8, 5)), RNG.normal(size=(8, 5)), RNG.normal(size=(5, 5))
    host, there, mixed_up = w.copy(), cupy.asarray(w), w.copy()
    loss, rows = step(host, {"x": x, "y": y})
    device_loss, _ = step(there, {"x": cupy.asarray(x), "y": cupy.asarray(y)})
    step(mixed_up, {"x": cupy.asarray(x), "y": y})
    assert rows == 8
    assert isinstance(device_loss, StandInArray)
    np.testing.assert_allclose(float(device_loss), loss)
    np.testing.assert_allclose(host, w - 0.1 * (np.tanh(x @ w) - y).sum(axis=0))
    np.testing.assert_allclose(there.get(), host)
    np.testing.assert_allclose(mixed_up, host)
    assert len(step.programs) == 1


def test_the_device_has_an_extraction_of_its_own(cupy):
    """On a processor that hardly adds, two products; on a device, one product with a sum."""
    x = esat.tensor("x", shape=(4, 1000))
    y, z = esat.tensor("y", shape=(1000, 50)), esat.tensor("z", shape=(1000, 50))
    graph = esat.Graph([x, y, z], [esat.tanh(x @ y + x @ z)])
    slow = MachineProfile(element_rate=1e5, matrix_rate=1e7)
    found = {}
    for device in ("cpu", "auto"):
        function = esat.compile(graph, Mode(device=device, machine=slow, threads=1, accuracy="ignore"))
        found[device] = [node.op.name for node in function.graph.toposort()].count("matmul")
    assert found == {"cpu": 2, "auto": 1}
    assert "steps on the device" in str(function.report)


# ---- without a device


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No cupy, whatever is installed."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    cuda_device.cache_clear()
    yield
    cuda_device.cache_clear()


@pytest.mark.parametrize("device", ["gpu", "CUDA", None, 0, ["cuda"]])
def test_unknown_devices_are_errors(device):
    with pytest.raises(ModeError, match="'cpu', 'cuda', 'auto'"):
        Mode(device=device)


def test_a_mode_for_a_device_names_what_is_missing(nothing):
    with pytest.raises(ModeError, match="cupy"):
        Mode(device="cuda")
    with pytest.raises(ModeError, match="cupy"):
        esat.calibrate(device="cuda")
    with pytest.raises(ModeError, match="'cpu' or 'cuda'"):
        esat.calibrate(device="auto")


def test_debug_mode_takes_an_emulated_device_where_there_is_none(nothing):
    function = esat.compile(mixed(), Mode("debug", device="cuda"))
    assert {step.side for step in function.steps if step.kind == "kernel"} == {"device"}
    x, y = RNG.normal(size=(5, 6)), RNG.normal(size=6)
    same(function(x, y), esat.compile(mixed())(x, y))


def test_auto_without_a_device_says_so(nothing):
    function = esat.compile(mixed(), Mode(device="auto"))
    assert {step.side for step in function.steps} == {"host"}
    assert "all on the host: device='cuda' takes the package cupy" in str(function.report)
    x, y = RNG.normal(size=(5, 6)), RNG.normal(size=6)
    same(function(x, y), esat.compile(mixed())(x, y))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [(StandIn(devices=0), "0 CUDA devices"), (StandIn(compute_capability="75"), "compute capability 7.5")],
)
def test_a_machine_without_a_fitting_device(monkeypatch, arrays, reason):
    monkeypatch.setitem(sys.modules, "cupy", arrays)
    cuda_device.cache_clear()
    with pytest.raises(ModeError, match=reason):
        Mode(device="cuda")
    function = esat.compile(mixed(), Mode(device="auto"))
    assert reason in str(function.report)
    cuda_device.cache_clear()


def test_a_device_is_measured(cupy, tmp_path, monkeypatch):
    from esat.extract.prices.machine import VARIABLE
    from esat.gpu.profile import device_profile
    from esat.tools import calibration
    from esat.tools.device_calibration import Sizes, measured_device

    monkeypatch.setenv(VARIABLE, str(tmp_path / "machine.json"))
    few = Sizes(copied=1 << 16, elements=64, matrix=16, small_matrix=8, samples=1, kernels=2)
    monkeypatch.setattr(calibration, "measured_device", lambda device: measured_device(device, few))
    device_profile.cache_clear()
    profile = esat.calibrate(device="cuda")
    assert DeviceProfile.from_json(profile.to_json()) == profile  # every entry positive and finite
    assert device_profile() == profile
    device_profile.cache_clear()
