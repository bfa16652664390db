"""The e-graph's term language, generated from records of the ops.

A :class:`ConstructorSignature` says what the e-graph has to know of one constructor: its operands,
its attributes, and the rule by which its result is typed. From these follow the declarations, the
typing rules for terms that rules make (loaded terms bring their types), and the folding of uniform
constants that egglog's float64 can compute exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal

from esat.base.records import record
from esat.egraph.language.dtype_tables import dtype_tables, rounded
from esat.egraph.language.sharing import with_shared_parts
from esat.errors import CompileError
from esat.rules.language.macros import expand
from esat.rules.language.reader import Sexp, read_forms, show
from esat.rules.language.rule_signature import Operator

Typing = Literal[
    "same",
    "bool",
    "real",
    "cast",
    "dimshuffle",
    "reduce",
    "argreduce",
    "matmul",
    "fill",
    "stored",
    "structure",
    "transpose",
    "product",
    "usmm",
    "number",
    "sparse_sum",
    "square",
    "system",
    "square_system",
    "determinant",
    "diagonal",
    "from_diagonal",
    "opaque",
    "leaf",
]
"""How a result is typed.

``same``, ``bool``, ``real``: elementwise; dtype of the last operand, bool, or its real counterpart.
``cast``: the first attribute is the dtype's number. ``dimshuffle``: the first attribute is a permutation
word. ``reduce``, ``argreduce``: the first attribute is the mask of the axes that shrink to size 1; dtype
as the operand, or int64. ``matmul``: the first attribute is the rank. ``fill``: dtype of the second operand,
shape of both. ``opaque``, ``leaf``: no rule; whoever makes such a term says its type.

Of sparse matrices, which are typed as the dense matrices they stand for: ``stored``, a vector of stored
values; ``structure``, the shape of the first operand; ``transpose``; ``product``, of two matrices; ``usmm``,
the product of the second and third operand; ``number``, one of no axes; ``sparse_sum``: the first attribute
is the axis that is summed and dropped. The dtype is that of the last operand.

