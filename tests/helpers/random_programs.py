"""Random programs of the functions that NumPy and SciPy have too, and what NumPy computes by them.

``python tests/helpers/random_programs.py 0 1000`` runs the programs of these seeds, in modes drawn by chance.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from frontend.namesakes import CALLS, LINALG_CALLS, REFERENCE, call

import esat
from esat.graph.types import DTYPES
from esat.mode import mode_names

_BINARY_NAMES = (
    "add", "subtract", "multiply", "divide", "maximum", "fmin", "arctan2", "hypot", "power",
    "floor_divide", "remainder", "copysign", "less", "not_equal", "logical_and", "matmul", "dot", "inner",
    "vecdot", "outer", "kron", "isclose", "append", "cross", "tensordot", "xlogy", "logaddexp",
    "broadcast_arrays", "convolve",
)  # fmt: skip
BINARY = [f"m.{name}(x, y)" for name in _BINARY_NAMES] + [
    "m.concatenate([x, y])",
    "m.stack([x, y], axis=-1)",
    "m.where(x, y, 0.5)",
    "m.where(x > y, x, y)",
    "m.einsum('...i,...i->...', x, y)",
    "m.einsum('ij,jk->ki', x, y)",
    "m.einsum('ij,kj', x, y)",
    "m.linalg.solve(x, y)",
    "m.linalg.lstsq(x, y)",
    "m.interp(x, [-2, 0, 1, 3], [1.0, 3, -1, 2]) * y",
    "m.select([x > 0, y > 0], [x, y], 1)",
    "m.clip(x, -1, y)",
    "m.searchsorted(m.sort(x, axis=None), y)",
    "m.isin(x, y)",
    "m.average(x, 0, y)",
    "m.take(x, m.argmax(y), axis=-1)",
    "m.vstack([x, y])",
    "m.hstack([x, y])",
    "x[..., ::-1] - y",
    "x[1:] * y[1:]",
    "x @ y",
    "x[y > 0]",
    "(x[y > 0] * 2).sum()",
    "x[m.argsort(y)]",
    "x[..., None] + y",
    "x - y * 2",
    "(x + y) / 3",
]
_UNARY_NAMES = (
    "exp", "expm1", "log1p", "tanh", "sin", "cos", "arctan", "sqrt", "abs", "sign", "floor", "rint",
    "square", "negative", "cbrt", "arcsinh", "sinh", "logical_not", "isfinite", "reciprocal", "log2",
    "exp2", "deg2rad",
)  # fmt: skip
UNARY = [f"m.{name}(x)" for name in _UNARY_NAMES] + [
    "x[0]",
    "x[..., -1]",
    "x[::2]",
    "x[::-1]",
    "x[:, 1:]",
    "x[None]",
    "x.T",
    "x * 2",
    "1 - x",
    "x / 3",
    "-x",
    "x ** 2",
    "x > 0.5",
    "x.sum()",
    "x.mean(axis=0)",
    "x.reshape(-1)",
    "m.exp(-x)",
    "m.log(m.exp(x) + 1)",
    "x.astype('float64')",
    "x[m.asarray([0, -1])]",
    "x.max() - x",
    "m.tanh(x)[..., :2]",
    "1 / (1 + m.exp(-x))",
    "x.astype('int8')",
]
INDEXED = [
    "x[m.asarray([0, 0, -1])]",
    "x[..., m.asarray([[0], [-1]])]",
    "x[m.asarray([-1, 0]), ..., m.asarray([0, 0])]",
    "x[m.asarray([0, 1, 0]), None]",
    "x[:, m.asarray([0, -1])] * 2",
    "m.exp(-m.abs(x))[m.asarray([0, 0])]",
    "x[m.asarray([0, 0, -1])].sum(axis=0)",
    "x[m.clip(y, -1, 0).astype('int64')]",
    "x[(y > 0).astype('uint8')]",
    "x[..., (y > 0).astype('int64')].sum(axis=-1)",
    "x[(y > 0).astype('int64'), m.asarray([0])] - 1",
    "m.tanh(x[(y > 0).astype('int32')]) * y.sum()",
]
"""Parts that index arrays choose, computed ones too, and what is computed with them."""
POOL = CALLS + LINALG_CALLS + UNARY * 12 + BINARY * 10
TWO_OPERANDS = {*BINARY, *(text for text in INDEXED if "y" in text)}
INDEXING = INDEXED * 6 + UNARY + BINARY
"""A family of programs that read by index arrays in every other step."""
UNSTABLE_NAMES = (
    "svd(x, False", "qr(", "eigh(", "argsort", "lu(", "linalg.svd", "slogdet", "solve_triangular",
    "logsumexp(x, 0, x", "linalg.eig(", "linalg.eigvals(",
)  # fmt: skip
"""What is determined only up to signs or the order of ties, or has other dtypes or shapes on purpose."""
ROUNDED_AT_ONE = frozenset({"m.log(m.exp(x) + 1)"})
"""Steps that round numbers of the order of one on their way to small ones."""
SYSTEMS = ("linalg.solve", "linalg.lstsq", "linalg.inv", "linalg.pinv")
"""Steps whose elements are all rounded as the largest of them: a zero may come out as a number next to it."""
LARGEST_SIZE, LARGEST_VALUE = 600, 1e5
SHAPES = [(), (5,), (3,), (1,), (3, 4), (4, 3), (3, 3), (1, 4), (3, 1), (2, 3, 4), (2, 3, 3), (2, 1, 3, 3)]
WEIGHTS = {"float64": 12, "float32": 5, "int64": 3, "bool": 2, "complex128": 2}


@dataclass
class Step:
    """One call: of which results so far, and which part of a tuple."""

    text: str
    operands: tuple[int, ...]
    part: int | None

    def run(self, namespace: Any, results: Sequence[Any]) -> Any:
        chosen = [results[place] for place in self.operands]
        if len(chosen) == 1:
            made = call(self.text, namespace, chosen[0])
        else:
            made = eval(self.text, {"m": namespace, "x": chosen[0], "y": chosen[1], "np": np})
        return made if self.part is None else made[self.part]


def laid_out(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The same elements in some other way in memory."""
    kind = rng.integers(6)
    if kind == 1:
        return np.asfortranarray(array)
    if kind == 2 and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if kind == 3 and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        return wide[..., 1::2]
    if kind == 4 and array.ndim > 1:
        return np.broadcast_to(array[:1], array.shape)
    if kind == 5:
        array.flags.writeable = False
    return array


