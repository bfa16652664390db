"""Runs esat from the folder that ``tools/gpu_carry.py`` filled; needs Python's own library only.

    python3 run.py check [OPTIONS]        # tools/gpu_check.py
    python3 run.py benchmark [OPTIONS]    # benchmarks/gpu.py; results stay where it is unpacked
    python3 run.py python [OPTIONS]       # Python with esat on its path

Files are unpacked below ``/tmp/esat-gpu`` (or ``ESAT_GPU_FOLDER``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("ESAT_GPU_FOLDER", "/tmp/esat-gpu"))


def main() -> int:
    """Unpack, and run what is asked for."""
    if len(sys.argv) < 2 or sys.argv[1] not in ("check", "benchmark", "python"):
        print(__doc__)
        return 2
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages, sources = FOLDER / "packages", FOLDER / "sources"
    carried = HERE / f"packages-{python}.tar.xz"
    if not carried.exists():
        print(f"{HERE} has no packages for Python {python}")
        return 2
    _unpack(carried, packages)
    _unpack(HERE / "esat.tar.gz", sources)
    paths = [str(sources), str(sources / "tests"), str(packages), os.environ.get("PYTHONPATH", "")]
    environment = {
        "ESAT_CACHE_DIR": str(FOLDER / "cache"),
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    what, options = sys.argv[1], sys.argv[2:]
    modules = {"check": ["-m", "tools.gpu_check"], "benchmark": ["-m", "benchmarks.gpu"], "python": []}
    command = [sys.executable, *modules[what], *options]
    return subprocess.run(command, cwd=sources, env=environment, check=False).returncode


def _unpack(archive: Path, folder: Path) -> None:
    stamp = folder / ".unpacked"
    current = str(archive.stat().st_mtime_ns)
    if stamp.exists() and stamp.read_text() == current:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    stamp.write_text(current)


if __name__ == "__main__":
    sys.exit(main())
