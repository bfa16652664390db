"""Every public callable, with arguments that it takes: named in a table, or found by trying."""

import inspect
import itertools
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse

import esat
from esat.egraph.preparation.rule_database import AddedRules

Given = dict[str, Any]

V, M, S, P = esat.vector("v"), esat.matrix("m"), esat.scalar("s"), esat.sparse.csr_matrix("sp")
GENERAL: list[Any] = [
    M, V, S, 1, 0.5, [V, V], [M, M], (0, 1), esat.ivector("i"), "ij->i", None, (M, True), [0.0, 1.0, 2.0], P,
    esat.tensor3("t"), 2,
]  # fmt: skip
RULE = '(rewrite (Exp (Log x)) x :name "given-by-a-test")'
BY_NAME: dict[str, list[Any]] = {
    "name": ["given"], "dtype": ["float64"], "axis": [0], "shape": [(2, 3), (3,)], "size": [(2,)],
    "state": [esat.random.state("state")], "matrix": [P, M], "inputs": [[V]], "outputs": [[V + 1]],
    "type": [esat.dvector], "op": [esat.exp], "format": ["csr"], "pattern": [P], "text": [RULE],
    "source": [RULE], "function": [lambda x: x], "numpy": [np.tanh], "seed": [1],
}  # fmt: skip
"""What to try first, by the name of a parameter."""

