"""What the key of a record covers."""

import numpy as np
import pytest

import esat
from esat.compilation.recorded import keys
from esat.compilation.recorded.keys import NotKeyedError, compiler_state, graph_key


def graph(factor=2.0, name="x", axis=0, dtype="float64", data=(1.0, 2.0)):
    x = esat.matrix(name, dtype=dtype)
    constant = esat.constant(np.array(data, dtype))
    return esat.Graph([x], [(x * factor + constant).sum(axis=axis)])


def key(of, mode="fast_run", shapes=None):
    return graph_key(of, mode, shapes or {})[0]


def test_equal_graphs_have_one_key():
    assert key(graph()) == key(graph())
    assert key(graph(), "FAST_RUN") == key(graph())


@pytest.mark.parametrize(
    "other",
    [
        {"factor": 3.0}, {"name": "y"}, {"axis": 1}, {"dtype": "float32"}, {"data": (1.0, 3.0)},
        {"data": (-0.0, 2.0)},
    ],
    ids=str,
)  # fmt: skip
def test_other_graphs_have_other_keys(other):
    assert key(graph(**other)) != key(graph())


def test_zeros_of_both_signs_differ():
    assert key(graph(data=(0.0, 1.0))) != key(graph(data=(-0.0, 1.0)))
    assert key(graph(factor=0.0)) != key(graph(factor=-0.0))


def test_mode_and_shapes_are_part_of_it():
    one = graph()
    assert key(one, "fast_compile") != key(one)
    assert key(one, shapes={one.inputs[0]: (3, 2)}) != key(one)
    assert key(one, shapes={one.inputs[0]: (3, 2)}) != key(one, shapes={one.inputs[0]: (4, 2)})


def test_updates_and_sizes_of_shared_values_are_part_of_it():
    def training(size, goes_on=True):
        x, weights = esat.vector("x"), esat.shared(np.ones(size), name="w")
        return esat.Graph([x], [(x * weights).sum()], updates={weights: weights * 2.0} if goes_on else None)

    assert key(training(3)) == key(training(3))
    assert key(training(4)) != key(training(3))
    assert key(training(3, goes_on=False)) != key(training(3))


def test_the_process_is_part_of_it(monkeypatch, tmp_path):
    before = key(graph())
    for name, value in (("NUMBA_OPT", "1"), ("ESAT_MACHINE_PROFILE", str(tmp_path / "machine.json"))):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            keys._process.cache_clear()
            assert key(graph()) != before
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".numba_config.yaml").write_text("opt: 1")
    keys._process.cache_clear()
    assert key(graph()) != before
    (tmp_path / ".numba_config.yaml").unlink()
    keys._process.cache_clear()
    assert key(graph()) == before


def test_what_users_wrote_has_no_key():
    def twice(x):
        return 2.0 * x

    own = esat.elementwise("doubled_for_keys", lambda x: 2.0 * x)
    x = esat.vector("x")
    with pytest.raises(NotKeyedError):
        key(esat.Graph([x], [own(x)]))
    with pytest.raises(NotKeyedError):
        keys._described(twice)
    with pytest.raises(NotKeyedError):
        key(esat.Graph([x], [x + esat.constant(np.zeros(keys.LARGEST_CONSTANTS // 8 + 1))]))


def test_assertions_have_keys_by_text_and_class():
    class OwnError(esat.EsatError):
        pass

    x = esat.vector("x")

    def asserted(**options):
        return esat.Graph([x], esat.assert_(x, x > 0, **options) * 2.0)

    graphs = [
        asserted(),
        asserted(message="no"),
        asserted(error=esat.ShapeError),
        asserted(error=esat.EsatError),
    ]
    assert len({key(one) for one in graphs}) == len(graphs)
    assert key(asserted()) == key(asserted())
    with pytest.raises(NotKeyedError):
        key(asserted(error=OwnError))


def test_changes_of_the_compiler_are_seen():
    before = compiler_state()
    assert compiler_state() == before
    with esat.rules.add("(rewrite (Sin (Neg x)) (Neg (Sin x)))"):
        assert compiler_state() != before
    assert len(compiler_state()[1]) == len(before[1])
