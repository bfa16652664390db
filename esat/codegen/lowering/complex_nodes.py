"""Nodes of complex numbers as scalar values: what is loaded and stored is complex, all between is real."""

from __future__ import annotations

import re
from collections.abc import Sequence

from esat.base.records import record
from esat.codegen.kernel.loop_ir import Compute
from esat.codegen.lowering.axes import AxisNames
from esat.codegen.lowering.scalar_values import SUM, Steps, Values, is_literal, literal_text
from esat.graph import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.cast import Cast
from esat.ops.elementwise.complex_forms import PART_DTYPES, Operand, Parts
from esat.ops.elementwise.records.code import expression
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.advanced import AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.reduction import Reduction

_FUNCTION = re.compile("exp|sin|cos|log|arctan2")
_FUNCTION_FLOPS = 12.0
"""Work of a function of parts of complex numbers, in additions."""


def is_complex(node: Apply) -> bool:
    """Whether an operand or the result is of complex numbers."""
    return any(one.tensor_type.dtype in PART_DTYPES for one in (*node.inputs, *node.outputs))


def supports_complex(node: Apply) -> bool:
    """Whether kernels have a form of an op for complex numbers."""
    op = node.op
    if isinstance(op, Cast):
        return op.dtype in PART_DTYPES
    if isinstance(op, Elementwise):
        return op.complex_form is not None
    if isinstance(op, Reduction):
        return op.typing == "reduce" and op.reducer.combine == SUM
    return isinstance(op, DimShuffle | AdvancedSubtensor | AdvancedSetSubtensor)


class ComplexValues(Values):
    """The values of a group's nodes, some of which may be of complex numbers."""

    def __init__(self, nodes: Sequence[Apply], names: AxisNames, numbers: dict[Variable, int]) -> None:
        self._parts: dict[Variable, Parts] = {}
        super().__init__(nodes, names, numbers)

    def _operand(self, position: int, place: int, node: Apply) -> int:
        variable = node.inputs[place]
        if is_literal(variable) and variable.tensor_type.dtype in PART_DTYPES:
            parts = self._both(position, place, node)
            return self._joined(parts, variable.tensor_type.dtype, str(variable))
        return super()._operand(position, place, node)

    def _add_node(self, position: int, node: Apply) -> None:
        if is_complex(node) and isinstance(node.op, Cast | Elementwise | Reduction):
            self._complex(position, node)
        else:
            super()._add_node(position, node)

    def _both(self, position: int, place: int, node: Apply) -> Parts:
        """The real and the imaginary part of an operand."""
        variable = node.inputs[place]
        if variable in self._parts:
            return self._parts[variable]
        dtype = variable.tensor_type.dtype
        part = PART_DTYPES[dtype]
        if isinstance(variable, Constant) and is_literal(variable):
            number = variable.data.reshape(()).item()
            texts = literal_text(number.real, part), literal_text(number.imag, part)
            return self.literal(part, texts[0]), self.literal(part, texts[1])
        whole, comment = self._operand(position, place, node), str(variable)
        first, second = (
            self._define(Compute(-1, part, template, dtype, (whole,), comment))
            for template in ("{0}.real", "{0}.imag")
        )
        return first, second

    def _joined(self, parts: Parts, dtype: str, comment: str) -> int:
        """A complex number of its parts."""
        return self.distinct(dtype, "complex({0}, {1})", PART_DTYPES[dtype], parts, comment)

    def _complex(self, position: int, node: Apply) -> None:
        """A function of complex numbers, a cast to them, or a sum."""
        op, output, comment = node.op, node.outputs[0], str(node)
        result: Operand
        if isinstance(op, Cast):
            result = self._cast_to_complex(position, node, PART_DTYPES[op.dtype])
        elif isinstance(op, Reduction):
            index = self._names.operand(node, (position, 0))
            bound = tuple(axis for axis in (index[axis] for axis in op.axes) if axis is not None)
            part = PART_DTYPES[node.inputs[0].tensor_type.dtype]
            first, second = (
                Steps(self, one, bound, part, comment).reduction(op) for one in self._both(position, 0, node)
            )
            result = first, second
        else:
            dtypes = [variable.tensor_type.dtype for variable in node.inputs]
            given = [
                self._both(position, place, node)
                if dtype in PART_DTYPES
                else self._operand(position, place, node)
                for place, dtype in enumerate(dtypes)
            ]
            assert isinstance(op, Elementwise)
            assert op.complex_form is not None
            part = next(PART_DTYPES[dtype] for dtype in dtypes if dtype in PART_DTYPES)
            result = op.complex_form(_OnParts(self, part, comment), *given)
        if isinstance(result, tuple):
            self._parts[output] = result
            result = self._joined(result, output.tensor_type.dtype, comment)
        self.of[output] = result

    def _cast_to_complex(self, position: int, node: Apply, part: str) -> Parts:
        dtype = node.inputs[0].tensor_type.dtype
        if dtype in PART_DTYPES:
            own = PART_DTYPES[dtype]
            first, second = self._both(position, 0, node)
            if own == part:
                return first, second
            return self.convert(first, own, part), self.convert(second, own, part)
        real = self._operand(position, 0, node)
        if dtype != part:
            real = self.convert(real, dtype, part)
        return real, self.literal(part, literal_text(0, part))


@record(frozen=True)
class _OnParts:
    """Computes values of the dtype of the parts of complex numbers."""

    values: ComplexValues
    dtype: str
    comment: str

    def __call__(self, template: str, *operands: int) -> int:
        return self._computed(self.dtype, template, operands)

    def is_true(self, template: str, *operands: int) -> int:
        return self._computed("bool", template, operands)

    def _computed(self, dtype: str, template: str, operands: tuple[int, ...]) -> int:
        flops = _FUNCTION_FLOPS if _FUNCTION.search(template) else template.count(" ") / 2
        text = expression(template, self.dtype)
        return self.values.distinct(dtype, text, self.dtype, operands, self.comment, flops)
