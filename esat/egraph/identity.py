"""What an e-graph's content depends on, as digests: keys for what is kept on disk."""

from __future__ import annotations

import functools
from pathlib import Path

from esat.egraph.bindings import native_module_file
from esat.egraph.signature import Signature
from esat.rules.database import RuleSelection
from esat.storage import digest_of, digest_of_sources

_ROOMS = ("egraph", "extract", "rules", "graph", "ops")
"""Packages whose code decides what a saturated e-graph, read out, looks like."""


@functools.cache
def code_digest() -> str:
    """Stands for the code of this process: esat's own, and the build of egglog."""
    package = Path(__file__).resolve().parent.parent
    engine = native_module_file()
    status = engine.stat()
    sources = [digest_of_sources(package / room) for room in _ROOMS]
    return digest_of([*sources, str(engine), str(status.st_size), str(status.st_mtime_ns)])


def program_digest(selection: RuleSelection, signature: Signature, strict: bool) -> str:
    """Stands for everything that an engine may hold before the terms of a graph."""
    return digest_of([code_digest(), repr(strict), repr(list(signature.values())), selection.digest])
