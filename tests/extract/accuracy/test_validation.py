"""What is chosen as a whole is no farther off than the graph as it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.extract.accuracy.judge import judged
from esat.extract.accuracy.validation import Validation, extract_validated
from esat.extract.extraction import SaturatedGraph, extract
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.graph import inputs_of
from esat.graph.op import is_constant
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

F4, F8, LONG = np.float32, np.float64, np.longdouble


def slopes(m: Any, value: Any, a: Any, b: Any, mu: Any, sigma: Any) -> list[Any]:
    """The logarithm of a skewed Student's t density (M. C. Jones, M. J. Faddy, 2003) and three slopes.

    Both quotients ``p`` and ``q`` are read twice, and the error of ``1 + u`` goes away between these.
    """
    z = (value - mu) / sigma
    s = m.sqrt(a + b + z * z)
    u = z / s
    p, q = (a + 0.5) / (1 + u), (b + 0.5) / (1 - u)
    left = -(p * z) / (s * s) * 0.5 / s * 2 * z
    right = (q * z) / (s * s) * 0.5 / s * 2 * z
    slope = (p - q) / s + (left + right)
    density = m.log1p(u) * (a + 0.5) + m.log1p(-u) * (b + 0.5)
    return [density, slope / sigma, -(slope * (value - mu)) / (sigma * sigma) - 1 / sigma, -slope / sigma]


def graph_of(function: Any, dtype: str, count: int, verdicts: bool = True) -> SaturatedGraph:
    inputs = [esat.scalar(f"x{number}", dtype=dtype) for number in range(count)]
    outputs = function(esat.numpy, *inputs)
    leaves = [leaf for leaf in inputs_of(outputs) if not is_constant(leaf)]
    program = program_for(RULES.query(Query(include=("fast_run",))))
    fgraph = esat.Graph(leaves, list(outputs)).function_graph()
    graph = saturated(encode(fgraph), program, Budgets(20_000, 10.0, 12))[0]
    return replace(graph, verdicts=judged(graph)) if verdicts else graph


def distances(values: Any, truths: Any, dtype: Any) -> list[float]:
    """Relative errors."""
    pairs = zip(values, truths, strict=True)
    return [abs(float((LONG(value) - truth) / truth)) / float(np.finfo(dtype).eps) for value, truth in pairs]


@pytest.mark.parametrize("mode", ["fast_run", "o3", "strict", "greedy", "fast_compile"])
@pytest.mark.parametrize("dtype", [F4, F8])
def test_errors_that_cancel_as_written_cancel(mode: str, dtype: Any) -> None:
    function = esat.jit(lambda *args: slopes(np, *args), mode=mode)
    for value in (1.0, -3.0, 11.0, -40.0, -140.0) if dtype is F4 else (1.0, -10.0, -100.0, -1e3, 1e4, -1e5):
        args = [dtype(x) for x in (value, 1.3, 0.7, 0.1, 1.1)]
        truths = slopes(np, *(LONG(x) for x in args))
        written = distances(slopes(np, *args), truths, dtype)
        found = distances(function(*args), truths, dtype)
        for one, other in zip(found, written, strict=True):
            assert one <= 64 * (other + 1), (value, one, other)


@pytest.mark.parametrize("shapes", ["symbolic", "static"])
@pytest.mark.parametrize("which", [slice(None), *(slice(place, place + 1) for place in range(4))])
def test_of_vectors_alone_and_beside_others(shapes: str, which: slice) -> None:
    rest = (1.3, 0.7, 0.1, 1.1)
    values = np.array([1.0, -10.0, -100.0, -1e3, 1e4, -1e5])
    truths = slopes(np, values.astype(LONG), *(LONG(x) for x in rest))[which]
    found = esat.jit(lambda *args: slopes(np, *args)[which], shapes=shapes)(values, *rest)
    for one, other, truth in zip(found, slopes(np, values, *rest)[which], truths, strict=True):
        assert (np.abs(one - truth) <= 64 * (np.abs(other - truth) + np.abs(truth) * 2.0**-52)).all()


def test_explanations_say_why_other_forms_are_not_chosen() -> None:
    inputs = [esat.scalar(name) for name in ("value", "a", "b", "mu", "sigma")]
    found = esat.compile(esat.Graph(inputs, slopes(esat.numpy, *inputs)))
    assert "(loses digits beside what else is chosen)" in str(found.explain())


def test_what_would_be_chosen_by_verdicts_alone_is_farther_off() -> None:
    inputs = [esat.scalar(name) for name in ("value", "a", "b", "mu", "sigma")]
    found = esat.compile(esat.Graph(inputs, slopes(esat.numpy, *inputs))).report.extraction
    validation = Validation(found.graph, found.graph.verdicts)
    model = CostModel(MachineProfile(), found.graph.terms.opaque)
    alone = extract(replace(found.graph, kept=frozenset()), model, found.hints)
    failures = validation.failures(alone.selection.chosen)
    assert failures.points > 0
    assert found.graph.kept >= validation.written_below(failures.lowest, 1)
    assert validation.failures(found.selection.chosen) == (0, [])


def test_the_graph_as_it_was_written_never_fails() -> None:
    graph = graph_of(slopes, "float64", 5)
    assert Validation(graph, graph.verdicts).failures(graph.initial) == (0, [])


def test_nothing_is_validated_where_nothing_is_known_or_wanted() -> None:
    graph = graph_of(slopes, "float64", 5, verdicts=False)
    model = CostModel(MachineProfile(), graph.terms.opaque)
    for one in (graph, replace(graph_of(slopes, "float64", 5), accuracy="ignore")):
        found = extract_validated(one, model)
        assert not found.graph.kept
        assert (found.selection.chosen == extract(one, model).selection.chosen).all()


def test_kept_classes_are_computed_as_written() -> None:
    graph = graph_of(slopes, "float64", 5)
    model = CostModel(MachineProfile(), graph.terms.opaque)
    everything = Validation(graph, graph.verdicts).written_below(graph.roots, 64)
    chosen = extract(replace(graph, kept=everything), model).selection.chosen
    live = np.flatnonzero(chosen >= 0)
    assert set(graph.roots) <= set(live.tolist()) & everything
    assert (chosen[live] == graph.initial[live]).all()
