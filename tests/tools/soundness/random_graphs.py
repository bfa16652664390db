"""Random graphs of all op families that rules speak of, with mixed ranks, dtypes, broadcasting and views."""

import random

import numpy as np

import esat
from esat.errors import EsatError

ROWS, COLUMNS, PAGES = 4, 3, 2
SHAPES = [(ROWS, COLUMNS), (1, COLUMNS), (ROWS, 1), (COLUMNS, ROWS), (), (PAGES, ROWS, COLUMNS), (COLUMNS,)]
DTYPES = {
    "float": ["float64", "float64", "float64", "float32"],
    "integer": ["int64", "int32", "uint8", "int8"],
    "complex": ["complex128"],
    "mixed": ["float64", "float32", "int32", "bool", "uint8"],
}

UNARY = [
    "exp", "log", "tanh", "sqrt", "sqr", "abs", "neg", "reciprocal", "sigmoid", "softplus", "log1p", "expm1",
    "sin", "cos", "sign", "floor", "rint", "sinh", "cosh", "tan", "arctan", "erf", "erfc", "exp2", "log2",
]  # fmt: skip
EXACT_UNARY = ["sqr", "abs", "neg", "sign", "floor", "ceil"]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "add", "sub", "mul", "pow", "logaddexp"]
EXACT_BINARY = ["add", "sub", "mul", "maximum", "minimum"]
REDUCTIONS = ["sum", "max", "min", "prod", "logsumexp", "sum", "argmax"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]


class RandomGraph:
    """Grows a graph node by node, with values for its inputs; `outputs` are the last few values."""

    def __init__(self, seed: int, kind: str, size: int = 30) -> None:
        self.random = random.Random(f"{seed} {kind}")
        self.numbers = np.random.default_rng(seed)
        self.kind = kind
        self.inputs = {}
        self.pool = []
        for shape in SHAPES:
            self._input(shape)
        for value in (1, 2, 0, -1, 0.5):
            if kind in ("float", "complex", "mixed") or value == int(value) >= 0:
                dtype = "int64" if kind == "integer" else "float64"
                self.pool.append(esat.constant(np.array(value, dtype)))
        while len(self.pool) < len(SHAPES) + size:
            self._grow()
        self.outputs = self.pool[-8:]

    def _input(self, shape: tuple[int, ...]) -> None:
        dtype = self.random.choice(DTYPES[self.kind])
        variable = esat.tensor(
            f"v{len(self.inputs)}", dtype=dtype, shape=tuple(1 if n == 1 else None for n in shape)
        )
        if dtype == "bool":
            data = self.numbers.integers(0, 2, shape).astype(bool)
        elif dtype.startswith(("int", "uint")):
            limits = np.iinfo(dtype)
            data = self.numbers.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
            small = self.numbers.integers(0, 5, shape).astype(dtype)
            data = np.where(self.numbers.random(shape) < 0.7, small, data)
        else:
            data = self.numbers.normal(0.3, 1.2, shape).astype(dtype)
            if dtype == "complex128":
                data = data + 1j * self.numbers.normal(0, 1, shape)
        self.inputs[variable] = np.asarray(data, dtype)
        self.pool.append(variable)

    def _pick(self):
        return self.random.choice(self.pool[-10:] if self.random.random() < 0.6 else self.pool)

    def _grow(self) -> None:
        try:
            value = self._random_value()
            esat.evaluate(value, self.inputs)
        except EsatError:
            return  # operands that do not fit: another draw will
        if value.ndim <= 4 and not any(value is known for known in self.pool):
            self.pool.append(value)

    def _random_value(self):
        exact = self.kind == "integer"
        one, other = self._pick(), self._pick()
        choice = self.random.random()
        if choice < 0.25:
            return getattr(esat, self.random.choice(EXACT_UNARY if exact else UNARY))(one)
        if choice < 0.6:
            return getattr(esat, self.random.choice(EXACT_BINARY if exact else BINARY))(one, other)
        if choice < 0.72:
            axis = self.random.randrange(one.ndim) if one.ndim and self.random.random() < 0.8 else None
            name = self.random.choice(REDUCTIONS[:3] if exact else REDUCTIONS)
            keepdims = self.random.random() < 0.5 and name != "argmax"
            return getattr(esat, name)(one, axis=axis, **({"keepdims": True} if keepdims else {}))
        if choice < 0.8:
            return esat.transpose(one, self.random.sample(range(one.ndim), one.ndim))
        if choice < 0.84:
            return esat.matmul(one, other)
        if choice < 0.88:
            condition = getattr(esat, self.random.choice(COMPARISONS))(one, other)
            return esat.where(condition, one, other)
        if choice < 0.92:
            return esat.cast(one, self.random.choice(DTYPES[self.kind]))
        if choice < 0.95:
            return esat.full_like(one, 2) if exact or self.random.random() < 0.5 else esat.ones_like(one)
        if choice < 0.98 and not exact and one.ndim:
            name = self.random.choice(["softmax", "log_softmax"])
            return getattr(esat, name)(one, axis=self.random.randrange(one.ndim))
        return esat.reshape(one, (-1,))
