"""Rules that are left out by name have no effect: all that case files show firing, in one graph."""

import warnings

import pytest

import esat
from esat.graph.sparse_type import SparseType
from tests.rules.cases import HERE, read_cases

CASES = {
    case.rule: case
    for path in sorted(HERE.glob("*.egg"))
    for case in read_cases(path)
    if case.kind == "fires" and not any(isinstance(one.type, SparseType) for one in case.inputs.values())
}


def applied(mode):
    """Names of the rules that had an effect on a graph of all cases, and what was warned of."""
    outputs = [case.variables()[0] for case in CASES.values()]
    inputs = [one for one in esat.graph.inputs_of(outputs) if not isinstance(one, esat.graph.Constant)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", esat.EsatWarning)
        report = esat.compile(esat.Graph(inputs, outputs), mode=mode).report
    return report.rules.keys() & CASES.keys(), " ".join(str(one.message) for one in told)


@pytest.mark.parametrize(("mode", "least"), [("fast_run", 60), ("greedy", 15)])
def test_what_is_excluded_has_no_effect_or_the_mode_says_why(mode, least):
    names, _ = applied(mode)
    assert len(names) >= least
    left, told = applied(esat.Mode(mode).excluding(*sorted(names)))
    assert not left & names
    in_vain = told.partition("leaving out ")[2].partition(" changes nothing")[0].split(", ")
    assert len(names - set(in_vain)) >= least
