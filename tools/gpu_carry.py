"""Packs esat for a machine that has a CUDA device and no network.

    python tools/gpu_carry.py                    # here: fills the folder .gpu-carry, a few megabytes
    python3 .gpu-carry/run.py check              # there: everything on the device against NumPy
    python3 .gpu-carry/run.py benchmark          # there: times beside cupy, JAX and torch
    python3 .gpu-carry/run.py python -c '...'    # there: anything else

Carried are esat's files as they are in the work tree, and the packages that images for such machines lack:
egglog (its native part, stripped: esat uses nothing else of it) and platformdirs. NumPy, SciPy, numba,
numba-cuda and cupy are expected there; pytest for the check; JAX and torch where they are to
be compared.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("esat", "benchmarks", "tests", "tools", "pyproject.toml")
UNUSED = ("benchmarks/results/",)
CARRIED = ("egglog", "platformdirs")
PLATFORMS = ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64")


def main() -> int:
    """Fill the folder."""
    parser = argparse.ArgumentParser(prog="gpu_carry", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / ".gpu-carry")
    parser.add_argument("--python", default="3.12", help="version of Python on the other machine")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    pack_sources(options.folder / "esat.tar.gz")
    pack_packages(options.folder / f"packages-{options.python}.tar.xz", options.python)
    shutil.copy(ROOT / "tools" / "gpu_run.py", options.folder / "run.py")
    size = sum(path.stat().st_size for path in options.folder.glob("*") if path.is_file())
    print(f"{options.folder}: {size / 1e6:.1f} MB")
    return 0


def pack_sources(target: Path) -> None:
    """Files that git knows or would take up, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for name in listed:
            if name and not name.startswith(UNUSED) and (ROOT / name).exists():
                archive.add(ROOT / name, name)


def pack_packages(target: Path, python: str) -> None:
    """The packages that machines with a device may lack, for a version of Python; asks the package index."""
    with tempfile.TemporaryDirectory() as folder:
        wheels, packages = Path(folder, "wheels"), Path(folder, "packages")
        wanted = [f"{name}=={version(name)}" for name in CARRIED]
        platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--implementation", "cp", "--python-version", python, *platforms,
             "--dest", str(wheels), *wanted],
            check=True,
        )  # fmt: skip
        for wheel in wheels.iterdir():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(packages)
        for library in (packages / "egglog").glob("*.so"):
            subprocess.run(["strip", str(library)], check=True)
        with tarfile.open(target, "w:xz") as archive:
            for path in sorted(packages.rglob("*")):
                if path.is_file() and not (
                    path.match("egglog/**") and path.parent.name in ("examples", "exp")
                ):
                    archive.add(path, str(path.relative_to(packages)))


if __name__ == "__main__":
    sys.exit(main())
