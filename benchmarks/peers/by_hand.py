"""Contests beside a form by hand: each turn of a contender stands beside one of that form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.peers.cases import Case
from benchmarks.peers.contenders import BASELINES
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.match import Contest, Pairing, Settings
from benchmarks.peers.record import Record, Run, load, save

HAND, GREEDY = BASELINES
ROUNDS, SHORT_ROUNDS = 5, 21
"""Rounds for contenders one call of which takes longer than a turn, and for those with shorter calls."""
CALL = 2e-6
"""Seconds that a call may take besides."""


def measured(
    cases: Sequence[Case],
    programs: Sequence[tuple[Case, int, str]],
    contenders: Sequence[str],
    settings: Settings,
    line: Callable[[Record], str],
    stem: Path | None,
) -> Run:
    """Measure programs, and print a line of each.

    Parameters
    ----------
    cases
        All of the benchmark, in the order in which they are stored.
    programs
        Cases with a size and a dtype.
    settings
        Of the contest, with its pairing.
    stem
        Where the run is stored after each program, in the place of what it measures again; None for nowhere.
    """
    interpreters = {name: interpreter_of(name, {}) for name in contenders}
    for name in [name for name, found in interpreters.items() if found is None]:
        print(f"{name}: left out, no environment has it (make bench-peers)")
    records: list[Record] = []
    with Contest({k: v for k, v in interpreters.items() if v is not None}, 1, settings) as contest:
        limits = contest.limits(sorted({dtype for _, _, dtype in programs}))
        for case, size, dtype in programs:
            records.append(contest.play(case, size, dtype))
            print(line(records[-1]), flush=True)
            run = Run(tuple(records), (limits,), contest.versions)
            if stem is not None:
                save(merged(stem.with_suffix(".json"), run, cases), stem)
    return run


def paired(quick: bool, rounds: int, seconds: float) -> Settings:
    """Settings of a contest; ``rounds`` of ``seconds`` where calls are long, short turns if it is quick."""
    pairing = Pairing(HAND, rounds if quick else SHORT_ROUNDS, CALL)
    return Settings(rounds, 0.005 if quick else seconds, pairing)


def merged(path: Path, run: Run, cases: Sequence[Case]) -> Run:
    """A stored run with the records of a new one in the place of its own."""
    if not path.exists():
        return run
    known = load(path)
    records = {(record.case, record.size, record.dtype): record for record in (*known.records, *run.records)}
    order = {case.name: place for place, case in enumerate(cases)}
    kept = sorted(records.values(), key=lambda record: (order[record.case], record.dtype, record.size))
    return replace(run, records=tuple(kept), versions={**known.versions, **run.versions})
