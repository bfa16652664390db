"""The directory of entries: its format, damage, eviction, concurrency and kills."""

import errno
import multiprocessing
import os
import random
import signal
import time
import warnings
from pathlib import Path

import pytest

from esat.base.storage import CacheWarning, DiskStore, EntryDirectory, entry_file
from esat.base.storage.directory import KINDS

KEY = "ab" * 32
NAME = f"{KEY}.kernel"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "entries"


def test_flipped_bits_and_truncation_are_found():
    content = entry_file.encode(KEY, "kernel", bytes(range(256)) * 4)
    assert bytes(entry_file.decode(KEY, "kernel", content)) == bytes(range(256)) * 4
    with pytest.raises(entry_file.DamagedEntryError, match="another key"):
        entry_file.decode("cd" * 32, "kernel", content)
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(entry_file.DamagedEntryError):
            entry_file.decode(KEY, "kernel", bytes(damaged))
    for length in (0, 1, 95, 96, len(content) - 1):
        with pytest.raises(entry_file.DamagedEntryError):
            entry_file.decode(KEY, "kernel", content[:length])
    with pytest.raises(entry_file.DamagedEntryError):
        entry_file.decode(KEY, "kernel", content + b"x")


def test_an_entry_of_another_kind_is_refused(folder):
    content = entry_file.encode(KEY, "kernel", b"code")
    with pytest.raises(entry_file.DamagedEntryError, match="no egraph"):
        entry_file.decode(KEY, "egraph", content)
    DiskStore(folder, "kernel").save(KEY, b"code")
    assert DiskStore(folder, "egraph").load(KEY, bytes) is None
    assert DiskStore(folder, "kernel").load(KEY, bytes) == b"code"


def test_what_is_no_file_is_no_entry(folder):
    store = DiskStore(folder, "kernel")
    (folder / NAME).mkdir()
    assert store.load(KEY, bytes) is None
    (folder / NAME).rmdir()
    os.mkfifo(folder / NAME)
    assert store.load(KEY, bytes) is None
    os.unlink(folder / NAME)
    store.save(KEY, b"code")
    assert store.load(KEY, bytes) == b"code"


def test_least_recently_used_entries_go_first(folder):
    store = EntryDirectory(folder, limit=10_000)
    keys = [f"{number:064x}" for number in range(12)]
    for age, key in enumerate(keys[:9]):
        store.write(f"{key}.kernel", bytes(1000))
        os.utime(folder / f"{key}.kernel", (1000 + age, 1000 + age))
    assert store.read(f"{keys[0]}.kernel") is not None
    for key in keys[9:]:
        store.write(f"{key}.kernel", bytes(1000))
    kept = [key for key in keys if (folder / f"{key}.kernel").exists()]
    assert keys[0] in kept
    assert keys[1] not in kept
    assert set(keys[9:]) <= set(kept)
    assert sum(file.size for file in store.entries()) <= 10_000


def test_leftovers_of_killed_writers_are_removed(folder):
    store = EntryDirectory(folder, limit=10_000)
    for name, age in (("old.partial", 7200), ("new.partial", 10), ("other.txt", 7200)):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (time.time() - age,) * 2)
    store.evict()
    assert sorted(path.name for path in folder.iterdir()) == ["new.partial", "other.txt"]
    assert store.entries() == []


def in_processes(count: int, target, *arguments) -> list[multiprocessing.Process]:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=target, args=(number, *arguments)) for number in range(count)]
    with warnings.catch_warnings():
        # The test's own threads are idle; the children only read and write files.
        warnings.simplefilter("ignore", DeprecationWarning)
        for process in processes:
            process.start()
    return processes


def write_forever(number: int, folder: Path) -> None:
    store = EntryDirectory(folder, limit=2**30)
    payload = bytes([number]) * 3_000_000
    while True:
        store.write(NAME, entry_file.encode(KEY, "kernel", payload))


def time_of_writing(folder: Path) -> int:
    """Of the entry; 0 before there is one."""
    path = folder / NAME
    return path.stat().st_mtime_ns if path.exists() else 0


