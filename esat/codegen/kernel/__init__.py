"""Kernels as data: the loop IR, what loops there are, and which form of code suits them."""
