"""Kernels for a device, from templates to launches."""