DENSE = np.eye(3)
GIVEN: dict[str, Given] = {
    "esat.arange": {"start": 0, "stop": 3, "step": 1},
    "esat.assume": {"operand": M, "facts": "symmetric"},
    "esat.evaluate": {"outputs": V + 1, "values": {V: np.ones(2)}},
    "esat.inc_subtensor": {"part": V[1:], "value": 1.0},
    "esat.set_subtensor": {"part": V[1:], "value": 1.0},
    "esat.vjp": {"outputs": V * 2, "wrt": V, "cotangents": V},
    "esat.moveaxis": {"a": M, "source": 0, "destination": 1},
    "esat.tensor": {"name": "t", "shape": (2,)},
    "esat.why_not_equal": {"first": V + V, "second": V * 2},
    "esat.verify_grad": {"function": esat.exp, "points": [np.ones(2)]},
    "rules.load": {"source": RULE},
    "FunctionGraph.change_input": {"client": ("output", 0), "new": V},
    "Variable.at": {"index": 0, "value": 1.0},
    "Variable.__contains__": {"operand": 1.0},
    "Executable.out": {"out": np.ones(2)},
    "FunctionGraph.feature_of": {"kind": esat.NodeFinder},
    "FunctionGraph.remove_feature": {"feature": esat.NodeFinder()},
    "EquilibriumDB.locals": {"query": esat.Query(["a"])},
    "EquilibriumDB.register": {"name": "a", "optimizer": esat.classic.OpRemove(esat.copy), "tags": "b"},
    "EquilibriumDB.query": {"query": esat.Query(["a"])},
    "EquilibriumDB.selected": {"query": esat.Query(["a"])},
    "EquilibriumDB.remove": {"name": "no-such-optimizer"},
    "EquilibriumDB.subquery": {"query": esat.Query(["a"])},
    "SequenceDB.subquery": {"query": esat.Query(["a"])},
    "EquilibriumDB.add_tags": {"name": "registered", "tags": "b"},
    "EquilibriumDB.remove_tags": {"name": "registered", "tags": "b"},
    "SequenceDB.add_tags": {"name": "registered", "tags": "b"},
    "SequenceDB.remove_tags": {"name": "registered", "tags": "b"},
    "Optimizer.optimize": {"fgraph": esat.Graph([V], V + 1).function_graph()},
    "SeqOptimizer.optimize": {"fgraph": esat.Graph([V], V + 1).function_graph()},
    "Query.selects": {"name": "a", "tags": ["b"]},
    "Query.admits": {"name": "a", "tags": ["b"]},
    "Executable.choose_by": {"chooser": SimpleNamespace(programs={}, in_front_of=lambda first: first)},
    "Executable.save_html": {"path": "page.html"},
    "SequenceDB.query": {"query": esat.Query(["a"])},
    "SequenceDB.selected": {"query": esat.Query(["a"])},
    "SequenceDB.remove": {"name": "no-such-optimizer"},
    "SequenceDB.register": {"name": "a", "optimizer": esat.classic.merge_optimizer, "position": 1.0},
    "classic.OpSub": {"old": esat.exp, "new": esat.log},
    "classic.OpRemove": {"op": esat.copy},
    "classic.TopoOptimizer": {"local": esat.classic.OpRemove(esat.copy)},
    "rules.show": {"name": "neg-neg"},
    "rules.remove": {"name": "no-such-rule"},
    "RandomStream.draw": {"function": esat.random.normal},
    "FunctionGraph.attach_feature": {"feature": esat.NodeFinder()},
    "classic.PatternSub": {"in_pattern": (esat.exp, "x"), "out_pattern": "x"},
    "Variable.eval": {"values": {M: DENSE}},
    "esat.Apply": {"op": esat.exp, "inputs": [V], "outputs": [esat.dvector()]},
    "esat.Constant": {"type": esat.dvector, "data": [1.0]},
    "esat.SharedVariable": {"type": esat.dvector, "value": [1.0]},
    "esat.compile": {"graph": esat.Graph([V], V + 1), "mode": "fast_compile"},
    "fft.irfft2": {"a": DENSE},
    "fft.irfftn": {"a": DENSE},
    "esat.apply_over_axes": {"func": esat.sum, "a": DENSE, "axes": [0]},
    "esat.diag_indices_from": {"arr": DENSE},
    "esat.tril_indices_from": {"arr": DENSE},
    "esat.triu_indices_from": {"arr": DENSE},
    "esat.unpackbits": {"a": np.ones(2, "uint8")},
    "linalg.tensorinv": {"a": np.ones((2, 2, 4))},
    "esat.apply_along_axis": {"func1d": esat.sort, "axis": 0, "arr": DENSE},
    "esat.polyfit": {"x": np.arange(4.0), "y": np.arange(4.0), "deg": 1},
    "esat.grad": {"cost": (V**2).sum(), "wrt": V},
    "esat.value_and_grad": {"cost": (V**2).sum(), "wrt": V},
    "esat.hessian": {"cost": (V**2).sum(), "wrt": V},
    "esat.jacobian": {"y": V**2, "x": V},
    "esat.vectorize_graph": {"outputs": V * 2, "replace": {V: M}},
    "esat.clone_replace": {"outputs": V + 1, "replace": {V: V * 2}},
    "esat.Mode": {"name": "fast_run"},
    "esat.jit": {"f": np.tanh},
    "esat.scan": {"f": lambda carry, one: (carry, one), "init": 0.0, "xs": V},
    "esat.fori_loop": {"lower": 0, "upper": 3, "body": lambda step, value: value, "init": V},
    "esat.while_loop": {"cond": lambda value: False, "body": lambda value: value, "init": V},
    "esat.map": {"f": lambda one: one, "xs": V},
    "jit.options": {"static_argnames": (), "donate": (), "shapes": "static"},
    "jit.call": {"x": DENSE, "n": 2},
    "jit.index": {"operand": DENSE, "index": 1},
    "jit.static": {"x": DENSE, "n": "a"},
    "grad.call": {"x": DENSE},
    "grad.options": {"argnums": 0, "has_aux": False},
    "jacobian.options": {"direction": "forward"},
    "hessian.options": {"argnums": 0},
    "vmap.call": {"x": DENSE},
    "vmap.options": {"in_axes": 0, "out_axes": 0, "axis_size": None},
    "jvp.call": {"primals": (DENSE,), "tangents": (DENSE,)},
    "vjp.call": {"primal": DENSE, "cotangent": np.array(1.0)},
    "linearize.call": {"primal": DENSE, "tangent": DENSE},
    "esat.Query": {"include": ["fast_run"]},
    "sparse.constant": {"value": scipy.sparse.csr_array(DENSE)},
    "sparse.shared": {"value": scipy.sparse.csr_array(DENSE)},
    "sparse.csm": {
        "data": V, "indices": esat.ivector("i"), "indptr": esat.ivector("p"), "shape": esat.lvector("n")
    },
    "sparse.usmm": {"alpha": S, "x": P, "y": M, "z": M},
}  # fmt: skip
WRITES = ("save_html", "pydotprint", "print_summary")
"""Functions that write to files: what the system says of a path is an OSError."""
OPERATORS = (
    "add", "radd", "sub", "mul", "truediv", "rtruediv", "floordiv", "mod", "divmod", "pow", "rpow", "matmul",
    "rmatmul", "lt", "ge", "eq", "ne", "getitem", "round", "contains",
)  # fmt: skip
NOT_CALLED = (
    "Family", "RandomState", "run", "apply", "add_requirements", "transform", "calibrate", "ask_of_sizes",
)  # fmt: skip
"""What users have no reason to call or write themselves, and what takes seconds if it is called rightly."""


