"""Checks of a kernel: what the printer and the runtime rely on."""

from __future__ import annotations

from esat.base.records import record
from esat.codegen.kernel.loop_ir import (
    Accumulator,
    At,
    Check,
    Compute,
    Convert,
    Definition,
    Kernel,
    Load,
    LoadAt,
    Loop,
    Places,
    Scatter,
    Size,
    Statement,
    Store,
    Tile,
    Update,
    axes_of,
    operands_of,
)
from esat.codegen.template import is_resolvable, placeholders
from esat.errors import CompileError
from esat.ops.elementwise.records.code import KERNEL_DTYPES


def verify(kernel: Kernel) -> None:
    """Raise CompileError unless the kernel is well formed.

    Values are defined before they are read, with operands of the dtypes that their definitions name;
    loads and stores name axes of enclosing loops, one for each axis of the array's view, or int64 values;
    checks come before all stores; no loop opens an axis twice; every accumulator is updated once, directly
    in its loop; every output is stored in the loops over exactly its own axes, so that also arrays with an
    empty axis are filled; and what is loaded from an output is the value that was stored there last, or,
    before anything is, what the caller left in it.
    """
    _Verifier(kernel).run()


@record(frozen=True)
class _Scope:
    """What is in force at one place: open axes, dtypes of values, accumulators, and whether in a tile."""

    axes: tuple[int, ...]
    dtypes: dict[int, str]
    accumulators: dict[int, Accumulator]
    in_tile: bool = False


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.stored: set[int] = set()
        self.held: dict[int, int] = {}  # by output: the value that it holds

    def run(self) -> None:
        for array in self.kernel.arrays:
            self._require(array.dtype in KERNEL_DTYPES, f"no kernel code for {array.dtype}")
            axes = [axis for group in array.groups for axis in group]
            self._require(
                all(0 <= axis < array.rank for axis in axes) and len(set(axes)) == len(axes),
                f"view axes {array.groups} of an array of rank {array.rank}",
            )
        for number, axis in enumerate(self.kernel.axes):
            self._require(bool(axis.factors), f"axis {number} has no size")
            for array_number, place in (*axis.factors, *axis.equal):
                self._require(
                    0 <= array_number < len(self.kernel.arrays)
                    and 0 <= place < self.kernel.arrays[array_number].rank,
                    f"axis {number} takes its size from axis {place} of array {array_number}",
                )
        self._block(self.kernel.body, _Scope((), {}, {}))
        missing = set(range(len(self.kernel.outputs))) - self.stored
        self._require(not missing, f"results of outputs {sorted(missing)} are not stored")

    def _require(self, condition: bool, problem: str) -> None:
        if not condition:
            raise CompileError(f"codegen: malformed kernel ({self.kernel.comment}): {problem}")

    def _block(self, body: tuple[Statement, ...], scope: _Scope) -> None:
        updated: list[int] = []
        for statement in body:
            for operand in operands_of(statement):
                self._require(operand in scope.dtypes, f"value {operand} is read before it is defined")
            if isinstance(statement, Loop | Tile):
                self._nested(statement, scope)
            elif isinstance(statement, Store):
                self._store(statement, scope)
            elif isinstance(statement, Scatter):
                self._scatter(statement, scope)
            elif isinstance(statement, Check):
                self._check(statement, scope)
            elif isinstance(statement, Update):
                updated.append(statement.accumulator)
                self._update(statement, scope)
            else:
                self._definition(statement, scope)
                scope.dtypes[statement.value] = (
                    statement.dtype
                    if not isinstance(statement, Load | LoadAt)
                    else (self.kernel.arrays[statement.array].dtype)
                )
        self._require(
            sorted(updated) == sorted(scope.accumulators),
            f"accumulators {sorted(scope.accumulators)} are updated by {sorted(updated)}",
        )

    def _nested(self, statement: Loop | Tile, scope: _Scope) -> None:
        axes = (statement.axis,) if isinstance(statement, Tile) else statement.axes
        accumulators = () if isinstance(statement, Tile) else statement.accumulators
        self._require(bool(axes), "a loop over no axes")
        self._require(
            all(0 <= axis < len(self.kernel.axes) for axis in axes)
            and len({*axes, *scope.axes}) == len(axes) + len(scope.axes),
            f"a loop over axes {axes} inside loops over {scope.axes}",
        )
        self._require(not scope.in_tile or isinstance(statement, Loop), "a tile inside a tile")
        inner = _Scope(
            (*scope.axes, *axes),
            dict(scope.dtypes),
            {accumulator.value: accumulator for accumulator in accumulators},
            scope.in_tile or isinstance(statement, Tile),
        )
        if scope.in_tile:
            self._require(
                not any(isinstance(part, Loop | Tile) for part in statement.body),
                "loops inside a loop of a tile",
            )
        self._block(statement.body, inner)
        for accumulator in accumulators:
            scope.dtypes[accumulator.value] = accumulator.result_dtype

    def _scatter(self, statement: Scatter, scope: _Scope) -> None:
        self._index(statement.array, statement.index, scope)
        self._require(statement.array in self.stored, f"array {statement.array} is not filled first")
        wanted, found = self.kernel.arrays[statement.array].dtype, scope.dtypes[statement.operand]
        self._require(wanted == found, f"a value of {found} scattered into {wanted}")

    def _check(self, statement: Check, scope: _Scope) -> None:
        self._require(not scope.axes and not self.stored, "a check in a loop, or behind a store")
        found = scope.dtypes[statement.operand]
        self._require(found == "bool", f"a check of a value of {found}")

    def _definition(self, statement: Definition, scope: _Scope) -> None:
        if isinstance(statement, Load | LoadAt):
            self._index(statement.array, statement.index, scope)
            if statement.array < len(self.kernel.outputs):
                held = self.held.get(statement.array)
                problem = (
                    f"value {statement.value} is loaded from array {statement.array}, which holds {held}"
                )
                self._require(held in (None, statement.value), problem)
        elif isinstance(statement, Size):
            self._require(
                0 <= statement.array < len(self.kernel.arrays)
                and 0 <= statement.axis < self.kernel.arrays[statement.array].rank,
                f"the size of axis {statement.axis} of array {statement.array}",
            )
        elif isinstance(statement, Compute):
            used = set(placeholders(statement.template))
            self._require(
                used == set(range(len(statement.operands))),
                f"template {statement.template!r} of {len(statement.operands)} operands",
            )
            self._require(
                statement.dtype in KERNEL_DTYPES
                and is_resolvable(statement.template, statement.operand_dtype),
                f"template {statement.template!r} has no meaning for {statement.operand_dtype}",
            )
            found = [scope.dtypes[operand] for operand in statement.operands]
            self._require(
                all(dtype in (statement.operand_dtype, "bool") for dtype in found),
                f"operands {found} of {statement.template!r} for {statement.operand_dtype}",
            )
        elif isinstance(statement, Convert):
            found_dtype = scope.dtypes[statement.operand]
            self._require(
                found_dtype == statement.operand_dtype,
                f"a cast from {statement.operand_dtype} of a value of {found_dtype}",
            )
        else:
            self._require(statement.dtype in KERNEL_DTYPES, f"a number of {statement.dtype}")

    def _index(self, array: int, index: Places, scope: _Scope) -> None:
        self._require(0 <= array < len(self.kernel.arrays), f"no array {array}")
        groups = self.kernel.arrays[array].groups
        self._require(len(index) == len(groups), f"index {index} of array {array} with axes {groups}")
        places = [scope.dtypes[entry.value] for entry in index if isinstance(entry, At)]
        self._require(set(places) <= {"int64"}, f"index {index} of array {array} with places of {places}")
        named = axes_of(index)
        self._require(
            set(named) <= set(scope.axes) and len(set(named)) == len(named),
            f"index {index} of array {array} inside loops over {scope.axes}",
        )

    def _store(self, statement: Store, scope: _Scope) -> None:
        self._index(statement.array, statement.index, scope)
        self._require(statement.array < len(self.kernel.outputs), f"array {statement.array} is an input")
        wanted, found = self.kernel.arrays[statement.array].dtype, scope.dtypes[statement.operand]
        self._require(wanted == found, f"a value of {found} stored as {wanted}")
        self.held[statement.array] = statement.operand
        self._require(
            set(axes_of(statement.index)) == set(scope.axes),
            f"array {statement.array} stored at {statement.index} inside loops over {scope.axes}",
        )
        if not statement.kept:
            self.stored.add(statement.array)

    def _update(self, statement: Update, scope: _Scope) -> None:
        accumulator = scope.accumulators.get(statement.accumulator)
        self._require(accumulator is not None, f"{statement.accumulator} is no accumulator of its loop")
        assert accumulator is not None
        found = scope.dtypes[statement.operand]
        self._require(accumulator.dtype == found, f"a value of {found} gathered as {accumulator.dtype}")
