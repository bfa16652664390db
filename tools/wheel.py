"""Makes a wheel that brings what every first process would make: ``python -m tools.wheel [--folder dist]``.

That is compiled rules and the compiler's own loops. They depend on the sources, on the releases of egglog and
LLVM, and, the loops, on the system; their keys say so (:mod:`esat.base.storage`), and where they do not fit
they are made anew, as with the wheel of ``pip wheel .``. The digest of all sources goes with them: an
installed wheel need not read these. A copy of the work tree compiles one small graph, and what that leaves
in an empty cache is packed: the same bytes each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("esat", "pyproject.toml", "README.md", "LICENSE")
SHIPPED_KINDS = ("rules", "native")
PROGRAM = """
import numpy, sys
sys.path.insert(0, ".")
import esat
from esat.base.storage.digests import BUILT, digest_of_sources

x = esat.vector("x")
esat.compile(esat.Graph([x], [esat.exp(x * 2.0).sum()]))(numpy.ones(3))
BUILT.write_text(digest_of_sources(BUILT.parent) + "\\n", encoding="ascii")
"""


def main() -> int:
    """Make the wheel; print its path."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheel", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    print(make_wheel(parser.parse_args().folder))
    return 0


def make_wheel(folder: Path) -> Path:
    """A wheel of the work tree in a folder, with what a first process makes."""
    with tempfile.TemporaryDirectory() as name:
        copy, cache = Path(name) / "esat", Path(name) / "cache"
        copy.mkdir()
        for source in SOURCES:
            if (ROOT / source).is_dir():
                unused = shutil.ignore_patterns("__pycache__", "shipped", "sources.sha256")
                shutil.copytree(ROOT / source, copy / source, ignore=unused)
            else:
                shutil.copy(ROOT / source, copy)
        settings = {"ESAT_CACHE_DIR": str(cache), "ESAT_EGRAPH_CACHE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([sys.executable, "-c", PROGRAM], check=True, cwd=copy, env={**os.environ, **settings})
        shipped = copy / "esat" / "shipped"
        shipped.mkdir()
        for entry in sorted(cache.iterdir()):
            if entry.suffix.removeprefix(".") in SHIPPED_KINDS:
                shutil.copyfile(entry, shipped / entry.name)
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(folder),
            ".",
        ]
        subprocess.run(command, check=True, cwd=copy)
    return max(folder.glob("esat-*.whl"), key=lambda path: path.stat().st_mtime)


if __name__ == "__main__":
    sys.exit(main())
