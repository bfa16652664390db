"""Programs as they were left on disk: what another process compiled runs here without the compiler.

A record is found by a key over the graph and all that a compilation depends on (``keys``). It holds what the
native functions of a program do, for the shapes that came (``content``): machine code of kernels, memory, and
the names of functions of BLAS. A process that finds one calls it at once (``executables``); where a call
needs more than it has, the graph is compiled after all, and the same object goes on as any other Executable.
"""
