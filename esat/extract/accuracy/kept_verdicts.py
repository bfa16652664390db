"""Verdicts on disk, beside the e-graphs they are about.

A verdict follows from the e-graph, the terms with their constants and the sizes they are declared with, and
the code that judges. The key covers all of that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from esat.base.storage import DiskStore, default_directory, digest_of, digest_of_sources
from esat.egraph.language.terms import TermGraph
from esat.errors import CompileError
from esat.extract.accuracy.judge import judged
from esat.extract.accuracy.wide_format.formats import NAME
from esat.extract.arrays import EGraphArrays
from esat.extract.extraction import SaturatedGraph
from esat.extract.kept_graphs import kept_graphs
from esat.extract.verdicts import OutputAccuracy, Verdicts

_OF_NODES, _OF_CLASSES = ("loss", "far"), ("written", "written_far")


def verdicts_on(graph: SaturatedGraph) -> Verdicts:
    """The verdicts on a graph: those of another process, or new ones, which are kept."""
    store = _store()
    if store is None:
        return judged(graph)
    key = digest_of([_code(), *_described(graph.arrays, graph.terms)])
    known = store.load(key, _decoded)
    if known is not None and _fits(known, graph.arrays):
        return known
    found = judged(graph)
    store.save(key, _encoded(found))
    return found


@cache
def _store() -> DiskStore | None:
    return None if kept_graphs() is None else DiskStore(default_directory(), "accuracy")


@cache
def _code() -> str:
    """Stands for the code that judges, and the format it judges with."""
    package = Path(__file__).resolve().parent.parent
    rooms = [digest_of_sources(package / room) for room in ("accuracy", "ops")]
    return " ".join([*rooms, np.__version__, NAME])


def _described(arrays: EGraphArrays, terms: TermGraph) -> Iterator[str]:
    """The e-graph and the terms as texts."""
    indices = (arrays.operator, arrays.class_of, arrays.operand_start, arrays.operands, arrays.attribute)
    yield from (vector.tobytes().hex() for vector in (*indices, arrays.term_class))
    yield repr((arrays.operator_names, arrays.attribute_values, terms.roots, terms.facts))
    yield repr([(name, sorted(arrays.facts.get(name, {}).items())) for name in ("dt", "bp")])
    yield repr([(term.constructor, term.operands, term.attributes) for term in terms.terms])
    yield repr([(type.dtype, type.broadcast, type.shape) for type in terms.types])
    yield repr([str(variable.type) for variable in terms.inputs])
    yield repr([str(opaque.op) for opaque in terms.opaque])
    for constant in terms.arrays:
        data = np.asarray(constant.data)
        yield repr((data.dtype.str, data.shape))
        yield data.tobytes().hex() if data.dtype != object else ""


def _encoded(verdicts: Verdicts) -> bytes:
    head = {
        "lengths": [len(getattr(verdicts, name)) for name in (*_OF_NODES, *_OF_CLASSES)],
        "strict": sorted(verdicts.strict),
        "outputs": [asdict(output) for output in verdicts.outputs],
        "given": sorted(verdicts.given),
        "places": sorted(verdicts.places.items()),
    }
    vectors = [np.ascontiguousarray(getattr(verdicts, name), "<f8") for name in (*_OF_NODES, *_OF_CLASSES)]
    return b"".join([json.dumps(head).encode(), b"\n", *(vector.tobytes() for vector in vectors)])


def _decoded(payload: memoryview) -> Verdicts:
    head_text, _, body = bytes(payload).partition(b"\n")
    head: dict[str, Any] = json.loads(head_text)
    lengths = head["lengths"]
    numbers = np.frombuffer(body, "<f8", sum(lengths)).astype(np.float64)
    if len(lengths) != 4 or len(body) != numbers.nbytes:
        raise CompileError("kept verdicts are inconsistent")
    loss, far, written, written_far = np.split(numbers, np.cumsum(lengths)[:-1])
    return Verdicts(
        loss,
        far,
        written,
        written_far,
        frozenset(map(int, head["strict"])),
        tuple(OutputAccuracy(**output) for output in head["outputs"]),
        frozenset(map(int, head["given"])),
        {int(node): str(text) for node, text in head["places"]},
    )


def _fits(verdicts: Verdicts, arrays: EGraphArrays) -> bool:
    nodes, classes = arrays.node_count, arrays.class_count
    lengths = [len(getattr(verdicts, name)) for name in (*_OF_NODES, *_OF_CLASSES)]
    return lengths == [nodes, nodes, classes, classes] and all(0 <= node < nodes for node in verdicts.strict)
