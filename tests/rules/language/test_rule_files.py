"""Every rule that comes with esat has a name, is sound on samples, fires, and has its topic's cases hold."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from esat.graph.sparse_type import SparseType
from esat.rules import PACKAGE_RULES
from esat.tools.soundness import check
from esat.tools.soundness.firing import never_fired
from esat.tools.soundness.oracle import check_egraph
from tests.rules.cases import HERE, all_cases, read_cases
from tests.tools.soundness.saturation import DATABASE, all_rules, saturated

pytestmark = pytest.mark.usefixtures("libraries_without_threads")
RULES = DATABASE.list()
CASES = all_cases()
FILES = sorted(path.name for path in PACKAGE_RULES.glob("*.egg"))


def test_every_rule_has_a_name_and_tags():
    for rule in RULES:
        assert not rule.name.startswith(rule.file.rpartition("/")[2]), (
            f"{rule.position}: a rule without a name"
        )
        assert rule.tags, f"{rule.position}: a rule without tags"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_sound(rule):
    report = check([rule])
    assert report.sound, str(report)
    # A sparse matrix divided by a dense one keeps its zeros, also where they are divided by zero.
    assert report.verdicts[0].invented is None or rule.name == "div-sparse-dense", str(report)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_fires(rule):
    idle = never_fired([rule], [all_rules(), all_rules(strict=True)])
    assert not idle, f"{rule.position}: {rule.name} never fires: {idle[0][1].report}"


@pytest.mark.parametrize("name", FILES)
def test_every_rule_file_has_cases(name):
    cases = read_cases(HERE / name)
    assert any(case.kind == "fires" for case in cases)
    assert any(case.kind == "proves" for case in cases)
    own = {rule.report_name for rule in RULES if rule.file.endswith("/" + name)}
    named = {case.rule for case in cases if case.kind == "fires"}
    assert named <= own, f"{name} has cases of rules it does not hold: {sorted(named - own)}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case):
    variables = case.variables()
    terms, report, arrays = saturated(case.inputs.values(), variables)
    classes = {int(arrays.term_class[root]) for root in terms.roots}
    if case.kind == "fires":
        matched = {statistics.name for statistics in report.rules if statistics.matches}
        assert case.rule in matched, f"{case}: not among {sorted(matched)}"
    else:
        assert (len(classes) == 1) == (case.kind == "proves"), f"{case}: {report}"
    require_truth(terms, arrays)


def require_truth(terms, arrays):
    """All e-nodes and facts must be true of random values."""
    generator = np.random.default_rng(0)
    values = {}
    for variable in terms.inputs:
        if isinstance(variable.type, SparseType):
            sizes = [4 if size is None else size for size in variable.type.shape]
            stored = generator.normal(0.2, 1.0, sizes) * (generator.random(sizes) < 0.5)
            values[variable] = variable.type.filter(csr_array(stored))
            continue
        shape = tuple(
            1 if flag else size
            for flag, size in zip(variable.tensor_type.broadcastable, (4, 4, 4), strict=False)
        )
        data = generator.normal(0.2, 1.0, shape)
        values[variable] = (data > 0 if variable.tensor_type.dtype == "bool" else data).astype(
            variable.tensor_type.dtype
        )
    report = check_egraph(arrays, terms, values)
    assert not report.errors, report.errors[:3]
    assert report.compared
