"""The text of native functions: recipes, calls of Python, entries in C."""
