"""Files that others see as they were or as they are, never in parts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file, in a folder that need not be there, which takes the place of an older one at once.

    Raises
    ------
    OSError
        When it cannot be written; then the older one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
