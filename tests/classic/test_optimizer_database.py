import io

import pytest

import esat
from esat import Query, classic
from esat.classic import EquilibriumDB, OpSub, SequenceDB, TopoOptimizer, local_optimizer
from esat.classic.optimizers.optimizer_database import registrar
from esat.classic.standard import standard_database
from esat.egraph.preparation.rule_database import RuleDatabase
from esat.errors import OptimizerError
from esat.graph import FunctionGraph


class Note(classic.Optimizer):
    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def apply(self, fgraph):
        self.notes.append(self.name)


@pytest.fixture
def graph():
    x = esat.vector("x")
    return FunctionGraph([x], [esat.sin(x)])


def test_a_sequence_runs_what_is_selected_in_order_of_positions(graph):
    notes = []
    database = SequenceDB("test")
    for name, position, tags in [("c", 3, "ab"), ("a", 1, "a"), ("b", 2.5, "b"), ("z", 3, "a")]:
        database.register(name, Note(name, notes), position, *tags)

    def run(*arguments, **more):
        notes.clear()
        database.query(Query(*arguments, **more)).optimize(graph)
        return "".join(notes)

    assert run(["a"]) == "acz"
    assert run(["a", "b"]) == "abcz"
    assert run(["a"], ["b"]) == "c"
    assert run(["a", "b"], exclude=["b"]) == "az"
    assert run(["z"]) == "z"  # names are tags
    assert run([]) == ""


def test_refining_the_answer_of_a_query(graph):
    notes = []
    database = SequenceDB("test")
    database.register("a", Note("a", notes), 1, "x")
    database.register("b", Note("b", notes), 2, "x", "y")
    answer = database.query(Query(["x"]))
    assert answer.names == ("a", "b")
    assert answer.excluding("y").names == ("a",)
    assert answer.requiring("y").names == ("b",)
    assert database.query(Query(["y"])).including("x").names == ("a", "b")


def test_databases_inside_are_asked_too_or_by_their_subquery(graph):
    database = SequenceDB("test")
    database.register("inner", EquilibriumDB(), 1, "x")
    database["inner"].register("to_cos", OpSub(esat.sin, esat.cos), "x")
    database["inner"].register("to_tan", OpSub(esat.sin, esat.tan), "y")

    def run(query):
        result = graph.clone()
        database.query(query).optimize(result)
        return str(result)

    assert run(Query(["x"])) == "[cos(x)]"
    assert run(Query(["x"], subquery={"inner": Query(["y"])})) == "[tan(x)]"
    assert run(Query(["x"], exclude=["inner"])) == "[sin(x)]"
    assert run(Query(["inner"])) in ("[cos(x)]", "[tan(x)]")
    assert run(Query(["z"])) == "[sin(x)]"


def test_wrong_registrations_are_refused():
    database = SequenceDB("test")
    local = OpSub(esat.sin, esat.cos)
    with pytest.raises(OptimizerError, match="local optimizer: register TopoOptimizer"):
        database.register("local", local, 1, "x")
    with pytest.raises(OptimizerError, match="not an optimizer"):
        database.register("op", esat.sin, 1, "x")
    with pytest.raises(OptimizerError, match="position"):
        database.register("tag_for_position", TopoOptimizer(local), "x")
    with pytest.raises(OptimizerError, match="non-empty strings"):
        database.register("bad tag", TopoOptimizer(local), 1, 7)
    database.register("good", TopoOptimizer(local), 1, "x")
    with pytest.raises(OptimizerError, match="'good' is taken"):
        database.register("good", TopoOptimizer(local), 2, "x")
    with pytest.raises(OptimizerError, match="did you mean good"):
        database["god"]
    with pytest.raises(OptimizerError, match="nothing is registered"):
        database.remove("bad")
    with pytest.raises(OptimizerError, match="tags are given as a list"):
        Query("fast_run")


