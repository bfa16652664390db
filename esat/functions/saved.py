"""Compiled functions as files: the graph that was written, and the values of its shared variables.

A file holds plain data only, arrays and JSON in NumPy's ``npz`` format. To read it is to make types, ops and
nodes by their ordinary constructors, which check what they are given; nothing that a file says is run. So a
file from elsewhere can do no more than describe a graph.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import esat.errors
from esat.compilation.recorded.entry_point import compile_called
from esat.errors import EsatError, GraphError, InputError
from esat.frontend.graph import Graph
from esat.graph import Apply, Constant, FunctionGraph, SharedVariable, Type, Variable
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import Op
from esat.graph.random_type import RandomState
from esat.graph.registry import is_of_package, op_named
from esat.ops.annotations.gradients import without_gradients
from esat.ops.control import Assert

if TYPE_CHECKING:
    from esat.mode import Mode
    from esat.runtime import Executable

FORMAT = 1
"""Of the files; a file of another number is refused."""
_HOMES = ("esat.ops.", "esat.graph.")
"""Where ops, types and their parameters are defined."""
_WORD = re.compile(r"[\w.,:+ {}-]*")
"""Text in ops: names and dtypes, some of which go into the source of kernels. It can call nothing."""
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_BODY_LEVELS = 16
"""Loops within loops that are read."""

Plain = Any
"""What JSON holds."""
_Kind = TypeVar("_Kind")


def save(path: str | os.PathLike[str], function: Executable) -> None:
    """Write a compiled function, with the values that its shared variables have now.

    The file has the graph as it was written; machine code is made, or found in the cache, where it is loaded.

    Parameters
    ----------
    path
        The file; ``.npz`` is its usual ending.
    function
        What :func:`esat.compile` returned.

    Raises
    ------
    GraphError
        For a function that was compiled with rules of its own, or that has ops or values that are not plain
        data: functions of Python, ops of users.
    InputError
        For what is no compiled function.

    Examples
    --------
    >>> import esat, tempfile, pathlib
    >>> w = esat.shared([1.0, 2.0], name="w")
    >>> x = esat.vector("x")
    >>> step = esat.compile(esat.Graph([x], x @ w, updates={w: w + x}))
    >>> step([1.0, 1.0])
    array(3.)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "step.npz")
    >>> esat.save(path, step)
    >>> again = esat.load(path)
    >>> again.shared["w"].get_value()
    array([2., 3.])
    >>> again([1.0, 1.0])
    array(5.)
    """
    from esat.compilation.pipeline import (
        compile_again,  # the compiler, which a function that is saved has used
    )

    made = getattr(function, "again", None)
    if made is None or made[0] is not compile_again:
        if hasattr(path, "again"):
            raise InputError(
                "esat.save: the file comes first, the function after it: esat.save(path, function)"
            )
        reason = "it takes what esat.compile returns; of a jitted function, `function.latest`"
        raise InputError(f"esat.save: {function!r} is no compiled function: {reason}")
    graph, mode, texts, shapes, donated, _message = made[1]
    if texts.extra or texts.users:
        raise GraphError("esat.save: the function was compiled with rules of yours, which a file cannot hold")
    writer = _Writer()
    header = {
        "format": FORMAT,
        "version": esat.__version__,
        "mode": _name_of(mode),
        "graph": writer.graph(graph),
        "shapes": [None if shape is None else list(shape) for shape in shapes],
        "donated": sorted(donated),
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, allow_pickle=False, esat=text, **writer.arrays)


def load(path: str | os.PathLike[str], mode: str | Mode | None = None) -> Executable:
    """Read and compile a function that :func:`save` wrote. Files from elsewhere are safe to load.

    Parameters
    ----------
    path
        The file.
    mode
        How to compile it; by default as it was compiled.

    Returns
    -------
    The function. Its shared variables are new ones with the values that were saved: ``function.shared``.

    Raises
    ------
    GraphError
        Where the file is damaged, is of another format, or describes no valid graph.
    InputError
        Where the mode was no predefined one, and none is given.
    """
    shown = f"esat.load({os.fspath(path)!r})"
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
        header = json.loads(arrays.pop("esat").tobytes())
        if header["format"] != FORMAT:
            raise GraphError(
                f"{shown}: format {header['format']!r} is not {FORMAT}, which this version reads"
            )
        graph = _Reader(arrays).graph(header["graph"])
        shapes = {
            graph.inputs[place]: tuple(map(int, shape))
            for place, shape in enumerate(header["shapes"])
            if shape is not None
        }
        donated = [graph.inputs[int(place)] for place in header["donated"]]
    except OSError:
        raise
    except EsatError as error:
        raise GraphError(f"{shown}: {error}") from error
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        zipfile.BadZipFile,
        RecursionError,
        EOFError,
    ) as error:
        raise GraphError(f"{shown}: the file is damaged, or none of esat's: {error}") from error
    chosen = header["mode"] if mode is None else mode
    if chosen is None:
        raise InputError(f"{shown}: the function was compiled in a mode of its own; say which: mode=...")
    return compile_called(shown, graph, chosen, shapes=shapes, donate=tuple(donated))


def _name_of(mode: str | Mode) -> str | None:
    """The name of a predefined mode; None for one with other settings."""
    if isinstance(mode, str):
        return mode
    return mode.name if mode == type(mode)(mode.name) else None


class _Writer:
    """Graphs as plain data, beside arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}

    def graph(self, graph: Graph | FunctionGraph) -> Plain:
        """The nodes of a graph in order, and which of their results are its outputs."""
        pairs: Sequence[tuple[SharedVariable, Variable]] = graph.updates if isinstance(graph, Graph) else ()
        if isinstance(graph, Graph) and graph.givens:
            raise GraphError("esat.save: a graph with givens; build it with the replacements in place")
        numbers: dict[Variable, int] = {}
        lines: list[Plain] = []

        def number(variable: Variable) -> int:
            known = numbers.get(variable)
            if known is None:
                known = numbers[variable] = len(numbers)
                lines.append(self._leaf(variable))
            return known

        for variable in graph.inputs:
            numbers[variable] = len(numbers)
            lines.append({"input": self._plain(variable.type), "name": variable.name})
        results = without_gradients([*graph.outputs, *(value for _, value in pairs)])
        for node in toposort(results, graph.inputs):
            operands = [number(variable) for variable in node.inputs]
            lines.append(
                {"op": self._plain(node.op, node), "of": operands, "names": [v.name for v in node.outputs]}
            )
            for variable in node.outputs:
                numbers[variable] = len(numbers)
        return {
            "nodes": lines,
            "outputs": [number(variable) for variable in results[: len(graph.outputs)]],
            "updates": [
                [number(target), number(value)]
                for (target, _), value in zip(pairs, results[len(graph.outputs) :], strict=True)
            ],
            "single": graph.single_output if isinstance(graph, Graph) else len(graph.outputs) == 1,
        }

    def _leaf(self, variable: Variable) -> Plain:
        if isinstance(variable, SharedVariable):
            value = variable.get_value()
            kept = self._state(value) if isinstance(value, RandomState) else self._array("shared", value)
            return {"shared": self._plain(variable.type), "name": variable.name, "value": kept}
        if isinstance(variable, Constant) and isinstance(variable.data, np.ndarray):
            kept = self._array("constant", variable.data)
            return {"constant": self._plain(variable.type), "name": variable.name, "value": kept}
        raise GraphError(f"esat.save: {variable} has a value that is no array")

    def _array(self, kind: str, value: Any) -> str:
        name = f"{kind}{len(self.arrays)}"
        self.arrays[name] = np.asarray(value)
        return name

    @staticmethod
    def _state(value: RandomState) -> Plain:
        state = value.bit_generator.state
        return json.loads(json.dumps(state, default=lambda array: array.tolist()))

    def _plain(self, value: Any, node: Apply | None = None) -> Plain:
        """A type, an op of a node, or a parameter of one."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, tuple):
            return [self._plain(part, node) for part in value]
        if isinstance(value, Op) and is_of_package(value):
            return {"named": value.name}
        if isinstance(value, FunctionGraph):
            return {"body": self.graph(value)}
        kind = value if isinstance(value, type) else type(value)
        if kind is value and issubclass(kind, EsatError) and kind.__module__ == "esat.errors":
            return {"error": kind.__name__}
        home = {"module": kind.__module__, "class": kind.__qualname__}
        if isinstance(value, Enum) and kind.__module__.startswith(_HOMES):
            return {**home, "member": value.name}
        if _is_constant(value):
            return {"module": kind.__module__, "constant": value.__reduce__()}
        if dataclasses.is_dataclass(value) and kind is not value and kind.__module__.startswith(_HOMES):
            given = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}
            return {**home, "fields": {name: self._plain(part, node) for name, part in given.items()}}
        where = "" if node is None or node.where is None else f" ({node.where[0]}:{node.where[1]})"
        holder = "a variable" if node is None else f"the op {node.op}"
        raise GraphError(f"esat.save: {holder} has {value!r}, which is no plain data{where}")


def _is_constant(value: Any) -> bool:
    """Whether a value is a constant of its module that holds functions, and is written by its name."""
    return type(value).__module__.startswith(_HOMES) and isinstance(value.__reduce_ex__(4), str)


class _Reader:
    """Graphs of what a :class:`_Writer` wrote."""

    def __init__(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._arrays = arrays

    def graph(self, content: Plain) -> Graph:
        """A graph to compile."""
        inputs, values = self._nodes(content, 0)
        updates = [(values[target], values[value]) for target, value in content["updates"]]
        outputs = [values[number] for number in content["outputs"]]
        wanted = outputs[0] if content["single"] else outputs
        return Graph(inputs, wanted, updates=updates, on_unused_input="ignore")

    def _body(self, content: Plain, level: int) -> FunctionGraph:
        if level > _BODY_LEVELS:
            raise GraphError("loops within too many loops")
        inputs, values = self._nodes(content, level)
        return FunctionGraph(inputs, [values[number] for number in content["outputs"]])

    def _nodes(self, content: Plain, level: int) -> tuple[list[Variable], list[Variable]]:
        inputs: list[Variable] = []
        values: list[Variable] = []
        for line in content["nodes"]:
            name = line.get("name")
            if name is not None and type(name) is not str:
                raise GraphError(f"a variable is named {name!r}")
            if "op" in line:
                op = self._made(line["op"], Op, level)
                outputs = op.make_node(*(values[number] for number in line["of"])).outputs
                for variable, own in zip(outputs, line["names"], strict=True):
                    variable.name = None if own is None else str(own)
                values += outputs
            elif "input" in line:
                inputs.append(self._made(line["input"], Type, level)(name))
                values.append(inputs[-1])
            elif "shared" in line:
                values.append(
                    SharedVariable(self._made(line["shared"], Type, level), self._kept(line["value"]), name)
                )
            else:
                values.append(
                    Constant(self._made(line["constant"], Type, level), self._kept(line["value"]), name)
                )
        return inputs, values

    def _kept(self, value: Plain) -> Any:
        if isinstance(value, str):
            return self._arrays[value]
        if value["bit_generator"] not in _GENERATORS:
            raise GraphError(f"an unknown generator {value['bit_generator']!r}")
        bits = getattr(np.random, value["bit_generator"])(0)
        bits.state = value
        return RandomState(bits)

    def _made(self, content: Plain, kind: type[_Kind], level: int) -> _Kind:
        found = self._value(content, level)
        if not isinstance(found, kind):
            raise GraphError(f"{found!r} is no {kind.__name__}")
        return found

    def _value(self, content: Plain, level: int, free_text: bool = False) -> Any:
        """A type, an op, or a parameter of one."""
        if isinstance(content, str) and not free_text and not _WORD.fullmatch(content):
            raise GraphError(f"text in an op that no op has: {content!r}")
        if content is None or isinstance(content, bool | int | str):
            return content
        if isinstance(content, list):
            return tuple(self._value(part, level) for part in content)
        if "float" in content:
            return float.fromhex(content["float"])
        if "named" in content:
            op = op_named(content["named"])
            if not is_of_package(op):
                raise GraphError(f"{op} is no op of esat's")
            return op
        if "body" in content:
            return self._body(content["body"], level + 1)
        if "error" in content:
            return _member(esat.errors, content["error"], EsatError)
        return self._record(content, level)

    def _record(self, content: Plain, level: int) -> Any:
        if not content["module"].startswith(_HOMES):
            raise GraphError(f"{content['module']!r} is no module of ops or types")
        module = importlib.import_module(content["module"])
        if "constant" in content:
            found = getattr(module, content["constant"])
            if not (_is_constant(found) and type(found).__module__ == module.__name__):
                raise GraphError(f"{content['constant']!r} is no constant of {module.__name__}")
            return found
        kind = _member(module, content["class"], object)
        if "member" in content and issubclass(kind, Enum):
            return kind[content["member"]]
        if not dataclasses.is_dataclass(kind):
            raise GraphError(f"{kind.__name__} is no op, and no parameter of one")
        make: Any = kind
        given = content["fields"]
        free = {"message"} if kind is Assert else set()  # it is quoted wherever it is printed
        return make(**{name: self._value(part, level, name in free) for name, part in given.items()})


def _member(module: Any, name: str, base: type) -> Any:
    """A class that a module defines itself."""
    found = vars(module).get(name)
    if not (isinstance(found, type) and issubclass(found, base) and found.__module__ == module.__name__):
        raise GraphError(f"{name!r} is no class of {module.__name__}")
    return found
