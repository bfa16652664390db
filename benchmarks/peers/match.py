"""Contenders against each other: correctness first, then interleaved rounds."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.peers.cases import Case
from benchmarks.peers.client import Client, ContenderLostError
from benchmarks.peers.contenders import OURS
from benchmarks.peers.model_cases import Model
from benchmarks.peers.record import Limits, Record

TOLERANCE: Mapping[str, float] = {"float64": 1e-10, "float32": 1e-4}
"""Largest error of a result in units of its largest element."""

MOST_CALLS = 20_000
WARMING = 0.1
"""Seconds of calls before any is timed."""
TRIES = 3
"""Turns that tell how many calls a turn shall have."""
FAR = 3.0
"""Times the call of the fastest peer from which a peer is no rival: it only needs few rounds."""
FEW_ROUNDS = 5


@dataclass(frozen=True)
class Pairing:
    """Contenders against one of them, each turn beside a turn of that one.

    What else runs on a machine changes from second to second, and with it all times. Those of two turns that
    follow each other hardly do, and which goes first changes from round to round. So a contender's ratio is
    the median, over the rounds, of its time by the reference's own time beside it. On one thread, times are
    those that the process had the processor, all its threads together: what others take is not counted. The
    form by hand runs in the contender's own process, on the same arrays, if its environment has SciPy: where
    the system puts an array makes up to a tenth of the time that reading it takes.

    Attributes
    ----------
    reference
        The contender to compare with.
    rounds
        Rounds for contenders one call of which is shorter than a turn: where caches and memory set the pace,
        ratios spread most. The others have as many as the settings say.
    allowance
        Seconds that a call may take besides.
    """

    reference: str
    rounds: int
    allowance: float = 0.0


@dataclass(frozen=True)
class Settings:
    """How long to measure.

    Attributes
    ----------
    rounds
        Rounds over all contenders. Without pairing, peers that are far behind others take part in few.
    seconds
        What a contender's turn should take, if one call takes less.
    pairing
        How to compare; None to let contenders take turns in one order.
    """

    rounds: int
    seconds: float
    pairing: Pairing | None = None


class Contest:
    """Processes of all contenders, for one number of threads. A context manager: it ends them."""

    def __init__(self, interpreters: Mapping[str, Path], threads: int, settings: Settings) -> None:
        self.threads = threads
        self.settings = settings
        self._interpreters = interpreters
        self._clients: dict[str, Client] = {}
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Contest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            client.close()

    def limits(self, dtypes: Sequence[str]) -> Limits:
        """What the machine can do, measured by the process of NumPy, or of any contender."""
        client = self._client("numpy" if "numpy" in self._interpreters else next(iter(self._interpreters)))

        def rate(what: str, dtype: str = "float64") -> float:
            return float(client.ask("measure", what=what, dtype=dtype, threads=self.threads)["rate"])

        return Limits(self.threads, rate("copy"), {dtype: rate("product", dtype) for dtype in dtypes})

    def play(self, case: Case | Model, size: int, dtype: str) -> Record:
        """Time all contenders that can compute the case and do it right."""
        notes: dict[str, str] = {}
        first_call: dict[str, float] = {}
        moved = 0
        for name in self._interpreters:
            answer = self._ask(name, "prepare", case=case.name, size=size, dtype=dtype)
            note = _objection(answer, dtype)
            if note:
                notes[name] = note
            else:
                first_call[name] = answer["seconds"]
                moved = answer["bytes"]
        found = {name: self._count(name) for name in first_call}
        counts = {name: count for name, (count, _) in found.items()}
        ratios: dict[str, float] = {}
        if self.settings.pairing is None:
            samples = self._in_turns(
                counts, notes, _far_behind({k: seconds for k, (_, seconds) in found.items()})
            )
        else:
            samples = self._beside(self.settings.pairing, counts, notes, ratios)
        timed = {name: taken for name, taken in samples.items() if taken and name not in notes}
        return Record(
            case=case.name,
            size=size,
            dtype=dtype,
            threads=self.threads,
            seconds={name: statistics.median(taken) for name, taken in timed.items()},
            quartiles={name: _quartiles(taken) for name, taken in timed.items()},
            first_call=first_call,
            notes=notes,
            bytes=moved,
            flops=None if case.flops is None else case.flops(size),
            ratios={name: found for name, found in ratios.items() if name in timed},
        )

    def _in_turns(
        self, counts: Mapping[str, int], notes: dict[str, str], far: Collection[str]
    ) -> dict[str, list[float]]:
        """Seconds of a call of each contender, in rounds over all of them; of those far behind, in a few."""
        samples: dict[str, list[float]] = {name: [] for name in counts}
        for number in range(self.settings.rounds):
            for name in counts:
                if number < FEW_ROUNDS or name not in far:
                    self._turn(name, counts[name], samples[name], notes, "seconds")
        return samples

    def _beside(
        self, pairing: Pairing, counts: Mapping[str, int], notes: dict[str, str], ratios: dict[str, float]
    ) -> dict[str, list[float]]:
        """Seconds of a call of each contender, each beside the reference; the ratios are filled in."""
        reference = pairing.reference
        kind = "processor" if self.threads == 1 else "seconds"
        samples: dict[str, list[float]] = {name: [] for name in counts}
        if reference not in counts:
            return samples
        found: dict[str, list[float]] = {name: [] for name in counts if name != reference}
        for number in range(max(self.settings.rounds, pairing.rounds)):
            for name, by_rounds in found.items():
                if name in notes or (counts[name] == 1 and number >= self.settings.rounds):
                    continue
                pair = (name, reference) if number % 2 else (reference, name)
                for one in pair:
                    if one == reference and self._turn_by_hand(name, counts[one], samples[one], kind):
                        continue
                    self._turn(one, counts[one], samples[one], notes, kind)
                if name not in notes and reference not in notes:
                    by_rounds.append(max(samples[name][-1] - pairing.allowance, 0.0) / samples[reference][-1])
        ratios.update({name: statistics.median(taken) for name, taken in found.items() if taken})
        return samples

    def _turn_by_hand(self, name: str, count: int, samples: list[float], kind: str) -> bool:
        """Time the form by hand in a contender's process; False where its environment lacks SciPy."""
        answer = self._ask(name, "time", count=count, by_hand=True)
        if kind in answer:
            samples.append(answer[kind])
        return kind in answer

    def _turn(self, name: str, count: int, samples: list[float], notes: dict[str, str], kind: str) -> bool:
        """Time a contender once, in seconds of a kind; whether it answered."""
        answer = self._ask(name, "time", count=count)
        if kind in answer:
            samples.append(answer[kind])
        else:
            notes[name] = answer["failed"]
        return kind in answer

    def _count(self, name: str) -> tuple[int, float]:
        """How many calls fill a turn, and the seconds of one.

        It is tried with more and more calls, for the first ones are slow. Before, as many calls as fill
        :data:`WARMING`: compilers that watch calls are done with it then.
        """
        seconds = self._quickest(name, 1)
        if seconds > max(WARMING, self.settings.seconds):
            return 1, seconds
        self._ask(name, "time", count=max(1, min(MOST_CALLS, int(WARMING / seconds))))
        count = 1
        while True:
            seconds = self._quickest(name, count)
            needed = self.settings.seconds / seconds
            if count >= MOST_CALLS or count > needed / 4:
                return max(1, min(MOST_CALLS, int(needed))), seconds
            count = min(MOST_CALLS, count * 4)

    def _quickest(self, name: str, count: int) -> float:
        """Seconds of a call in the fastest of some turns.

        In one of them the process may have been held up. With too few calls, all its turns would then be of
        calls that find the other contenders' arrays in the caches.
        """
        taken: list[float] = []
        while len(taken) < TRIES and count * sum(taken) < WARMING:
            taken.append(self._ask(name, "time", count=count).get("seconds", 1.0))
        return max(min(taken), 1e-9)

    def _client(self, name: str) -> Client:
        if name not in self._clients:
            client = Client(name, self._interpreters[name], self.threads)
            self._clients[name] = client
            self.versions[name] = client.about["version"]
        return self._clients[name]

    def _ask(self, name: str, do: str, **details: Any) -> dict[str, Any]:
        """An answer; a lost process is one as well, and the next question starts it anew."""
        try:
            return self._client(name).ask(do, **details)
        except ContenderLostError as lost:
            client = self._clients.pop(name, None)
            if client is not None:
                client.close()
            return {"failed": str(lost)}


def _far_behind(seconds: Mapping[str, float]) -> set[str]:
    """Peers that are far slower than the fastest of them: whichever is best, it is none of these."""
    peers = {name: taken for name, taken in seconds.items() if name != OURS}
    return {name for name, taken in peers.items() if taken > FAR * min(peers.values())}


def _objection(answer: Mapping[str, Any], dtype: str) -> str:
    """Why a contender is not timed; empty where it is."""
    for reason in ("unsupported", "failed"):
        if reason in answer:
            return f"{reason}: {answer[reason]}"
    if answer["dtypes"] != [dtype]:
        return f"returns {', '.join(answer['dtypes'])}"
    if not answer["error"] <= TOLERANCE[dtype]:
        return f"wrong by {answer['error']:.1e}"
    return ""


def _quartiles(samples: Sequence[float]) -> tuple[float, float]:
    if len(samples) < 2:
        return samples[0], samples[0]
    first, _, third = statistics.quantiles(samples, n=4)
    return first, third