def test_inplace_optimizers_come_after_the_destroy_handler():
    database = standard_database(RuleDatabase())
    inplace = TopoOptimizer(OpSub(esat.sin, esat.cos))
    with pytest.raises(OptimizerError, match=r"49\.5.*position 49 is below 50.*overwritten"):
        database.register("early", inplace, 49, "fast_run", "inplace")
    with pytest.raises(OptimizerError, match="canonicalize runs before it"):
        database["canonicalize"].register("early", OpSub(esat.sin, esat.cos), "inplace")
    inner = EquilibriumDB()
    inner.register("early", OpSub(esat.sin, esat.cos), "inplace")
    with pytest.raises(OptimizerError, match="'early' works in place"):
        database.register("inner", inner, 3, "fast_run")
    database.register("late", inplace, 75, "fast_run", "inplace")
    assert "late" in database.query(Query(["fast_run"])).names
    assert "late" not in database.query(Query(["fast_run"])).excluding("inplace").names


def test_registration_in_one_line():
    database = EquilibriumDB("mine")
    register = registrar(database)

    @register("fast_run", "angles")
    @local_optimizer([esat.sin])
    def sin_to_cos(node):
        return [esat.cos(node.inputs[0])]

    @register()
    @local_optimizer([esat.cos])
    def cos_to_tan(node):
        return [esat.tan(node.inputs[0])]

    tags = {entry.name: entry.tags for entry in database}
    assert tags == {"sin_to_cos": {"fast_run", "angles"}, "cos_to_tan": {"fast_run"}}
    with pytest.raises(OptimizerError, match="put @local_optimizer below"):
        register("fast_run")(lambda node: False)


def test_rules_of_files_stand_in_the_databases_of_their_tags():
    rules = RuleDatabase()
    rules.load(
        """(ruleset own :tags (specialize mine))
           (rewrite (Sin x) (Cos x) :ruleset own :name "untrue")"""
    )
    rules.add('(rewrite (Exp x) (Tan x) :name "default tags")')
    rules.load('(rewrite (Log x) (Tan x) :name "no group")', tags=["fast_run", "odd"])
    database = standard_database(rules)

    def named(database_name, *tags):
        locals = database[database_name].query(Query(list(tags))).globals
        return "\n".join(line for phase in locals for line in phase.summary())

    assert "untrue" in named("specialize", "mine")
    assert "untrue" not in named("canonicalize", "mine")
    assert "default tags" in named("canonicalize", "fast_run")
    assert "no group" in named("canonicalize", "odd")
    assert "no group" not in named("specialize", "odd")


def test_rules_are_registered_as_optimizers_are(tmp_path):
    rules = RuleDatabase()
    database = standard_database(rules)
    database["canonicalize"].register("own", '(rewrite (Sin x) (Neg x) :name "text")', "fast_run")
    path = tmp_path / "own.egg"
    path.write_text('(rewrite (Cos x) (Neg x) :name "file")')
    database["specialize"].register("other", path, "mine")
    x = esat.vector("x")

    def run(*tags, exclude=()):
        graph = FunctionGraph([x], [esat.sin(x), esat.cos(x)])
        database.query(Query(list(tags), exclude=exclude)).optimize(graph)
        return str(graph)

    assert run("fast_run") == "[neg(x), cos(x)]"
    assert run("mine") == "[sin(x), neg(x)]"
    assert run("fast_run", "mine", exclude=["own"]) == "[sin(x), neg(x)]"
    with pytest.raises(OptimizerError, match="takes no rules"):
        EquilibriumDB().register("own", "(rewrite (Sin x) (Neg x))")


def test_summaries():
    text = io.StringIO()
    esat.optdb.print_summary(file=text)
    lines = text.getvalue().splitlines()
    assert lines[0] == "SequenceDB optdb"
    assert any("merge1 (MergeOptimizer) [exact, fast_compile, fast_run, merge]" in line for line in lines)
    assert any("local_add_canonizer (Marker) [fast_run]" in line for line in lines)
    text = io.StringIO()
    esat.optdb.query(Query(["fast_run"])).print_summary(file=text)
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("SeqOptimizer optdb")
    assert any("neg-div-neg" in line for line in lines)
