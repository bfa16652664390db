"""Which way the calls of a program go."""


def way_of(program):
    """``native`` for a native function, ``chosen`` for what chooses one for one thread or for several,
    ``native with shared`` for one with the values of shared variables, and ``driver``.
    """
    run = program.entry
    if getattr(run, "__qualname__", "").startswith("with_values."):
        return "native with shared"
    return {"builtin_function_or_method": "native", "ChosenCalls": "chosen"}.get(type(run).__name__, "driver")


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)
