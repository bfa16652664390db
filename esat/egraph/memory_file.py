"""Text for egglog to read: it takes the paths of files, and reads one faster than Python can pass it on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_file(text: str) -> Iterator[str]:
    """The path of a file that holds a text, for the length of a block.

    Nothing of it reaches a disk where the system can do without.

    Errors
    ------
    OSError
        Where there is no room for it.
    """
    content = text.encode()
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("esat"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "text")
        path.write_bytes(content)
        yield path.as_posix()
