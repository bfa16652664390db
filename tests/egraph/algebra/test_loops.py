"""The loops over the e-graph, compiled and as Python: the same result, and no index out of range."""

import numpy as np
import pytest
from egraph.term_graphs import CONSTRUCTORS, random_polynomial, saturated
from extract.checked_loops import checking

from esat.egraph.algebra import fingerprints as module
from esat.egraph.algebra import lengths, merges, offers
from esat.egraph.algebra.backend import PYTHON, Backend, compiled
from esat.egraph.algebra.lengths import Symbols
from esat.egraph.algebra.reading import read


@pytest.mark.parametrize("dtype", ["float64", "int32", "complex128"])
def test_compiled_loops_do_what_they_say(dtype, monkeypatch) -> None:
    fields = Backend.__dataclass_fields__
    checked = Backend(*(checking(getattr(PYTHON, name)) for name in fields))
    for seed in range(3):
        _, graph = random_polynomial(seed, dtype)
        engine, _ = saturated(graph)
        reading = read(engine, CONSTRUCTORS)
        results = []
        for backend in (compiled(), checked):
            for user in (module, lengths, merges, offers):
                monkeypatch.setattr(user, "compiled", lambda backend=backend: backend)
            found = module.fingerprints(reading, Symbols.of(graph))
            results.append(found)
            results[-1:] = [
                (
                    found.chosen,
                    found.cost,
                    found.order,
                    found.values,
                    found.lengths,
                    np.array(offers.candidates(found)),
                    np.array([klass for klass, _ in merges.constants(found)]),
                )
            ]
        for native, python in zip(*results, strict=True):
            np.testing.assert_array_equal(native, python)
        assert len(results[0][2]) > 5
