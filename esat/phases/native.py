"""Which steps native functions run without Python: those of programs that are called many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from esat.graph import Apply, Constant, TensorType
from esat.graph.op import Op
from esat.ops.accumulate import AccumulateProduct
from esat.ops.annotations.assume import Assume
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.cumulative import Cumulative
from esat.ops.arrays.diagonal import Diagonal, DiagonalOf
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join, Split
from esat.ops.arrays.searching import SearchSorted
from esat.ops.arrays.sorting import Sort
from esat.ops.arrays.view import Reshape
from esat.ops.contraction import MatMul
from esat.ops.control import After, Assert, IfElse, SpecifyShape
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.inference.vectors import MakeVector
from esat.ops.linalg.factor import LU, QR, Cholesky, CholeskyOrNan, CholeskyPullback
from esat.ops.linalg.functions import BlockDiagonal
from esat.ops.linalg.inverse import Determinant, Inverse, SignLogDeterminant, TriangularInverse
from esat.ops.linalg.normal import NormalProduct
from esat.ops.linalg.packed_factors import PackedLU, PackedSolve
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, Solve, SolveTriangular
from esat.ops.linalg.spectral import SVD, Eigenvalues, Eigenvectors, SingularValues
from esat.ops.linalg.structured import StructuredProduct
from esat.ops.linalg.whitening import Whiten
from esat.ops.loops.record import Scan, While
from esat.ops.random.distributions import Integers, NumberVariable
from esat.ops.random.variable import RandomVariable
from esat.phases.fusing.group import Group

NATIVE_FORMS: Mapping[type[Op], str] = MappingProxyType(
    {
        **{
            DimShuffle: "shuffled",
            Subtensor: "part",
            Diagonal: "diagonal",
            Reshape: "reshaped",
            Split: "split",
        },
        **{SpecifyShape: "specified", Assume: "same", After: "same", Assert: "asserted", IfElse: "chosen"},
        **{Join: "joined", MakeVector: "vector", Alloc: "filled", DiagonalOf: "on_diagonal"},
        **{BlockDiagonal: "blocks", SetSubtensor: "written", IncSubtensor: "written"},
        **{MatMul: "product", AccumulateProduct: "product", StructuredProduct: "structured_product"},
        **{RowsProduct: "rows_product", NormalProduct: "rows_product", RowBlocks: "row_blocks"},
        **{Cholesky: "cholesky", CholeskyOrNan: "cholesky", CholeskyPullback: "cholesky_pulled_back"},
        Whiten: "whitened",
        **{Solve: "solved", SemidefiniteSolve: "semidefinite_solved", SolveTriangular: "triangular_solved"},
        **{CholeskySolve: "factor_solved", PackedLU: "packed_factors", PackedSolve: "packed_solved"},
        **{Inverse: "inverse", TriangularInverse: "triangular_inverse"},
        **{Determinant: "determinant", SignLogDeterminant: "determinant"},
        **{Eigenvectors: "eigenvectors", Eigenvalues: "eigenvectors"},
        **{SVD: "singular_values", SingularValues: "singular_values"},
        **{QR: "orthogonal_factors", LU: "triangular_factors"},
        **{Sort: "sorted_lines", Cumulative: "running_lines", SearchSorted: "searched"},
        **{NumberVariable: "drawn", Integers: "drawn_integers", Scan: "loop", While: "loop"},
    }
)
"""The function of :mod:`esat.runtime.native.native_forms` that gives the steps of an op without Python."""
VIEWS = frozenset(
    {"shuffled", "part", "diagonal", "reshaped", "split", "specified", "same", "asserted", "chosen"}
)
"""Forms of ops whose results show their operands: in a native function they cost nothing, or nearly so."""


def is_native_view(op: Op) -> bool:
    """Whether the results of an op show its operands in a native function."""
    return NATIVE_FORMS.get(type(op)) in VIEWS


def is_constant(node: Apply) -> bool:
    """Whether a step makes the same in each call: a native function keeps that."""
    return (
        bool(node.inputs)
        and all(isinstance(one, Constant) for one in node.inputs)
        and not node.op.destroy_map
    )


def has_tensors(node: Apply) -> bool:
    """Whether operands and results are arrays; of draws in place, all but the state of the generator."""
    first = 1 if isinstance(node.op, RandomVariable) and node.op.in_place else 0
    return all(isinstance(one.type, TensorType) for one in (*node.inputs[first:], *node.outputs[first:]))


def has_native_steps(steps: Sequence[Group]) -> bool:
    """Whether a program of these steps can be one native function, as far as their ops tell."""
    return all(group.kind == "kernel" or has_tensors(group.nodes[0]) for group in steps)


def runs_by_python(group: Group) -> bool:
    """Whether a step of a native function calls Python."""
    node = group.nodes[0]
    return group.kind == "library" and type(node.op) not in NATIVE_FORMS and not is_constant(node)
