"""Cache directories of processes that tests start."""

import shutil
from pathlib import Path

from esat.base.storage import DiskStore, default_directory


def with_rules(folder: Path) -> Path:
    """The folder, with what this process's own cache has of compiled rules and of the compiler's own loops.

    A process that finds neither spends five seconds on them before it compiles anything.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("rules", "native"):
        for file in DiskStore(default_directory(), kind).files():
            shutil.copy(file.path, folder)
    return folder
