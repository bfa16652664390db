"""Variables, constants, shared variables and the Apply nodes that connect them."""

from __future__ import annotations

import difflib
import reprlib
import sys
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, cast

import numpy as np

from esat.errors import CycleError, EsatError, GraphError, TracedAttributeError, UserLine, describe
from esat.graph.algorithms.traversal import toposort
from esat.graph.calls.callers import node_line, user_line
from esat.graph.methods import Methods
from esat.graph.types import TensorType, Type, may_stand_for
from esat.graph.watching import note

if TYPE_CHECKING:
    from esat.graph.function_graph import Client
    from esat.graph.op import Op


class Variable(Methods):
    """A datum at one point of a computation.

    Attributes
    ----------
    type
        What values it can hold.
    owner
        The Apply node that computes it, or None.
    index
        Its position among ``owner.outputs``.
    name
        For printing.
    clients
        Where a FunctionGraph uses it: pairs of an Apply (or ``"output"``) and a position there.
        Set by the FunctionGraph that owns the variable; None outside one.
    """

    __slots__ = ("__weakref__", "clients", "index", "name", "owner", "type")

    def __init__(
        self, type: Type, owner: Apply | None = None, index: int | None = None, name: str | None = None
    ) -> None:
        if not isinstance(type, Type):
            raise GraphError(f"a Variable has a Type, not {reprlib.repr(type)}")
        if name is not None and not isinstance(name, str):
            raise GraphError(f"the name of a Variable is text, not {reprlib.repr(name)}")
        if owner is not None and not isinstance(owner, Apply):
            raise GraphError(f"the owner of a Variable is an Apply, not {reprlib.repr(owner)}")
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self.clients: list[Client] | None = None

    def __getattr__(self, name: str) -> Any:
        """Tell what there is in place of an attribute that a user asks for in vain."""
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if name.startswith("__") or name in Variable.__slots__ or caller.partition(".")[0] == "esat":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        public = [one for one in dir(type(self)) if not one.startswith("_")]
        close = ", ".join(difflib.get_close_matches(name, public)) or "none close"
        reason = f"a Variable has no attribute {name!r} (did you mean: {close})"
        raise TracedAttributeError(describe(f"x.{name}", [self.type], reason, user_line()))

    def clone(self) -> Variable:
        """A new Variable of the same type and name, without owner."""
        return Variable(self.type, name=self.name)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Pickled with all nodes it depends on, inputs first: however long a graph is, nothing recurses."""
        if self.owner is None:
            return super().__reduce_ex__(protocol)
        return _output, (toposort([self]), self.owner, self.index)

    def __getstate__(self) -> Any:
        attributes, slots = cast("tuple[None, dict[str, Any]]", super().__getstate__())
        return attributes, {**slots, "clients": None}

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if self.owner is not None:
            return f"{self.owner.op}.{self.index}"
        return f"<{self.type}>"

    __repr__ = __str__


Type.variable = Variable


class Constant(Variable):
    """A Variable whose value is fixed. Its ``data`` can be set once and must not be changed."""

    __slots__ = ("_data",)

    def __init__(self, type: Type, data: Any, name: str | None = None) -> None:
        super().__init__(type, name=name)
        value = type.filter(data)
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.setflags(write=False)
            if isinstance(type, TensorType):
                self.type = type.with_shape(value.shape)
        self._data = value

    @property
    def data(self) -> Any:
        """The value: a read-only array for a tensor."""
        return self._data

    @property
    def content(self) -> Hashable:
        """Equal for tensors of one type with the same bits; any other constant itself."""
        return (self.type, self._data.tobytes()) if isinstance(self._data, np.ndarray) else self

    def clone(self) -> Constant:
        """Constants are immutable; the clone is the constant itself."""
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return Constant, (self.type, self._data, self.name)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if isinstance(self._data, np.ndarray) and self._data.size <= 6:
            return str(self._data.tolist())
        return f"<constant {self.type}>"

    __repr__ = __str__


class Elsewhere(Protocol):
    """A shared variable's value in the memory of a device."""

    def fetch(self) -> Any:
        """The value as a NumPy array that nobody else holds, contiguous, aligned and writable."""

    def lend(self) -> Any:
        """The device's own array."""