Of functions of matrices, whose last attribute is the rank of their operands: ``square``, as the operand;
``system``, the right sides in the second operand, over both batches; ``square_system``, likewise, of as many
right sides as there are rows; ``determinant``, a number a matrix;
``diagonal``, a vector a matrix; ``from_diagonal``, the matrix of a vector. The dtype is that of the last
operand.
"""

MATRIX_TYPINGS = ("square", "system", "square_system", "determinant", "diagonal", "from_diagonal")
"""How functions of matrices are typed."""
PLACES_ONLY = ("stored", "structure")
"""How results of ops are typed that, of their first operand of several, read the places only."""

RULESETS = (
    "esat-load", "esat-types", "esat-index", "esat-known", "esat-offer", "esat-take", "esat-take-first",
    "esat-taken", "esat-lift", "esat-reduce", "esat-flatten", "esat-retire", "esat-factor", "esat-factored",
    "esat-view", "esat-fold", "esat-facts",
)  # fmt: skip
"""Rule sets of the layer itself; :mod:`esat.egraph.saturation.saturate` says in which order they run."""

ELEMENTWISE_TYPINGS = frozenset({"same", "bool", "real"})


@record(frozen=True, slots=True)
class ConstructorSignature:
    """One constructor of tensor terms.

    Attributes
    ----------
    name
        As rules write it, such as ``Add``.
    operand_count
        Number of tensor operands, which come first.
    attribute_sorts
        Sorts of the literals after them.
    result
        See :data:`Typing`.
    floats
        Whether its operands are always floats or complex numbers.
    operand_dtypes
        Per operand ``same``, ``bool`` or empty (any), where not all share one dtype.
    kinds
        Per operand ``sparse``, or the number of axes it must have, for ops on sparse matrices.
    """

    name: str
    operand_count: int
    attribute_sorts: tuple[str, ...] = ()
    result: Typing = "opaque"
    floats: bool = False
    operand_dtypes: tuple[str, ...] | None = None
    kinds: tuple[int | Literal["sparse"], ...] = ()

    @property
    def declaration(self) -> str:
        """The egglog declaration."""
        sorts = " ".join((*["T"] * self.operand_count, *self.attribute_sorts))
        return f"(constructor {self.name} ({sorts}) T)"

    @property
    def pattern(self) -> str:
        """A pattern with operands ``a0 a1 ...`` and attributes ``w0 w1 ...``."""
        operands = [f"a{index}" for index in range(self.operand_count)]
        attributes = [f"w{index}" for index in range(len(self.attribute_sorts))]
        return "(" + " ".join((self.name, *operands, *attributes)) + ")"

    @property
    def broadcast(self) -> str:
        """Broadcast word of the result, over the operands ``#0``, ``#1``, ...; empty without a rule."""
        first_attribute = f"#{self.operand_count}"
        last_attribute = f"#{self.operand_count + len(self.attribute_sorts) - 1}"
        if self.result in ELEMENTWISE_TYPINGS or self.result == "fill":
            meet = "#0"
            for index in range(1, self.operand_count):
                meet = f"(& {meet} #{index})"
            return meet
        expressions = {
            "cast": "#0",
            "dimshuffle": normalized(f"(ds-bp #0 {first_attribute})"),
            "reduce": normalized(f"(| #0 {first_attribute})"),
            "argreduce": normalized(f"(| #0 {first_attribute})"),
            "matmul": normalized(_matmul_broadcast("#0", "#1", first_attribute)),
            "square": "#0",
            "system": normalized(_system_broadcast("#0", "#1", last_attribute)),
            "square_system": normalized(_system_broadcast("#0", "#1", last_attribute)),
            "determinant": normalized(_batch_broadcast("#0", last_attribute, "2")),
            "diagonal": normalized(_diagonal_broadcast("#0", last_attribute)),
            "from_diagonal": normalized("(& (<< #0 1) (| 4 (<< #0 2)))"),
            "stored": _VECTOR_WORD,
            "structure": "#0",
            "transpose": normalized("(ds-bp #0 (ds-transpose))"),
            "product": normalized(_matmul_broadcast("#0", "#1", "2")),
            "usmm": normalized(_matmul_broadcast("#1", "#2", "2")),
            "number": "-1",
            "sparse_sum": normalized(f"(| {_VECTOR_WORD} (& 1 (>> #0 (- 1 {first_attribute}))))"),
        }
        return expressions.get(self.result, "")

    @property
    def operator(self) -> Operator:
        """What the rule compiler knows of it."""
        dtypes = {"same": "same", "bool": "bool", "cast": "#1", "dimshuffle": "same", "reduce": "same"}
        shares = (
            *MATRIX_TYPINGS,
            "matmul",
            "stored",
            "structure",
            "transpose",
            "product",
            "usmm",
            "number",
            "sparse_sum",
        )
        dtype = dtypes.get(self.result, "same" if self.result in shares else "")
        operand_dtypes = self.operand_dtypes
        if self.result == "fill" and operand_dtypes is None:
            dtype, operand_dtypes = "same", ("", "same")
        sorts = (*["T"] * self.operand_count, *self.attribute_sorts)
        return Operator(sorts, "T", dtype, operand_dtypes, self.broadcast, self.floats)


BASE_CONSTRUCTORS = (
    ConstructorSignature("In", 0, ("i64",), "leaf"),
    ConstructorSignature("K", 0, ("f64", "i64"), "leaf"),
    ConstructorSignature("Array", 0, ("i64",), "leaf"),
    ConstructorSignature("Output", 1, ("i64",), "opaque"),
    ConstructorSignature("Fill", 2, (), "fill"),
)
"""Constructors that stand for no op of their own, and those the layer itself makes terms of."""

FOLDING = {
    "Add": "(+ v0 v1)",
    "Sub": "(- v0 v1)",
    "Mul": "(* v0 v1)",
    "Div": "(/ v0 v1)",
    "Neg": "(neg v0)",
    "Sqr": "(* v0 v0)",
    "Maximum": "(max v0 v1)",
    "Minimum": "(min v0 v1)",
    "Abs": "(abs v0)",
}
"""Constructor -> its value in float64, for those whose rounding is NumPy's."""


