"""What esat keeps on disk between processes: checked entries in one private directory of the user.

``directory`` writes files whole or not at all and evicts the least recently used, ``entry_file`` is the
format that reveals damage, ``store`` puts both together so that no fault of a disk reaches a compilation.
Keys are ``digests``. ``whole`` writes single files, such as profiles of machines.
"""

from esat.base.storage.digests import digest_of, digest_of_sources, package_digest
from esat.base.storage.directory import KINDS, EntryDirectory, StoredFile, UnusableDirectoryError
from esat.base.storage.entry_file import DamagedEntryError
from esat.base.storage.store import (
    DEFAULT_LIMIT,
    DIRECTORY_VARIABLE,
    SHIPPED,
    CacheWarning,
    DiskStore,
    default_directory,
)
from esat.base.storage.whole import write_whole

__all__ = [
    "DEFAULT_LIMIT", "DIRECTORY_VARIABLE", "KINDS", "SHIPPED", "CacheWarning", "DamagedEntryError",
    "DiskStore", "EntryDirectory", "StoredFile", "UnusableDirectoryError", "default_directory", "digest_of",
    "digest_of_sources", "package_digest", "write_whole",
]  # fmt: skip
