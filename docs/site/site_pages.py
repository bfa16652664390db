"""Pages of the reference that are made from the package: functions by example, ops, rules, modes, errors."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import error_examples
import numpy as np

import esat
from esat import errors
from esat.base.storage.digests import package_digest
from esat.graph.registry import registered_ops
from esat.mode import mode_names
from esat.ops.elementwise.records.description import example_of
from esat.ops.elementwise.records.record import Elementwise
from esat.rules.language.reader import Sexp, read_forms
from esat.rules.language.rule import Rule
from esat.tools.soundness import RuleVerdict, SampledPoint, check

EXAMPLES = Path(__file__).parent / "examples.txt"


def write(folder: Path, rules: Sequence[Rule], kept: Path) -> None:
    """Write all pages; those that did not change keep their times.

    Parameters
    ----------
    folder
        Where to.
    rules
        Rules to write pages about.
    kept
        A folder for what the sampling of rules found, which takes a minute and is done once for each state
        of the package.
    """
    pages = {
        "functions.md": functions_page(),
        "api_functions.md": api_page(),
        "ops.md": ops_page(),
        "modes.md": modes_page(),
        "errors.md": errors_page(),
        "pytensor_ops.md": pytensor_page(),
        **dict(rule_pages(rules, kept)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for left in set(folder.glob("*.md")) - {folder / name for name in pages}:
        left.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# ---- functions by example


def calls() -> list[str]:
    """The calls of ``examples.txt``, without ``esat.``."""
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def elementwise_calls() -> list[str]:
    """A call of each elementwise op under each of its public names."""
    found = []
    for name in sorted(esat.__all__):
        op = getattr(esat, name)
        if isinstance(op, Elementwise):
            found.append(f"{name}({', '.join(map(str, example_of(op)))})")
    return found


def value_of(call: str, module: Any = esat) -> Any:
    """What a call gives: arrays."""
    result = eval(f"module.{call}", {"module": module, "esat": esat, "np": np})
    return evaluated(result) if module is esat else result


def evaluated(result: Any) -> Any:
    """Variables exchanged for their values."""
    if isinstance(result, esat.Variable):
        return esat.evaluate(result)
    if isinstance(result, tuple | list):
        return (
            type(result)(map(evaluated, result))
            if type(result) in (tuple, list)
            else [*map(evaluated, result)]
        )
    return result


def shown(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, tuple | list):
        return ", ".join(map(shown, value))
    text = np.array2string(np.asarray(value), precision=6, separator=", ")
    return re.sub(r"\s+", " ", text)


def functions_page() -> str:
    """One call of each function, with its result."""
    table = "| `esat.`... | evaluated |\n|---|---|\n"
    arrays, elementwise = (
        table + "\n".join(f"| `{call}` | `{shown(value_of(call))}` |" for call in group)
        for group in (calls(), elementwise_calls())
    )
    return f"""# Functions by example

Operands may be Variables, arrays, lists and numbers; the result is a Variable. Here `esat.evaluate`
computed it while this page was built.

## Functions of arrays

{arrays}

## Elementwise functions

{elementwise}
"""


# ---- functions, by what their docstrings say


MODULES = {"esat": esat, "esat.fft": esat.fft, "esat.linalg": esat.linalg, "esat.random": esat.random}


def api_page() -> str:
    """The docstrings of the functions of arrays."""
    listed = set(
        re.findall(r"^   (\w+)$", (Path(__file__).parent.parent / "reference/api.md").read_text(), flags=re.M)
    )
    parts = ["# Functions of arrays\n"]
    for title, module in MODULES.items():
        names = [
            name
            for name in sorted(module.__all__)
            if inspect.isfunction(getattr(module, name)) and not (module is esat and name in listed)
        ]
        directives = "\n".join(f".. autofunction:: {title}.{name}" for name in names)
        parts.append(f"## {title}\n\n```{{eval-rst}}\n{directives}\n```\n")
    return "\n".join(parts)


# ---- ops


def ops_page() -> str:
    """A table of all ops: name in rules, family, typing, gradient, cost, kernel code."""
    ops = sorted(registered_ops(), key=lambda op: (op.family.value, op.name))
    rows = "\n".join(f"| {' | '.join(_op_cells(op))} |" for op in ops)
    return f"""# Table of ops

