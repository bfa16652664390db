"""Random programs that view, overwrite, update and are given memory, against the interpreter.

``ESAT_FUZZ_ROUNDS=20000 pytest tests/runtime/test_fuzz_aliasing.py`` runs more of them.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import esat
from esat.graph import SharedVariable, Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.runtime import Executable

ROUNDS = int(os.environ.get("ESAT_FUZZ_ROUNDS", "400"))
SIZE = 3
Build = Callable[..., Executable]


class Program:
    """A random graph over square matrices: inputs, shared variables, updates and donations."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: list[Variable] = [esat.matrix(name) for name in "xyz"]
        self.shared = [esat.shared(self.matrix(), name=name) for name in "stu"]
        self.row = esat.scalar("i", dtype="int64")
        self.pool: list[Variable] = [*self.inputs, *self.shared]
        for _ in range(int(self.rng.integers(2, 16))):
            self.pool.append(self.grow())
        self.outputs = [self.pick() for _ in range(int(self.rng.integers(0, 4)))]
        self.updates: dict[SharedVariable, Variable] = {
            variable: self.pick() for variable in self.shared if self.rng.random() < 0.7
        }
        if not self.outputs and not self.updates:
            self.outputs = [self.pool[-1]]
        self.donated = [place for place in range(3) if self.rng.random() < 0.4]

    def matrix(self) -> np.ndarray:
        return self.rng.uniform(-1.0, 1.0, (SIZE, SIZE))

    def pick(self) -> Variable:
        recent = max(0, len(self.pool) - 4) if self.rng.random() < 0.6 else 0
        return self.pool[int(self.rng.integers(recent, len(self.pool)))]

    def index(self) -> Any:
        choice = int(self.rng.integers(0, 4))
        return [slice(1, None), slice(None, None, -1), (slice(None), 1), self.row][choice]

    def grow(self) -> Variable:
        one, other = self.pick(), self.pick()
        kind = int(self.rng.integers(0, 12))
        if kind == 0:
            return one + other
        if kind == 1:
            return one * 0.5 - other
        if kind == 2:
            return esat.tanh(one)
        if kind == 3:
            product = other @ self.pick()
            return 0.5 * one + 0.25 * product if self.rng.random() < 0.5 else esat.tanh(product * 0.5) * one
        if kind == 4:
            return one.T
        if kind == 5:
            return one[::-1]
        if kind == 6:
            return one - other.sum(axis=0, keepdims=True) * 0.1
        if kind == 7:
            return esat.reshape(esat.reshape(one, (-1,)), (SIZE, SIZE))
        part = one[self.index()]
        value = self.rng.random() < 0.3 and part.ndim == 2 and self.rng.random() < 0.5
        if kind == 8:
            return esat.set_subtensor(part, part * 0.5 if value else float(self.rng.integers(0, 3)))
        if kind == 9:
            return esat.inc_subtensor(part, esat.tanh(part) if value else 0.5)
        if kind == 10:
            return esat.ifelse(self.pick()[0, 0] > 0.1, one, other)
        chosen = one[np.array([0, 2, 0])]
        return esat.inc_subtensor(chosen, other * 0.125)


