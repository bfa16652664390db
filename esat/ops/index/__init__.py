"""Indexing: reading and writing parts of an array by integers, slices, index arrays and masks."""
