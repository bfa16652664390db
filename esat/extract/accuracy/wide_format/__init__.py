"""Arithmetic in a format wider than the program's, with bounds of its errors."""
