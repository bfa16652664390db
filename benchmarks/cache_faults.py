"""Faults of the disk cache: whatever happens to it, no wrong result and no crash.

Run ``python -m benchmarks.cache_faults --rounds 1000``. Each round does one kind of harm to a cache directory
that holds kernels and e-graphs, then a fresh process takes all from it, runs it, and compares. The harm
is real: writers killed by SIGKILL, files cut and flipped on disk, disks that end a write in the middle.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numba.core import types

import esat
from esat.base.storage import DiskStore
from esat.codegen.cache import CacheWarning, KernelCache
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.extract.kept_graphs import KeptGraphs
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

ARRAY = types.float64[::1]
SIGNATURE = types.void(ARRAY, ARRAY)
SOURCE = "def kernel(out, x):\n    for i in range(out.size):\n        out[i] = x[i] * {factor!r}\n"
FACTORS = (2.0, 3.0, 5.0)
TERMS = (2, 5)
WRITERS = 16
NOBODY = 65534
WRONG, STOPPED = 3, 4
"""Exit codes of a process that found a wrong result, and of one that an exception reached."""


def kernel_is_right(cache: KernelCache, factor: float) -> bool:
    """Take a kernel from the cache, or compile it, and run it."""
    kernel = cache.load_or_compile(SOURCE.format(factor=factor), "kernel", SIGNATURE, {})
    x, out = np.arange(100.0), np.empty(100)
    kernel.function(out, x)
    return bool(np.array_equal(out, x * factor))


def found_egraph(graphs: KeptGraphs | None, terms: int) -> tuple[int, ...]:
    """What tells an e-graph, taken from the cache or saturated, from others."""
    inputs = [esat.vector(f"x{number}") for number in range(terms)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = esat.exp(total) + variable
    graph = esat.Graph(inputs, [total]).function_graph()
    program = program_for(RULES.query(Query(include=("canonicalize",))))
    found, _ = saturated(encode(graph), program, Budgets(), kept=graphs)
    arrays = found.arrays
    return (*arrays.operator.tolist(), *arrays.operands.tolist(), *arrays.class_start.tolist())


@dataclass
class Harness:
    """A sound cache directory, and what must come out of every harmed copy of it."""

    folder: Path
    sound: dict[str, bytes] = field(default_factory=dict)
    egraphs: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cache, graphs = KernelCache(self.folder), KeptGraphs(DiskStore(self.folder, "egraph"))
        for factor in FACTORS:
            assert kernel_is_right(cache, factor)
        for terms in TERMS:
            self.egraphs[terms] = found_egraph(graphs, terms)
        self.sound = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        assert len(self.sound) == len(FACTORS) + len(TERMS)

    def restore(self) -> None:
        """Make the directory sound again."""
        shutil.rmtree(self.folder)
        self.folder.mkdir(mode=0o700)
        for name, content in self.sound.items():
            path = self.folder / name
            path.touch(mode=0o600)
            path.write_bytes(content)

    def use(self, folder: Path | None = None) -> None:
        """Take everything from the directory as a fresh process does; exits with :data:`WRONG` if it is."""
        chosen = self.folder if folder is None else folder
        cache, graphs = KernelCache(chosen), KeptGraphs(DiskStore(chosen, "egraph"))
        kernels = {factor: kernel_is_right(cache, factor) for factor in FACTORS}
        egraphs = {terms: found_egraph(graphs, terms) for terms in TERMS}
        if not all(kernels.values()) or egraphs != self.egraphs:
            os._exit(WRONG)

    def write(self, store: DiskStore, name: str) -> None:
        """Write one entry as esat does."""
        store.save(name.partition(".")[0], self.sound[name][96:])


def in_process(work: Callable[[], None]) -> int:
    """Start ``work`` in a process of its own; its number."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = STOPPED
        try:
            # The warnings are what is wanted here; that nothing else happens is what is measured.
            warnings.simplefilter("ignore", CacheWarning)
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Exit code of a process; negative for the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Faults:
    """The kinds of harm. Each leaves the directory as it may be found after the fault."""

    def __init__(self, harness: Harness, chance: random.Random) -> None:
        self.harness = harness
        self.chance = chance

    def killed_writers(self) -> list[int]:
        """Writers that SIGKILL ends at any moment."""
        harness = self.harness

        def write() -> None:
            while True:
                for name in harness.sound:
                    harness.write(DiskStore(harness.folder, name.partition(".")[2]), name)

        if self.chance.random() < 0.5:
            self._victim().unlink()
        children = [in_process(write) for _ in range(2)]
        time.sleep(self.chance.random() * 0.01)
        for child in children:
            os.kill(child, signal.SIGKILL)
        return [0 if ended(child) == -signal.SIGKILL else STOPPED for child in children]

    def flipped_bits(self) -> list[int]:
        """Files with a few bits flipped, anywhere."""
        path = self._victim()
        content = bytearray(path.read_bytes())
        for _ in range(self.chance.randint(1, 8)):
            position = self.chance.choice((self.chance.randrange(96), self.chance.randrange(len(content))))
            content[position] ^= 1 << self.chance.randrange(8)
        path.write_bytes(content)
        return []

    def truncation(self) -> list[int]:
        """Files cut off, or followed by what does not belong to them."""
        path = self._victim()
        content = path.read_bytes()
        cut = content[: self.chance.randrange(len(content))]
        path.write_bytes(self.chance.choice((b"", cut, content + b"\0", content + content)))
        return []

    def foreign_content(self) -> list[int]:
        """Files that hold another entry, noise, or are folders and links."""
        path, other = self._victim(), self._victim()
        content = other.read_bytes()
        path.unlink()
        kind = self.chance.randrange(4)
        if kind == 0:
            path.write_bytes(content)
        elif kind == 1:
            path.write_bytes(self.chance.randbytes(len(content)))
        elif kind == 2:
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")
        return []

    def sixteen_writers(self) -> list[int]:
        """Processes that read and write the same entries at once, some of them missing before."""
        for name in self.harness.sound:
            if self.chance.random() < 0.3:
                (self.harness.folder / name).unlink()

        def write() -> None:
            for name in self.harness.sound:
                self.harness.write(DiskStore(self.harness.folder, name.partition(".")[2]), name)
            self.harness.use()

        return [ended(child) for child in [in_process(write) for _ in range(WRITERS)]]

    def full_disk(self) -> list[int]:
        """A disk that takes the first bytes of a file and no more."""
        shutil.rmtree(self.harness.folder)
        self.harness.folder.mkdir(mode=0o700)
        limit = self.chance.randrange(1, 4000)

        def work() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            self.harness.use()

        return [ended(in_process(work))]

    def read_only(self) -> list[int]:
        """A directory that may be read but not written to, with an entry missing and one damaged."""
        self.flipped_bits()
        self._victim().unlink()
        folder = self.harness.folder

        def work() -> None:
            if os.geteuid() == 0:  # to whom no directory is read-only
                os.seteuid(NOBODY)
            self.harness.use()

        if os.geteuid() == 0:
            for path in (folder, *folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        folder.chmod(0o500)
        try:
            return [ended(in_process(work))]
        finally:
            folder.chmod(0o700)
            for path in (folder, *folder.iterdir()):
                os.chown(path, os.geteuid(), os.getegid())

    def _victim(self) -> Path:
        return self.chance.choice(sorted(self.harness.folder.iterdir()))


KINDS = (
    "killed_writers",
    "flipped_bits",
    "truncation",
    "foreign_content",
    "sixteen_writers",
    "full_disk",
    "read_only",
)


def run(rounds: int, seed: int = 0) -> dict[str, Counter[str]]:
    """Rounds of harm in turn; for each kind how many rounds, wrong results and crashes."""
    outcome = {kind: Counter[str]() for kind in KINDS}
    with tempfile.TemporaryDirectory() as parent:
        # Others must be able to pass through: the read-only rounds give the folder to another user.
        os.chmod(parent, 0o711)
        harness = Harness(Path(parent) / "cache")
        for number in range(rounds):
            kind = KINDS[number % len(KINDS)]
            harness.restore()
            codes: list[int] = getattr(Faults(harness, random.Random(f"{seed} {number}")), kind)()
            # Twice: the second time what was damaged has been made again.
            codes += [ended(in_process(harness.use)) for _ in range(2)]
            outcome[kind]["rounds"] += 1
            outcome[kind]["wrong"] += codes.count(WRONG)
            outcome[kind]["crashed"] += sum(code not in (0, WRONG) for code in codes)
    return outcome


def main() -> int:
    """Print the table; 1 where anything was wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    begun = time.perf_counter()
    outcome = run(chosen.rounds, chosen.seed)
    print(f"{'fault':18s} {'rounds':>7s} {'wrong':>7s} {'crashed':>7s}")
    for kind, counts in outcome.items():
        print(f"{kind:18s} {counts['rounds']:7d} {counts['wrong']:7d} {counts['crashed']:7d}")
    total = sum(outcome.values(), Counter())
    print(f"{'all':18s} {total['rounds']:7d} {total['wrong']:7d} {total['crashed']:7d}")
    print(f"{time.perf_counter() - begun:.0f} s")
    return int(total["wrong"] + total["crashed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
