"""Tests of compiled device code, which need numba-cuda and nvdisasm but no device: `make gpu-build-check`."""

import shutil
from importlib.util import find_spec
from pathlib import Path


def _has_disassembler() -> bool:
    folders = getattr(find_spec("nvidia"), "submodule_search_locations", None) or ()
    found = [file for folder in folders for file in Path(folder).glob("cu*/bin/nvdisasm*")]
    return bool(found) or shutil.which("nvdisasm") is not None


collect_ignore_glob = [] if find_spec("numba_cuda") and _has_disassembler() else ["test_*.py"]