class Runner:
    """Calls a program again and again and compares it with the interpreter."""

    def __init__(self, program: Program, build: Build) -> None:
        self.program = program
        results = [*program.outputs, *program.updates.values()]
        used = set(esat.graph.ancestors(results))
        self.inputs = [v for v in (*program.inputs, program.row) if v in used]
        donated = {program.inputs[place] for place in program.donated}
        self.donated = [place for place, variable in enumerate(self.inputs) if variable in donated]
        self.results = results
        self.function = build(self.inputs, program.outputs, program.updates, self.donated)

    def arguments(self) -> list[np.ndarray]:
        """Fresh arrays; sometimes two are one, or one is a view of another."""
        rng, program = self.program.rng, self.program
        arrays = [
            np.array(rng.integers(0, SIZE)) if v is program.row else program.matrix() for v in self.inputs
        ]
        if len(arrays) > 1 and self.inputs[1] is not program.row and rng.random() < 0.3:
            arrays[1] = [arrays[0], arrays[0].T, arrays[0][::-1]][int(rng.integers(0, 3))]
        return arrays

    def call(self) -> None:
        arrays = self.arguments()
        kept = [array.copy() for array in arrays]
        shared = self.program.shared
        before = [variable.get_value() for variable in shared]
        wanted = evaluate(self.results, dict(zip(self.inputs, arrays, strict=True)))
        wanted = [np.array(value) for value in wanted]
        got = self.function(*arrays)
        got = got if isinstance(got, tuple) else (got,)
        for result, value in zip(got, wanted, strict=False):
            np.testing.assert_allclose(result, value, rtol=1e-10, atol=1e-12)
        new = dict(zip(self.program.updates, wanted[len(self.program.outputs) :], strict=True))
        for variable, old in zip(shared, before, strict=True):
            value = variable.get_value(borrow=True)
            np.testing.assert_allclose(value, new.get(variable, old), rtol=1e-10, atol=1e-12)
        for place, (array, copy) in enumerate(zip(arrays, kept, strict=True)):
            assert place in self.donated or np.array_equal(array, copy)
        self.check_memory(got, [array for place, array in enumerate(arrays) if place not in self.donated])

    def check_memory(self, results: tuple[np.ndarray, ...], arguments: list[np.ndarray]) -> None:
        values = [variable.get_value(borrow=True) for variable in self.program.shared]
        for place, value in enumerate(values):
            others = [*values[:place], *results]
            assert not any(np.may_share_memory(value, other) for other in others)
        for place, result in enumerate(results):
            assert not any(np.may_share_memory(result, other) for other in (*arguments, *results[:place]))


def test_random_programs_of_interpreted_kernels(compiled: Build) -> None:
    def build(inputs: Any, outputs: Any, updates: Any, donated: Any) -> Executable:
        return compiled(inputs, outputs, updates, kernels=True, donate=donated)

    for seed in range(ROUNDS):
        runner = Runner(Program(seed), build)
        for _ in range(3):
            try:
                runner.call()
            except Exception as error:
                error.add_note(f"seed {seed}\n{runner.function.source()}")
                raise


@pytest.mark.parametrize("mode", ["fast_compile", "fast_run", "greedy"])
def test_random_programs_through_the_whole_pipeline(mode: str) -> None:
    def build(inputs: Any, outputs: Any, updates: Any, donated: Any) -> Executable:
        graph = esat.Graph(inputs, list(outputs), updates=updates)
        return esat.compile(graph, mode, donate=[inputs[place] for place in donated])

    for seed in range(ROUNDS // 40):
        runner = Runner(Program(10_000 + seed), build)
        for _ in range(2):
            runner.call()


def test_the_fuzzer_overwrites_what_it_should(compiled: Build) -> None:
    """Among the programs there are all ways to overwrite memory."""
    seen = {"shared": 0, "donated": 0, "result by kernel": 0, "result by op": 0}

    def build(inputs: Any, outputs: Any, updates: Any, donated: Any) -> Executable:
        return compiled(inputs, outputs, updates, kernels=True, donate=donated)

    for seed in range(150):
        function = Runner(Program(seed), build).function
        pairs = function.overwrites.items()
        seen["shared"] += any(isinstance(old, SharedVariable) for _, old in pairs)
        seen["donated"] += any(old in function.graph.input_set for _, old in pairs)
        by_op = {new for new, _ in pairs if new.owner is not None and new.owner.op.destroy_map}
        seen["result by op"] += any(old.owner is not None and new in by_op for new, old in pairs)
        seen["result by kernel"] += any(old.owner is not None and new not in by_op for new, old in pairs)
    assert all(count >= 10 for count in seen.values()), seen
