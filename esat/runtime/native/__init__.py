"""Programs as one native function each: their steps, and calls of it."""
