"""What all rooms use: records, storage, the subset of Python that is compiled, interrupts."""
