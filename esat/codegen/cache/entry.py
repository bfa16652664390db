"""The file format of one cached kernel.

::

    offset  size  content
         0     8  magic, with the number of the format
         8    32  key of the kernel (sha256)
        40    32  sha256 of the payload
        72     8  length of the payload, little endian
        80     n  payload

The key inside the file guards against entries copied under another name, the length against
truncation and the digest against damage. Nothing is unpickled before all three agree.
"""

from __future__ import annotations

import hashlib
import struct

MAGIC = b"esatKRN1"
_HEADER = struct.Struct("<8s32s32sQ")


class DamagedEntryError(Exception):
    """The bytes are not an undamaged entry for the wanted key; the message says why."""


def encode(key: str, payload: bytes) -> bytes:
    """The file content that stores ``payload`` under ``key`` (64 hexadecimal digits)."""
    digest = hashlib.sha256(payload).digest()
    return _HEADER.pack(MAGIC, bytes.fromhex(key), digest, len(payload)) + payload


def decode(key: str, content: bytes) -> memoryview:
    """The payload stored in ``content``.

    Raises
    ------
    DamagedEntryError
        When the content is truncated, changed, of another format or of another key.
    """
    if len(content) < _HEADER.size:
        raise DamagedEntryError("truncated header")
    magic, stored_key, digest, length = _HEADER.unpack_from(content)
    if magic != MAGIC:
        raise DamagedEntryError("not a kernel of this format")
    if stored_key != bytes.fromhex(key):
        raise DamagedEntryError("made for another key")
    payload = memoryview(content)[_HEADER.size :]
    if len(payload) != length:
        raise DamagedEntryError(f"{len(payload)} bytes of payload, not {length}")
    if hashlib.sha256(payload).digest() != digest:
        raise DamagedEntryError("checksum mismatch")
    return payload