class Signature(Mapping[str, ConstructorSignature]):
    """All constructors by name, in a fixed order: the base ones, then those given.

    Parameters
    ----------
    constructors
        One record an op. A base constructor may be repeated if the record is the same.

    Raises
    ------
    CompileError
        When two records with one name differ.
    """

    def __init__(self, constructors: Iterable[ConstructorSignature]) -> None:
        self._records: dict[str, ConstructorSignature] = {}
        for one in (*BASE_CONSTRUCTORS, *constructors):
            known = self._records.setdefault(one.name, one)
            if known != one:
                raise CompileError(f"signature: two constructors are named {one.name}: {known}, {one}")

    def __getitem__(self, name: str) -> ConstructorSignature:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """Records for the rule compiler: the constructors, and the functions every rule may read."""
        functions = {
            "dt": Operator(("T",), "i64"),
            "bp": Operator(("T",), "i64"),
            "val": Operator(("T",), "f64"),
        }
        return {**{name: record.operator for name, record in self._records.items()}, **functions}

    @cached_property
    def program(self) -> str:
        """Declarations, dtype tables, typing rules and folding rules, as egglog text."""
        lines = ["(sort T)"]
        lines += [record.declaration for record in self._records.values()]
        lines += [
            "(constructor N (i64) T :unextractable)",
            "(function dt (T) i64 :no-merge)",
            "(function bp (T) i64 :no-merge)",
            # Constants reassociated in two ways may differ by rounding, so one class may have two values.
            "(function val (T) f64 :merge old)",
        ]
        lines += [f"(ruleset {name})" for name in RULESETS]
        lines.append(dtype_tables())
        for one in self._records.values():
            lines += typing_rules(one)
            lines += folding_rules(one)
        lines += _CONSTANT_RULES
        return "\n".join(lines)


_VECTOR_WORD = "2"
"""Of a vector of unknown length."""


def normalized(word: str) -> str:
    """Expression for ``word``, or -1 if all its axes have size 1 (``word & (word + 1) == 0``)."""
    return f"(| {word} (- (min 1 (& {word} (+ {word} 1))) 1))"


def _matmul_broadcast(left: str, right: str, rank: str) -> str:
    row, column = f"(<< 1 (- {rank} 2))", f"(<< 1 (- {rank} 1))"
    batch = f"(& (- {row} 1) (& {left} {right}))"
    return f"(| (<< 1 {rank}) (| {batch} (| (& {row} {left}) (& {column} {right}))))"


def _batch_broadcast(matrix: str, rank: str, dropped: str) -> str:
    """Of the axes before a matrix's two, when so many of the last axes are dropped."""
    batch = f"(& (- (<< 1 (- {rank} 2)) 1) {matrix})"
    return f"(| (<< 1 (- {rank} {dropped})) {batch})"


def _system_broadcast(matrix: str, sides: str, rank: str) -> str:
    batch = f"(& (- (<< 1 (- {rank} 2)) 1) (& {matrix} {sides}))"
    return f"(| (<< 1 {rank}) (| {batch} (& {sides} (<< 3 (- {rank} 2)))))"


def _diagonal_broadcast(matrix: str, rank: str) -> str:
    row, column = f"(>> {matrix} (- {rank} 2))", f"(>> {matrix} (- {rank} 1))"
    last = f"(<< (& 1 (| {row} {column})) (- {rank} 2))"
    return f"(| {_batch_broadcast(matrix, rank, '1')} {last})"