Made from the ops' records. *Flops* is the cost of an element in additions; *kernel* says whether an
elementwise op is a loop of its own code, or NumPy's or SciPy's function.

| op | in rules | family | typing | gradient | flops | kernel |
|---|---|---|---|---|---|---|
{rows}
"""


def _op_cells(op: esat.Op) -> list[str]:
    gradient = "yes" if type(op).vjp is not esat.Op.vjp else "no"
    flops = kernel = ""
    if isinstance(op, Elementwise):
        gradient = {None: "no", "zero": "zero"}.get(op.gradient, "yes")  # type: ignore[arg-type]
        flops, kernel = f"{op.flops:g}", "library" if op.code is None else "loop"
    return [f"`{op.name}`", f"`{op.constructor}`", op.family.value, op.typing, gradient, flops, kernel]


def pytensor_page() -> str:
    """A table of PyTensor's ops that have a rule, by the modules of rules; read as text, without PyTensor."""
    folder = Path(esat.__file__).parent / "frontend" / "pytensor"
    rows = []
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tables = [node.value for node in tree.body if isinstance(node, ast.AnnAssign)]
        keys = {
            key.value
            for table in tables
            if isinstance(table, ast.Dict)
            for key in table.keys
            if isinstance(key, ast.Constant)
        }
        names = sorted(str(key) for key in keys if isinstance(key, str) and key[0].isalpha())
        about = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
        if about.startswith("Rule") or about.startswith("The rule"):
            rows.append(f"| {about} | {', '.join(f'`{name}`' for name in names)} |")
    return f"""# Table of PyTensor's ops

Names of classes of ops, of scalar ops, and of random variables that run natively, or as steps of esat's own.
PyTensor runs all others, and options that a rule refuses; a function's report names them.

| rules | ops |
|---|---|
{chr(10).join(rows)}
"""


# ---- rules


def rule_pages(chosen: Iterable[Rule], kept: Path) -> Iterator[tuple[str, str]]:
    """A page for each rule file, and one that lists them."""
    by_file: dict[str, dict[str, Rule]] = {}
    for rule in chosen:
        by_file.setdefault(Path(rule.file).stem, {}).setdefault(rule.report_name, rule)
    verdicts = _verdicts([rule for rules in by_file.values() for rule in rules.values()], kept)
    for stem, rules in by_file.items():
        yield f"rules_{stem}.md", _rule_page(stem, [(rule, verdicts[rule.name]) for rule in rules.values()])
    rows = "\n".join(
        f"| [{stem.replace('_', ' ')}](rules_{stem}.md) | {len(rules)} |" for stem, rules in by_file.items()
    )
    hidden = "\n".join(f"rules_{stem}" for stem in by_file)
    yield (
        "rules.md",
        f"""# Rules

The {sum(map(len, by_file.values()))} rewrite rules that come with esat, by file. Each has a
[soundness class](../../explanation/soundness.md). `python -m esat rules check`, and the tests, try each at
points of all dtypes it admits: *ordinary* numbers, normally distributed with a standard deviation of 4 (3 in
float32, 1.5 in float16), among them whole ones and small ones, and integers from -9 to 9; *finite* numbers,
among which are zeros of both signs, subnormal numbers and the edges of integers; *special* numbers, with
infinities and NaN as well. Rules of class `exact` are tried at special numbers, rules of class `real` at
finite ones, and all at ordinary ones. The pages show a few of these points, with the value of either side and
how far they are apart, as a part of the left one. `x = 3.0 of (37, 11)` is an element of an array of that
shape; where an element of the result is made of many of an operand's, the operand's shape is shown alone.

| file | rules |
|---|---|
{rows}

```{{toctree}}
:hidden:

{hidden}
```
""",
    )


