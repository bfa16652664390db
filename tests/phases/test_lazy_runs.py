"""Random graphs of nested choices that share parts: what runs is what is needed, or little more."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import esat
from esat.graph import Family
from esat.graph.op import Op

RUNS: list[int] = []
MODES = ("fast_run", "greedy", "fast_compile")


@dataclass(frozen=True, eq=False, repr=False)
class Noted(Op):
    """The operand plus a number; each run is noted."""

    number: int
    name: str = field(default="noted", init=False)
    constructor: str = field(default="NotedRun", init=False)
    family: Family = field(default=Family.LIBRARY, init=False)

    def properties(self) -> tuple[object, ...]:
        return (self.number,)

    def infer_types(self, inputs: Any) -> Any:
        return (inputs[0].type,)

    def perform(self, inputs: Any) -> Any:
        RUNS.append(self.number)
        return (inputs[0] + self.number,)


Form = tuple[Any, ...]


class Choices:
    """A random expression, as a graph and by hand."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.inputs = [esat.vector("x"), esat.vector("y")]
        self.flags = [esat.scalar(f"c{number}", dtype="bool") for number in range(4)]
        forms: list[Form] = [("input", 0), ("input", 1)]
        for number in range(self.draw.randint(6, 16)):
            first, second = self.draw.choice(forms[-6:]), self.draw.choice(forms)
            kind = self.draw.random()
            if kind < 0.4:
                forms.append(("noted", number, first))
            elif kind < 0.55:
                forms.append(("add", first, second))
            else:
                computed = ("positive", self.draw.choice(forms))
                flag = ("flag", self.draw.randrange(4))
                forms.append(("choose", flag if self.draw.random() < 0.7 else computed, first, second))
        self.outputs = forms[-2:]

    def function(self, mode: str) -> Any:
        built: dict[Form, Any] = {}

        def build(form: Form) -> Any:
            if form not in built:
                match form:
                    case ("input", number):
                        built[form] = self.inputs[number] * 1.0
                    case ("flag", number):
                        built[form] = self.flags[number]
                    case ("noted", number, operand):
                        built[form] = Noted(number)(build(operand))
                    case ("add", first, second):
                        built[form] = build(first) + build(second)
                    case ("positive", operand):
                        built[form] = build(operand).sum() > 10.0
                    case (_, condition, first, second):
                        built[form] = esat.ifelse(build(condition), build(first), build(second))
            return built[form]

        outputs = [build(form) for form in self.outputs]
        return esat.compile(esat.Graph([*self.inputs, *self.flags], outputs, on_unused_input="ignore"), mode)

    def arguments(self) -> list[Any]:
        vectors = [np.array([self.draw.uniform(-5.0, 5.0) for _ in range(3)]) for _ in self.inputs]
        return [*vectors, *(np.bool_(self.draw.random() < 0.5) for _ in self.flags)]

    def expected(self, arguments: list[Any]) -> tuple[list[Any], set[int]]:
        """The outputs, and the numbers of what is needed for them."""
        known: dict[Form, Any] = {}
        needed: set[int] = set()

        def value(form: Form) -> Any:
            if form not in known:
                match form:
                    case ("input", number):
                        known[form] = arguments[number]
                    case ("flag", number):
                        known[form] = arguments[2 + number]
                    case ("noted", number, operand):
                        known[form] = value(operand) + number
                        needed.add(number)
                    case ("add", first, second):
                        known[form] = value(first) + value(second)
                    case ("positive", operand):
                        known[form] = value(operand).sum() > 10.0
                    case (_, condition, first, second):
                        known[form] = value(first if value(condition) else second)
            return known[form]

        return [value(form) for form in self.outputs], needed


def runs_of(seed: int, mode: str) -> Iterator[tuple[set[int], set[int]]]:
    """For some calls: what was needed, and what ran."""
    choices = Choices(seed)
    function = choices.function(mode)
    for _ in range(8):
        arguments = choices.arguments()
        expected, needed = choices.expected(arguments)
        RUNS.clear()
        for result, wanted in zip(function(*arguments), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-12)
        yield needed, set(RUNS)


@pytest.mark.parametrize("mode", MODES)
def test_little_runs_that_is_not_needed(mode: str) -> None:
    calls = [call for seed in range(1, 16) for call in runs_of(seed, mode)]
    needless = sum(len(ran - needed) for needed, ran in calls)
    assert needless <= 0.02 * sum(len(needed) for needed, _ in calls)


@pytest.mark.parametrize("mode", MODES)
def test_a_part_of_sides_of_several_choices_runs_where_one_of_them_is_chosen(mode: str) -> None:
    x, c, d = esat.vector("x"), esat.scalar("c", dtype="bool"), esat.scalar("d", dtype="bool")
    shared = Noted(1)(x)
    function = esat.compile(
        esat.Graph([x, c, d], [esat.ifelse(c, shared, x) + esat.ifelse(d, x, shared)]), mode
    )
    for chosen, other in ((True, True), (True, False), (False, True), (False, False)):
        RUNS.clear()
        result = function(np.ones(2), chosen, other)
        np.testing.assert_array_equal(result, np.full(2, 2.0 + chosen + (not other)))
        assert len(RUNS) == int(chosen or not other)