def typing_rules(record: ConstructorSignature) -> list[str]:
    """Rules that give ``dt`` and ``bp`` to terms of this constructor."""
    if not record.broadcast:
        return []
    broadcast = record.broadcast
    for index in reversed(range(record.operand_count + len(record.attribute_sorts))):
        attribute = index - record.operand_count
        broadcast = broadcast.replace(f"#{index}", f"w{attribute}" if attribute >= 0 else f"b{index}")
    (expression,) = read_forms(broadcast) if broadcast.startswith("(") else (broadcast,)
    facts = [("=", f"b{index}", ("bp", f"a{index}")) for index in range(record.operand_count)]
    shape = _printed(with_shared_parts([*facts, ("=", "b", expand(expression))]))
    dtype = {
        "bool": "0",
        "argreduce": "4",
        "cast": "w0",
        "real": f"(real-dtype (dt a{record.operand_count - 1}))",
    }.get(record.result, f"(dt a{record.operand_count - 1})")
    return [
        f"(rule ((= e {record.pattern}) (= d {dtype}) {shape})"
        f' ((set (dt e) d) (set (bp e) b)) :ruleset esat-types :name "type-{record.name}")'
    ]


def _printed(facts: Iterable[Sexp]) -> str:
    return " ".join(map(show, facts))


def folding_rules(record: ConstructorSignature) -> list[str]:
    """The rule that gives ``val`` to a term of uniform operands, where float64 computes it exactly."""
    if record.result == "fill":
        # With the types, not with the folding: sums and products must know a constant when they see one.
        return [
            f"(rule ((= e {record.pattern}) (= v (val a1))) ((set (val e) v))"
            f' :ruleset esat-types :name "fold-{record.name}")'
        ]
    if record.result == "cast":
        # A value is only known to stay itself where it is one of the target's; `exact-cast` leaves out bool.
        return [
            f"(rule ((= e {record.pattern}) (= v (val a0)) (= d (dt a0)) (exact-cast d w0)"
            f" {rounded('u', 'v', 'w0')} (= u v)) ((set (val e) u))"
            f' :ruleset esat-fold :name "fold-{record.name}")'
        ]
    if record.result == "matmul":
        # A product that is constant, as with zeros, is no factor of further ones: it may be its own.
        return [
            f"(rule ((= e {record.pattern}) (= v (val e))) ((subsume {record.pattern}))"
            f' :ruleset esat-fold :name "constant-{record.name}")'
        ]
    comparison = _COMPARISONS.get(record.name)
    if comparison is not None:
        return [
            f"(rule ((= e {record.pattern}) (= v (val a0)) (= w (val a1)) ({operator} v w))"
            f" ((set (val e) {truth}))"
            f' :ruleset esat-fold :name "fold-{record.name}-{truth[0]}")'
            for operator, truth in zip(comparison, ("1.0", "0.0"), strict=True)
        ]
    value = FOLDING.get(record.name)
    if value is None or record.result != "same":
        return []
    operands = " ".join(f"(= v{index} (val a{index}))" for index in range(record.operand_count))
    # float64 cannot tell -0.0 from 0.0 here, so what may be -0.0 is folded to zero for integers only.
    signed = record.name in ("Mul", "Div", "Neg", "Sqr")
    variants = {"": "(!= v 0.0)", "-zero": "(= v 0.0) (integer-dtype d)"} if signed else {"": ""}
    return [
        f"(rule ((= e {record.pattern}) {operands} (= d (dt e)) (arithmetic-dtype d) (= v {value}) {zero}"
        f" {rounded('u', 'v', 'd')} (= u v)) ((set (val e) u))"
        f' :ruleset esat-fold :name "fold-{record.name}{suffix}")'
        for suffix, zero in variants.items()
    ]


_COMPARISONS = {
    "Eq": ("=", "!="),
    "Ne": ("!=", "="),
    "Lt": ("<", ">="),
    "Le": ("<=", ">"),
    "Gt": (">", "<="),
    "Ge": (">=", "<"),
}
"""Comparison -> what numbers are compared by where it is true, and where it is false."""

_CONSTANT_RULES = [
    "(rule ((= e (K v d))) ((set (dt e) d) (set (bp e) -1) (set (val e) v))"
    ' :ruleset esat-types :name "type-K")',
    "(rule ((= v (val e)) (= -1 (bp e)) (= d (dt e))) ((union e (K v d)))"
    ' :ruleset esat-fold :name "constant")',
]