def _verdicts(rules: Sequence[Rule], kept: Path) -> dict[str, RuleVerdict]:
    """What the soundness gate says of each rule, by name: by several processes, for there are hundreds."""
    path = kept / f"verdicts-{package_digest()[:16]}.pickle"
    if path.exists():
        verdicts: dict[str, RuleVerdict] = pickle.loads(path.read_bytes())
        return verdicts
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        judged = pool.map(_verdict, rules, chunksize=20)
        verdicts = {rule.name: verdict for rule, verdict in zip(rules, judged, strict=True)}
    kept.mkdir(parents=True, exist_ok=True)
    for old in kept.glob("verdicts-*.pickle"):
        old.unlink()
    path.write_bytes(pickle.dumps(verdicts))
    return verdicts


def _verdict(rule: Rule) -> RuleVerdict:
    return check([rule]).verdicts[0]


def _rule_page(stem: str, rules: Sequence[tuple[Rule, RuleVerdict]]) -> str:
    parts = [f"# Rules: {stem.replace('_', ' ')}\n"]
    for rule, verdict in rules:
        parts.append(f"## {rule.report_name}\n")
        parts.append(
            f"*{rule.soundness}*, in the rule set `{rule.ruleset}`; tags: {', '.join(sorted(rule.tags))}.\n"
        )
        statement = statement_of(rule)
        if statement:
            parts.append(f"```text\n{statement}\n```\n")
        parts.append(f"```scheme\n{re.sub(' {2,}', ' ', rule.source)}\n```\n")
        parts.append(_sampled(verdict))
    return "\n".join(parts)


def _sampled(verdict: RuleVerdict) -> str:
    """The points at which a rule was tried: how many, of which dtypes, and a few of them."""
    text = f"Holds at {verdict.points:,} sampled points, of {', '.join(verdict.dtypes)}."
    samples = shown_samples(verdict.samples)
    if not samples:
        return text + "\n"
    rows = "\n".join(f"| {' | '.join(_sample_cells(sample))} |" for sample in samples)
    return f"{text}\n\n| numbers | at | left | right | apart |\n|---|---|---|---|---|\n{rows}\n"


def shown_samples(samples: Sequence[SampledPoint]) -> list[SampledPoint]:
    """A point of ordinary numbers of the widest dtype, one of others, and one of another dtype."""
    ordinary = [sample for sample in samples if sample.numbers == "ordinary"]
    others = [sample for sample in samples if sample.numbers != "ordinary"]
    wide = [sample for sample in ordinary if "float64" in sample.dtypes] or ordinary
    edges = [sample for sample in others if wide and sample.dtypes == wide[-1].dtypes] or others
    return list(dict.fromkeys([*wide[-1:], *edges[-1:], *ordinary[:1]]))


def _sample_cells(sample: SampledPoint) -> list[str]:
    difference = f"{sample.difference:.1g}" if sample.difference else "0"
    operands = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.6g}", sample.operands)
    numbers = ", ".join([*sample.dtypes, sample.numbers])
    return [numbers, *(f"`{cell}`" for cell in (operands, sample.left, sample.right)), difference]


_LONG_NUMBER = re.compile(r"-?\d+\.\d{6,}(e[-+]\d+)?")


_INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "MatMul": "@", "Pow": "**", "Eq": "==", "Lt": "<",
          "Le": "<=", "Gt": ">", "Ge": ">="}  # fmt: skip
_RANKED = ("Inv", "Det", "Solve", "MatMul", "Cholesky", "Diagonal", "SlogDet")
"""Ops whose last operand in rules is the rank."""
_ARROWS = {"rewrite": "->", "birewrite": "<->"}


def statement_of(rule: Rule) -> str:
    """Before and after as formulas; empty for rules that are no rewrites."""
    (form,) = read_forms(rule.source, *rule.position)
    if form[0] not in _ARROWS:
        return ""
    return f"{formula(form[1])}  {_ARROWS[str(form[0])]}  {formula(form[2])}"


