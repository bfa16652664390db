"""The target that this process runs on, and where what was measured of it is kept."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from llvmlite import binding

from esat.base.storage import write_whole
from esat.codegen.ground.target import Caches, Target, TuningNumbers, enabled
from esat.extract.prices.machine import profile_path

_FORMAT = 1


@functools.cache
def host_target() -> Target:
    """The target that this process runs on, as numba sees it, with the numbers that were measured for it."""
    target = untuned_host()
    stored = stored_tuning(target)
    return target if stored is None else replace(target, tuning=stored)


def untuned_host() -> Target:
    """The same with numbers that follow from the instruction set and the caches."""
    from numba.core.registry import cpu_target  # which those do without who compile nothing

    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return Target.of(str(triple), str(features), str(cpu), host_caches())


@functools.cache
def runs_here(target: Target) -> bool:
    """Whether this process can run code for a target."""
    host = host_target()
    return (
        target.triple == host.triple
        and target.cpu in ("", host.cpu)
        and enabled(target.features) <= enabled(host.features)
    )


def target_of(context: Any) -> Target:
    """The target of the code that numba writes through one of its contexts.

    What numba compiles by itself is for the machine that it runs on.
    """
    return library_target(context.active_code_library)


def library_target(library: Any) -> Target:
    """The target of one of numba's libraries."""
    for owner in (library, library.codegen):
        found = getattr(owner, "target", None)
        if isinstance(found, Target):
            return found
    return host_target()


def host_has(features: Iterable[str]) -> bool:
    """Whether this process runs on an instruction set with all of these features."""
    has = binding.get_host_cpu_features()
    return all(has.get(one) for one in features)


def host_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches:
    """The caches that Linux tells of in a folder; those of a common server for what it does not."""
    found: dict[int, int] = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                found[int(level)] = _bytes(size)
        except (OSError, ValueError):
            continue
    default = Caches()
    return Caches(
        found.get(1, default.level1),
        found.get(2, default.level2),
        found.get(max(found, default=0), default.last),
    )


def _bytes(text: str) -> int:
    """The number that ``32K`` or ``4M`` stands for."""
    units = {"K": 10, "M": 20, "G": 30}
    number = int(text[:-1]) << units[text[-1]] if text[-1:] in units else int(text)
    if number <= 0:
        raise ValueError(text)
    return number


def tuning_path() -> Path:
    """Where the numbers for this machine are stored."""
    return profile_path().with_suffix(".tuning.json")


def stored_tuning(target: Target) -> TuningNumbers | None:
    """The numbers that were measured on a machine like the target; None where there are none to be read.

    Numbers that no measurement knew yet are the target's own.
    """
    try:
        stored = json.loads(tuning_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
        return None
    if stored.get("machine") != _machine(target):
        return None
    numbers, own = stored.get("tuning"), asdict(target.tuning)
    if not isinstance(numbers, dict):
        return None
    known = {name: value for name, value in numbers.items() if name in own}
    if any(type(value) is not type(own[name]) or value < 0 for name, value in known.items()):
        return None
    return TuningNumbers(**{**own, **known})


def store_tuning(target: Target) -> Path:
    """Keep a target's numbers for later processes on machines like it.

    Raises
    ------
    OSError
        When they cannot be written.
    """
    path = tuning_path()
    stored = {"format": _FORMAT, "machine": _machine(target), "tuning": asdict(target.tuning)}
    write_whole(path, json.dumps(stored, indent=1))
    host_target.cache_clear()
    return path


def _machine(target: Target) -> str:
    """What a machine is told by."""
    return f"{target.triple} {target.cpu} {target.features} {asdict(target.caches)}"
