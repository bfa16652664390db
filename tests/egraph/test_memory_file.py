"""Text for egglog to read, from memory where the system can, from a disk elsewhere."""

import os
from pathlib import Path

import pytest

from esat.egraph.engine import Engine
from esat.egraph.memory_file import memory_file

TEXT = "(datatype T (A) (B))\n; ümlaut\n"


@pytest.fixture(params=["as the system can", "from a disk"])
def _place(request, monkeypatch):
    if request.param == "from a disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)


@pytest.mark.usefixtures("_place")
def test_a_file_holds_the_text_for_the_length_of_a_block():
    with memory_file(TEXT) as path:
        assert Path(path).read_text(encoding="utf-8") == TEXT
    assert not Path(path).exists()


@pytest.mark.usefixtures("_place")
def test_egglog_reads_it():
    engine = Engine()
    engine.load(TEXT)
    assert engine.sizes() == {"A": 0, "B": 0}


@pytest.mark.usefixtures("_place")
def test_no_room_is_an_error(monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "memfd_create", full, raising=False)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"), memory_file(TEXT):
        pytest.fail("there is no file")
