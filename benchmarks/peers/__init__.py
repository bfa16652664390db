"""The contenders of ``benchmarks.kernels``: esat and its peers, each in a process of its own.

================  ===============================================================================
``cases``         what is computed, written once over a namespace of NumPy's names
``contenders``    names of the contenders, and the module that speaks for each
``*_contender``   one contender each: turns a case into a function of NumPy arrays
``worker``        the process that serves timed calls of one contender over a pipe
``client``        the other end of the pipe
``environments``  where each contender's interpreter is found, and how it is made
``machine``       what the machine can do at most: copy bandwidth, matrix product rate
================  ===============================================================================

``cases``, ``worker`` and the ``*_contender`` modules run in the peers' environments: they import nothing
but NumPy and the library they speak for.
"""