class SharedVariable(Variable):
    """A Variable with a value of its own that lasts between calls of compiled functions.

    Its value changes by :meth:`set_value` and by the ``updates`` of a compiled graph. A graph that was
    compiled for a device keeps it there: it comes back when something here reads it.

    Attributes
    ----------
    version
        Grows whenever the value changes, or may be about to.
    lent
        Whether somebody outside may hold the value's own memory, and change it unnoticed.
    elsewhere
        The value on a device, as new as this one or newer or older: its holder knows.
    """

    # Private is a value that only this variable holds, an array also contiguous, aligned and writable.
    # The value is no attribute while the newest one is elsewhere: what looks for it costs nothing else.
    __slots__ = ("_private", "_value", "elsewhere", "lent", "version")

    def __init__(self, type: Type, value: Any, name: str | None = None) -> None:
        super().__init__(type, name=name)
        self._value = _own(type, value)
        self._private = True
        self.version = 0
        self.lent = False
        self.elsewhere: Elsewhere | None = None

    def __getattr__(self, name: str) -> Any:
        """The value, when it is elsewhere. It is fetched once, unless somebody may change it there."""
        if name != "_value" or self.elsewhere is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = self.elsewhere.fetch()
        if not self.lent:
            self._value = value
        return value

    @property
    def is_elsewhere(self) -> bool:
        """Whether the newest value is on a device only."""
        return self.elsewhere is not None and not _has_slot(self)

    def live_elsewhere(self, holder: Elsewhere) -> None:
        """The newest value is the holder's from now on, or is about to be."""
        if _has_slot(self):
            del self._value
        self.elsewhere = holder
        self._private = True
        self.lent = False
        self.version += 1

    def get_value(self, borrow: bool = False) -> Any:
        """The value; a copy unless ``borrow`` (then it may be overwritten by the next update).

        A value that lives on a device is copied from there; borrowed, it is the device's array.
        """
        if borrow and self.is_elsewhere:
            assert self.elsewhere is not None
            self.lent = True
            self._private = False
            return self.elsewhere.lend()
        if borrow or not hasattr(self._value, "copy"):
            self.lent = True
            return self._value
        return self._value.copy()

    def look(self) -> Any:
        """The value itself, to be read now and neither changed nor kept."""
        return self._value

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Replace the value. With ``borrow`` an array that fits already is kept, not copied.

        It is the caller's still: an update that works in place copies it first.
        """
        self._value = self.type.filter(value) if borrow else _own(self.type, value)
        self._private = not borrow
        self.lent = borrow
        self.version += 1

    def give_value(self, value: Any) -> None:
        """Replace the value by one of the variable's type that nobody else holds."""
        self._value = value
        self._private = not isinstance(value, np.ndarray) or value.flags.carray
        self.lent = False
        self.version += 1

    def own_value(self) -> Any:
        """The value, to be overwritten: one nobody else was given to keep, an array contiguous in C order."""
        if not self._private:
            value = self._value
            self._value = (
                np.array(value, order="C") if isinstance(value, np.ndarray) else _own(self.type, value)
            )
            self._private = True
            self.lent = False
        self.version += 1
        return self._value

    def clone(self) -> SharedVariable:
        """Storage is what is shared: the clone is the variable itself."""
        return self

    def __getstate__(self) -> Any:
        """Pickled with its value, wherever that is; what is on a device stays there."""
        attributes, slots = cast("tuple[None, dict[str, Any]]", super().__getstate__())
        own = {"_value": self.look(), "_private": True} if self.is_elsewhere else {}
        return attributes, {**slots, **own, "elsewhere": None}


_VALUE: Any = SharedVariable.__dict__["_value"]


def _has_slot(variable: SharedVariable) -> bool:
    """Whether a variable has a value of its own here; reading the attribute would fetch it."""
    try:
        _VALUE.__get__(variable)
    except AttributeError:
        return False
    return True


def _own(type: Type, value: Any) -> Any:
    filtered = type.filter(value)
    return filtered.copy() if hasattr(filtered, "copy") else filtered


