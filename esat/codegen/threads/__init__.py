"""A pool of threads that kernels share their work with.

``memory`` names memory shared by threads, ``protocol`` is what threads do, ``pool`` starts them, and
``tasks`` is how a kernel hands over one of its parts.

Why not numba's own threading layers? On two cores, with a kernel of 100 microseconds (medians):
starting one of GNU OpenMP's takes 1.5 microseconds on an idle machine but milliseconds where another
process is busy, because its threads wait for each other at a barrier; after a fork it ends the process.
The ``workqueue`` layer takes 60 to 90 microseconds and ends the process when two Python threads call it
at once. TBB has neither fault but is not part of numba. Compiling a loop for any of them takes numba
twice as long as the loop itself. Here nobody waits for a thread that has not begun: the caller takes
parts of the work until none is left, helpers join in as they wake, and without any the caller has done
all of it by itself.
"""

from esat.codegen.threads.pool import available_threads, default_threads, pool_address

__all__ = ["available_threads", "default_threads", "pool_address"]
