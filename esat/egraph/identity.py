"""What an e-graph's content depends on, as digests: keys for what is kept on disk."""

from __future__ import annotations

import functools
from pathlib import Path

from esat.egraph.bindings import native_module_file
from esat.egraph.signature import Signature
from esat.rules.database import PACKAGE_RULES, RuleSelection
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
    """Stands for everything that an engine may hold before the terms of a graph.

    Rules count by their text, whatever file it stands in. Of the file it only matters whether it is the
    user's: then rules without end are warned of.
    """
    parts = [code_digest(), repr(strict), repr(list(signature.values()))]
    for file in selection.files:
        parts.append(repr(file.file.startswith(str(PACKAGE_RULES))))
        parts += [form.source for form in file.declarations]
        for rule in file.rules:
            parts += [rule.name, rule.ruleset, rule.soundness, rule.kind, rule.source]
    return digest_of(parts)
