"""What threads do, compiled: the caller's ``share`` and the helpers' ``work``.

The state is memory of words, each in a cache line of its own, the last two for each helper. One
task is shared at a time; a caller who finds the pool busy does its work alone.

A helper counts itself active before it looks whether a task is open; the caller closes the task before
it looks whether a helper is active. So either the helper sees that the task is closed and touches
nothing, or the caller waits for it. A helper that has not woken up is not waited for: it finds the task
closed, or another one open.

Nothing here needs the interpreter lock: locks are Python's own, which any thread may use without it.
"""

from __future__ import annotations

from typing import Any

from esat.codegen.threads import memory

# Intrinsics: as functions of Python they would have one parameter more.
acquire: Any = memory.acquire
add: Any = memory.add
call_task: Any = memory.call_task
exchange: Any = memory.exchange
load: Any = memory.load
release: Any = memory.release
store: Any = memory.store

LINE = 64
"""Bytes of a cache line: two words in one would be handed back and forth between cores."""
BUSY = 0
OPEN = 1 * LINE
NEXT = 2 * LINE
ACTIVE = 3 * LINE
WAITING = 4 * LINE
TASKS = 5 * LINE
TASK = 6 * LINE
DATA = 7 * LINE
UNITS = 8 * LINE
GRAIN = 9 * LINE
DONE = 10 * LINE
ACQUIRE = 11 * LINE
RELEASE = 12 * LINE
LIMIT = 13 * LINE
SHARE = 14 * LINE
HELPERS = 15 * LINE
"""Offsets: whether a caller holds the pool, whether its task is open, its first unit that nobody took,
helpers at work, whether the caller sleeps, tasks so far, the task, its data, number of units and units
taken at once, the lock the caller sleeps on, addresses of Python's functions for locks, how many helpers
may join in, the compiled function ``share``, and the first helper: whether it sleeps, and the lock it
sleeps on."""
HELPER = 2 * LINE

SPINS = 20_000
"""Looks, some ten microseconds of them, before a thread sleeps: waking one takes as long."""


def share(state: int, task: int, data: int, units: int, turns: int, helpers: int) -> None:
    """Run a task for all its units, together with up to ``helpers`` helpers, in ``turns`` parts for each."""
    if exchange(state + BUSY, 1) == 1:
        call_task(task, data, 0, units)
        return
    store(state + TASK, task)
    store(state + DATA, data)
    store(state + UNITS, units)
    parts = (helpers + 1) * turns
    store(state + GRAIN, (units + parts - 1) // parts)
    store(state + LIMIT, helpers)
    store(state + NEXT, 0)
    store(state + OPEN, 1)
    add(state + TASKS, 1)
    for number in range(helpers):
        helper = state + HELPERS + number * HELPER
        if exchange(helper, 0) == 1:
            release(load(state + RELEASE), load(helper + LINE))
    take_units(state)
    store(state + OPEN, 0)
    spins = 0
    while load(state + ACTIVE) != 0 and spins < SPINS:
        spins += 1
    # More than once where a helper of an earlier task was late to see that nobody waits any more.
    while load(state + ACTIVE) != 0:
        store(state + WAITING, 1)
        # The last helper may have gone before it could see that someone waits.
        if load(state + ACTIVE) != 0 or exchange(state + WAITING, 0) == 0:
            acquire(load(state + ACQUIRE), load(state + DONE))
    store(state + BUSY, 0)


def work(state: int, number: int) -> None:
    """Help with tasks for ever; helpers are numbered from 0."""
    helper = state + HELPERS + number * HELPER
    seen = 0
    while True:
        spins = 0
        while load(state + TASKS) == seen and spins < SPINS:
            spins += 1
        if load(state + TASKS) == seen:
            store(helper, 1)
            # A caller between the two lines above has not seen that this thread sleeps.
            if load(state + TASKS) == seen or exchange(helper, 0) == 0:
                acquire(load(state + ACQUIRE), load(helper + LINE))
        seen = load(state + TASKS)
        add(state + ACTIVE, 1)
        if load(state + OPEN) == 1 and number < load(state + LIMIT):
            take_units(state)
        if add(state + ACTIVE, -1) == 1 and exchange(state + WAITING, 0) == 1:
            release(load(state + RELEASE), load(state + DONE))


def take_units(state: int) -> None:
    """Run parts of the open task until none is left."""
    task, data = load(state + TASK), load(state + DATA)
    units, grain = load(state + UNITS), load(state + GRAIN)
    while True:
        begin = add(state + NEXT, grain)
        if begin >= units:
            return
        call_task(task, data, begin, min(begin + grain, units))
