"""The room for CUDA: kernels printed from the same loop IR, device memory, transfers.

A device is a placement, not a type: graphs, rules and the e-graph know nothing of it.
"""
