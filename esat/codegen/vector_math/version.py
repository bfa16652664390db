"""The version of the vector functions: a digest of the sources that emit them."""

from __future__ import annotations

from pathlib import Path

from esat.storage import digest_of_sources

VERSION = digest_of_sources(Path(__file__).parent)
