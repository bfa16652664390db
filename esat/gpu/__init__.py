"""The room for CUDA: kernels printed from the same loop IR, device memory, transfers.

Nothing is built here yet: no mode uses a GPU, and the row "GPU transfer" of the modes' table is empty.
"""
