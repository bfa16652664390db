"""Queries mean the same in modes that saturate as in greedy ones."""

import warnings

import pytest

import esat
from esat import Mode, Query
from esat.classic import EquilibriumDB, OpSub, SequenceDB
from esat.classic.optimizers.equilibrium import EquilibriumOptimizer
from esat.classic.rules.rule_options import RuleOptions
from esat.classic.rules.rule_step import EGraphStep
from esat.classic.standard import optdb
from esat.errors import EsatWarning, OptimizerError
from esat.optimize.plan import excluded_in_vain, saturation_plan, selected_rules
from esat.rules import RULES

MODES = ["fast_run", "greedy"]
NAMES = sorted({rule.report_name for rule in RULES.list() if "fast_run" in rule.tags})[::9]


@pytest.fixture
def x():
    return esat.vector("x")


def text(mode, x, result, **options):
    return str(esat.compile(esat.Graph([x], result), mode, **options).optimized)


@pytest.mark.parametrize("mode", MODES)
def test_subqueries_govern_rules(mode, x):
    written = esat.exp(esat.log(esat.exp(esat.sin(x))))
    assert text(mode, x, written) == "[exp(sin(x))]"
    nothing = {name: Query([]) for name in ("canonicalize", "stabilize", "blas", "specialize")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EsatWarning)  # which says what saturation does all the same
        alone = Mode(mode, query=Query(["fast_run"], subquery=nothing))
        assert text(alone, x, written) == "[exp(log(exp(sin(x))))]"


@pytest.mark.parametrize("mode", MODES)
def test_rules_of_one_compilation_can_be_excluded(mode, x):
    rules = '(rewrite (Erf (Sin x)) (Cos x) :name "mine") (rewrite (Erf (Sin x)) (Sin x) :name "other")'
    cheap = Mode(mode, accuracy="ignore")
    assert "erf" not in text(cheap, x, esat.erf(esat.sin(x)), rules=rules)
    assert text(cheap.excluding("mine", "other"), x, esat.erf(esat.sin(x)), rules=rules) == "[erf(sin(x))]"


@pytest.mark.parametrize("mode", MODES)
def test_rules_of_one_compilation_obey_tags(mode, x):
    rules = '(ruleset own :tags (my-tag)) (rewrite (Erf (Sin x)) x :ruleset own :name "mine")'
    free = Mode(mode, accuracy="ignore")
    left = {"[x]": [free, free.including("my-tag")], "[erf(sin(x))]": [free.excluding("my-tag")]}
    left["[erf(sin(x))]"] += [free.including("my-tag").excluding("mine"), free.requiring("my-other-tag")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EsatWarning)  # which says what saturation does all the same
        for expected, modes in left.items():
            for one in modes:
                assert text(one, x, esat.erf(esat.sin(x)), rules=rules) == expected


