"""Whose memory a program may overwrite, in which order, and which results share some."""
