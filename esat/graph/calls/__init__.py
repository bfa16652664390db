"""Whose call it is that a graph was built by, and checks of its arguments."""
