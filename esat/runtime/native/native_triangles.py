"""What the readers of a matrix ask of it: a triangle alone, and any order of its elements in memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from esat.graph import Apply, Variable
from esat.ops.arrays.diagonal import Diagonal
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.contraction import MatMul
from esat.ops.linalg.factor import CholeskyFactor
from esat.ops.linalg.inverse import TriangularInverse
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, SolveTriangular
from esat.runtime.program import Program

Triangle: TypeAlias = Literal["lower", "upper"]
_IN_ANY_ORDER = (MatMul, SemidefiniteSolve, SolveTriangular, CholeskySolve)
_OTHER: Mapping[Triangle, Triangle] = MappingProxyType({"lower": "upper", "upper": "lower"})
BOTH: frozenset[Triangle] = frozenset(("lower", "upper"))


def triangles_read(program: Program, matrix: Variable) -> frozenset[Triangle]:
    """The triangles of a matrix, each with the diagonal, that the steps of native functions read of it.

    Any step but factorizations and systems of equations reads both, and so does who gets it as a result.
    """
    found: frozenset[Triangle] = frozenset()
    for reader, place in program.graph.clients[matrix]:
        if reader == "output":
            return BOTH
        if isinstance(reader.op, DimShuffle) and reader.op.is_transpose:
            found |= frozenset(map(_OTHER.__getitem__, triangles_read(program, reader.outputs[0])))
        else:
            found |= _read_by(reader, place)
    return found


def is_read_by_columns(program: Program, matrix: Variable) -> bool:
    """Whether all that read a matrix read its columns as well as its rows where they are: products and
    systems of equations, and who gets its transpose as a result."""
    for reader, _ in program.graph.clients[matrix]:
        if reader == "output":
            return False
        if isinstance(reader.op, DimShuffle) and reader.op.is_transpose:
            others = [one for one, _ in program.graph.clients[reader.outputs[0]]]
            if others != ["output"] and not is_read_by_columns(program, reader.outputs[0]):
                return False
        elif not isinstance(reader.op, _IN_ANY_ORDER):
            return False
    return True


def _read_by(node: Apply, place: int) -> frozenset[Triangle]:
    op = node.op
    if isinstance(op, Diagonal):
        return BOTH if op.offset else frozenset()
    if place or not isinstance(
        op, CholeskyFactor | SemidefiniteSolve | SolveTriangular | CholeskySolve | TriangularInverse
    ):
        return BOTH
    if isinstance(op, CholeskyFactor):
        lower = not op.upper
    elif isinstance(op, SemidefiniteSolve):  # the matrix is symmetric: which one does not matter
        lower = False
    else:
        lower = op.lower
    return frozenset(("lower",)) if lower else frozenset(("upper",))
