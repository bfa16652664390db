"""What short rows are expected to take, beside what they took on a server with vectors of eight numbers."""

import pytest

import esat
from esat import codegen
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.price import plan_seconds

MODEL = CostModel(MachineProfile())
PLACES = 16384
FORMS = {
    "sum": lambda x: x.sum(axis=1),
    "largest": lambda x: x.max(axis=1),
    "sum of powers": lambda x: esat.exp(x).sum(axis=1),
    "logsumexp": lambda x: esat.logsumexp(x, axis=1),
    "softmax": lambda x: esat.softmax(x, axis=1),
    "likelihood": lambda x: esat.logsumexp(x, axis=1).sum(),
}
MEASURED = {
    "sum": {2: 21.6, 3: 15.1, 5: 11.0, 8: 6.9, 16: 4.2, 64: 1.8},
    "largest": {3: 10.5, 5: 7.2, 8: 4.8, 16: 3.6, 64: 2.0},
    "sum of powers": {2: 80.2, 3: 51.8, 5: 31.5, 8: 19.6, 16: 11.3, 64: 9.8},
    "logsumexp": {2: 262.0, 3: 174.0, 5: 108.4, 8: 68.6, 16: 38.4, 64: 21.2},
    "softmax": {2: 159.0, 3: 111.0, 5: 70.0, 8: 45.0, 16: 27.5, 64: 18.3},
    "likelihood": {2: 268.8, 5: 111.1, 8: 67.2, 16: 53.9, 64: 25.1},
}
"""Microseconds by the length of rows, for 16,384 numbers of float64."""
LARGE = {
    "sum": {2: 9.1, 3: 7.7, 8: 27.1},
    "logsumexp": {2: 100.0, 5: 99.0, 8: 95.0},
    "likelihood": {5: 100.0},
}
"""Those for 65,536."""


def predicted(form: str, places: int, length: int) -> float:
    x = esat.tensor("x", shape=(places // length, length))
    graph = esat.Graph([x], [FORMS[form](x)]).function_graph()
    return plan_seconds(fuse(graph, codegen).groups, MODEL)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("places", "measured"), [(PLACES, MEASURED), (4 * PLACES, LARGE)])
def test_short_rows_are_expected_to_take_what_they_took(form, places, measured):
    for length, microseconds in measured.get(form, {}).items():
        found = predicted(form, places, length) * 1e6
        assert microseconds / 2.0 < found < 2.0 * microseconds, (length, found)


def test_rows_cost_nothing_where_nothing_goes_along_them():
    x = esat.tensor("x", shape=(8192, 2))
    for form in (lambda x: x.sum(axis=0), lambda x: x.sum(), esat.exp):
        graph = esat.Graph([x], [form(x)]).function_graph()
        assert plan_seconds(fuse(graph, codegen).groups, MODEL) < 15e-6


def test_a_device_has_no_rows():
    from esat.gpu.profile import DeviceProfile

    assert DeviceProfile().machine().row == 0.0
