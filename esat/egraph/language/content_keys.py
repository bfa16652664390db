"""What an e-graph's content depends on, as digests: keys for what is kept on disk."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from esat.base.storage import digest_of, digest_of_sources
from esat.egraph.bindings import native_module_file
from esat.egraph.language.signature import Signature
from esat.rules.language.rule_selection import RuleSelection

_ROOMS = ("engine", "egraph", "extract", "rules", "graph", "ops")
"""Packages whose code decides what a saturated e-graph, read out, looks like."""


@functools.cache
def _sources() -> str:
    package = Path(__file__).resolve().parents[2]
    return digest_of(digest_of_sources(package / room) for room in _ROOMS)


@functools.cache
def code_digest() -> str:
    """Stands for the code of this process: esat's own, and the build of egglog."""
    return digest_of([_sources(), *_engine()])


def _engine_version() -> list[str]:
    """Stands for the release of egglog on all platforms; for its build where it is no release."""
    module = native_module_file()
    names = [folder.name for folder in module.parent.parent.glob("egglog-*.dist-info")]
    return names if len(names) == 1 else _engine()


def _engine() -> list[str]:
    """Stands for the build of egglog, wherever and whenever it was installed.

    What was installed as a package has a record beside it with the checksum of each file; hashing the module,
    of two hundred megabytes, takes as long as several warm starts.
    """
    module = native_module_file()
    begin = f"{module.parent.name}/{module.name},sha256="
    for record in module.parent.parent.glob("egglog-*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            if line.startswith(begin):
                return [line.removeprefix(begin)]
    return [hashlib.sha256(module.read_bytes()).hexdigest()]


def program_digest(selection: RuleSelection, signature: Signature, strict: bool, engine: str) -> str:
    """Stands for everything that an engine may hold before the terms of a graph."""
    return digest_of([code_digest(), engine, *_texts(selection, signature, strict)])


def rules_digest(selection: RuleSelection, signature: Signature, strict: bool) -> str:
    """Stands for everything that compiled rules depend on, whatever the platform: a wheel brings some."""
    return digest_of([_sources(), *_engine_version(), *_texts(selection, signature, strict)])


def _texts(selection: RuleSelection, signature: Signature, strict: bool) -> list[str]:
    return [repr(strict), repr(list(signature.values())), selection.digest]
