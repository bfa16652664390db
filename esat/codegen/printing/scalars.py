"""Definitions, stores and accumulator steps as source text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from numba.core import types

from esat.base.records import record
from esat.codegen.ground import leaving
from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import read_by_elements
from esat.codegen.kernel.loop_ir import (
    Accumulator,
    Array,
    At,
    Check,
    Compute,
    Convert,
    Definition,
    Kernel,
    Literal,
    Load,
    LoadAt,
    Places,
    Scatter,
    Size,
    Store,
)
from esat.codegen.llvm import scalar, views
from esat.codegen.printing.input_layout import Layout
from esat.codegen.printing.source import Source
from esat.codegen.printing.unrounded_products import HornerStep
from esat.codegen.vector_math import reduction

_WRAPPING = {"{0} + {1}": "wrapping_add({0}, {1})", "{0} * {1}": "wrapping_mul({0}, {1})"}
"""How signed integers are added up and multiplied: numba compiles its own operators as if none overflowed."""


@record(frozen=True)
class Names:
    """How values and loop positions are called at one place of the source.

    Attributes
    ----------
    values, positions
        Text for values and axes that are not called ``v0``, ``i0``.
    bounds
        The first place, and the one after the last, of axes that loops run through in part.
    """

    values: dict[int, str] = field(default_factory=dict)
    positions: dict[int, str] = field(default_factory=dict)
    bounds: dict[int, tuple[str, str]] = field(default_factory=dict)

    def value(self, number: int) -> str:
        """The name of a value."""
        return self.values.get(number, f"v{number}")

    def position(self, axis: int) -> str:
        """The name of the place along an axis."""
        return self.positions.get(axis, f"i{axis}")

    def with_position(self, axis: int, text: str) -> Names:
        """The same with another name for the place along one axis."""
        return replace(self, positions={**self.positions, axis: text})


def size_name(axis: int) -> str:
    """The name of the size of an axis."""
    return f"n{axis}"


def array_name(kernel: Kernel, number: int) -> str:
    """The name of the argument that an array is passed as."""
    outputs = len(kernel.outputs)
    return f"o{number}" if number < outputs else f"x{number - outputs}"


def is_viewed(array: Array) -> bool:
    """Whether loads and stores see the array in another shape than it is passed in."""
    return bool(array.groups) and array.groups != tuple((axis,) for axis in range(array.rank))


class ScalarPrinter:
    """Prints the statements that are no loops.

    Parameters
    ----------
    kernel
        What the statements are part of.
    target
        What the kernel is printed for.
    layout
        Of the inputs.
    steps
        Those of polynomials, by the values they result in.
    """

    def __init__(
        self, kernel: Kernel, target: Target, source: Source, layout: Layout, steps: Mapping[int, HornerStep]
    ) -> None:
        self.kernel = kernel
        self.target = target
        self.source = source
        self.layout = layout
        self._steps = steps
        self._by_elements = read_by_elements(kernel) if layout == "R" else frozenset()
        self._products = {step.product for step in steps.values()}

    def element(self, number: int, index: Places, names: Names) -> str:
        """The text of an array's element."""
        array = self.kernel.arrays[number]
        name = self.indexed_name(number)
        if array.rank == 0:
            return f"{name}[()]"
        if not array.groups:
            return f"{name}[{', '.join(['0'] * array.rank)}]"
        return f"{name}[{', '.join(self.places(index, names))}]"

    def indexed_name(self, number: int) -> str:
        """The name of an array, or of the view of it, that loads and stores index."""
        name = array_name(self.kernel, number)
        return f"{name}_view" if is_viewed(self.kernel.arrays[number]) else name

    def places(self, index: Places, names: Names) -> list[str]:
        """The places that an index stands for."""
        return [self._place(entry, names) for entry in index]

    def _place(self, entry: int | At | None, names: Names) -> str:
        if isinstance(entry, At):
            # Unsigned: numba would count negative ones from the end once more.
            return f"{self.source.use('uintp', types.uintp)}({names.value(entry.value)})"
        return "0" if entry is None else names.position(entry)

    def _load(self, statement: Load | LoadAt, names: Names) -> str:
        place = statement.array - len(self.kernel.outputs)
        if not (self.layout == "R" and place in self._by_elements and statement.index):
            return self.element(statement.array, statement.index, names)
        load = self.source.use("load_in_row", views.load_in_row)
        places = "".join(f"{place}, " for place in self.places(statement.index, names))
        return f"{load}({array_name(self.kernel, statement.array)}, ({places}))"

    def definition(self, statement: Definition, names: Names) -> None:
        """Print the definition of a value, unless it is part of the next one."""
        if statement.value in self._products:
            return
        self.source.line(
            f"{names.value(statement.value)} = {self._right_side(statement, names)}", statement.comment
        )

    def _right_side(self, statement: Definition, names: Names) -> str:
        if isinstance(statement, Load | LoadAt):
            return self._load(statement, names)
        if isinstance(statement, Size):
            name = array_name(self.kernel, statement.array)
            return f"{self.source.use('int64', types.int64)}({name}.shape[{statement.axis}])"
        if isinstance(statement, Literal):
            return self.source.expression(statement.text, statement.dtype)
        if isinstance(statement, Convert):
            return self._conversion(statement, names.value(statement.operand))
        return self._computation(statement, names)

    def _computation(self, statement: Compute, names: Names) -> str:
        if statement.value in self._steps:
            return self._horner_step(self._steps[statement.value], names)
        text = self.source.expression(statement.template, statement.operand_dtype)
        filled = text.format(*(names.value(operand) for operand in statement.operands))
        return self.wrapped(filled, statement.dtype)

    def _horner_step(self, step: HornerStep, names: Names) -> str:
        name = "multiply_subtract" if step.subtracts else "multiply_add"
        combine = self.source.use(name, getattr(reduction, name))
        return f"{combine}({', '.join(map(names.value, (*step.factors, step.number)))})"

    def wrapped(self, text: str, dtype: str) -> str:
        """An expression converted to the dtype of its result: numba computes with wide integers."""
        if "int" not in dtype:
            return text
        return f"{self.source.expression(dtype, dtype)}({text})"

    def _conversion(self, statement: Convert, operand: str) -> str:
        if statement.dtype == "bool":
            return f"{operand} != {self.source.expression(statement.operand_dtype, 'bool')}(0)"
        target = self.source.expression(statement.dtype, statement.dtype)
        if "int" in statement.dtype and statement.operand_dtype.startswith("float"):
            return f"{self.source.use('float_to_integer', scalar.float_to_integer)}({operand}, {target})"
        return f"{target}({operand})"

    def store(self, statement: Store, names: Names) -> None:
        """Print a store."""
        place = self.element(statement.array, statement.index, names)
        self.source.line(f"{place} = {names.value(statement.operand)}", statement.comment)

    def scatter(self, statement: Scatter, names: Names) -> None:
        """Print a store, or an addition, at a place that values say."""
        place, text = self.element(statement.array, statement.index, names), names.value(statement.operand)
        if statement.adds:
            dtype = self.kernel.arrays[statement.array].dtype
            text = self.added(dtype, place, text)
        self.source.line(f"{place} = {text}", statement.comment)

    def check(self, statement: Check, names: Names) -> None:
        """Print a check."""
        leave = self.source.use("leave_if", leaving.leave_if)
        self.source.line(f"{leave}({names.value(statement.operand)})", statement.comment)

    def combination(self, accumulator: Accumulator, gathered: str, operand: str) -> str:
        """The text that joins two partial results of an accumulator, for one that is no float sum."""
        template = "{0} + {1}" if accumulator.kind == "sum" else accumulator.template
        return self._combined(template, accumulator.dtype, gathered, operand)

    def added(self, dtype: str, first: str, second: str) -> str:
        """The text of a sum, as ``numpy.add`` has it."""
        return self._combined("{0} | {1}" if dtype == "bool" else "{0} + {1}", dtype, first, second)

    def _combined(self, template: str, dtype: str, first: str, second: str) -> str:
        if dtype.startswith("int"):
            template = _WRAPPING.get(template, template)
        return self.wrapped(self.source.expression(template, dtype).format(first, second), dtype)

    def start(self, accumulator: Accumulator) -> str:
        """The text of an accumulator's first value."""
        return self.source.expression(accumulator.start, accumulator.dtype)
