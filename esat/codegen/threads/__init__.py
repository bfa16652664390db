"""A pool of threads that kernels share their work with.

``shared_memory`` names memory shared by threads, ``protocol`` is what threads do, ``thread_pool`` starts
them, ``helper_placement`` says on which processors they wake, and ``tasks`` is how a kernel hands over one of
its parts. ``choice`` finds out whether that is faster, and runs calls the faster way.

Nobody waits for a thread that has not begun: the caller takes parts of the work until none is left,
helpers join in as they wake, and without any the caller has done all of it by itself. Measured for two
threads on two cores that other processes kept busy (median time besides the work, in microseconds):

======================  ==========  ================================================================
this pool               3 to 5      helpers awake; 10 to 15 more to wake them
Python's executor       22          needs the interpreter lock for every part
numba's ``workqueue``   70          ends the process when two Python threads call it at once
numba's ``omp``         14 000      1.5 on idle cores: its threads wait for each other at a barrier; ends
                                    the process where a forked child calls it
numba's ``tbb``         not tried   2 by earlier measurements; has no such faults, but needs a further
                                    package and its library loaded by hand
======================  ==========  ================================================================

A loop compiled by numba for its own layers takes 2.5 times as long as one for one thread.
"""

from esat.codegen.threads.thread_pool import (
    available_threads,
    configured_threads,
    default_threads,
    granted_threads,
    most_threads,
    pool_address,
)

__all__ = [
    "available_threads", "configured_threads", "default_threads", "granted_threads", "most_threads",
    "pool_address",
]  # fmt: skip