def test_killed_writers_leave_whole_entries(folder):
    store = EntryDirectory(folder, limit=2**30)
    randomness = random.Random(1)
    for _ in range(15):
        before = time_of_writing(folder)
        (process,) = in_processes(1, write_forever, folder)
        while time_of_writing(folder) == before:  # on a busy machine it takes a while to begin
            assert process.is_alive()
            time.sleep(0.001)
        time.sleep(randomness.random() * 0.03)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        content = store.read(NAME)
        assert content is not None
        assert len(entry_file.decode(KEY, "kernel", content)) == 3_000_000
    store.clear()
    assert list(folder.iterdir()) == []


def use_many(number: int, folder: Path) -> None:
    store = EntryDirectory(folder, limit=60_000)
    randomness = random.Random(number)
    for _ in range(150):
        which = randomness.randrange(12)
        key = f"{which:064x}"
        content = store.read(f"{key}.kernel")
        if content is None:
            store.write(f"{key}.kernel", entry_file.encode(key, "kernel", bytes([which]) * 9000))
        elif bytes(entry_file.decode(key, "kernel", content)) != bytes([which]) * 9000:
            os._exit(1)


def test_sixteen_processes_share_a_small_cache(folder):
    processes = in_processes(16, use_many, folder)
    for process in processes:
        process.join(timeout=20)
    assert [process.exitcode for process in processes] == [0] * 16
    assert not list(folder.glob("*.partial"))


def test_missing_parents_are_private_too(tmp_path):
    before = os.umask(0)
    try:
        EntryDirectory(tmp_path / "one" / "two" / "three", 1000)
    finally:
        os.umask(before)
    for path in (tmp_path / "one", tmp_path / "one" / "two", tmp_path / "one" / "two" / "three"):
        assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "begin", [entry_file.encode(KEY, "kernel", b"code"), b"\0" * 96], ids=["entry", "zeros"]
)
def test_a_file_of_another_size_is_not_read(folder, begin):
    store = DiskStore(folder, "kernel")
    with open(folder / NAME, "wb") as file:
        file.write(begin)
        file.truncate(1 << 40)  # a hole: there is no memory for what it would be read to
    (folder / NAME).chmod(0o600)
    with pytest.warns(Warning, match="will be made again"):
        assert store.load(KEY, bytes) is None
    assert not (folder / NAME).exists()


def test_shipped_entries_stand_in_for_missing_ones(tmp_path, folder):
    shipped = tmp_path / "shipped"
    DiskStore(shipped, "rules").save(KEY, b"shipped")
    for path in (folder, None):
        store = DiskStore(path, "rules", shipped=shipped)
        assert store.load(KEY, bytes) == b"shipped"
        assert store.load("cd" * 32, bytes) is None
    store = DiskStore(folder, "rules", shipped=shipped)
    store.save(KEY, b"own")
    assert store.load(KEY, bytes) == b"own"
    assert DiskStore(shipped, "rules").load(KEY, bytes) == b"shipped"
    (shipped / f"{KEY}.rules").write_bytes(b"damaged")
    store.clear()
    with pytest.warns(CacheWarning, match="shipped"):
        assert store.load(KEY, bytes) is None
    assert (shipped / f"{KEY}.rules").exists()


def test_an_unusable_directory_is_told_of_once_a_process(tmp_path):
    """However many kinds of entries there are, and however many of each."""
    taken = tmp_path / "of all"
    taken.mkdir()
    taken.chmod(0o777)
    with pytest.warns(CacheWarning, match="kept in memory only") as told:
        stores = [DiskStore(taken, kind) for kind in KINDS]
    for store in stores:
        store.save(KEY, b"content")
        assert store.load(KEY, bytes) is None
    assert len(told) == 1


def test_a_full_disk_is_told_of_once_a_process(folder, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device", "a temporary file")

    monkeypatch.setattr(EntryDirectory, "write", full)
    stores = [DiskStore(folder, kind) for kind in KINDS]
    with pytest.warns(CacheWarning, match="nothing can be stored in .*: No space left on device"):
        stores[0].save(KEY, b"content")
    for store in stores:  # a warning is an error here
        for key in (KEY, KEY[::-1]):
            store.save(key, b"content")
