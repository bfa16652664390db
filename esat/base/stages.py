"""The stages of a compilation, which profiles show, debug mode blames and ``docs/architecture.md`` lists."""

from __future__ import annotations

from typing import Literal, TypeAlias

from esat.base.records import record

Phase: TypeAlias = Literal["optimizer", "linker"]
"""``optimizer``: stages that decide what to compute; ``linker``: those that make it run."""


@record(frozen=True)
class Stage:
    """One stage.

    Attributes
    ----------
    name
        What a profile calls it.
    does
        What it makes of what.
    where
        Folders and modules of the package.
    phase
        What its time counts as.
    blamed
        What debug mode calls it, and the stages since it compared last; empty if by its name.
    """

    name: str
    does: str
    where: tuple[str, ...]
    phase: Phase
    blamed: str


def _deciding(name: str, does: str, *where: str, blamed: str = "") -> Stage:
    return Stage(name, does, where, "optimizer", blamed)


def _linking(name: str, does: str, *where: str, blamed: str = "") -> Stage:
    return Stage(name, does, where, "linker", blamed)


STAGES = {
    stage.name: stage
    for stage in (
        _deciding("clone", "the user's graph, a `FunctionGraph` that may be changed", "graph/"),
        _deciding("rules", "what users added, the texts of this compilation", "rules/"),
        _deciding("bodies", "loops, loops with optimized bodies", "phases/loop_bodies.py"),
        _deciding(
            "query", "a `Mode`, the optimizers and rules that take part", "mode.py", "classic/", "rules/"
        ),
        _deciding("compile rules", "rules, a program for an engine", "egraph/preparation/"),
        _deciding("encode", "the graph, terms of typed constructors", "egraph/language/"),
        _deciding("e-graph cache", "terms, the e-graph made of them before", "egraph/saturation/"),
        _deciding("load rules", "a program, an engine that holds it", "egraph/preparation/", "engine/"),
        _deciding("load", "terms, rows of the engine's tables", "egraph/language/loader.py"),
        _deciding(
            "saturate",
            "terms, an e-graph: rules, the algebra of sums and products, facts",
            "egraph/saturation/",
            "egraph/algebra/",
            "engine/",
        ),
        _deciding("read out", "tables of the engine, arrays of e-nodes", "extract/readout.py"),
        _deciding("accuracy", "forms of one value, bits that each of them loses", "extract/accuracy/"),
        _deciding(
            "extract",
            "e-nodes with costs, one form a value: the cheapest graph that is accurate enough",
            "extract/choice/",
            "extract/prices/",
        ),
        _deciding("decode", "the selection, a graph", "extract/decode.py", blamed="equality saturation"),
        _deciding("regimes", "a graph, one whose values may have two forms", "optimize/two_forms.py"),
        _deciding("optimize", "a graph, the one that greedy steps leave", "optimize/greedy.py", "classic/"),
        _deciding("predict", "a graph, the time it will take", "extract/prices/"),
        _deciding("autotune", "several graphs, the one that runs fastest here", "runtime/tuning.py"),
        _deciding("extract for the device", "an e-graph, the cheapest graph there", "compilation/placing.py"),
        _linking("placement", "a graph, its parts on host and device", "phases/placement.py", "gpu/"),
        _deciding(
            "invariants",
            "a graph, one that keeps what does not change between calls",
            "runtime/invariants.py",
        ),
        _deciding(
            "row products", "two products with one matrix, one that reads it once", "phases/row_products.py"
        ),
        _deciding("stencils", "a graph, one with less to write between kernels", "classic/stencils.py"),
        _deciding("inplace", "permissions, which group may write over what", "phases/memory/inplace.py"),
        _deciding("fusion", "a graph, groups: kernels, library calls, views", "phases/fusing/"),
        _linking("routines", "groups, library routines that write into given buffers", "codegen/routines.py"),
        _linking(
            "memory plan", "groups, addresses in one frame of scratch memory", "phases/memory/memory_plan.py"
        ),
        _linking(
            "kernels",
            "groups, loops; loops and a `Target`, Python for numba; that text, machine code, kept on disk",
            "codegen/",
        ),
        _linking(
            "driver",
            "groups with code, the function that is called",
            "runtime/printed/",
            "runtime/program.py",
            blamed="code generation",
        ),
        _linking("variants", "sizes that arrived, a program for them", "runtime/entry/variants.py"),
    )
}
"""All stages by name, in order. What local optimizers take is entered under the names of their databases."""


def blamed_as(stage: str) -> str:
    """What debug mode calls a stage, or the optimizer after which it compared graphs."""
    known = STAGES.get(stage)
    return stage if known is None else known.blamed or stage
