"""Which triangles of a matrix its readers look at: what the others hold need not be computed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from esat.graph import Apply, Variable
from esat.ops.diagonal import Diagonal
from esat.ops.linalg.factor import Cholesky
from esat.ops.linalg.inverse import TriangularInverse
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, SolveTriangular
from esat.runtime.program import Program

Triangle: TypeAlias = Literal["lower", "upper"]
BOTH: frozenset[Triangle] = frozenset(("lower", "upper"))


def triangles_read(program: Program, matrix: Variable) -> frozenset[Triangle]:
    """The triangles of a matrix, each with the diagonal, that the steps of native functions read of it.

    Any step but factorizations and systems of equations reads both, and so does who gets it as a result.
    """
    found: frozenset[Triangle] = frozenset()
    for reader, place in program.graph.clients[matrix]:
        found |= BOTH if reader == "output" else _read_by(reader, place)
    return found


def _read_by(node: Apply, place: int) -> frozenset[Triangle]:
    op = node.op
    if isinstance(op, Diagonal):
        return BOTH if op.offset else frozenset()
    if place or not isinstance(
        op, Cholesky | SemidefiniteSolve | SolveTriangular | CholeskySolve | TriangularInverse
    ):
        return BOTH
    if isinstance(op, Cholesky):
        lower = not op.upper
    elif isinstance(op, SemidefiniteSolve):  # the matrix is symmetric: which one does not matter
        lower = False
    else:
        lower = op.lower
    return frozenset(("lower",)) if lower else frozenset(("upper",))
