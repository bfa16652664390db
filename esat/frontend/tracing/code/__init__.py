"""A user's code as it is traced: with other modules, functions and objects."""
