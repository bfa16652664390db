"""The folder for a machine without network: what is in it, and that it runs where it is unpacked."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from tools import gpu_carry

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def run(folder: Path, where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ESAT_GPU_FOLDER": str(where)}
    command = [sys.executable, str(folder / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_what_is_carried_runs_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "carried"
    folder.mkdir()
    gpu_carry.pack_sources(folder / "esat.tar.gz")
    with tarfile.open(folder / "esat.tar.gz") as archive:
        names = set(archive.getnames())
    assert {"esat/__init__.py", "benchmarks/gpu.py", "tests/gpu/conftest.py", "tools/gpu_check.py"} <= names
    assert not any(name.startswith(gpu_carry.UNUSED) for name in names)
    (folder / "run.py").write_text((gpu_carry.ROOT / "tools" / "gpu_run.py").read_text())

    refused = run(folder, tmp_path / "there", "python", "-V")
    assert refused.returncode == 2
    assert f"no packages for Python {VERSION}" in refused.stdout

    (tmp_path / "carried_package.py").write_text("ANSWER = 42\n")
    with tarfile.open(folder / f"packages-{VERSION}.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "carried_package.py", "carried_package.py")
    code = "import carried_package, tools.gpu_check as c; print(carried_package.ANSWER, c.ROOT)"
    told = run(folder, tmp_path / "there", "python", "-c", code)
    assert told.stdout.split() == ["42", str(tmp_path / "there" / "sources")], told.stderr
    assert run(folder, tmp_path / "there", "python", "-c", "raise SystemExit(7)").returncode == 7


def test_only_what_there_is_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text((gpu_carry.ROOT / "tools" / "gpu_run.py").read_text())
    told = run(tmp_path, tmp_path, "bench")
    assert told.returncode == 2
    assert "run.py benchmark" in told.stdout
