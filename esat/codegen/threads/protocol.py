"""What threads do, compiled: the caller's ``share`` and the helpers' ``work``.

The state is memory of words. Those that change hands have cache lines of their own, each of which takes as
long to reach another core as two hundred additions: so what describes a task is in one line with the number
that helpers watch. One task is shared at a time; a caller who finds the pool busy does its work alone.

A task's number is odd while it is open. A helper counts itself active before it looks whether the task is
still open; the caller closes it before it looks whether a helper is active. So either the helper sees that
the task is closed and touches nothing, or the caller waits for it. A helper that has not woken up is not
waited for: it finds the task closed, or another one open.

Every thread has a range of the units of its own, the same ones each time a kernel runs: a core's own cache
keeps what they read and write. One that is through with its range takes parts of those of others.

Nothing here needs the interpreter lock: locks are Python's own, which any thread may use without it.
"""

from __future__ import annotations

from esat.codegen.threads.helper_placement import WORD_BITS
from esat.codegen.threads.shared_memory import (
    acquire,
    add,
    allow,
    call_task,
    exchange,
    here,
    load,
    put,
    release,
    store,
)

LINE = 64
"""Bytes of a cache line: two words in one would be handed back and forth between cores."""
BUSY = 0
ACTIVE = 1 * LINE
WAITING = 2 * LINE
NUMBER = 3 * LINE
TASK = NUMBER + 8
DATA = NUMBER + 16
UNITS = NUMBER + 24
TURNS = NUMBER + 32
THREADS = NUMBER + 40
DONE = 4 * LINE
ACQUIRE = DONE + 8
RELEASE = DONE + 16
SHARE = DONE + 24
HERE = DONE + 32
ALLOW = DONE + 40
MASKS = DONE + 48
CALLER = 5 * LINE
"""Offsets: whether a caller holds the pool, helpers at work, whether the caller sleeps, the number of the
task, the task itself, its data, how many units it has, in how many parts each thread takes its range, and how
many threads there are, the caller counted; the lock the caller sleeps on, addresses of Python's functions for
locks, the compiled function ``share``, addresses of the system's functions for processors, and of the masks
that :func:`~esat.codegen.threads.helper_placement.masks_of` makes, or 0; and what the first thread has, the
caller: how many units of its range are taken, and for helpers only whether it sleeps, the lock it sleeps on,
the system's number of it, the processor that it keeps away from, or -1, and whether it is at work."""
TAKEN = 0
SLEEPS = 1 * LINE
LOCK = 2 * LINE
SYSTEM = LOCK + 8
AVOIDED = LOCK + 16
WORKS = LOCK + 24
THREAD = 3 * LINE

SPINS = 100_000
"""Looks, some fifty microseconds of them, before a thread sleeps. Waking one takes a third of that; but the
next call is seldom further away, and one in which helpers wake late moves its data from core to core."""
LATE = 8 * SPINS
"""Looks before a caller takes it that a helper at work has lost its processor: large units end sooner."""


def share(state: int, task: int, data: int, units: int, turns: int, helpers: int) -> None:
    """Run a task for all its units, together with up to ``helpers`` helpers, in ``turns`` parts for each."""
    if exchange(state + BUSY, 1) == 1:
        call_task(task, data, 0, units)
        return
    number = load(state + NUMBER) + 1
    for thread in range(helpers + 1):
        put(state + CALLER + thread * THREAD, 0)
    put(state + TASK, task)
    put(state + DATA, data)
    put(state + UNITS, units)
    put(state + TURNS, turns)
    put(state + THREADS, helpers + 1)
    store(state + NUMBER, number)
    for thread in range(1, helpers + 1):
        helper = state + CALLER + thread * THREAD
        if load(helper + SLEEPS) == 1 and exchange(helper + SLEEPS, 0) == 1:
            keep_away(state, helper)
            release(load(state + RELEASE), load(helper + LOCK))
    take_units(state, 0)
    store(state + NUMBER, number + 1)
    spins = 0
    while load(state + ACTIVE) != 0 and spins < LATE:
        spins += 1
    fetched = fetch(state, helpers) if load(state + ACTIVE) != 0 else 0
    # More than once where a helper of an earlier task was late to see that nobody waits any more.
    while load(state + ACTIVE) != 0:
        store(state + WAITING, 1)
        # The last helper may have gone before it could see that someone waits.
        if load(state + ACTIVE) != 0 or exchange(state + WAITING, 0) == 0:
            acquire(load(state + ACQUIRE), load(state + DONE))
    if fetched != 0:
        keep_away(state, state + CALLER + fetched * THREAD)
    put(state + BUSY, 0)


