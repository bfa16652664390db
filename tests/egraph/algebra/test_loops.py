"""The loops over the e-graph, compiled and as Python: the same result, and no index out of range."""

import numpy as np
import pytest
from egraph.term_graphs import CONSTRUCTORS, random_polynomial, saturated
from extract.checked_loops import checking

import esat
from esat.egraph.algebra import merges
from esat.egraph.algebra.axes import lengths
from esat.egraph.algebra.axes.lengths import Symbols
from esat.egraph.algebra.equal_forms import offers
from esat.egraph.algebra.finite_fields import fingerprints as module
from esat.egraph.algebra.finite_fields.backend import PYTHON, AlgebraBackend, compiled
from esat.egraph.algebra.finite_fields.reading import read
from esat.egraph.language.encode import encode
from esat.egraph.language.loader import flatten, load
from esat.egraph.preparation.prepare import prepared_engine
from esat.egraph.preparation.rule_program import program_for
from esat.rules import RULES
from esat.rules.language.query import Query


def results(graph, engine, constructors) -> list[np.ndarray]:
    """All that the loops compute of an e-graph."""
    found = module.fingerprints(read(engine, constructors), Symbols.of(graph))
    return [
        found.chosen,
        found.cost,
        found.order,
        found.values,
        found.lengths,
        np.array(offers.candidates(found)),
        np.array([klass for klass, _ in merges.constants(found)]),
    ]


def compared(graph, engine, constructors, monkeypatch) -> None:
    """Run the loops compiled, and as Python that refuses indices out of range."""
    checked = AlgebraBackend(
        *(checking(getattr(PYTHON, name)) for name in AlgebraBackend.__dataclass_fields__)
    )
    found = []
    for backend in (compiled(), checked):
        for user in (module, lengths, merges, offers):
            monkeypatch.setattr(user, "compiled", lambda backend=backend: backend)
        found.append(results(graph, engine, constructors))
    for native, python in zip(*found, strict=True):
        np.testing.assert_array_equal(native, python)
    assert len(found[0][2]) > 5


@pytest.mark.parametrize("dtype", ["float64", "int32", "complex128"])
def test_compiled_loops_do_what_they_say(dtype, monkeypatch) -> None:
    for seed in range(3):
        _, graph = random_polynomial(seed, dtype)
        engine, _ = saturated(graph)
        compared(graph, engine, CONSTRUCTORS, monkeypatch)


def test_compiled_loops_move_axes_as_they_say(monkeypatch) -> None:
    a, b, t = esat.matrix("a"), esat.matrix("b", shape=(4, None)), esat.tensor3("t")
    x, z = esat.vector("x"), esat.zvector("z")
    outputs = [
        esat.trace(a @ b) + x.mean(),
        (a.T @ esat.diag(x)).sum(axis=0),
        (t @ a).sum(axis=(0, 2)) / a.shape[0],
        esat.diag(a) + b[0],
        (t.transpose(2, 0, 1) * a).mean(axis=1),
        esat.concatenate([a[::-1] @ b, a[:, ::2] @ b[::2]]) - esat.stack([b[0], b[1]])[::-1],
        abs(z * z) ** 2 + esat.real(esat.exp(1j * x) * esat.conj(z)) - esat.imag(z @ (z + 2j)),
        esat.eye(x.shape[0]) @ x + esat.diag(x) @ x,
        esat.exp(a) * esat.tanh(x) - esat.sin(x + 1) / esat.cosh(a) + esat.sigmoid(esat.expm1(a)),
    ]
    terms = encode(esat.Graph([a, b, t, x, z], outputs).function_graph())
    program = program_for(RULES.query(Query(include=("fast_run",))))
    engine = prepared_engine(program, terms)
    load(engine, terms, flatten(terms))
    operators = {*program.constructors, *(term.constructor for term in terms.terms)}
    compared(terms, engine, operators, monkeypatch)
