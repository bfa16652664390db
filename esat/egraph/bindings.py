"""egglog's native module without egglog's Python package.

``import egglog`` takes over 100 ms, most of it for notebooks and pretty printing. The native module
alone loads in about 10 ms. It is loaded from its file, under its own name, and left out of
``sys.modules``, so that a user's own ``import egglog``, before or after, finds nothing changed
(the native module is one object however often it is loaded).
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

from esat.errors import SaturationError

_NAME = "egglog.bindings"
_lock = threading.Lock()
_loaded: list[ModuleType] = []


def native_module() -> ModuleType:
    """The native module of egglog, loaded on the first call.

    Raises
    ------
    SaturationError
        When egglog is not installed or has no native module for this Python.
    """
    with _lock:
        if not _loaded:
            _loaded.append(sys.modules.get(_NAME) or _load())
        return _loaded[0]


def native_module_file() -> Path:
    """Where the native module of egglog is, without loading it. Raises as :func:`native_module`."""
    return Path(str(_spec().origin))


def _spec() -> importlib.machinery.ModuleSpec:
    package = importlib.util.find_spec("egglog")
    locations = list(package.submodule_search_locations or ()) if package is not None else []
    spec = importlib.machinery.PathFinder.find_spec(_NAME, locations)
    if spec is None or spec.loader is None:
        raise SaturationError("egglog (>=13.2,<14) is not installed for this Python")
    return spec


def _load() -> ModuleType:
    spec = _spec()
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    package_module = sys.modules.get("egglog")
    if package_module is None:
        # Loading registered it. A later import of the package must load it itself, to become its parent.
        sys.modules.pop(_NAME, None)
    elif not hasattr(package_module, "bindings"):
        package_module.bindings = module  # type: ignore[attr-defined]
    return module