def signature_of(function: Any) -> inspect.Signature:
    """The parameters of a callable; operands of an op by number."""
    if isinstance(function, esat.Op):
        places = range(getattr(function, "arity", 1))
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(f"operand{place}", kind) for place in places])
    return inspect.signature(function)


def public_callables() -> Iterator[tuple[str, Any]]:
    """All of them, by names as users write them."""
    namespaces = {
        "esat": esat, "fft": esat.fft, "linalg": esat.linalg, "random": esat.random, "sparse": esat.sparse
    }  # fmt: skip
    for room, module in namespaces.items():
        names = dict.fromkeys([*module.__all__, *(("compile", "Mode", "Query") if room == "esat" else ())])
        for name in names:
            function = getattr(module, name)
            if not callable(function) or name in NOT_CALLED or _is_not_ours(function):
                continue
            yield f"{room}.{name}", function
    for name in ("add", "load", "read_rules", "show", "list", "remove", "read_forms"):
        yield f"rules.{name}", getattr(esat.rules, name)
    yield from _methods("Variable", M, dir(type(M)))
    for name in OPERATORS:
        yield f"Variable.__{name}__", partial(_operator, name)
    yield "Variable.at", lambda index, value: V.at[index].set(value)
    compiled = esat.compile(esat.Graph([V], V + 1))
    objects = {
        "Executable": compiled, "FunctionGraph": compiled.graph, "Mode": esat.Mode("fast_compile"),
        "Query": esat.Query(["a"]), "RandomStream": esat.random.RandomStream(1), "TensorType": esat.dvector,
        "EquilibriumDB": _with_entry(esat.classic.EquilibriumDB(), esat.classic.OpRemove(esat.copy)),
        "SequenceDB": _with_entry(esat.classic.SequenceDB(), esat.classic.merge_optimizer),
        "Optimizer": esat.classic.merge_optimizer, "SeqOptimizer": esat.classic.SeqOptimizer([]),
        "LocalOptimizer": esat.classic.OpRemove(esat.copy), "Report": compiled.report,
        "Profile": compiled.profile,
    }  # fmt: skip
    for name, value in objects.items():
        yield from _methods(name, value, dir(type(value)))
    yield from _functions_of_functions()
    yield "Executable.__call__", compiled
    yield "Executable.out", lambda out: compiled(np.ones(2), out=out)
    shared = esat.shared(np.ones(3))
    for name in ("set_value", "get_value", "give_value"):
        yield f"SharedVariable.{name}", getattr(shared, name)
    for name in ("OpSub", "OpRemove", "PatternSub", "TopoOptimizer", "SeqOptimizer", "local_optimizer"):
        yield f"classic.{name}", getattr(esat.classic, name)


