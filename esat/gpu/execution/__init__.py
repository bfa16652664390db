"""Calls of a program with a device."""
