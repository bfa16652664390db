"""Settings of the whole suite."""

import os

# What a test says of saturation must hold of this process, not of the one that filled the user's cache.
os.environ.setdefault("ESAT_EGRAPH_CACHE", "0")
