"""Calibration: a plausible profile in little time, stored where it is looked for."""

from pathlib import Path

import pytest

import esat
from esat.codegen.ground.host import host_target, untuned_host
from esat.extract.prices.machine import VARIABLE, MachineProfile, machine_profile
from esat.tools import calibration


def test_a_calibrated_profile_is_plausible_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "machine.json"))
    for name, value in (("_SAMPLES", 3), ("_PRODUCT_SAMPLES", 2), ("_SECONDS_EACH", 1e-5)):
        monkeypatch.setattr(calibration, name, value)
    monkeypatch.setattr(calibration, "tuned", lambda target, seconds_of: target.tuned(rows_in_group=3))
    machine_profile.cache_clear()
    host_target.cache_clear()
    try:
        assert esat.Mode().machine == MachineProfile()
        assert host_target() == untuned_host()
        profile = esat.calibrate()
        assert MachineProfile.from_json(profile.to_json()) == profile  # every entry positive and finite
        assert 1e8 < profile.element_rate < 1e13
        assert 1e8 < profile.matrix_rate < 1e14
        assert profile.bandwidths[0] >= profile.bandwidths[1] >= profile.bandwidths[2]
        assert min(profile.parallel_speedup, profile.parallel_bandwidth) >= 1.0
        assert MachineProfile().parallel_from <= profile.parallel_from <= 1e-2
        for overhead in (profile.call, profile.kernel_call, profile.matrix_call, profile.library_call):
            assert 0.0 < overhead < 1e-3
        assert esat.Mode().machine == profile
        assert host_target() == untuned_host().tuned(rows_in_group=3)
    finally:
        machine_profile.cache_clear()
        host_target.cache_clear()


def test_programs_disturbed_alike_give_a_plausible_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    # As when the shorter program is held up in every sample: both seem to take as long.
    monkeypatch.setattr(calibration, "seconds_of", lambda *calls, samples=None: [1e-5] * len(calls))
    seconds = calibration._Bench().chained(lambda y: y * 1.01 + 0.1)
    assert 1e-14 < seconds < 1e-8
    assert calibration.beyond(3.0, 5.0) == pytest.approx(0.3)
    assert calibration.beyond(5.0, 3.0) == 2.0
