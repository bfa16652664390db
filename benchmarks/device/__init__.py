"""Compiled functions on a CUDA device beside those of other libraries: the parts of ``benchmarks.gpu``.

===============  ====================================================================================
``cases``        the programs of ``benchmarks.kernels``, and some that are run on devices most
``contenders``   esat, cupy, JAX and torch, each as a function of arrays of the device
``clock``        seconds of calls, by the host's clock and by the device's events
``match``        contenders against each other: correctness first, then interleaved rounds
``record``       what a run found, as data; stored as JSON
``table``        a run as text
===============  ====================================================================================

All contenders live in one process: they read the same arrays on the device, which they hand each other
without a copy.
"""