class Apply:
    """The application of an op to inputs.

    The constructor sets ``owner`` and ``index`` of the outputs. What ``op.make_node(...)`` does besides, to
    convert operands and find the types of results, it does not do: it refuses what is not done.

    Raises
    ------
    GraphError
        When an input or output is not a Variable, or an output already has an owner; when the op takes
        other operands, or has other results.
    """

    __slots__ = ("__weakref__", "inputs", "op", "outputs", "where")

    def __init__(
        self,
        op: Op,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        where: UserLine | None = None,
    ) -> None:
        for role, variables in (("inputs", inputs), ("outputs", outputs)):
            if not isinstance(variables, list | tuple):
                raise GraphError(f"Apply({op}): {role} are a list of Variables, not {variables!r}")
        for variable in (*inputs, *outputs):
            if not isinstance(variable, Variable):
                raise GraphError(f"Apply({op}): {variable!r} is not a Variable")
        if not {*inputs}.isdisjoint(outputs):
            raise CycleError(f"Apply({op}): a result cannot be an operand of its own")
        _check_application(op, inputs, outputs)
        self._link(op, inputs, outputs, where)

    def _link(
        self, op: Op, inputs: Sequence[Variable], outputs: Sequence[Variable], where: UserLine | None
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.where = where if where is not None else node_line()
        for position, output in enumerate(self.outputs):
            if output.owner is not None and output.owner is not self:
                raise GraphError(f"Apply({op}): output {output} already belongs to {output.owner}")
            output.owner = self
            output.index = position
        note(self)

    def clone_with(self, inputs: Sequence[Variable]) -> Apply:
        """The same op and output types on other inputs of compatible types."""
        outputs = [Variable(output.type, name=output.name) for output in self.outputs]
        return linked(self.op, inputs, outputs, self.where)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        operands = [(variable.owner or variable, variable.index) for variable in self.inputs]
        results = [(output.type, output.name) for output in self.outputs]
        return _applied, (self.op, operands, results, self.where)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"

    __repr__ = __str__


def linked(
    op: Op, inputs: Sequence[Variable], outputs: Sequence[Variable], where: UserLine | None = None
) -> Apply:
    """An Apply of operands and results that are known to be right: the op has made them so."""
    node = Apply.__new__(Apply)
    node._link(op, inputs, outputs, where)
    return node


def _check_application(op: Op, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
    """Raise GraphError unless these can be operands and results of an op, as they are."""
    if not callable(getattr(op, "make_node", None)):
        raise GraphError(f"Apply: {op!r} is not an op")
    shown = [variable.type for variable in inputs]
    try:
        operands = op.prepare(inputs)
        types = op.infer_types(inputs)
    except NotImplementedError:
        return  # an op of a user's that says the types of its results in make_node
    except EsatError as error:
        raise GraphError(str(error)) from error
    except (TypeError, ValueError, IndexError) as error:
        reason = "the op does not take these operands"
        raise GraphError(describe(f"Apply({op})", shown, reason, node_line())) from error
    if len(operands) != len(inputs) or any(a is not b for a, b in zip(operands, inputs, strict=True)):
        wanted = ", ".join(str(operand.type) for operand in operands)
        reason = f"the op takes operands converted to ({wanted}); call {op}.make_node"
        raise GraphError(describe(f"Apply({op})", shown, reason, node_line()))
    found = [output.type for output in outputs]
    if len(found) != len(types) or not all(map(may_stand_for, found, types)):
        told = f"the results are of types ({', '.join(map(str, types))}), not ({', '.join(map(str, found))})"
        raise GraphError(describe(f"Apply({op})", shown, told, node_line()))


def _applied(
    op: Op,
    operands: Sequence[tuple[Apply | Variable, int | None]],
    results: Sequence[tuple[Type, str | None]],
    where: UserLine | None,
) -> Apply:
    """The node that was pickled: an operand that a node computes is that node and the result's position."""
    inputs = [one if isinstance(one, Variable) else _output((), one, index) for one, index in operands]
    return linked(op, inputs, [Variable(type, name=name) for type, name in results], where)


def _output(nodes: Sequence[Apply], node: Apply, index: int | None) -> Variable:
    """The Variable that was pickled, one of a node's outputs, after the nodes that it depends on."""
    assert index is not None
    return node.outputs[index]
