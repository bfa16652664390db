"""JAX, wherever it is."""

import importlib.util
import sys
from pathlib import Path

_SITE = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
_PEER = Path(__file__).parents[3] / ".peers" / "jax" / _SITE


def find_jax():
    """Whether JAX can be imported; from the environment of the benchmark's peer, if it is not installed.

    That goes behind all other packages, so that nothing else comes from there.
    """
    if importlib.util.find_spec("jax") is None and (_PEER / "jax").is_dir():
        sys.path.append(str(_PEER))
    return importlib.util.find_spec("jax") is not None