class RandomProgram:
    """Steps on random arrays, with what NumPy computes by them and how far rounding may move it.

    Each step is repeated on operands that are disturbed by a few units of the last place. What moves too far
    is no output: a comparison of two equal numbers, what is left of a cancellation.
    """

    def __init__(self, seed: int, size: int, pool: Sequence[str] = POOL) -> None:
        self.pool = pool
        self.rng = np.random.default_rng(seed)
        names = [name for name in DTYPES for _ in range(WEIGHTS.get(name, 1))]
        self.inputs = []
        for _ in range(3):
            shape = SHAPES[self.rng.integers(len(SHAPES))]
            halves = self.rng.integers(-5, 7, shape) / 2
            dtype = names[self.rng.integers(len(names))]
            if dtype.startswith("complex"):
                halves = halves + 1j * self.rng.integers(-3, 4, shape)
            elif dtype.startswith("u"):
                halves = np.abs(halves)
            self.inputs.append(laid_out(self.rng, np.asarray(halves).astype(dtype)))
        self.steps: list[Step] = []
        self.exact: list[Any] = list(self.inputs)
        self.disturbed: list[list[Any]] = [list(self.inputs) for _ in range(3)]
        self.variables = self.typed(static=True)
        tries = 0
        while len(self.steps) < size and tries < 20 * size:
            tries += 1
            self.grow()
        self.outputs = [place for place in range(3, len(self.exact)) if self.is_certain(place)]

    def typed(self, static: bool) -> list[Any]:
        return [
            esat.TensorType(
                a.dtype, shape=a.shape if static else tuple(1 if n == 1 else None for n in a.shape)
            )()
            for a in self.inputs
        ]

    def grow(self) -> None:
        text = self.pool[self.rng.integers(len(self.pool))]
        if any(name in text for name in UNSTABLE_NAMES):
            return
        recent = max(0, len(self.exact) - 4) if self.rng.random() < 0.6 else 0
        operands = tuple(
            int(self.rng.integers(recent if number == 0 else 0, len(self.exact)))
            for number in range(2 if text in TWO_OPERANDS else 1)
        )
        step = Step(text, operands, None)
        try:
            result = step.run(REFERENCE, self.exact)
            if isinstance(result, (tuple, list)):
                step.part = int(self.rng.integers(len(result)))
                result = result[step.part]
            result = np.asarray(result)
            if not result.size and "cov(" in text:  # float64 in NumPy, of complex numbers, too
                return
            if not is_usable(result) or ("prod(" in text and not stays_in_range(self.exact[operands[0]])):
                return
            least = float(step.text in ROUNDED_AT_ONE)
            if any(name in text for name in SYSTEMS) and result.size:
                least = max(least, float(np.max(np.abs(result))))
            disturbed = [
                self.noisy(np.asarray(step.run(REFERENCE, known)), least) for known in self.disturbed
            ]
            variable = step.run(esat, self.variables)
        except Exception:  # the call does not suit the operands; whether both agree on that is another test's
            return
        if any(one.shape != result.shape or not is_usable(one) for one in disturbed):
            return
        self.steps.append(step)
        self.exact.append(result)
        for known, one in zip(self.disturbed, disturbed, strict=True):
            known.append(one)
        self.variables.append(variable)

    def noisy(self, array: np.ndarray, least: float = 0.0) -> np.ndarray:
        """An array moved by units of the last place, of its numbers or of a larger one."""
        if array.dtype.kind not in "fc":
            return array
        if array.dtype.kind == "f":  # whether a zero has a sign is not said
            array = np.where(
                array == 0, np.copysign(array, self.rng.integers(0, 2, array.shape) - 0.5), array
            )
        noise = self.rng.uniform(-4, 4, array.shape) * np.finfo(array.dtype).eps
        size = np.maximum(np.abs(array), least)
        return np.asarray(np.where(size > np.abs(array), array + noise * size, array * (1 + noise))).astype(
            array.dtype
        )

    def spread(self, place: int) -> Any:
        exact = self.exact[place].astype("complex128")
        return np.max([abs(known[place].astype("complex128") - exact) for known in self.disturbed], axis=0)

    def is_certain(self, place: int) -> bool:
        spread, exact = self.spread(place), self.exact[place]
        if exact.dtype.kind not in "fc":
            return bool(np.all(spread == 0))
        return bool(np.all(spread <= 1e-3 * (1 + np.abs(exact))))

    def built(self, variables: Sequence[Any]) -> list[Any]:
        """All results, as Variables."""
        results = list(variables)
        for step in self.steps:
            results.append(step.run(esat, results))
        return results

    def check(self, place: int, got: Any, how: str) -> None:
        """Fail unless a result is what NumPy computes."""
        wanted = self.exact[place]
        got = np.asarray(got)
        shown = f"{how}: output {place} of {self}"
        assert got.dtype == wanted.dtype, f"{got.dtype} for {wanted.dtype}, {shown}"
        assert got.shape == wanted.shape, f"{got.shape} for {wanted.shape}, {shown}"
        if wanted.dtype.kind not in "fc":
            assert np.array_equal(got, wanted), f"{got} for {wanted}, {shown}"
            return
        rounding = np.finfo(wanted.dtype).eps
        allowed = 60 * self.spread(place) + 200 * rounding * (1 + np.abs(wanted).astype("float64"))
        wrong = ~(np.abs(got.astype("complex128") - wanted.astype("complex128")) <= allowed)
        assert not np.any(wrong), f"{got[wrong]} for {wanted[wrong]}, {shown}"

    def __str__(self) -> str:
        lines = [f"{number}: {array.dtype}{array.shape}" for number, array in enumerate(self.inputs)]
        lines += [f"{number}: {step.text} of {step.operands} {'' if step.part is None else step.part}"
                  for number, step in enumerate(self.steps, 3)]  # fmt: skip
        return "\n  ".join(["", *lines])


