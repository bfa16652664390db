"""From numba's typed code of printed loops to LLVM's, in fewer instructions than numba writes itself.

Numba keeps variables, and each array that it reads or asks for its sizes, in memory, makes an object of each
range, and sees to it that indices below zero count from the end. It leaves it to LLVM to find that none of it
is needed. To write all that, print and parse it, and drop it took half as long as to optimize what remains
and to make machine code of it. The machine code of most kernels is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from llvmlite.ir import Constant, Undefined
from llvmlite.ir.instructions import ExtractValue, InsertValue
from numba.core import cgutils, ir, types
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.np import arrayobj

_ARRAYS: Any = arrayobj
_CGUTILS: Any = cgutils
_FLOW: Any = compute_cfg_from_blocks
_USES: Any = compute_use_defs


class _LoopLower(Lower):
    """Numba's writer of LLVM code, for one function of loops."""

    def init(self) -> None:
        """Find out what need not be kept in memory."""
        self._counted: set[int] = set()
        self._innermost: dict[str, list[str]] = {}
        super().init()

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """What a variable is assigned."""
        self._target = inst.target.name
        return super().lower_assign(ty, inst)

    def lower_function_body(self) -> Any:
        """Write the function, but not what it takes arrays apart and puts them together for."""
        last = super().lower_function_body()
        drop_unused(self.function)
        return last

    def lower_binop(self, result: Any, expression: Any, operation: Any) -> Any:
        """An operation of two values."""
        if expression.static_lhs is not ir.UNDEFINED or expression.static_rhs is not ir.UNDEFINED:
            return super().lower_binop(result, expression, operation)
        signature = self.fndesc.calltypes[expression]
        operands = [
            self.context.cast(self.builder, self.loadvar(one.name), self.typeof(one.name), type_)
            for one, type_ in zip((expression.lhs, expression.rhs), signature.args, strict=True)
        ]
        value = self._implementation(operation, signature.args)(self.builder, operands)
        return self.context.cast(self.builder, value, signature.return_type, result)

    def lower_getitem(self, result: Any, expression: Any, value: Any, index: Any, signature: Any) -> Any:
        """An element of an array, or something else of another value."""
        array, index_type = signature.args
        if not _is_element(array, index_type) or self.typeof(value.name) != array:
            return super().lower_getitem(result, expression, value, index, signature)
        pointer = self._element(array, value, index, index_type)
        element = _ARRAYS.load_item(self.context, self.builder, array, pointer)
        return self.context.cast(self.builder, element, signature.return_type, result)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Store an element of an array, or something else in another value."""
        array, index_type, type_ = signature.args
        if not _is_element(array, index_type) or self.typeof(target_var.name) != array:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.loadvar(value_var.name)
        value = self.context.cast(self.builder, value, self.typeof(value_var.name), type_)
        pointer = self._element(array, target_var, index_var, index_type)
        value = self.context.cast(self.builder, value, type_, array.dtype)
        return _ARRAYS.store_item(self.context, self.builder, array, value, pointer)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """What an expression gives."""
        write = self._writers.get(expr.op)
        value = None if write is None else write(self, resty, expr)
        return super().lower_expr(resty, expr) if value is None else value

    def _range(self, result: Any, expression: Any) -> Any:
        """A range, as its first number, its end and its step; None for what other functions return."""
        if not isinstance(result, types.RangeType):
            return None
        signature = self.fndesc.calltypes[expression]
        numbers = [
            self.context.cast(self.builder, self.loadvar(one.name), self.typeof(one.name), type_)
            for one, type_ in zip(expression.args, signature.args, strict=True)
        ]
        zero, one = (self.context.get_constant(result.dtype, number) for number in (0, 1))
        start, stop, step = {1: (zero, *numbers, one), 2: (*numbers, one)}.get(len(numbers), numbers)
        return self._structure(result, [start, stop, step])

    def _iterator(self, result: Any, expression: Any) -> Any:
        """What counts the numbers of a range, for an innermost loop; None for other iterators.

        Of the others, and where the first number is not known, LLVM makes better code from numba's, which it
        does not see through: it would count the numbers of a range in a second way, and then not know that
        whole vectors leave nothing over.
        """
        copies = self._innermost.get(self._target)
        if copies is None or not self._singly_assigned_vars.issuperset(copies):
            return None
        builder, numbers = self.builder, self.loadvar(expression.value.name)
        start, stop, step = (_field(builder, numbers, number) for number in range(3))
        first = _known(start)
        if first is None or first < 0 or _known(step) != 1:
            return None
        with builder.goto_entry_block():
            place = builder.alloca(stop.type)
        builder.store(start, place)
        self._counted.add(id(place))
        return self._structure(result, [place, stop, step])

    def _next(self, result: Any, expression: Any) -> Any:
        """The next number of a range, and whether there is one; None for other iterators."""
        if not isinstance(self.typeof(expression.value.name), types.RangeIteratorType):
            return None
        builder, iterator = self.builder, self.loadvar(expression.value.name)
        place, stop, step = (_field(builder, iterator, number) for number in range(3))
        if id(place) in self._counted:
            number = builder.load(place)
            self._counted.add(id(number))
            valid = builder.icmp_signed("<", number, stop)
            builder.store(builder.add(number, step), place)
            return self._structure(result, [number, valid])
        left = _field(builder, iterator, 3)
        count = builder.load(left)
        valid = builder.icmp_signed(">", count, count.type(0))
        before = builder.block
        with builder.if_then(valid):
            number = builder.load(place)
            builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
            builder.store(builder.add(number, step), place)
            inside = builder.block
        either = builder.phi(number.type)
        either.add_incoming(number.type(0), before)
        either.add_incoming(number, inside)
        return self._structure(result, [either, valid])

    def _first(self, result: Any, expression: Any) -> Any:
        """The number that an iterator gave."""
        return self._of_pair(result, expression, 0)

    def _second(self, result: Any, expression: Any) -> Any:
        """Whether an iterator gave one."""
        return self._of_pair(result, expression, 1)

    def _of_pair(self, result: Any, expression: Any, place: int) -> Any:
        if not isinstance(result, types.Number | types.Boolean):
            return None
        return _field(self.builder, self.loadvar(expression.value.name), place)

    def _attribute(self, result: Any, expression: Any) -> Any:
        """The sizes of an array; None for other attributes."""
        type_ = self.typeof(expression.value.name)
        if expression.attr != "shape" or type(type_) is not types.Array:
            return None
        return self._of_array(type_, expression.value, "shape")

    def _part(self, result: Any, expression: Any) -> Any:
        """A part of a tuple of numbers at a known place, from its beginning; None for what else has parts."""
        kinds, place = _kinds(self.typeof(expression.value.name)), expression.index
        if not _are_numbers(kinds) or type(place) is not int or place not in range(len(kinds)):
            return None
        part = _field(self.builder, self.loadvar(expression.value.name), place)
        return self.context.cast(self.builder, part, kinds[place], result)

    def _of_array(self, type_: Any, variable: Any, field: str) -> Any:
        """What is known of an array: its memory, or its sizes."""
        place = self.context.data_model_manager[type_].get_field_position(field)
        return _field(self.builder, self.loadvar(variable.name), place)

    _writers: ClassVar[dict[str, Callable[[Any, Any, Any], Any]]] = {
        "call": _range,
        "getiter": _iterator,
        "iternext": _next,
        "pair_first": _first,
        "pair_second": _second,
        "getattr": _attribute,
        "static_getitem": _part,
    }

    def _structure(self, type_: Any, fields: Sequence[Any]) -> Any:
        """A value of a type that consists of some fields."""
        value = Constant(self.context.get_value_type(type_), Undefined)
        for place, one in enumerate(fields):
            value = self.builder.insert_value(value, one, place)
        return value

    def _element(self, array: Any, variable: Any, index: Any, index_type: Any) -> Any:
        """A pointer to an element of an array."""
        builder = self.builder
        sizes = self._of_array(array, variable, "shape")
        shape = [_field(builder, sizes, axis) for axis in range(array.ndim)]
        places = self.context.cast(builder, self.loadvar(index.name), self.typeof(index.name), index_type)
        is_tuple = isinstance(index_type, types.Tuple | types.UniTuple)
        numbers = [_field(builder, places, axis) for axis in range(array.ndim)] if is_tuple else [places]
        numbers = [
            number
            if id(number) in self._counted
            else _ARRAYS.fix_integer_index(self.context, builder, kind, number, size)
            for kind, number, size in zip(_kinds(index_type), numbers, shape, strict=True)
        ]
        data = self._of_array(array, variable, "data")
        if array.layout == "C" and array.ndim == 1:
            return builder.gep(data, numbers)
        strides: list[Any] = []
        if array.layout == "A":
            steps = self._of_array(array, variable, "strides")
            strides = [_field(builder, steps, axis) for axis in range(array.ndim)]
        return _CGUTILS.get_item_pointer2(self.context, builder, data, shape, strides, array.layout, numbers)

    def _implementation(self, operation: Any, arguments: tuple[Any, ...]) -> Any:
        """What writes a function for arguments of these types."""
        function = self.context.typing_context.resolve_value_type(operation)
        signature = self.context.signatures.resolve_function_type(function, arguments, {})
        return self.context.get_function(function, signature)

    def _find_singly_assigned_variable(self) -> None:
        """Find out which variables need not be kept in memory, and which are ranges of innermost loops.

        The first are assigned once, before all blocks in which they are used are entered.
        """
        counts: Counter[str] = Counter()
        assigned: dict[str, int] = {}
        copied: dict[str, str] = {}
        for label, block in self.blocks.items():
            for one in block.find_insts(ir.Assign):
                name = one.target.name
                counts[name] += 1
                assigned[name] = label
                if isinstance(one.value, ir.Var):
                    copied[name] = one.value.name
        flow = _FLOW(self.blocks)
        before, loops = flow.dominators(), flow.loops()
        elsewhere: set[str] = set()
        unknown: set[str] = set()
        for label, names in _USES(self.blocks).usemap.items():
            elsewhere.update(names)
            unknown.update(name for name in names if name in assigned and assigned[name] not in before[label])
        first = min(self.blocks)
        known = {
            name
            for name, count in counts.items()
            if count == 1
            and name not in unknown
            and (name not in elsewhere or assigned[name] == first or not self._is_owned(name))
        }
        self._singly_assigned_vars, self._blk_local_varmap = known, {}
        for header, loop in loops.items():
            if not loops.keys() & (set(loop.body) - {header}):
                for expression in self.blocks[header].find_exprs("iternext"):
                    copies = [expression.value.name]
                    while copies[-1] in known and copies[-1] in copied:
                        copies.append(copied[copies[-1]])
                    if isinstance(self.typeof(copies[-1]), types.RangeIteratorType) and known.issuperset(
                        copies
                    ):
                        self._innermost[copies[-1]] = copies

    def _is_owned(self, name: str) -> bool:
        """Whether a variable's memory is given up somewhere, be it where the variable was never assigned."""
        return bool(self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo())


