"""What the documentation shows is so: docstrings, one call of each function, and code in pages."""

import ast
import doctest
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import esat
from esat.ops.elementwise.records.record import Elementwise
from esat.rules import RULES

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs" / "site"))
import site_pages  # noqa: E402

MODULES = sorted(
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__")
    for path in (ROOT / "esat").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
    and (path.parent.name != "pytensor" or importlib.util.find_spec("pytensor"))  # which needs Python 3.12
)
WITHOUT_EXAMPLE = {"col", "matrix", "row", "scalar", "tensor", "tensor3", "tensor4", "vector", "empty_like"}
"""Functions that give Variables without values."""
SAY_BY_THEIR_NAME = {"NAMES"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    failed: list[str] = []
    for test in finder.find(module, name, globs={**vars(module), "esat": esat, "np": np}):
        runner.run(test, out=failed.append)
    assert not failed, "".join(failed)


@pytest.mark.parametrize(
    "name", [name for name in esat.__all__ if isinstance(getattr(esat, name), Elementwise)]
)
def test_elementwise_functions_say_what_they_compute_and_show_it(name: str) -> None:
    text = getattr(esat, name).__doc__
    assert "Each element from those at its place" not in text
    test = doctest.DocTestParser().get_doctest(text, {"esat": esat, "array": np.array}, name, None, 0)
    failed: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(
        test, out=failed.append
    )
    assert test.examples
    assert not failed, "".join(failed)


@pytest.mark.parametrize("call", site_pages.calls() + site_pages.elementwise_calls())
def test_functions_by_example_are_numpys(call: str) -> None:
    ours = site_pages.value_of(call)
    function, inner = np, call.partition("(")[0].split(".")
    for name in inner:
        function = getattr(function, name, None)
    if function is None or "esat." in call or "lambda" in call or call.startswith("astype"):
        return
    theirs = site_pages.value_of(call, np)
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype


@pytest.mark.parametrize("kind", site_pages.error_examples.EXAMPLES)
def test_examples_of_errors_raise_them(kind: str) -> None:
    code, remedy = site_pages.error_examples.EXAMPLES[kind]
    assert site_pages.message_of(code).startswith(f"{kind}: ")
    assert remedy


def test_every_public_function_has_an_example() -> None:
    named = {call.partition("(")[0] for call in site_pages.calls() + site_pages.elementwise_calls()}
    without = [
        name
        for name in site_pages.public_names()
        if name not in named | WITHOUT_EXAMPLE and ">>>" not in (inspect.getdoc(getattr(esat, name)) or "")
    ]
    assert without == []


PAGES = [ROOT / "README.md", ROOT / "docs/gpu.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.M | re.S)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name
)
def test_code_in_pages_runs(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if 'device="cuda"' in block:
            ast.parse(block)
        else:
            exec(compile(block, page.name, "exec"), names)


def test_pages_of_the_reference_are_made(tmp_path) -> None:
    rules = [rule for rule in RULES.list() if rule.report_name in ("neg-neg", "exp2-exp", "sum-sum")]
    site_pages.write(tmp_path / "pages", rules, tmp_path / "kept")
    texts = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "pages").glob("*.md")}
    assert "| `exp([0.25, 0.5])` | `[1.284025, 1.648721]` |" in texts["functions.md"]
    assert "| `exp` | `Exp` | elementwise | same | yes |" in texts["ops.md"]
    assert "## neg-neg" in texts["rules_algebra.md"]
    assert "--x  ->  x" in texts["rules_algebra.md"]
    assert "| float64, special | `x = " in texts["rules_algebra.md"]
    assert "| float64, finite | `x = " in texts["rules_exponential.md"]
    assert "## ShapeError" in texts["errors.md"]
    assert "`strict`" in texts["modes.md"]
