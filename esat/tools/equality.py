"""``why_not_equal``: whether two expressions are equal, by which rules, or where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.compilation.optimizing import optimize_graph, rule_options, rule_texts
from esat.errors import CallError, EsatError, OptimizerError
from esat.extract.reasons.reason_chains import ReasonChains
from esat.extract.reasons.why import ReasonChain
from esat.frontend.graph import Graph
from esat.graph import (
    Constant,
    FunctionGraph,
    SharedVariable,
    TensorType,
    Variable,
    clone,
    inputs_of,
    toposort,
)
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.op import as_variable
from esat.mode import Mode
from esat.ops.annotations.assume import Assume
from esat.runtime.function_profile import Profile
from esat.tools.soundness.samples import draw, well_conditioned

Array = NDArray[Any]

DRAWS = 24
"""How often operands are drawn; every other time square matrices are well conditioned."""
_SIZES = (2, 3)
"""Elements of axes of unknown size."""
_TOLERANCES = {"float16": 5e-2, "float32": 1e-3, "complex64": 1e-3}
_TOLERANCE = 1e-6
"""Relative difference beyond what rounding explains, for operands of ordinary size; of other dtypes."""
_FLOOR = 1e-3
"""Results below it count as if they were as large: a difference of large terms may leave nothing else."""
_CLEAR = 1e-3
"""Difference for which no larger operands are tried."""
_SEED = 0


@record(frozen=True, eq=False)
class EqualityAnswer:
    """What is known of the equality of two expressions, or of all outputs of two graphs.

    Attributes
    ----------
    verdict
        ``"equal"``: rules show it. ``"different"``: they differ at some operands, or in type.
        ``"not found"``: neither.
    reason
        In words.
    output
        The first output that is not found to be equal; 0 where all are.
    chains
        Of equal expressions, the rules that lead from each output of the first to that of the second.
    operands
        Of different ones, values of the inputs at which they differ, by name. Of two inputs with one name the
        second is ``x (2)``.
    left, right
        Their values there.
    """

    verdict: Literal["equal", "different", "not found"]
    reason: str
    output: int = 0
    chains: tuple[ReasonChain, ...] = ()
    operands: Mapping[str, Array] = field(default_factory=dict)
    left: Array | None = None
    right: Array | None = None

    def __str__(self) -> str:
        chains = [str(chain) for chain in self.chains if len(chain.steps) > 1]
        return "\n".join([self.reason, *chains])


def why_not_equal(
    first: Any, second: Any, mode: str | Mode = "fast_run", *, rules: Any = ()
) -> EqualityAnswer:
    """Whether two expressions are equal, and why; or else operands at which they differ.

    Both go into one e-graph. Where the rules of a mode do not find them to be equal, they are computed as
    they are written, at random operands of ordinary size. Rules show what is equal over the real numbers:
    rounding may tell the two apart, and where one of them is not defined.

    Parameters
    ----------
    first, second
        Variables, numbers or arrays; or two graphs with inputs of the same types and as many outputs.
    mode
        Which rules there are.
    rules
        Further rules, as of :func:`esat.compile`.

    Returns
    -------
    EqualityAnswer
        Printed it is text.

    Raises
    ------
    CallError
        For graphs whose inputs or outputs do not go together, and for something else than these.
    OptimizerError
        For a mode that does not saturate, or whose engine is egglog.

    Examples
    --------
    >>> x = esat.vector("x")
    >>> print(esat.why_not_equal(esat.log(1.0 + x), esat.log1p(x)))
    equal
    log(1 + x), as written
      = log1p(x), by log1p
    >>> print(esat.why_not_equal(esat.sqrt(x * x), x))
    different: [2., 2.] and [-2.,  2.] at x = [-2.,  2.]
    """
    inputs, pairs = _paired(first, second)
    for place, (left, right) in enumerate(pairs):
        if left.type != right.type and not _may_be_alike(left, right):
            reason = f"{_place(place, pairs)}different: one is a {left.type}, the other a {right.type}"
            return EqualityAnswer("different", reason, place)
    chains = _chains(inputs, pairs, mode if isinstance(mode, Mode) else Mode(mode), rules)
    unknown = [place for place, chain in enumerate(chains) if chain is None]
    if not unknown:
        known = tuple(chain for chain in chains if chain is not None)
        is_plain = all(len(chain.steps) == 1 for chain in known)
        return EqualityAnswer("equal", "equal, as written" if is_plain else "equal", chains=known)
    for place in unknown:
        found = _difference(*pairs[place])
        if found:
            operands, *values = found
            given = ", ".join(f"{name} = {_text(value)}" for name, value in operands.items())
            told = " and ".join(map(_text, values))
            reason = f"{_place(place, pairs)}different: {told}{' at ' if given else ''}{given}"
            return EqualityAnswer("different", reason, place, (), operands, *values)
    reason = (
        f"{_place(unknown[0], pairs)}not found equal: no rules of the mode show it, nor do they differ at"
        f" {DRAWS} random operands"
    )
    return EqualityAnswer("not found", reason, unknown[0])


_Pair = tuple[Variable, Variable]


def _paired(first: Any, second: Any) -> tuple[list[Variable], list[_Pair]]:
    """The inputs that two expressions or graphs have in common, and their outputs, two each."""
    graphs = [isinstance(one, Graph | FunctionGraph) for one in (first, second)]
    if not any(graphs):
        pair = as_variable(first), as_variable(second)
        leaves = [one for one in inputs_of(pair) if not isinstance(one, Constant | SharedVariable)]
        return leaves, [pair]
    if not all(graphs):
        raise CallError("why_not_equal: two graphs, or two expressions, and not one of each")
    if [one.type for one in first.inputs] != [one.type for one in second.inputs]:
        raise CallError(
            f"why_not_equal: the inputs of the graphs are of the types {_types(first)} and {_types(second)}"
        )
    if len(first.outputs) != len(second.outputs):
        raise CallError(
            f"why_not_equal: the graphs have {len(first.outputs)} and {len(second.outputs)} outputs"
        )
    others, _ = clone(second.outputs, dict(zip(second.inputs, first.inputs, strict=True)))
    return list(first.inputs), list(zip(first.outputs, others, strict=True))


def _types(graph: Graph | FunctionGraph) -> str:
    return "(" + ", ".join(str(one.type) for one in graph.inputs) + ")"


def _may_be_alike(left: Variable, right: Variable) -> bool:
    """Whether two values may be of one type, as far as is known before they are computed."""
    if not isinstance(left.type, TensorType) or not isinstance(right.type, TensorType):
        return False
    if (left.type.dtype, left.type.ndim) != (right.type.dtype, right.type.ndim):
        return False
    sizes = zip(left.type.shape, right.type.shape, strict=True)
    return all(None in pair or pair[0] == pair[1] for pair in sizes)


def _chains(
    inputs: Sequence[Variable], pairs: Sequence[_Pair], mode: Mode, rules: Any
) -> list[ReasonChain | None]:
    """For each pair, the chain of rules from one to the other; None where there is none."""
    if mode.strategy == "greedy":
        raise OptimizerError(f"why_not_equal: the mode {mode.name} does not saturate: it makes no e-graph")
    outputs = [side for pair in pairs for side in pair]
    graph = FunctionGraph(inputs, outputs)
    options = rule_options(mode, rule_texts(rules), ())
    _, report = optimize_graph(graph, mode, options, Profile(), None)
    if report.extraction is None or report.reasons is None:
        return [None] * len(pairs)
    found = report.extraction.graph
    roots, classes = found.terms.roots, found.roots
    chains: list[ReasonChain | None] = [None] * len(pairs)
    equal = [place for place in range(len(pairs)) if classes[2 * place] == classes[2 * place + 1]]
    if equal:
        findings = report.saturation.findings if report.saturation is not None else ()
        told = ReasonChains(report.extraction, report.reasons.provenance, report.offered, findings)
        for place in equal:
            chains[place] = told.between(roots[2 * place], roots[2 * place + 1])
    return chains


def _difference(left: Variable, right: Variable) -> tuple[dict[str, Array], Array, Array] | None:
    """Operands at which two expressions differ by more than rounding explains, and their values there."""
    leaves = [one for one in inputs_of([left, right]) if not isinstance(one, Constant | SharedVariable)]
    if not all(isinstance(leaf.type, TensorType) for leaf in leaves):
        return None
    worst, found = 0.0, None
    for size in _SIZES:
        for values in _drawn(leaves, [left, right], size):
            try:
                with np.errstate(all="ignore"):
                    one, other = map(np.asarray, evaluate([left, right], values))
            except EsatError:
                continue  # these operands are not among those that the expressions take
            far = _distance(one, other)
            if far > worst:
                worst, found = far, (_by_name(values), one, other)
        if worst > _CLEAR:
            break
    return found


def _by_name(values: Mapping[Variable, Array]) -> dict[str, Array]:
    """Values by the names of their Variables; of those with one name, by a number as well."""
    found: dict[str, Array] = {}
    for leaf, value in values.items():
        alike = sum(name.partition(" (")[0] == str(leaf) for name in found)
        found[f"{leaf} ({alike + 1})" if alike else str(leaf)] = value
    return found


def _drawn(
    leaves: Sequence[Variable], outputs: Sequence[Variable], size: int
) -> Iterator[dict[Variable, Array]]:
    generator = np.random.default_rng(_SEED)
    facts = _assumed(outputs)
    for number in range(DRAWS // len(_SIZES)):
        values = {}
        for leaf in leaves:
            shape = tuple(size if one is None else one for one in leaf.tensor_type.shape)
            known = facts.get(leaf, frozenset())
            array = draw(leaf.tensor_type.dtype, shape, known, "ordinary", 0.0, generator)
            values[leaf] = well_conditioned(array, known) if number % 2 else array
        yield values


def _assumed(outputs: Sequence[Variable]) -> dict[Variable, frozenset[str]]:
    """What is assumed of inputs, as rules write it."""
    found: dict[Variable, frozenset[str]] = {}
    for node in toposort(outputs):
        if isinstance(node.op, Assume):
            (operand,) = node.inputs
            known = frozenset(fact.replace("_", "-") for fact in node.op.facts)
            found[operand] = found.get(operand, frozenset()) | known
    return found


def _distance(left: Array, right: Array) -> float:
    """By how much two values differ, relative to their size; 0 for what rounding explains.

    A number beside none, infinite or NaN, is a difference, but the least one.
    """
    if left.shape != right.shape:
        return np.inf
    if left.size == 0:
        return 0.0
    if left.dtype.kind not in "fc":
        return float(np.max(np.abs(left.astype(np.float64) - right.astype(np.float64))))
    finite = np.isfinite(left) & np.isfinite(right)
    tolerance = _TOLERANCES.get(left.dtype.name, _TOLERANCE)
    least = 0.0 if np.array_equal(np.isfinite(left), np.isfinite(right)) else tolerance
    if not finite.any():
        return least
    one, other = left[finite], right[finite]
    scale = max(float(np.max(np.abs(one))), float(np.max(np.abs(other))), _FLOOR)
    far = float(np.max(np.abs(one - other))) / scale
    return far if far > tolerance else least


def _place(place: int, pairs: Sequence[_Pair]) -> str:
    return f"output {place}: " if len(pairs) > 1 else ""


def _text(value: Array) -> str:
    return np.array2string(np.asarray(value), precision=4, separator=", ").replace("\n", "")


__all__ = ["EqualityAnswer", "why_not_equal"]
