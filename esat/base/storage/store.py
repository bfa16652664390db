"""Entries of one kind, by key. Whatever the disk does, a store answers, and never wrongly."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import platformdirs

from esat.base.interrupts import raise_from_outside
from esat.base.storage import entry_file as entry_format
from esat.base.storage.directory import EntryDirectory, StoredFile, UnusableDirectoryError
from esat.errors import EsatWarning

DIRECTORY_VARIABLE = "ESAT_CACHE_DIR"
"""Environment variable that names the cache directory."""

SHIPPED = Path(__file__).resolve().parents[2] / "shipped"
"""The entries that a wheel brings, where ``make wheel`` made it: read, never written."""

DEFAULT_LIMIT = 512 * 2**20
"""Bytes on disk, of entries of all kinds together."""

Content = TypeVar("Content")


class CacheWarning(EsatWarning):
    """The disk cache is damaged or unusable; what it should have held is made again instead."""


class DiskStore:
    """Checked entries on disk; safe for use by several threads and several processes.

    Parameters
    ----------
    path
        An absolute directory, or None to keep nothing. A directory that cannot be used safely gives a
        :class:`CacheWarning` and a store that keeps nothing.
    kind
        What the entries are: a short word, the ending of their files.
    limit
        Bytes that the entries of all kinds may take on disk.
    shipped
        Another directory, whose entries are taken where the first has none.
    """

    def __init__(
        self, path: Path | None, kind: str, limit: int = DEFAULT_LIMIT, shipped: Path | None = None
    ) -> None:
        self.kind = kind
        self._shipped = shipped
        self._directory: EntryDirectory | None = None
        if path is not None:
            try:
                self._directory = EntryDirectory(path, limit)
            except UnusableDirectoryError as error:
                _warn_once(f"what is compiled is kept in memory only: {error}")

    @property
    def path(self) -> Path | None:
        """The directory; None where nothing is kept."""
        return None if self._directory is None else self._directory.path

    def load(self, key: str, read: Callable[[memoryview], Content]) -> Content | None:
        """What ``read`` makes of the entry ``key``; None where there is no sound entry.

        A damaged entry, or one that ``read`` refuses with any exception, is removed with a
        :class:`CacheWarning`. ``read`` sees bytes only that were written whole under this key.
        """
        if self._directory is None:
            return self._load_shipped(key, read)
        try:
            content = self._directory.read(self._name(key), entry_format.check_size)
            if content is None:
                return self._load_shipped(key, read)
            return read(entry_format.decode(key, self.kind, content))
        except Exception as error:  # whole entries can still name what this installation lacks
            raise_from_outside(error)
            self._warn(f"entry {key[:16]} cannot be loaded and will be made again: {error}")
            self._directory.remove(self._name(key))
            return None

    def _load_shipped(self, key: str, read: Callable[[memoryview], Content]) -> Content | None:
        if self._shipped is None:
            return None
        try:
            content = (self._shipped / self._name(key)).read_bytes()
        except OSError as error:
            raise_from_outside(error)
            return None
        try:
            return read(entry_format.decode(key, self.kind, content))
        except Exception as error:
            raise_from_outside(error)
            self._warn(f"shipped entry {key[:16]} cannot be loaded: {error}")
            return None

    def save(self, key: str, payload: bytes) -> None:
        """Keep ``payload`` under ``key`` if the disk allows it; a :class:`CacheWarning` tells the first time
        that it does not."""
        if self._directory is None:
            return
        try:
            self._directory.write(self._name(key), entry_format.encode(key, self.kind, payload))
        except OSError as error:
            raise_from_outside(error)
            _warn_once(f"nothing can be stored in {self._directory.path}: {error.strerror or error}")

    def files(self) -> list[StoredFile]:
        """The files of the entries of this kind, in no order."""
        files = [] if self._directory is None else self._directory.entries()
        return [file for file in files if file.path.endswith(f".{self.kind}")]

    def clear(self) -> None:
        """Delete the entries of all kinds."""
        if self._directory is not None:
            self._directory.clear()

    def _name(self, key: str) -> str:
        return f"{key}.{self.kind}"

    def _warn(self, message: str) -> None:
        warnings.warn(f"{self.kind} cache: {message}", CacheWarning, stacklevel=4)


_told: set[str] = set()


def _warn_once(message: str) -> None:
    """Say of a directory what would be said of each kind of entries, and of each entry, otherwise."""
    if message not in _told:
        _told.add(message)
        warnings.warn(f"cache: {message}", CacheWarning, stacklevel=4)


def default_directory() -> Path:
    """ESAT_CACHE_DIR if it is set, else the user's cache directory of the platform."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_cache_dir("esat", appauthor=False))