OF_UNKNOWN_SIZES = ("broadcasts only if its type says", "specify_shape")
"""Errors of sizes that only calls know: axes that do not broadcast, vectors that have no three elements."""


def is_usable(array: np.ndarray) -> bool:
    return bool(
        array.dtype.name in DTYPES
        and array.size <= LARGEST_SIZE
        and array.ndim <= 5
        and np.all(np.isfinite(array))
        and np.all(np.abs(array.astype("complex128")) < LARGEST_VALUE)
    )


def stays_in_range(array: np.ndarray) -> bool:
    """Whether elements can be multiplied in any order: the order is the program's, as it is NumPy's."""
    if array.dtype.kind not in "fc":
        return True
    sizes = np.abs(array.astype("complex128"))
    exponents = np.log2(sizes[(sizes > 0) & np.isfinite(sizes)])
    limits = np.finfo(array.dtype)
    return bool(
        exponents[exponents > 0].sum() < limits.maxexp and exponents[exponents < 0].sum() > limits.minexp
    )


def may_broadcast(variable: Any, array: np.ndarray) -> bool:
    """Whether the type of a result says of all axes of size 1 that they are."""
    return all(known == 1 for known, size in zip(variable.type.shape, array.shape, strict=True) if size == 1)


def check_program(
    seed: int, size: int, choose: random.Random, compiled: int = 2, pool: Sequence[str] = POOL
) -> int:
    """Run one program as written, alone and beside other outputs, sizes declared or not; how many ways.

    Raises
    ------
    AssertionError
        When a result is another than NumPy's.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        program = RandomProgram(seed, size, pool)
        if not program.outputs:
            return 0
        ways = 0
        for static in (True, False):
            variables = program.typed(static)
            try:
                results = program.built(variables)
            except esat.EsatError:
                assert not static
                continue  # some functions need sizes that are known
            if not all(map(may_broadcast, results, program.exact)):
                continue  # an axis of unknown size does not broadcast, and these may want to
            chosen = choose.sample(program.outputs, min(3, len(program.outputs)))
            given = dict(zip(variables, program.inputs, strict=True))
            try:
                values = esat.evaluate([results[place] for place in chosen], given)
            except esat.ShapeError as error:
                if not any(text in str(error) for text in OF_UNKNOWN_SIZES) or knows_all_sizes(results):
                    raise
                continue  # so may one within a step, as in x[1:] * y[1:] or x[mask] * y
            for place, value in zip(chosen, values, strict=True):
                program.check(place, value, f"as written, static={static}")
            ways += 1
            for number in range(compiled):
                places = chosen if number % 2 == 0 else chosen[:1]
                mode = choose.choice(MODES)
                ways += run_compiled(program, results, places, given, mode, f"{mode}, static={static}")
        return ways


def knows_all_sizes(results: Sequence[Any]) -> bool:
    """Whether types say what all sizes are: masks, say, choose as many elements as they happen to."""
    return not any(None in variable.tensor_type.shape for variable in esat.graph.ancestors(results))


def run_compiled(
    program: RandomProgram,
    results: Sequence[Any],
    places: Sequence[int],
    given: dict[Any, np.ndarray],
    mode: str,
    how: str,
) -> int:
    outputs = [results[place] for place in places]
    needed = set(esat.graph.ancestors(outputs))
    used = [variable for variable in given if variable in needed]
    function = esat.compile(esat.Graph(used, outputs), esat.Mode(mode, variants=0))
    before = [given[variable].copy() for variable in used]
    for _ in range(2):
        computed = function(*[given[variable] for variable in used])
        for place, value in zip(places, computed if len(places) > 1 else [computed], strict=True):
            program.check(place, value, f"{how}, beside {len(places) - 1} others")
    for variable, copy in zip(used, before, strict=True):
        assert np.array_equal(given[variable], copy), f"an argument was changed: {how} of {program}"
    return 1


MODES = [name for name in mode_names() if name not in ("o1", "o4", "debug")]


def main(first: int, count: int, report: Callable[[str], None] = print) -> None:
    """Run programs of many seeds and count what is wrong."""
    counted: Counter[str] = Counter()
    begin = time.perf_counter()
    for seed in range(first, first + count):
        choose = random.Random(seed)
        try:
            counted["runs"] += check_program(seed, choose.choice((3, 5, 8, 12)), choose)
            counted["programs"] += 1
        except AssertionError as error:
            counted["wrong"] += 1
            report(f"seed {seed} WRONG: {str(error)[:1500]}")
        except Exception as error:
            counted["failed"] += 1
            trace = traceback.format_exc()[-700:]
            report(f"seed {seed} FAILED {type(error).__name__}: {str(error)[:600]}\n{trace}")
        if seed % 50 == 49:
            report(f"{seed + 1 - first} seeds, {dict(counted)}, {time.perf_counter() - begin:.0f} s")
    report(f"done: {dict(counted)}, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
