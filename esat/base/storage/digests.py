"""Digests: of texts, for keys of what is kept, and of sources, for the version of code."""

from __future__ import annotations

import functools
import hashlib
import os
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


BUILT = Path(__file__).resolve().parents[2] / "sources.sha256"
"""What a wheel brings: the digest of the sources that it was built from."""


@functools.cache
def package_digest() -> str:
    """Hexadecimal sha256 of all sources of this package; an installed wheel is taken as it was built."""
    try:
        return BUILT.read_text(encoding="ascii").strip()
    except OSError:
        return digest_of_sources(BUILT.parent)


def digest_of_sources(directory: Path) -> str:
    """Hexadecimal sha256 over the names and contents of all Python and egglog sources below ``directory``.

    Line endings are normalised, so that a checkout and an installed wheel agree.
    """
    digest = hashlib.sha256()
    # Every process does this: pathlib would take as long again as reading and hashing.
    root = str(directory)
    paths = [os.path.join(folder, file) for folder, _, files in os.walk(root) for file in files]
    start = len(os.path.join(root, ""))
    named = {path[start:].replace(os.sep, "/"): path for path in paths if path.endswith((".py", ".egg"))}
    for name in sorted(named):
        with open(named[name], "rb") as file:
            content = file.read().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
