"""What is left out by name has no effect: rules that case files show firing, and Python optimizers."""

import warnings

import esat
from esat import Query, optdb
from esat.compilation.optimizing import optimize_graph, rule_options, rule_texts
from esat.graph import FunctionGraph
from esat.graph.sparse_type import SparseType
from esat.runtime.function_profile import Profile
from tests.classic.rewriting.test_table import CASES as LOCAL_CASES
from tests.rules.cases import HERE, read_cases

RULE_CASES = {
    case.rule: case
    for path in sorted(HERE.glob("*.egg"))
    for case in read_cases(path)
    if case.kind == "fires" and not any(isinstance(one.type, SparseType) for one in case.inputs.values())
}
LEAST = 60
"""Names that must have an effect where they take part, and none where left out."""

v, w = esat.vector("v"), esat.vector("w")
x, y = esat.matrix("x"), esat.matrix("y")
known = esat.matrix("known", shape=(4, 4))
OTHER_CASES = [
    ("fills_by_sizes", esat.full_like(x @ y, 2.0)),
    ("lift_transposes", esat.tanh(x.T) @ y),
    ("scale_products", y - (2.0 * x) @ y),
    ("add_diagonals", esat.exp(known) + esat.diag(known[0])),
    ("signs_into_numbers", -(2.0 * esat.sin(v))),
]


def saturated(mode):
    """Names of the rules that had an effect on a graph of all cases, what was warned of, and what is left."""
    outputs = [case.variables()[0] for case in RULE_CASES.values()]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", esat.EsatWarning)
        graph = esat.Graph(inputs_of(outputs), outputs).function_graph()
        result, report = optimize_graph(graph, mode, rule_options(mode, rule_texts(()), ()), Profile(), None)
    alone = [FunctionGraph(result.inputs, [output]) for output in result.outputs]
    left = {name: f"{graph} {len(graph)}" for name, graph in zip(RULE_CASES, alone, strict=True)}
    return report.rules.keys() & RULE_CASES.keys(), " ".join(str(one.message) for one in told), left


def inputs_of(outputs):
    return [one for one in esat.graph.inputs_of(outputs) if not isinstance(one, esat.graph.Constant)]


def test_what_is_excluded_does_not_saturate_or_the_mode_says_why():
    names, _, whole = saturated(esat.Mode("fast_run"))
    assert len(names) >= LEAST
    left, told, rest = saturated(esat.Mode("fast_run").excluding(*sorted(names)))
    assert not left & names
    in_vain = told.partition("leaving out ")[2].partition(" changes nothing")[0].split(", ")
    changed = {name for name in names if rest[name] != whole[name]}
    assert len(changed) >= LEAST
    assert not changed & set(in_vain)


def replaced(optimizer, output):
    """The graph that greedy rewriting leaves of an output, and the names of what had an effect on it."""
    graph = esat.Graph(inputs_of([output]), [output]).function_graph()
    applied = optimizer.optimize(graph).all_applied()
    return f"{graph} {len(graph)}", {name.removesuffix("=>").removesuffix("<=") for name in applied}


def test_what_is_excluded_replaces_nothing():
    """Each Python optimizer alone: it changes the graph that is left, unless others know the same."""
    cases = [(name, output) for name, output, _ in LOCAL_CASES] + OTHER_CASES
    others = dict(OTHER_CASES)  # some run once for a whole graph, and are not counted
    everything = optdb.query(Query(["fast_run"]))
    effective = set()
    for name, output in cases:
        if name in effective:
            continue
        whole, names = replaced(everything, output)
        if name in names or name in others:
            left, rest = replaced(optdb.query(Query(["fast_run"], exclude=[name])), output)
            assert name not in rest
            if left != whole:
                effective.add(name)
    assert len(effective) >= LEAST // 2
    assert effective >= others.keys()
