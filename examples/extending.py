"""Optimizations of your own: each is registered in a few lines, and changes both kinds of compilation.

Run ``python examples/extending.py``. For each it prints the graph as written and what it becomes by equality
saturation (``fast_run``) and by replacing at once (``greedy``).

esat has no rule about ``erf(tan(x))``; the laws below are made up, so that one sees who did what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import esat
from esat import optdb
from esat.classic import DB, OpRemove, OpSub, Optimizer, PatternSub, local_optimizer
from esat.graph import Apply, FunctionGraph, Variable


@local_optimizer([esat.erf])
def erf_of_tan(node: Apply) -> list[Variable] | bool:
    """Looks at one node, and names what its outputs may be replaced by: erf(tan(x)) = x."""
    inner = node.inputs[0].owner
    return [inner.inputs[0]] if inner is not None and inner.op == esat.tan else False


class WithoutTan(Optimizer):
    """Looks at the whole graph, and changes it: tan(x) = x."""

    def apply(self, fgraph: FunctionGraph) -> None:
        for node in fgraph.toposort():
            if node.op == esat.tan:
                fgraph.replace(node.outputs[0], node.inputs[0])


# Written over two operands: in fast_run it matches any two of a product of any number, in any order.
RULE = """
(ruleset users :tags (fast_run canonicalize))
(rewrite (Mul (Erf x) (Tan x)) (Sqr x) :ruleset users :name "erf-times-tan")
"""

Registration = tuple[Callable[[], object], Callable[[], object]]
"""What registers something, and what takes it back."""


def entry(database: DB, optimizer: object, *position: float) -> Registration:
    """An optimizer in a database; databases that are run in sequence take a position too."""
    return (
        lambda: database.register("mine", optimizer, *position, "fast_run"),
        lambda: database.remove("mine"),
    )


REGISTRATIONS: dict[str, Registration] = {
    "a local optimizer": entry(optdb["canonicalize"], erf_of_tan),
    "a PatternSub": entry(
        optdb["canonicalize"], PatternSub((esat.erf, (esat.tan, "x")), (esat.mul, "x", "x"))
    ),
    "an OpSub": entry(optdb["canonicalize"], OpSub(esat.erf, esat.neg)),
    "an OpRemove": entry(optdb["canonicalize"], OpRemove(esat.erf)),
    "a global optimizer": entry(optdb, WithoutTan(), 0.5),
    "a rule": (lambda: esat.rules.add(RULE), lambda: esat.rules.remove("erf-times-tan")),
}


@contextmanager
def registered(what: str) -> Iterator[None]:
    """Register one of them for a while. Functions compiled earlier stay as they are."""
    register, remove = REGISTRATIONS[what]
    register()
    try:
        yield
    finally:
        remove()


def compiled(mode: str) -> str:
    """What ``erf(tan(x)) + y * (tan(x) * erf(x))`` is compiled to, as text."""
    x, y = esat.vector("x"), esat.vector("y")
    graph = esat.Graph([x, y], [esat.erf(esat.tan(x)) + y * (esat.tan(x) * esat.erf(x))])
    return repr(esat.compile(graph, mode).optimized)


def main() -> None:
    for mode in ("fast_run", "greedy"):
        print(f"{mode}, nothing registered: {compiled(mode)}")
        for what in REGISTRATIONS:
            with registered(what):
                print(f"  {what}: {compiled(mode)}")


if __name__ == "__main__":
    main()
