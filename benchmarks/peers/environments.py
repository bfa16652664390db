"""Environments of the contenders: where they are, and how they are made.

``python -m benchmarks.peers.environments [NAME ...]`` makes them in ``.peers``, as does
``make bench-peers``. The interpreter of a peer is, in this order: that given by ``--interpreter
NAME=PATH``, the environment variable ``ESAT_BENCH_<NAME>``, ``.peers/NAME``, and the interpreter of the
benchmark itself if it can import the peer's package.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.client import ROOT
from benchmarks.peers.contenders import BASELINES, OURS

FOLDER = ROOT / ".peers"


@dataclass(frozen=True)
class Recipe:
    """How to make an environment.

    Attributes
    ----------
    packages
        What pip installs; what the contender is called comes first.
    python
        The least version of Python.
    optional
        Whether it is left out unless it is asked for by name: it is large.
    """

    packages: tuple[str, ...]
    python: tuple[int, int] = (3, 11)
    optional: bool = False


RECIPES: Mapping[str, Recipe] = {
    "jax": Recipe(("jax", "jaxlib", "numpy")),
    "numexpr": Recipe(("numexpr", "numpy", "scipy")),
    "pymc": Recipe(("pymc", "jax", "egglog", "networkx"), python=(3, 12), optional=True),
    "pytensor": Recipe(("pytensor>=3", "numpy"), python=(3, 12)),
    "sympy": Recipe(("sympy",)),
    "torch": Recipe(("torch", "numpy"), optional=True),
}


def interpreter_of(contender: str, given: Mapping[str, Path]) -> Path | None:
    """The Python that runs a contender; None where it is not installed."""
    if contender in given:
        return given[contender]
    variable = os.environ.get(f"ESAT_BENCH_{contender.upper()}")
    if variable:
        return Path(variable)
    if contender in (OURS, "numpy", *BASELINES):
        return Path(sys.executable)
    made = _python_of(FOLDER / contender)
    if made.exists():
        return made
    return Path(sys.executable) if importlib.util.find_spec(contender) else None


def _python_of(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _base_interpreter(least: tuple[int, int]) -> Path | None:
    """An installed Python of at least this version: this one, one on the path, or one of pyenv's."""
    if sys.version_info[:2] >= least:
        return Path(sys.executable)
    major, minor = least
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [path / "bin" / "python" for path in sorted(kept.glob(f"{major}.*"), reverse=True)]
    candidates += [
        Path(found) for later in range(minor, minor + 4) if (found := shutil.which(f"python{major}.{later}"))
    ]
    for candidate in candidates:
        asked = [str(candidate), "-c", f"import sys; sys.exit(sys.version_info[:2] < {least})"]
        if candidate.exists() and subprocess.run(asked, check=False, capture_output=True).returncode == 0:
            return candidate
    return None


def make(contender: str) -> bool:
    """Make a peer's environment anew; whether there is one now."""
    recipe = RECIPES[contender]
    base = _base_interpreter(recipe.python)
    if base is None:
        needed = ".".join(map(str, recipe.python))
        print(f"{contender}: skipped, it needs Python {needed} and none is installed")
        return False
    environment = FOLDER / contender
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([str(base), "-m", "venv", str(environment)], check=True)
    install = [str(_python_of(environment)), "-m", "pip", "install", "--quiet"]
    done = subprocess.run([*install, "--disable-pip-version-check", *recipe.packages], check=False)
    if done.returncode:
        shutil.rmtree(environment)
        print(f"{contender}: skipped, pip could not install it")
        return False
    print(f"{contender}: {environment.relative_to(ROOT)}")
    return True


def main() -> int:
    """Make the environments asked for, or all that are not optional; the number that failed."""
    asked = sys.argv[1:] or [name for name, recipe in RECIPES.items() if not recipe.optional]
    unknown = [name for name in asked if name not in RECIPES]
    if unknown:
        raise SystemExit(f"no environment for {', '.join(unknown)}; there are {', '.join(RECIPES)}")
    return sum(not make(name) for name in asked)


if __name__ == "__main__":
    sys.exit(main())
