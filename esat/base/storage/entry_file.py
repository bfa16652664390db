"""The file format of one entry.

::

    offset  size  content
         0     8  magic, with the number of the format
         8    16  kind of the entry, padded with zeros
        24    32  key (sha256 of all that the content depends on)
        56    32  sha256 of the payload
        88     8  length of the payload, little endian
        96     n  payload

The key inside the file guards against entries copied under another name, the length against
truncation and the digest against damage. Nothing of the payload is read before all of them agree.
"""

from __future__ import annotations

import hashlib
import struct

MAGIC = b"esatENT2"
_HEADER = struct.Struct("<8s16s32s32sQ")


HEADER_SIZE = _HEADER.size


class DamagedEntryError(Exception):
    """The bytes are not an undamaged entry for the wanted key; the message says why."""


def encode(key: str, kind: str, payload: bytes) -> bytes:
    """The file content that stores ``payload`` under ``key`` (64 hexadecimal digits)."""
    digest = hashlib.sha256(payload).digest()
    return _HEADER.pack(MAGIC, _padded(kind), bytes.fromhex(key), digest, len(payload)) + payload


def _padded(kind: str) -> bytes:
    return kind.encode("ascii").ljust(16, b"\0")


def check_size(begin: bytes, size: int) -> None:
    """Raise DamagedEntryError unless a file of this size that begins so can be an entry."""
    if len(begin) < HEADER_SIZE:
        raise DamagedEntryError("truncated header")
    magic, _, _, _, length = _HEADER.unpack_from(begin)
    if magic != MAGIC:
        raise DamagedEntryError("no entry of this format")
    if size - HEADER_SIZE != length:
        raise DamagedEntryError(f"{size - HEADER_SIZE} bytes of payload, not {length}")


def decode(key: str, kind: str, content: bytes) -> memoryview:
    """The payload stored in ``content``.

    Raises
    ------
    DamagedEntryError
        When the content is truncated, changed, of another format, kind or key.
    """
    if len(content) < _HEADER.size:
        raise DamagedEntryError("truncated header")
    magic, stored_kind, stored_key, digest, length = _HEADER.unpack_from(content)
    if magic != MAGIC or stored_kind != _padded(kind):
        raise DamagedEntryError(f"no {kind} of this format")
    if stored_key != bytes.fromhex(key):
        raise DamagedEntryError("made for another key")
    payload = memoryview(content)[_HEADER.size :]
    if len(payload) != length:
        raise DamagedEntryError(f"{len(payload)} bytes of payload, not {length}")
    if hashlib.sha256(payload).digest() != digest:
        raise DamagedEntryError("checksum mismatch")
    return payload
