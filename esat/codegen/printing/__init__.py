"""From the loop IR to numba source.

``source`` writes lines and collects what they name, ``scalars`` prints definitions and stores,
``loops`` the forms of loops, ``tiles`` those of tiles, ``printer`` whole functions.
"""
