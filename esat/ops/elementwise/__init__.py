"""Elementwise ops: one record each, grouped by topic."""
