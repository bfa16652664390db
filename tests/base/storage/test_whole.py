"""Single files are written whole or not at all."""

import os

import pytest

from esat.base.storage import write_whole


def test_a_new_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "a folder" / "profile.json"
    for text in ("first", "second"):
        write_whole(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "profile.json"
    write_whole(path, "first")

    def refuse(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        write_whole(path, "second")
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [path]
