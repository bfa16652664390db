"""Digests: of texts, for keys of what is kept, and of sources, for the version of code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of(parts: Iterable[str]) -> str:
    """Hexadecimal sha256 that tells sequences of texts apart."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def digest_of_sources(directory: Path) -> str:
    """Hexadecimal sha256 over the names and contents of all Python sources below ``directory``.

    Line endings are normalised, so that a checkout and an installed wheel agree.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*.py"), key=lambda path: path.relative_to(directory).as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(directory).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