def _functions_of_functions() -> Iterator[tuple[str, Any]]:
    """``esat.jit``, what it gives, and what transformations give, called with arrays."""
    ones = np.ones((2, 3))
    norm = esat.jit(lambda x: esat.sum(esat.sqr(x)), mode="fast_compile")
    yield "esat.jit", esat.jit
    yield (
        "jit.options",
        lambda static_argnames, donate, shapes: esat.jit(
            lambda x: x, static_argnames=static_argnames, donate=donate, shapes=shapes
        )(ones),
    )
    yield "jit.call", esat.jit(lambda x, n: {"sum": esat.add(x, n), "n": n}, mode="fast_compile")
    yield "jit.index", esat.jit(esat.getitem, mode="fast_compile")
    yield "jit.static", esat.jit(lambda x, n: x, static_argnames="n", mode="fast_compile")
    yield "grad.call", esat.grad(norm)
    yield "grad.options", lambda argnums, has_aux: esat.grad(norm, argnums=argnums, has_aux=has_aux)(ones)
    yield "jacobian.options", lambda direction: esat.jacobian(norm, direction=direction)(ones)
    yield "hessian.options", lambda argnums: esat.hessian(norm, argnums=argnums)(np.ones(2))
    yield "vmap.call", esat.vmap(norm)
    yield (
        "vmap.options",
        lambda in_axes, out_axes, axis_size: esat.vmap(norm, in_axes, out_axes, axis_size)(ones),
    )
    yield "jvp.call", lambda primals, tangents: esat.jvp(norm, primals, tangents)
    yield "vjp.call", lambda primal, cotangent: esat.vjp(norm, primal)[1](cotangent)
    yield "linearize.call", lambda primal, tangent: esat.linearize(norm, primal)[1](tangent)


def _with_entry(database: Any, optimizer: Any) -> Any:
    position = [1.0] if isinstance(database, esat.classic.SequenceDB) else []
    database.register("registered", optimizer, *position, "a")
    return database


def _operator(name: str, operand: Any) -> Any:
    """By Python's own function, so that a value that is not understood is a TypeError as for users."""
    return getattr(M, f"__{name}__")(operand)


def _is_not_ours(function: Any) -> bool:
    """Classes of errors and of values, and NumPy's own."""
    if not isinstance(function, type):
        return False
    return not function.__module__.startswith("esat.") or issubclass(function, Exception | Warning)


def _methods(label: str, value: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        method = getattr(type(value), name)
        if name[0] != "_" and inspect.isfunction(method) and name not in NOT_CALLED:
            yield f"{label}.{name}", getattr(value, name)


def good_arguments(label: str, function: Any, parameters: inspect.Signature) -> Given | None:
    """Arguments by parameter that a callable takes; None where trying finds none."""
    if label in GIVEN:
        return GIVEN[label]
    required = [one for one in parameters.parameters.values() if one.default is one.empty]
    names = [one.name for one in required if one.kind is not one.VAR_KEYWORD]
    pools = [BY_NAME.get(name, GENERAL) for name in names]
    for choice in itertools.islice(_choices(pools), 400):
        given = dict(zip(names, choice, strict=True))
        try:
            call(function, parameters, given)
        except Exception:
            continue
        return given
    return None


def _choices(pools: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """The same for all first, then all combinations."""
    longest = max(map(len, pools), default=1)
    yield from (tuple(pool[min(place, len(pool) - 1)] for pool in pools) for place in range(longest))
    yield from itertools.product(*pools)


def call(function: Any, parameters: inspect.Signature, given: Given) -> Any:
    """Call with arguments by parameter: by position where there is no default, by keyword where there is."""
    positional, keywords = [], {}
    for one in parameters.parameters.values():
        if one.name in given and one.kind is not one.VAR_KEYWORD:
            by_keyword = one.kind is one.KEYWORD_ONLY
            by_keyword |= one.kind is one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
            if by_keyword:
                keywords[one.name] = given[one.name]
            else:
                positional.append(given[one.name])
    result = function(*positional, **keywords)
    if isinstance(result, AddedRules):
        result.remove()
    return result
