"""The module that generated kernels name as their own.

Numba stores the name of a function's module with the compiled code and imports that module when
the code is loaded again. Generated source has no file, so every kernel names this module; it is
empty because a compiled kernel looks nothing up at run time.
"""
