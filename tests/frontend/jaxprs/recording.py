"""Jaxprs as text, so that they can be translated where there is no JAX.

``python -m tests.frontend.jaxprs.recording``, with JAX installed, adds to ``recorded.json`` for each program
that is not in it its jaxpr, its arguments, and what JAX computes of them. What is there stays, as an
earlier JAX made it.
"""

from __future__ import annotations

import collections
import enum
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "recorded.json"


_UNUSED = {"update_jaxpr", "precision", "sharding", "out_sharding"}
"""Parameters that no rule reads."""

# ---- writing


class Writer:
    """A jaxpr as lists, dicts, numbers and strings. Variables are numbers; where one is named first, it is
    the dtype and shape that it has."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def jaxpr(self, jaxpr: Any) -> dict[str, Any]:
        body = getattr(jaxpr, "jaxpr", jaxpr)
        return {
            "consts": [array_as_text(one) for one in getattr(jaxpr, "consts", ())],
            "constvars": [self.variable(one) for one in body.constvars],
            "invars": [self.variable(one) for one in body.invars],
            "eqns": [self.equation(one) for one in body.eqns],
            "outvars": [self.variable(one) for one in body.outvars],
        }

    def equation(self, equation: Any) -> list[Any]:
        params = {name: self.param(equation.params[name]) for name in sorted({*equation.params} - _UNUSED)}
        return [
            equation.primitive.name,
            {name: value for name, value in params.items() if value != {"other": None}},
            [self.variable(one) for one in equation.invars],
            [self.variable(one) for one in equation.outvars],
        ]

    def variable(self, variable: Any) -> Any:
        described = [str(variable.aval.dtype), list(variable.aval.shape)]
        if hasattr(variable, "val"):
            return {"literal": array_as_text(variable.val), "is": described}
        if variable in self._numbers:
            return self._numbers[variable]
        self._numbers[variable] = len(self._numbers)
        return described

    def param(self, value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return {"name": value.name}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if hasattr(value, "unpack"):
            return {"parts": [len(part) for part in value.unpack()]}
        if isinstance(value, np.integer):
            return int(value)
        if isinstance(value, np.dtype):
            return value.name
        if type(value).__name__ == "_LinearSolveTuple" and not isinstance(value.solve, int):
            return {"fields": {"solve": self.param(value.solve)}}
        if hasattr(getattr(value, "jaxpr", value), "eqns"):
            return {"jaxpr": self.jaxpr(value)}
        if hasattr(value, "_fields"):
            return {"fields": {name: self.param(getattr(value, name)) for name in value._fields}}
        if type(value).__name__.endswith(("DimensionNumbers",)):
            return {"attributes": {name: self.param(part) for name, part in vars(value).items()}}
        if isinstance(value, (tuple, list)):
            return [self.param(part) for part in value]
        if hasattr(value, "name"):
            return {"name": value.name}
        return {"other": None}


def array_as_text(value: Any) -> list[Any]:
    array = np.asarray(value)
    numbers = array.ravel().view(array.real.dtype) if array.dtype.kind == "c" else array.ravel()
    return [array.dtype.name, list(array.shape), numbers.tolist()]


def record() -> None:
    """Write what is new to the file."""
    import jax

    from tests.frontend.jaxprs.programs import FUNCTIONS, TRANSFORMATIONS, leaves

    lines = [line.rstrip(",") for line in FILE.read_text().splitlines()[1:-1]]
    known = json.loads(FILE.read_text())
    for name, (function, *arguments) in {**TRANSFORMATIONS, **FUNCTIONS}.items():
        if name in known:
            continue
        entry = {
            "jaxpr": Writer().jaxpr(jax.make_jaxpr(function)(*arguments)),
            "arguments": [array_as_text(one) for one in leaves(arguments)],
            "results": [
                array_as_text(one) for one in jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
            ],
        }
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


# ---- reading


def recorded() -> dict[str, Any]:
    """Name of a program -> its jaxpr, arguments and results."""
    found = {}
    for name, entry in json.loads(FILE.read_text()).items():
        arrays = [[array_of(one) for one in entry[part]] for part in ("arguments", "results")]
        found[name] = (Reader().jaxpr(entry["jaxpr"]), *arrays)
    return found


class Reader:
    """What :class:`Writer` wrote, as objects that have the attributes of jaxprs."""

    def __init__(self) -> None:
        self._variables: list[Any] = []

    def jaxpr(self, text: dict[str, Any]) -> Any:
        body = SimpleNamespace(
            constvars=[self.variable(one) for one in text["constvars"]],
            invars=[self.variable(one) for one in text["invars"]],
            eqns=[self.equation(*one) for one in text["eqns"]],
            outvars=[self.variable(one) for one in text["outvars"]],
        )
        return SimpleNamespace(jaxpr=body, consts=[array_of(one) for one in text["consts"]])

    def equation(self, name: str, params: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> Any:
        return SimpleNamespace(
            primitive=SimpleNamespace(name=name),
            params={key: self.param(value) for key, value in params.items()},
            invars=[self.variable(one) for one in inputs],
            outvars=[self.variable(one) for one in outputs],
        )

    def variable(self, text: Any) -> Any:
        if isinstance(text, dict):
            return Atom(*text["is"], val=array_of(text["literal"]))
        if isinstance(text, list):
            self._variables.append(Atom(*text))
            return self._variables[-1]
        return self._variables[text]

    def param(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.param(part) for part in value)
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "jaxpr":
            return self.jaxpr(content)
        if kind == "other":
            return None
        if kind == "name":
            return SimpleNamespace(name=content)
        if kind == "parts":
            return SimpleNamespace(unpack=lambda: [range(size) for size in content])
        parts = {key: self.param(part) for key, part in content.items()}
        return collections.namedtuple("Fields", parts)(**parts)


class Atom:
    """A variable or literal of a jaxpr."""

    def __init__(self, dtype: str, shape: list[int], **value: Any) -> None:
        self.aval = SimpleNamespace(
            dtype=dtype if dtype == "key<fry>" else np.dtype(dtype), shape=tuple(shape)
        )
        self.__dict__.update(value)


def array_of(text: list[Any]) -> np.ndarray:
    dtype, shape, numbers = text
    kind = np.dtype(dtype)
    flat = np.array(numbers, {"complex64": "float32", "complex128": "float64"}.get(dtype, kind))
    return flat.view(kind).reshape(shape)


if __name__ == "__main__":
    record()
