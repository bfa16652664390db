"""The private directory that holds entries: safe to share between processes of one user.

Entries appear whole or not at all, because each is written to a temporary file that is then renamed
over the final name. Nothing is flushed to the device: after a power failure an entry may be
empty or torn, which its checksum reveals; what entries hold can always be made again.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from esat.base.interrupts import raise_from_outside
from esat.base.records import record
from esat.base.storage.entry_file import HEADER_SIZE

KINDS = ("kernel", "egraph", "accuracy", "rules", "choice", "native", "cubin", "program")
"""What entries are; the endings of their files. Other files are left alone."""
_SUFFIXES = tuple(f".{kind}" for kind in KINDS)
_TEMPORARY_SUFFIX = ".partial"
_STALE_AFTER_SECONDS = 3600.0
_EVICTION_TARGET = 0.8
"""Eviction goes below the limit by this factor, so that not every write has to evict."""
_READ_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_FOREIGN_WRITE_BITS = stat.S_IWGRP | stat.S_IWOTH


class UnusableDirectoryError(OSError):
    """The directory cannot be made, or others could plant files in it; the message says which."""


@record(frozen=True)
class StoredFile:
    """One file of the directory, as eviction sees it."""

    path: str
    size: int
    accessed: int
    modified: float


def _is_private(status: os.stat_result) -> bool:
    """Owned by this user and writable by nobody else (always true where users have no numbers)."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _FOREIGN_WRITE_BITS


class EntryDirectory:
    """Reads, writes, counts and evicts the entry files below ``path``.

    Parameters
    ----------
    path
        An absolute path. Missing directories are made with mode 0700, files with 0600.
    limit
        Bytes that all entries together may take; the least recently used go first.

    Raises
    ------
    UnusableDirectoryError
        The path is relative, cannot be made, or belongs to, or is writable by, another user.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.limit = limit
        self._unaccounted = limit
        _make_private(path)

    def read(
        self, name: str, check: Callable[[bytes, int], object] = lambda begin, size: None
    ) -> bytes | None:
        """The content of the entry ``name`` (key and kind), or None; reading counts as an access.

        Files that another user owns or may write to are not read.

        Parameters
        ----------
        name
            Of the entry.
        check
            Told the first bytes and the size before the rest is read; what it raises is raised here.
        """
        path = self._entry_path(name)
        try:
            descriptor = os.open(path, _READ_FLAGS)
        except OSError as error:
            raise_from_outside(error)
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not _is_private(status):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                begin = file.read(HEADER_SIZE)
                check(begin, status.st_size)
                content = begin + file.read()
        except OSError as error:
            raise_from_outside(error)
            return None
        finally:
            os.close(descriptor)
        # Access times are set by hand: most file systems are mounted so that reading does not.
        with contextlib.suppress(OSError):
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        return content

    def write(self, name: str, content: bytes) -> None:
        """Put ``content`` in place as the entry ``name``, at once and whole; then evict if needed.

        Raises
        ------
        OSError
            When the file cannot be written. No partial file is left behind.
        """
        _make_private(self.path)  # it may have been deleted since
        descriptor, temporary = tempfile.mkstemp(prefix=name[:16], suffix=_TEMPORARY_SUFFIX, dir=self.path)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, self._entry_path(name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._unaccounted += len(content)
        if self._unaccounted > self.limit // 16:
            self._unaccounted = 0
            self.evict()

    def remove(self, name: str) -> None:
        """Delete the entry ``name`` if it is there and may be deleted."""
        with contextlib.suppress(OSError):
            os.unlink(self._entry_path(name))

    def entries(self) -> list[StoredFile]:
        """All entry files, in no order."""
        return [file for file in self._files() if file.path.endswith(_SUFFIXES)]

    def evict(self) -> None:
        """Delete the least recently used entries over the limit, and what killed writers left."""
        deadline = time.time() - _STALE_AFTER_SECONDS
        entries = []
        for file in self._files():
            if file.path.endswith(_SUFFIXES):
                entries.append(file)
            elif file.path.endswith(_TEMPORARY_SUFFIX) and file.modified < deadline:
                _unlink_shared(file.path)
        total = sum(entry.size for entry in entries)
        if total <= self.limit:
            return
        for entry in sorted(entries, key=lambda entry: entry.accessed):
            _unlink_shared(entry.path)
            total -= entry.size
            if total <= self.limit * _EVICTION_TARGET:
                return

    def clear(self) -> None:
        """Delete every entry and every temporary file."""
        for file in self._files():
            if file.path.endswith((*_SUFFIXES, _TEMPORARY_SUFFIX)):
                _unlink_shared(file.path)

    def _entry_path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _files(self) -> Iterator[StoredFile]:
        try:
            scan = os.scandir(self.path)
        except FileNotFoundError:
            return
        with scan:
            for item in scan:
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield StoredFile(item.path, status.st_size, status.st_atime_ns, status.st_mtime)


def _unlink_shared(path: str) -> None:
    """Delete a file that another process may delete, or hold open, at the same time."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)


def _make_private(path: Path) -> None:
    if not path.is_absolute():
        raise UnusableDirectoryError(f"{path} is not an absolute path")
    try:
        # One by one: the mode is that of the last one only, and its parents are writable as the umask says.
        for missing in reversed([one for one in (path, *path.parents) if not one.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise UnusableDirectoryError(f"{path} cannot be made or read: {error.strerror}") from error
    if not _is_private(status):
        raise UnusableDirectoryError(f"{path} belongs to, or is writable by, another user")