def work(state: int, thread: int) -> None:
    """Help with tasks for ever; the caller is thread 0."""
    own = state + CALLER + thread * THREAD
    seen = 0
    while True:
        spins = 0
        number = seen
        while (number == seen or number & 1 == 0) and spins < SPINS:  # as is_new, without a call
            number = load(state + NUMBER)
            spins += 1
        if not is_new(load(state + NUMBER), seen):
            store(own + SLEEPS, 1)
            # A caller between the two lines above has not seen that this thread sleeps.
            if not is_new(load(state + NUMBER), seen) or exchange(own + SLEEPS, 0) == 0:
                acquire(load(state + ACQUIRE), load(own + LOCK))
        seen = load(state + NUMBER)
        if seen & 1 == 0:
            continue
        add(state + ACTIVE, 1)
        if load(state + NUMBER) == seen and thread < load(state + THREADS):
            put(own + WORKS, 1)
            take_units(state, thread)
            put(own + WORKS, 0)
        if add(state + ACTIVE, -1) == 1 and load(state + WAITING) == 1 and exchange(state + WAITING, 0) == 1:
            release(load(state + RELEASE), load(state + DONE))


def keep_away(state: int, helper: int) -> None:
    """Let a helper run on any processor but the caller's."""
    masks = load(state + MASKS)
    if masks == 0:
        return
    processor, count = here(load(state + HERE)), load(masks)
    if processor >= 0 and processor < count and processor != load(helper + AVOIDED):
        put(helper + AVOIDED, processor)
        place(state, helper, masks, processor)


def fetch(state: int, helpers: int) -> int:
    """Have the helper go on here, where the caller is about to sleep, if only one is at work; its number.

    0 where there are several, which would wait here for one another, or none.
    """
    masks = load(state + MASKS)
    if masks == 0 or load(state + ACTIVE) != 1:
        return 0
    processor, count = here(load(state + HERE)), load(masks)
    for thread in range(1, helpers + 1):
        helper = state + CALLER + thread * THREAD
        if load(helper + WORKS) == 1 and processor >= 0 and processor < count:
            put(helper + AVOIDED, -1)
            place(state, helper, masks, count + processor)
            return thread
    return 0


def place(state: int, helper: int, masks: int, row: int) -> None:
    """Let a helper run on the processors of one of the masks."""
    size = (load(masks) + WORD_BITS - 1) // WORD_BITS * 8
    allow(load(state + ALLOW), load(helper + SYSTEM), size, masks + 8 + row * size)


def is_new(number: int, seen: int) -> bool:
    """Whether a task is open that a helper has not seen."""
    return number != seen and number & 1 == 1


def take_units(state: int, own: int) -> None:
    """Run parts of the open task until none is left: of a thread's own range, then of the next ones'."""
    task, data, units = load(state + TASK), load(state + DATA), load(state + UNITS)
    turns, threads = load(state + TURNS), load(state + THREADS)
    for step in range(threads):
        thread = (own + step) % threads
        first, end = units * thread // threads, units * (thread + 1) // threads
        part = (end - first + turns - 1) // turns
        taken = state + CALLER + thread * THREAD
        while first + load(taken) < end:
            begin = first + add(taken, part)
            if begin < end:
                call_task(task, data, begin, min(begin + part, end))
