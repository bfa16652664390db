"""The cost model: predicted seconds of each e-node, by the roofline of the machine.

A node's time is the work it does over the measured throughput plus the bytes it moves over the
measured bandwidth plus the overhead of calling it (Williams, Waterman, Patterson, "Roofline: an
insightful visual performance model", CACM 52(4), 2009; summed rather than maximized, which ranks
fused work of unknown overlap better). Elementwise work is expected to be fused: it pays its
arithmetic in full, and of its memory traffic the share that survives fusion.

Matrix products reach their rate with their size: an axis of ``n`` takes the time of ``n + n_half``
(Hockney's half-performance length, "Parallel Computers 2", 1988). A product with a vector is bound by
the bytes of the matrix. A transposed view costs nothing, and a matrix product reads it at full speed; what
else reads a value that can only be had as a transposed view reads it against its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import log2, prod

from esat.egraph.language.forms import op_of
from esat.egraph.language.terms import RankedOp
from esat.egraph.preparation.rule_program import SUPERSEDED
from esat.errors import EsatError
from esat.extract.prices.indexed_cost import indexed_seconds, masked_seconds
from esat.extract.prices.loop_cost import loop_seconds
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.nary import Shape, plan_counts, plan_ops, step_flops
from esat.extract.prices.structured_cost import normal_seconds, structured_seconds
from esat.extract.prices.value import IMPOSSIBLE, Value
from esat.graph import Family, Op, TensorType, Variable
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES
from esat.ops.contraction import MATMUL, MatMul
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.write import PartWrite
from esat.ops.linalg.normal import NormalProduct
from esat.ops.linalg.record import MatrixOp
from esat.ops.linalg.structured import PRODUCTS, StructuredProduct
from esat.ops.loops.record import LoopOp
from esat.ops.normalization import ELEMENTWISE, FLOPS, NORMALIZATIONS
from esat.ops.reduction import REDUCERS

Sizes = tuple[int, ...]


_LEAVES, _VIEWS = ("In", "K", "Array"), ("DimShuffle", "Output")
PRICED_WITHOUT_ATTRIBUTES = frozenset({*_LEAVES, *_VIEWS})
"""Constructors whose prices do not depend on their attributes."""
REDUCING = {
    **{reducer.constructor: (reducer.flops, reducer.elementwise) for reducer in REDUCERS},
    **dict.fromkeys(NORMALIZATIONS.values(), (FLOPS, ELEMENTWISE)),
}
"""Constructors of what kernels compute by loops over an operand, besides elementwise ops -> additions an
element, and those of what is computed of each besides."""
_WITH_BLAS = ("float32", "float64", "complex64", "complex128")
_COMPLEX = ("complex64", "complex128")
_SLOWER = 8.0  # NumPy's own loops for dtypes without kernels or BLAS, against kernels
# A routine works in blocks if it does more operations on each of n numbers than this times log2(n).
_BLOCKED_FLOPS = 1.5
_BLOCKED_SHARE = 0.15  # of the rate of matrix products that decompositions and the like reach
# The size of matrices for which LAPACK reaches half of its share of that.
_LAPACK_HALF = 120.0
_SPARSE_CALL = 1.0e-5  # seconds that SciPy takes to look at a sparse matrix and to make one, besides
_BATCH_SHARE = 0.03  # of a call, for each matrix of a batch after the first
# The shorter the axes, the further a product stays below its rate; a batch of short ones at most so far.
_BATCH_SLOWDOWN = 4.0
_TALL = 1.02  # a product with more rows than columns takes longer than its transpose

INVERSE_SUM = 1.001
"""-(x + y) costs as much as the negative of x + y, which others may share: the latter should win."""


def flops_of(op: Op) -> float:
    """Additions an element that an elementwise op takes as long as, by its record."""
    return 0.25 if op.constructor == "Fill" else float(getattr(op, "flops", 1.0))


class CostModel:
    """Prices e-nodes for one machine and one table of opaque ops.

    Parameters
    ----------
    machine
        The machine's profile.
    opaque
        The op instances that the last attribute of an opaque term refers to.
    """

    def __init__(self, machine: MachineProfile, opaque: Sequence[RankedOp] = ()) -> None:
        self.machine = machine
        self.opaque = opaque
        self._memo: dict[object, float] = {}

    @cached_property
    def _ops(self) -> dict[str, Op]:
        return {op.constructor: op for op in registered_ops()}

    @cached_property
    def inside_loops(self) -> CostModel:
        """Prices of what runs in loops."""
        return CostModel(self.machine.in_loops())

    def price(
        self,
        constructor: str,
        attributes: Sequence[int | float],
        operands: Sequence[Value],
        result: Value,
        identities: Sequence[int] = (),
    ) -> float:
        """Predicted seconds of one e-node, its operands given.

        Parameters
        ----------
        constructor, attributes
            As in the term language.
        operands, result
            Shapes and dtypes.
        identities
            For n-ary products: which operands are the same class.
        """
        if constructor in ("NarySum", "NaryProd"):
            return self._nary(constructor, int(attributes[0]), operands, result, identities)
        key = (constructor, tuple(attributes), tuple(operands), result)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self._price(constructor, attributes, operands, result)
        return known

    def _price(
        self,
        constructor: str,
        attributes: Sequence[int | float],
        operands: Sequence[Value],
        result: Value,
    ) -> float:
        if constructor in _LEAVES:
            return 0.0
        if constructor.startswith(SUPERSEDED):
            return IMPOSSIBLE  # a mark at what a rule replaced for good, and nothing to compute
        if constructor in _VIEWS:
            return self.machine.fused_op
        if constructor == "Cast":
            return self._elementwise(1.0, operands, result)
        if constructor in REDUCING:
            return self._reduction(constructor, operands[0], result)
        if constructor in PRODUCTS:
            return self.product(PRODUCTS[constructor], operands[0], operands[1], result)
        op = self._ops.get(constructor)
        if isinstance(op, Elementwise):
            return self._elementwise(flops_of(op), operands, result, op.complex_form is not None)
        if op is not None and op.family is Family.SPARSE:
            return self._instance(op, operands, result)
        return self._library(constructor, attributes, operands, result)

    def arithmetic(self, flops: float, result: Value) -> float:
        """Seconds of an elementwise op of so many flops an element, operands and result in cache."""
        machine = self.machine
        factor = 1.0 if flops < 2.0 else machine.moderate if flops <= 8.0 else machine.transcendental
        return result.size * flops * factor / (machine.element_rate * self._speedup(result.itemsize))

    def reducing(self, constructor: str, operand: Value) -> float:
        """Seconds to reduce or normalize an operand that is in cache."""
        rate = self.machine.reduction_rate * self._speedup(operand.itemsize)
        flops, elementwise = REDUCING[constructor]
        return operand.size * flops / rate + (self.arithmetic(elementwise, operand) if elementwise else 0.0)

    def _speedup(self, itemsize: int) -> float:
        """Elements a second against those of 8 bytes."""
        narrow = self.machine.single_speedup
        return narrow if itemsize == 4 else min(8.0 / itemsize, 2.0 * narrow)

    def _elementwise(
        self, flops: float, operands: Sequence[Value], result: Value, has_complex: bool = True
    ) -> float:
        if not result.shape:
            return self.machine.fused_op
        work = self.arithmetic(flops, result)
        dtypes = {DTYPES[one.dtype] for one in (*operands, result)}
        if "float16" in dtypes or (not has_complex and not dtypes.isdisjoint(_COMPLEX)):
            moved = result.itemsize * (result.size + sum(operand.size for operand in operands))
            return self.machine.library_call + _SLOWER * work + moved / self.machine.bandwidth(moved)
        moved = result.size * result.itemsize
        traffic = self.machine.fused_traffic * moved / self.machine.bandwidth(moved)
        return self.machine.fused_op + self.machine.kernel(work, traffic) + self._against_order(operands)

    def _against_order(self, operands: Sequence[Value]) -> float:
        return sum(operand.size for operand in operands if operand.transposed) / self.machine.transposed_rate

    def _reduction(self, constructor: str, operand: Value, result: Value) -> float:
        if not operand.shape:
            return self.machine.fused_op
        moved = (self.machine.fused_traffic * operand.size + result.size) * operand.itemsize
        traffic = moved / self.machine.bandwidth(moved)
        work = self.reducing(constructor, operand)
        seconds = self.machine.kernel_call + self.machine.kernel(work, traffic)
        return seconds + self._against_order([operand])

    def product(self, op: MatMul, left: Value, right: Value, result: Value) -> float:
        """Seconds of a matrix product; operands and result with at least two axes, or rank-free."""
        if isinstance(op, StructuredProduct):
            whole = self.product(MATMUL, left, right, result)
            return structured_seconds(self.machine, op, left, right, result, whole)
        machine = self.machine
        rows, columns = result.shape[-2:] if result.shape else (1.0, 1.0)
        inner = left.shape[-1] if left.shape else right.shape[-2] if right.shape else 1.0
        batch = result.size / max(rows * columns, 1.0)
        flops = 2.0 * result.size * inner
        moved = (left.size + right.size + result.size) * result.itemsize
        seconds = machine.matrix_call + moved / machine.bandwidth(moved)
        name = DTYPES[result.dtype]
        if name not in _WITH_BLAS:
            return seconds + flops * _SLOWER / machine.element_rate
        if min(rows, columns) == 1.0 and batch == 1.0:
            return seconds
        speedup = machine.matrix_single_speedup if name in ("float32", "complex64") else 1.0
        work = flops * (4.0 if name.startswith("complex") else 1.0)
        separate = batch if right.size > inner * columns else 1.0
        # By the faces of the box of multiplications: each is an operand or the result, read or written.
        slowdown = 1.0 + sum(machine.matrix_half / max(size, 1.0) for size in (rows, columns, inner))
        work *= slowdown if separate == 1.0 else min(slowdown, _BATCH_SLOWDOWN)
        work *= _TALL if rows > columns and batch == 1.0 else 1.0
        return (
            seconds
            + (separate - 1.0) * _BATCH_SHARE * machine.matrix_call
            + work / (machine.matrix_rate * speedup)
        )

    def _library(
        self,
        constructor: str,
        attributes: Sequence[int | float],
        operands: Sequence[Value],
        result: Value,
    ) -> float:
        known = op_of(constructor, attributes, [len(one.shape) for one in operands], self.opaque)
        return IMPOSSIBLE if known is None else self.opaque_price(known, operands, result)

    def opaque_price(self, known: RankedOp, operands: Sequence[Value], result: Value) -> float:
        """Predicted seconds of an op by its own record, operands given."""
        ranked = [
            operand._replace(shape=operand.shape or (1.0,) * (rank or 0))
            for operand, rank in zip(operands, known.operand_ranks, strict=True)
        ]
        if isinstance(known.op, NormalProduct):
            return normal_seconds(self.machine, ranked[0])
        if not result.shape:
            result = result._replace(shape=(1.0,) * _result_rank(known.op, ranked))
        return self._instance(known.op, ranked, result)

    def indexed(self, op: Op, operands: Sequence[Value], result: Value) -> float | None:
        """Seconds of reading or writing by index arrays in a kernel; None for what is no such thing."""
        return indexed_seconds(self.machine, op, operands, result)

    def _instance(self, op: Op, operands: Sequence[Value], result: Value) -> float:
        indexed = self.indexed(op, operands, result)
        if indexed is not None:
            # What is written is a kernel's result, what is read may be computed with.
            return indexed + (self.machine.kernel_call if isinstance(op, PartWrite) else 0.0)
        shapes = [tuple(int(size) for size in operand.shape) for operand in operands]
        sizes = [operand.itemsize for operand in operands] + [result.itemsize]
        seconds = self.library_seconds(op, shapes, [tuple(int(size) for size in result.shape)], sizes)
        return self.machine.fused_op + masked_seconds(self.machine, op, operands) + seconds

    def library_seconds(
        self, op: Op, inputs: Sequence[Sizes], outputs: Sequence[Sizes], itemsizes: Sequence[int]
    ) -> float:
        """Seconds of an op that NumPy or SciPy computes.

        LAPACK, and others that do many operations on each number, do them in blocks, as matrix products do.
        One that copies elements reads no more of its operands than it writes.
        """
        machine = self.machine
        if isinstance(op, LoopOp):
            return loop_seconds(self.inside_loops, op, inputs, outputs)
        work = op.work(inputs, outputs, itemsizes)
        if op.family in (Family.INDEX, Family.VIEW, Family.CREATION):
            written = sum(
                prod(shape) * size for shape, size in zip(outputs, itemsizes[len(inputs) :], strict=True)
            )
            moved = min(work.bytes, 2.0 * written)
            return work.calls * machine.library_call + moved / machine.bandwidth(moved)
        numbers = work.bytes / 8.0
        blocked = isinstance(op, MatrixOp) or work.flops > _BLOCKED_FLOPS * numbers * log2(max(numbers, 2.0))
        rate = _BLOCKED_SHARE * machine.matrix_rate if blocked else machine.library_rate
        if isinstance(op, MatrixOp) and op.matrix_share:
            size = max(inputs[0][-1], 1)
            rate = op.matrix_share * machine.matrix_rate * size / (size + _LAPACK_HALF)
        if work.share:
            rate = work.share * machine.element_rate
        memory = work.bytes / machine.bandwidth(work.bytes)
        fixed = machine.library_call + (_SPARSE_CALL if op.family is Family.SPARSE and work.bytes else 0.0)
        return work.calls * fixed + work.flops / rate + memory

    def _nary(
        self,
        constructor: str,
        positives: int,
        operands: Sequence[Value],
        result: Value,
        identities: Sequence[int],
    ) -> float:
        if not operands:
            return IMPOSSIBLE
        shapes = [operand.shape for operand in operands]
        same = identities if len(identities) else range(len(operands))
        above, below = plan_counts(constructor, same, shapes, positives)
        seconds = 0.0
        for op, shape, count, exponent in plan_ops(constructor, above, below):
            if count:
                seconds += count * self.step_seconds(op, shape, result.dtype, exponent)
        if not positives and len(operands) > 1:
            seconds *= INVERSE_SUM
        return seconds + self._against_order(operands)

    def step_seconds(self, name: str, shape: Shape, dtype: int, exponent: int = 0) -> float:
        """Seconds of a binary or unary op of a plan, or of a power with this exponent."""
        key = (name, shape, dtype, exponent)
        known = self._memo.get(key)
        if known is None:
            flops = step_flops(name, exponent)
            known = self._memo[key] = self._elementwise(flops, (), Value(shape, dtype))
        return known


def _result_rank(op: Op, operands: Sequence[Value]) -> int:
    """Number of axes of an op's result, by its typing rule; 0 where types of operands alone do not tell."""
    types = [TensorType(DTYPES[operand.dtype], shape=(None,) * len(operand.shape)) for operand in operands]
    try:
        result = op.infer_types([Variable(type) for type in types])[0]
    except EsatError:
        return 0
    return result.ndim if isinstance(result, TensorType) else 0
