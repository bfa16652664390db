"""Which way the calls of a program go."""

from esat.runtime.printed.driver import make_driver


def way_of(program):
    """``native`` for a native function, ``chosen`` for what chooses one for one thread or for several,
    ``native with shared`` for one with the values of shared variables, and ``driver``.
    """
    run = program.entry
    if getattr(run, "__qualname__", "").startswith("with_values."):
        return "native with shared"
    return {"builtin_function_or_method": "native", "ChosenCalls": "chosen"}.get(type(run).__name__, "driver")


def by_driver(program, *arguments, out=None):
    """What the steps of the driver give, whatever runs calls of these shapes."""
    calls = program._calls
    return make_driver(calls.program, calls.table, calls.checks).call(*arguments, out=out)


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)
