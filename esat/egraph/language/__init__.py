"""The e-graph's term language, and graphs in it."""