def test_what_saturation_does_by_itself_is_not_excluded_in_silence(x):
    native = (
        "constant_folding",
        "merge1",
        "neg-neg",
        "mul-self",
        "local_add_canonizer",
        "pow-two",
        "pow-seven",
    )
    for name in native:
        with pytest.warns(EsatWarning, match=f"leaving out {name} changes nothing"):
            esat.compile(esat.Graph([x], -x + 1.0), Mode("fast_run").excluding(name))
    with pytest.warns(EsatWarning, match="constant_folding, .*local_add_canonizer.* changes nothing"):
        esat.compile(esat.Graph([x], -x + 1.0), Mode("fast_run").excluding("canonicalize"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", EsatWarning)
        for name in ("pow-minus-three", "two-to-the", "gemm"):
            esat.compile(esat.Graph([x], -x + 1.0), Mode("fast_run").excluding(name))
    with pytest.warns(EsatWarning, match="merge1.*constant_folding"):
        esat.compile(esat.Graph([x], -x + 1.0), Mode("fast_run", query=Query([])))
    for mode in ("fast_run", "o3", "unsafe", "strict"):
        assert not excluded_in_vain(saturation_plan(optdb, Mode(mode).query), RULES, Mode(mode).query)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_excluded_takes_no_part(name):
    query = Query(["fast_run"], exclude=[name])
    plan = saturation_plan(optdb, query)
    rules = selected_rules(plan, RULES, query, RuleOptions("unsafe")).rules
    assert rules
    assert name not in {rule.report_name for rule in rules}
    for optimizer in optdb.query(query, options=RuleOptions("unsafe")).optimizers:
        assert name not in rule_names(optimizer)


def rule_names(optimizer):
    if isinstance(optimizer, EGraphStep):
        return {rule.report_name for rule in optimizer.rules}
    if isinstance(optimizer, EquilibriumOptimizer):
        return set().union(*map(rule_names, optimizer.globals), set())
    return set()


def test_a_subquery_inside_a_subquery_governs_what_is_inside():
    inmost, inner, outer = EquilibriumDB("inmost"), SequenceDB("inner"), SequenceDB("outer")
    inmost.register("to_cos", OpSub(esat.sin, esat.cos), "a")
    inmost.register("to_tan", OpSub(esat.sin, esat.tan), "b")
    inner.register("inmost", inmost, 1, "a")
    outer.register("inner", inner, 1, "a")
    x = esat.vector("x")

    def run(query):
        graph = esat.Graph([x], esat.sin(x)).function_graph()
        outer.query(query).optimize(graph)
        return str(graph)

    assert run(Query(["a"])) == "[cos(x)]"
    assert run(Query(["a"], subquery={"inmost": Query(["b"])})) == "[tan(x)]"
    nested = Query(["a"], subquery={"inner": Query(["b"])})
    assert run(nested) == "[tan(x)]"
    assert (
        run(Query(["b"], subquery={"inner": Query(["c"], subquery={"inmost": Query(["a"])})})) == "[cos(x)]"
    )
    chosen = saturation_plan(outer, nested).equalities
    assert [str(one) for one in chosen] == ["sin -> tan"]


def test_tags_as_text():
    assert (
        optdb.query("+fast_run", "-inplace").names
        == optdb.query(Query(["fast_run"], exclude=["inplace"])).names
    )
    assert optdb.query("+fast_run", "&merge").names == optdb.query(Query(["fast_run"], ["merge"])).names
    nothing = optdb.query("+fast_run", canonicalize=Query([]), stabilize=Query([]))
    assert "canonicalize" not in nothing.names
    for wrong in (("fast_run",), ("+",), ("+a", 3), (Query([]), "+a")):
        with pytest.raises(OptimizerError):
            optdb.query(*wrong)


def test_tags_and_the_last_position():
    database = SequenceDB("mine")
    to_cos, to_tan = (esat.classic.TopoOptimizer(OpSub(esat.sin, op)) for op in (esat.cos, esat.tan))
    database.register("first", to_cos, 3, "a")
    database.register("end", to_tan, "last", "a")
    assert [(entry.name, entry.position) for entry in database] == [("first", 3.0), ("end", 4.0)]
    database.add_tags("end", "b", "c")
    assert database.query("+b").names == ("end",)
    database.remove_tags("end", "a", "b")
    assert database.query("+a").names == ("first",)
    assert database.query("+c").names == ("end",)
    with pytest.raises(OptimizerError, match="nothing is registered as 'ned'"):
        database.add_tags("ned", "x")


def test_databases_before_the_destroy_handler_take_nothing_in_place_later():
    inmost, inner, outer = EquilibriumDB("inmost"), SequenceDB("inner"), SequenceDB("outer")
    inner.register("inmost", inmost, 60)
    outer.register("inner", inner, 10)
    local = OpSub(esat.sin, esat.cos)
    with pytest.raises(OptimizerError, match="works in place"):
        inner.register("late", esat.classic.TopoOptimizer(local), 70, "inplace")
    with pytest.raises(OptimizerError, match="works in place"):
        inmost.register("late", local, "inplace")
    inmost.register("harmless", local)
    with pytest.raises(OptimizerError, match="works in place"):
        inmost.add_tags("harmless", "inplace")
    deep = EquilibriumDB("deep")
    deep.register("late", local, "inplace")
    with pytest.raises(OptimizerError, match="works in place"):
        inner.register("deep", deep, 1)