@register_pass(mutates_CFG=True, analysis_only=False)
class LoopLowering(NativeLowering):
    """Numba's step from typed code to machine code, with a writer for loops."""

    _name = "loop_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _LoopLower


def _is_element(array: Any, index: Any) -> bool:
    """Whether what is found at an index of this type is one number."""
    kinds = _kinds(index)
    return (
        type(array) is types.Array
        and isinstance(array.dtype, types.Number | types.Boolean)
        and len(kinds) == array.ndim
        and _are_numbers(kinds)
    )


def _are_numbers(kinds: Sequence[Any]) -> bool:
    return all(isinstance(kind, types.Integer) for kind in kinds)


def _field(builder: Any, value: Any, place: int) -> Any:
    """A field of a structure: where it was put into the structure in this function, the value itself."""
    while isinstance(value, InsertValue):
        if value.indices == [place]:
            return value.operands[1]
        value = value.operands[0]
    return builder.extract_value(value, place)


def _known(number: Any) -> int | None:
    """A number that is known when code is written."""
    return number.constant if isinstance(number, Constant) and isinstance(number.constant, int) else None


def drop_unused(function: Any) -> None:
    """Drop what takes structures apart, and puts them together, and is not used."""
    uses = Counter(
        id(operand) for block in function.blocks for one in block.instructions for operand in one.operands
    )
    for block in reversed(function.blocks):
        kept = []
        for one in reversed(block.instructions):
            if isinstance(one, InsertValue | ExtractValue) and not uses[id(one)]:
                uses.subtract(map(id, one.operands))
            else:
                kept.append(one)
        block.instructions[:] = reversed(kept)


def _kinds(index: Any) -> tuple[Any, ...]:
    """The types of what an index of this type consists of."""
    return tuple(index.types) if isinstance(index, types.Tuple | types.UniTuple) else (index,)
