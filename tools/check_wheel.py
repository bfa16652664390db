"""Build sdist and wheel, install the wheel in an empty environment, and use it: ``make wheel-check``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED = ("esat/py.typed", "esat/rules/algebra.egg", "esat/tools/drawing/assets/page.js", "licenses/LICENSE")
PROGRAM = """
import time
begin = time.perf_counter()
import esat, numpy as np
imported = time.perf_counter()
@esat.jit
def f(x):
    return np.log(np.exp(x).sum())
assert abs(f(np.full(2, 1000.0)) - 1000.0 - np.log(2.0)) < 1e-9
print(f"  import {imported - begin:.2f} s, first result {time.perf_counter() - imported:.2f} s")
"""


def run(*command: str, folder: Path, **environment: str) -> None:
    """Run a command that must succeed, and say how long it took."""
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=True)
    print(f"{' '.join(command[1:4])}: {time.perf_counter() - begin:.1f} s", flush=True)


def main() -> None:
    """Build, look into the wheel, install and use it."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(*pip, "install", "--target", str(folder / "tools"), "build", folder=ROOT)
        building = {"PYTHONPATH": str(folder / "tools")}
        run(sys.executable, "-m", "build", "--outdir", str(folder / "dist"), folder=ROOT, **building)
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        names = zipfile.ZipFile(wheel).namelist()
        missing = [name for name in WANTED if not any(one.endswith(name) for one in names)]
        if missing:
            sys.exit(f"the wheel has no {', '.join(missing)}")
        print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.2f} MiB, {len(names)} files; {sdist.name}")
        venv.create(folder / "empty", with_pip=True)
        python = str(folder / "empty" / "bin" / "python")
        own = {"ESAT_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": ""}
        run(
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            str(wheel),
            folder=folder,
            **own,
        )
        run(python, "-m", "esat", "--version", folder=folder, **own)
        for _ in ("cold", "warm"):
            run(python, "-c", PROGRAM, folder=folder, **own)
        run(python, "-m", "esat", "doctor", folder=folder, **own)


if __name__ == "__main__":
    main()
