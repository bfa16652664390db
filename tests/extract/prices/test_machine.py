"""Machine profiles: stored whole, refused when damaged."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from esat.errors import ParameterError
from esat.extract.prices.machine import (
    VARIABLE,
    MachineProfile,
    machine_profile,
    profile_path,
    store_profile,
)

FORMAT = MachineProfile.version


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "deep" / "machine.json"
    monkeypatch.setenv(VARIABLE, str(path))
    machine_profile.cache_clear()
    yield path
    machine_profile.cache_clear()


def test_a_stored_profile_is_used(stored: Path) -> None:
    assert machine_profile() == MachineProfile()
    other = replace(MachineProfile(), element_rate=7.5e9, bandwidths=(3.0e10, 2.0e10, 1.0e10))
    assert store_profile(other) == profile_path() == stored
    assert machine_profile() == other
    assert [path.name for path in stored.parent.iterdir()] == ["machine.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        json.dumps({"format": FORMAT}),
        "\xff\xfe",
        json.dumps({"format": FORMAT, "element_rate": 1.0}),
    ],
)
def test_a_damaged_profile_is_passed_over(stored: Path, text: str) -> None:
    stored.parent.mkdir()
    stored.write_bytes(text.encode("latin-1"))
    assert machine_profile() == MachineProfile()


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), "fast", True, None, [1.0]])
def test_a_rate_is_positive_and_finite(value: object) -> None:
    entries = {**json.loads(MachineProfile().to_json()), "element_rate": value}
    with pytest.raises(ParameterError, match="element_rate"):
        MachineProfile.from_json(json.dumps(entries))


def test_a_profile_of_another_version_is_refused() -> None:
    entries = {**json.loads(MachineProfile().to_json()), "format": 0}
    with pytest.raises(ParameterError, match=f"format {FORMAT}"):
        MachineProfile.from_json(json.dumps(entries))
    with pytest.raises(ParameterError, match="speed"):
        MachineProfile.from_json(json.dumps({**entries, "format": FORMAT, "speed": 3.0}))


def test_bandwidth_falls_with_the_level() -> None:
    profile = MachineProfile()
    assert profile.bandwidth(1e3) > profile.bandwidth(1e7) > profile.bandwidth(1e9)


def test_large_kernels_take_what_several_threads_take() -> None:
    alone = MachineProfile(parallel_from=1e-4)
    assert alone.kernel(0.75, 0.25) == 1.0  # nothing was measured
    machine = replace(alone, parallel_speedup=4.0, parallel_bandwidth=2.0)
    assert machine.kernel(1e-6, 1e-6) == 2e-6
    assert machine.kernel(0.8, 0.2) == pytest.approx(0.2 + 0.1, rel=1e-3)
    assert machine.kernel(1e-4, 0.0) <= 1e-4
    assert machine.in_threads(1).kernel(0.8, 0.2) == 1.0
    assert machine.in_threads(2).kernel(0.8, 0.2) == pytest.approx(0.4 + 0.1, rel=1e-3)
    assert machine.in_threads(64) == machine
