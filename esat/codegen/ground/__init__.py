"""What kernels stand on: the target they are compiled for."""
