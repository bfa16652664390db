"""What ``python -m esat`` does when it is asked about the machine, or about the functions of a script."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import esat
from esat.base.storage import default_directory
from esat.errors import EsatError, InputError

if TYPE_CHECKING:
    from esat.runtime import Executable

_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "egglog", "networkx")
_OPTIONAL = ("cupy", "numba_cuda", "jax", "torch")


def doctor() -> tuple[list[str], bool]:
    """What esat finds on this machine, a line each, and whether a program compiles and computes.

    Returns
    -------
    The lines, those of what is wrong starting with ``! ``, and whether all is well.
    """
    lines, good = [], True
    for title, examine in _EXAMINATIONS:
        try:
            text, well = examine(), True
        except Exception as error:
            text, well = f"{type(error).__name__}: {error}", False
        lines.append(f"{'  ' if well else '! '}{title + ':':14}{text}")
        good = good and well
    return lines, good


def _versions() -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)


def _installed() -> str:
    return ", ".join(name for name in _OPTIONAL if importlib.util.find_spec(name) is not None) or "none"


def _processor() -> str:
    from esat.codegen.ground.host import host_target, stored_tuning, untuned_host

    target = host_target()
    sizes = (target.caches.level1, target.caches.level2, target.caches.last)
    caches = "/".join(str(size >> 10) for size in sizes)
    tuned = "" if stored_tuning(untuned_host()) is not None else "; not tuned: python -m esat calibrate"
    name = target.cpu or platform.machine()
    return f"{name}, vectors of {target.vector_bytes} bytes, caches of {caches} KiB{tuned}"


def _threads() -> str:
    from esat.codegen.threads import available_threads, default_threads

    return f"{default_threads()} for kernels, {available_threads()} processors may be used"


def _blas() -> str:
    from esat.codegen.ground.blas_library import load_blas, numpy_core, scipy_core

    load_blas()
    return f"SciPy's, for the core {scipy_core() or 'unknown'} (NumPy's: {numpy_core() or 'unknown'})"


def _profile() -> str:
    from esat.extract.prices.machine import MachineProfile, profile_path

    path = profile_path()
    if not path.exists():
        return "as shipped; python -m esat calibrate measures this machine"
    MachineProfile.from_json(path.read_text(encoding="utf-8"))
    return f"measured, in {path}"


def _cache() -> str:
    folder = default_directory()
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise EsatError(f"{folder} cannot be written to: everything is compiled anew in each process")
    return str(folder)


def _device() -> str:
    if importlib.util.find_spec("cupy") is None:
        return 'none: cupy is not installed (pip install "esat[gpu]")'
    from esat.gpu.device import cuda_device

    device = cuda_device()
    return f"compute capability {'.'.join(map(str, device.compute_capability))}"


def _program() -> str:
    import numpy as np

    begin = time.perf_counter()
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], [esat.log(esat.exp(x).sum())]))
    compiled = time.perf_counter() - begin
    result = function(np.array([1000.0, 1000.0]))
    wanted = 1000.0 + np.log(2.0)
    if not np.isclose(result, wanted):
        raise EsatError(f"log(exp(x).sum()) of two numbers of 1000 is {wanted}, not {result}")
    return f"compiled in {compiled:.2f} s; its result is right"


_EXAMINATIONS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("esat", lambda: f"{esat.__version__}, in {Path(esat.__file__).parent}"),
    ("Python", lambda: f"{platform.python_version()} on {platform.platform()}"),
    ("libraries", _versions),
    ("also here", _installed),
    ("processor", _processor),
    ("threads", _threads),
    ("BLAS", _blas),
    ("cost model", _profile),
    ("cache", _cache),
    ("device", _device),
    ("a program", _program),
)


@contextmanager
def collecting() -> Iterator[list[Executable]]:
    """The functions that are compiled meanwhile, with calls and steps measured."""
    from esat.compilation.pipeline import WATCHERS

    found: list[Executable] = []

    def watch(function: Executable) -> None:
        function.measure()
        found.append(function)

    WATCHERS.append(watch)
    try:
        yield found
    finally:
        WATCHERS.remove(watch)


def report(script: str, arguments: Sequence[str], pages: str | None) -> list[str]:
    """Run a script, and tell of each function that it compiled what was gained, and where calls took time.

    Parameters
    ----------
    script
        Its path; it runs as ``__main__``.
    arguments
        Its ``sys.argv[1:]``.
    pages
        A folder for a page about each function, as :func:`esat.save_html` writes it; none if None.

    Raises
    ------
    InputError
        Where there is no such file.
    SystemExit
        Where the script raises: its traceback is printed as Python prints it.
    """
    path = Path(script)
    if not path.is_file():
        raise InputError(f"report: there is no file {script!r}")
    before = sys.argv, list(sys.path)
    sys.argv, sys.path[0] = [script, *arguments], str(path.resolve().parent)
    try:
        with collecting() as found:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    except Exception as error:
        frames = error.__traceback__
        while (
            frames is not None and frames.tb_frame.f_code.co_filename != script
        ):  # those that run the script
            frames = frames.tb_next
        traceback.print_exception(error.with_traceback(frames or error.__traceback__))
        raise SystemExit(1) from None
    finally:
        sys.argv, sys.path = before
    lines = [f"{len(found)} functions compiled"]
    for number, function in enumerate(found):
        lines += ["", f"{number + 1}. {function.profile.message}", str(function.report)]
        if function.profile.calls:
            lines += [f"  {line}" for line in function.profile.step_lines()]
        if pages is not None:
            lines.append(f"  page: {_page(function, Path(pages), number + 1)}")
    return lines


def _page(function: Any, folder: Path, number: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"function_{number}.html"
    try:
        function.save_html(path)
    except OSError as error:
        raise EsatError(f"report: {path} cannot be written: {error}") from error
    return path
