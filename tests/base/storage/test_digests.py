"""Digests tell code apart by what it says and where it stands, not by how a checkout ends its lines."""

import hashlib

from esat.base.storage import digest_of, digest_of_sources


def test_texts_are_told_apart_by_their_borders():
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"]) != digest_of(["abc"])
    assert digest_of(["ab", "c"]) == digest_of(["ab", "c"])


def test_sources(tmp_path):
    room = tmp_path / "room"
    (room / "inner").mkdir(parents=True)
    (room / "b.py").write_bytes(b"y = 2\n")
    (room / "inner" / "a.py").write_bytes(b"x = 1\n")
    first = digest_of_sources(room)
    expected = hashlib.sha256(b"b.py\x006\x00y = 2\ninner/a.py\x006\x00x = 1\n").hexdigest()
    assert first == expected

    (room / "notes.txt").write_text("no code")
    (room / "b.py").write_bytes(b"y = 2\r\n")
    assert digest_of_sources(room) == first
    (room / "b.py").write_bytes(b"y = 3\n")
    assert digest_of_sources(room) != first
    (room / "b.py").write_bytes(b"y = 2\n")
    (room / "rules.egg").write_text("(sort T)")
    assert digest_of_sources(room) != first
    (room / "rules.egg").unlink()
    (room / "inner" / "a.py").rename(room / "a.py")
    assert digest_of_sources(room) != first