def formula(sexp: Sexp) -> str:
    """A pattern as NumPy's users write it."""
    if isinstance(sexp, str):
        return sexp
    head, *rest = sexp
    name = str(head)
    if name in _RANKED and len(rest) > 1:
        rest = rest[:-1]
    if name == "DimShuffle" and rest[1] == ("ds-transpose",):
        return f"{formula(rest[0])}.T"
    if name in _INFIX and len(rest) >= 2:
        return f"({formula(rest[0])} {_INFIX[name]} {formula(rest[1])})"
    if name == "Neg":
        return f"-{formula(rest[0])}"
    if name == "Sqr":
        return f"{formula(rest[0])}**2"
    if name == "K":
        return formula(rest[0])
    return f"{name[0].lower() + name[1:] if name[0].isupper() else name}({', '.join(map(formula, rest))})"


# ---- modes and errors


def modes_page() -> str:
    """What each mode sets."""
    names = [name for name in mode_names() if name not in ("o1", "o4")]
    plain = esat.Mode("fast_run")
    rows = []
    for name in names:
        mode = esat.Mode(name)
        differs = [
            f"`{key}={getattr(mode, key)!r}`"
            for key in ("strategy", "soundness", "debug")
            if getattr(mode, key) != getattr(plain, key)
        ]
        rows.append(f"| `{name}` | {', '.join(differs) or 'the default'} | {_tags(mode)} |")
    settings = inspect.cleandoc(esat.Mode.__doc__ or "")
    about = settings.split("Attributes\n----------\n")[-1].split("Raises\n------")[0]
    entries = re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?|\n)+)", about, flags=re.M)
    lines = "\n".join(f"`{name}`\n: {' '.join(text.split())}\n" for name, text in entries)
    table = "\n".join(rows)
    return f"""# Modes and their settings

| mode | differs from `fast_run` in | optimizers of `optdb` |
|---|---|---|
{table}

`o1` is `fast_compile`, and `o4` is `fast_run`.

## Settings

`esat.Mode("fast_run", name=value)` changes one.

{lines}
"""


def _tags(mode: esat.Mode) -> str:
    query = mode.query
    text = " ".join(f"`{tag}`" for tag in sorted(query.include))
    return text + "".join(f", without `{tag}`" for tag in sorted(query.exclude))


def errors_page() -> str:
    """The family of errors, with what each also is."""
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.EsatError | errors.EsatWarning)
    ]
    parts = [
        """# Errors

All errors that esat raises on purpose are of the family `EsatError`; each is also the Python or NumPy error
that its name suggests, so that `except ValueError` catches a `ShapeError`. Messages name the op, shapes and
dtypes, the reason, and the line of your program that built the node.
"""
    ]
    for kind in sorted(kinds, key=lambda kind: (len(kind.__mro__), kind.__name__)):
        also = ", ".join(f"`{base.__name__}`" for base in kind.__mro__[1:-1] if base is not BaseException)
        first = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
        code, remedy = error_examples.EXAMPLES.get(kind.__name__, ("", ""))
        remedy = remedy or error_examples.WITHOUT_EXAMPLE[kind.__name__]
        shown = f"```python\n{code.strip()}\n```\n\n```text\n{message_of(code)}\n```\n\n" if code else ""
        parts.append(f"## {kind.__name__}\n\n{first}\n\nAlso: {also}.\n\n{shown}{remedy}\n")
    return "\n".join(parts)


def message_of(code: str) -> str:
    """What an example of an error raises: its kind and message."""
    try:
        exec(compile(code.strip(), "example.py", "exec"), {"esat": esat, "np": np})
    except (errors.EsatError, errors.EsatWarning) as raised:
        return f"{type(raised).__name__}: {raised}"
    raise AssertionError(f"nothing is raised by {code}")


def public_names() -> Iterable[str]:
    """Names that examples are wanted for: functions of the package that are no types and no modules."""
    for name in sorted(esat.__all__):
        value = getattr(esat, name)
        if callable(value) and not inspect.isclass(value):
            yield name
