"""One list of stages: profiles enter their times under its names, and the architecture page shows it."""

import re
from pathlib import Path

import numpy as np
import pytest

import esat
from esat.base.stages import STAGES, blamed_as

ROOT = Path(esat.__file__).parent
CALL = re.compile(r'\bstage\("([^"]+)"')


def test_the_package_times_the_stages_of_the_list():
    timed = {name for file in ROOT.rglob("*.py") for name in CALL.findall(file.read_text(encoding="utf-8"))}
    assert timed - {"saturate"} == set(STAGES) - {"saturate"}


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "debug"])
def test_profiles_have_their_phases_and_their_order(mode):
    x = esat.dmatrix("x")
    function = esat.compile(esat.Graph([x], [esat.exp(x @ x).sum()]), mode)
    function(np.ones((2, 2)))
    profile = function.profile
    known = [name for name in profile.stages if name in STAGES]
    assert {"clone", "memory plan", "kernels", "driver"} <= set(known)
    assert all(profile.phases[name] == STAGES[name].phase for name in known)
    assert all(name in str(profile) for name in known)
    linked = [name for name in known if STAGES[name].phase == "linker"]
    assert linked == [name for name in STAGES if name in linked]


def test_debug_mode_has_names_for_several_stages_in_one():
    assert blamed_as("decode") == "equality saturation"
    assert blamed_as("driver") == "code generation"
    assert blamed_as("fusion") == "fusion"
    assert blamed_as("canonicalize") == "canonicalize"


def test_the_architecture_page_shows_the_list():
    page = (ROOT.parent / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.split("| stage | from, to | where |\n|---|---|---|\n")[1].split("\n\n")[0]
    places = {name: ", ".join(f"`{place}`" for place in stage.where) for name, stage in STAGES.items()}
    rows = [f"| {name} | {stage.does} | {places[name]} |" for name, stage in STAGES.items()]
    assert table.splitlines() == rows


def test_stages_stand_where_the_list_says():
    places = [place for stage in STAGES.values() for place in stage.where]
    assert not [place for place in places if not (ROOT / place).exists()]
