"""Forms of ops that are no generated kernels, on a device: functions of cupy's arrays."""
