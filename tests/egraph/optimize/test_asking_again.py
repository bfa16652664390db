"""How often a compilation saturates: again only for what local optimizers say that is news to the e-graph."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import esat
from esat import classic
from esat.classic.equalities import CollectEqualities
from esat.classic.rewriting import LOCALS
from esat.egraph.language.encode import encode
from esat.errors import EsatWarning, SaturationError
from esat.extract.kept_graphs import kept_graphs
from esat.graph import FunctionGraph
from esat.optimize.equality.saturating import LiveEGraph
from esat.optimize.saturation import _Inquiry


def filter_of(steps):
    """An adaptive filter: each step reads what it has written, and changes its weights."""
    signal, weights = esat.matrix("signal"), esat.vector("weights")
    errors, state = esat.zeros((2, steps)), esat.set_subtensor(esat.zeros((2, 3))[0], weights)
    for step in range(steps):
        part = signal[0, step : step + 3]
        errors = esat.set_subtensor(errors[1, step], 1.0 - (part * state[0]).sum() ** 2)
        state = esat.set_subtensor(state[0], state[0] + 0.1 * errors[1, step] * part)
    return esat.Graph([signal, weights], [errors, state])


@pytest.fixture
def saturations(monkeypatch):
    """What was found of each terms that an e-graph was told of."""
    made, tell = [], LiveEGraph.tell

    def told(self, terms):
        made.append((terms, *tell(self, terms)))
        return made[-1][1:]

    monkeypatch.setattr(LiveEGraph, "tell", told)
    monkeypatch.setenv("ESAT_EGRAPH_CACHE", "0")
    kept_graphs.cache_clear()
    yield made
    kept_graphs.cache_clear()


def test_what_an_e_graph_holds_already_is_no_reason_to_saturate_again(saturations):
    graph = filter_of(12)
    function = esat.compile(graph, "fast_run")
    assert 1 <= len(saturations) <= 2
    values = np.random.default_rng(0).normal(size=(1, 20)), np.array([0.3, -0.2, 0.1])
    expected = esat.evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
    for found, wanted in zip(function(*values), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_an_e_graph_goes_on_with_what_local_optimizers_claim_of_it(saturations):
    """It is loaded once; what it had to say of claims is in it, and nothing is said of those it knows."""
    points, length = esat.vector("points"), esat.scalar("length")
    kernel = esat.exp(-((points[:, None] - points[None, :]) ** 2) / esat.exp(length))
    matrix = kernel + esat.eye(points.shape[0])
    factor = esat.linalg.cholesky(matrix)
    density = esat.log(esat.diagonal(factor)).sum()
    function = esat.compile(esat.Graph([points, length], [density, *esat.grad(density, [length])]))
    terms = [told.terms for told, _, _ in saturations]
    assert len(terms) > 1
    assert all(more.terms[: len(first.terms)] == first.terms for first, more in pairwise(terms))
    rounds = [report.rounds for _, _, report in saturations]
    assert rounds == sorted(rounds)
    assert function.report.saturation.rounds == rounds[-1]


def test_writes_to_one_place_are_compared_with_the_first_of_them_alone():
    vector = esat.vector("vector")
    written = vector
    for number in range(30):
        written = esat.set_subtensor(written[0], written[1] * number)
    (local,) = (one.optimizer for one in LOCALS if one.optimizer.name == "local_setsubtensor_of_setsubtensor")
    collector = CollectEqualities([local])
    collector.optimize(esat.Graph([vector], [written]).function_graph())
    assert len(collector.claims) == 29


@pytest.mark.parametrize(("reads", "claims"), [(False, 1), (True, 0)])
def test_increments_of_one_place_are_added_up_once_where_nothing_reads_between_them(reads, claims):
    vector, written, results = esat.vector("vector"), esat.vector("vector"), []
    first = written
    for number in range(30):
        written = esat.inc_subtensor(written[1:3], vector[:2] * number)
        results.append(written.sum())
    (local,) = (one.optimizer for one in LOCALS if one.optimizer.name == "local_setsubtensor_of_setsubtensor")
    collector = CollectEqualities([local])
    collector.optimize(esat.Graph([first, vector], results if reads else [written]).function_graph())
    assert len(collector.claims) == claims


def test_known_classes_leave_out_what_is_no_news():
    vector = esat.vector("vector")
    graph = esat.Graph([vector], [esat.set_subtensor(vector[0], vector[1])[0]]).function_graph()
    locals = [one.optimizer for one in LOCALS if one.optimizer.name == "local_subtensor_inc_subtensor"]
    collector = CollectEqualities(locals)
    (read,) = graph.outputs
    collector.classes = {read: 7, read.owner.inputs[0].owner.inputs[1]: 7}
    collector.optimize(graph)
    assert not collector.claims
    other = CollectEqualities(locals)
    other.classes = {read: 7, read.owner.inputs[0].owner.inputs[1]: 8}
    other.optimize(graph)
    assert len(other.claims) == 1


@classic.local_optimizer([esat.tan])
def erf_of_tan_by_its_user(node):
    """erf(tan(x)) -> x, asked about the tangent: whether it was asked shows."""
    users = (user for user, _ in node.outputs[0].clients or () if user != "output")
    return {user.outputs[0]: node.inputs[0] for user in users if user.op == esat.erf} or False


@pytest.mark.parametrize("mode", ["fast_run", "o3", "greedy"])
def test_optimizers_that_replace_users_are_asked_about_users_that_rules_find(mode):
    x, y = esat.dvector("x"), esat.dvector("y")
    tan = esat.tan(x)
    esat.optdb["canonicalize"].register("erf_of_tan_by_its_user", erf_of_tan_by_its_user, "fast_run")
    try:
        for operand in (tan, esat.neg(-tan), tan * y / y, tan * 1, esat.sin(x) / esat.cos(x)):
            for outputs in ([esat.erf(operand)], [esat.erf(operand), tan + y]):
                graph = esat.Graph([x, y], outputs, on_unused_input="ignore")
                nodes = esat.compile(graph, mode=mode).optimized.toposort()
                assert "erf" not in {node.op.name for node in nodes}
    finally:
        esat.optdb["canonicalize"].remove("erf_of_tan_by_its_user")


@pytest.mark.parametrize("mode", ["fast_run", "o3", "unsafe", "strict", "greedy"])
def test_a_reshape_back_is_none(mode):
    a = esat.dmatrix("a")
    back = a.reshape((-1,)).reshape(a.shape)
    for output, names in ((back, []), (back + a, ["add"]), (esat.exp(back).reshape(a.shape), ["exp"])):
        nodes = esat.compile(esat.Graph([a], [output]), mode=mode).optimized.toposort()
        assert [node.op.name for node in nodes] == names


ONE_ELEMENT = {
    "slice": lambda x, y, one: [esat.exp(x)[:one] * 2],
    "slice of a slice": lambda x, y, one: [esat.exp(x[one - one :])[:one] * 3, x.sum()],
    "sum": lambda x, y, one: [esat.exp(x)[:one].sum()],
    "gradient of a join": lambda x, y, one: esat.grad(
        (esat.exp(esat.concatenate([x[:one], y * 2])) ** 2).sum(), [x]
    ),
    "gather": lambda x, y, one: [esat.exp(esat.take(x, esat.arange(one))) * y[:one]],
    "reshape": lambda x, y, one: [esat.exp(x[:one].reshape([one, one])) * 2],
    "write": lambda x, y, one: [esat.set_subtensor(esat.exp(x)[:one], y[:one] * 2)[:one]],
}


@pytest.mark.filterwarnings("error::esat.EsatWarning")
@pytest.mark.parametrize("mode", ["fast_run", "o3"])
@pytest.mark.parametrize("name", ONE_ELEMENT)
def test_sizes_of_one_that_rules_find_do_not_contradict_what_was_written(name, mode):
    """An e-graph holds a class as an array of unknown sizes, or as one of a single element, for good."""
    x, y = esat.TensorType("float64", shape=(3,))("x"), esat.vector("y")
    size = y.shape[0]
    outputs = ONE_ELEMENT[name](x, y, size - size + 1)
    values = np.array([0.5, -1.0, 2.0]), np.array([3.0, 0.25])
    expected = esat.evaluate(outputs, dict(zip([x, y], values, strict=True)))
    function = esat.compile(esat.Graph([x, y], outputs, on_unused_input="ignore"), mode)
    found = function(*values)
    for one, wanted in zip(found if len(outputs) > 1 else [found], expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-14)


def test_claims_that_break_an_egraph_off_are_not_used():
    """What was found before stays, and later questions are asked without them."""

    def searched(search, equalities):
        raise SaturationError(f"broken off by {equalities}")

    choosing = SimpleNamespace(found=searched, validated=lambda *chosen: chosen)
    inquiry = _Inquiry(None, lambda *_: ["new"], ["known"], choosing, None, object())
    found = "graph", SimpleNamespace(extraction=None)
    with pytest.warns(EsatWarning, match="is not used"):
        assert inquiry.asked_again(found) == found
    assert inquiry.equalities == ["known"]


def test_what_was_found_before_a_question_that_fails_is_judged_and_chosen():
    answers = [SimpleNamespace(graph="e-graph")]

    def found(search, equalities):
        if not answers:
            raise SaturationError("broken off")
        return answers.pop()

    asked = []
    report = SimpleNamespace(extraction=None)
    choosing = SimpleNamespace(
        found=found,
        read=lambda graph: (f"cheapest of {graph}", None),
        chosen=lambda known: (f"accurate of {known.graph}", report),
        validated=lambda *chosen: chosen,
    )
    inquiry = _Inquiry(None, lambda graph: asked.append(graph) or ["new"], [], choosing, None, object())
    with pytest.warns(EsatWarning, match="is not used"):
        result, _ = inquiry.asked_again(("first", report))
    assert result == "accurate of e-graph"
    assert asked == ["first", "cheapest of e-graph", "accurate of e-graph"]
    assert inquiry.equalities == ["new"]


def test_terms_of_more_claims_begin_with_those_of_fewer() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    graph = FunctionGraph([x, y], [esat.exp(x) * y], clone=False)
    # A side that is a constant, one that folds to one, and one whose constant nothing else has.
    zero, two = esat.constant(np.zeros(3)), esat.constant(2.0)
    claims = [
        (esat.zeros_like(x), zero, "zero"),
        (two + two, esat.constant(4.0), "four"),
        (x * two, x + x, "twice"),
    ]
    whole = encode(graph, claims)
    for count in range(len(claims)):
        fewer = encode(graph, claims[:count])
        assert whole.terms[: len(fewer.terms)] == fewer.terms
        assert whole.equal[: len(fewer.equal)] == fewer.equal
        assert len(whole.arrays) >= len(fewer.arrays)
