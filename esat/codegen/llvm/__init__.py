"""How things are done that numba has no words for: prefetches, non-temporal stores, vectors side by side."""
