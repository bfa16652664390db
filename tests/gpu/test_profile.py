"""Device profiles: stored whole beside the machine's, refused when damaged; their prices."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import esat
from esat import codegen
from esat.errors import ParameterError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import VARIABLE, machine_profile
from esat.gpu.profile import (
    DeviceProfile,
    Link,
    device_profile,
    device_profile_path,
    store_device_profile,
)
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.price import group_seconds, plan_seconds


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "deep" / "machine.json"))
    for known in (machine_profile, device_profile):
        known.cache_clear()
    yield tmp_path / "deep" / "machine.device.json"
    for known in (machine_profile, device_profile):
        known.cache_clear()


def test_a_stored_profile_is_used(stored: Path) -> None:
    assert device_profile() == DeviceProfile()
    other = replace(DeviceProfile(), bandwidth=4.3e12, link=Link(1e-5, 5e10))
    assert store_device_profile(other) == device_profile_path() == stored
    assert device_profile() == other
    assert [path.name for path in stored.parent.iterdir()] == [stored.name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("launch", 0.0),
        ("launch", "fast"),
        ("launch", True),
        ("link", None),
        ("link", {"latency": 1.0}),
        ("a", 1.0),
    ],
)
def test_a_damaged_profile_is_passed_over(stored: Path, name: str, value: object) -> None:
    text = json.dumps({**json.loads(DeviceProfile().to_json()), name: value})
    with pytest.raises(ParameterError, match="device profile"):
        DeviceProfile.from_json(text)
    stored.parent.mkdir()
    stored.write_text(text)
    assert device_profile() == DeviceProfile()


@pytest.mark.parametrize("text", ["", "[]", "{}", "{"])
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="device profile"):
        DeviceProfile.from_json(text)


def test_a_large_elementwise_kernel_takes_its_copy() -> None:
    """At 1e8 float32, what is read and written at the rate of a copy; small ones take the launch."""
    profile = DeviceProfile()
    model = CostModel(profile.machine())
    x = esat.vector("x", dtype="float32")
    graph = esat.Graph([x], [x * 2.0 + 1.0]).function_graph()
    (group,) = fuse(graph, codegen).groups
    arrays = [variable for variable in (*group.inputs, *group.outputs) if variable.tensor_type.ndim]
    shapes = dict.fromkeys(arrays, (100_000_000,))
    assert group_seconds(group, model, shapes) == pytest.approx(8e8 / profile.bandwidth, rel=0.1)
    small = dict.fromkeys(arrays, (10,))
    assert group_seconds(group, model, small) == pytest.approx(profile.launch, rel=0.01)
    assert plan_seconds([group], model, small) > group_seconds(group, model, small)
