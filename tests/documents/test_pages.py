"""Pages of the documentation whose code is plain Python: it runs, all blocks of a page in turn."""

import importlib
import re
from pathlib import Path

import pytest

import esat
from tests.frontend.jaxprs.peer import find_jax

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = ("functions.md", "tutorials/from_numpy.md", "tutorials/from_jax.md")
_BLOCK = re.compile(r"(<!-- needs jax -->\n)?```(?:python|\{code-cell\})\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.filterwarnings("default::esat.errors.EsatWarning")
def test_code_of_a_page_runs(name, capsys):
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) == text.count("```python") + text.count("```{code-cell}") > 1
    namespace = {}
    for block in blocks:
        if block[1] and not find_jax():
            continue
        line = text.count("\n", 0, block.start(2))
        code = compile("\n" * line + block[2], str(DOCS / name), "exec")
        exec(code, namespace)
    printed = capsys.readouterr().out
    if "numpy" in name:
        lines = text.splitlines()
        named = [lines[int(number) - 1] for number in re.findall(r"from_numpy\.md:(\d+)", printed)]
        assert any("while x.sum() > 10" in line for line in named)
    assert esat is namespace["esat"]


def test_cells_of_the_page_on_loops_run(tmp_path, capsys, monkeypatch):
    """As a module: loops are rolled up in code that is read from a file."""
    text = (DOCS / "tutorials/loops.md").read_text(encoding="utf-8")
    cells = re.findall(r"```\{code-cell\}\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "page_on_loops.py"
    path.write_text("\n".join(cells), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("page_on_loops")
    difference, *lines = capsys.readouterr().out.splitlines()
    assert float(difference) < 1e-12
    assert any("of 100000 steps, is one op" in line for line in lines)
    assert any(line.endswith(" 1") for line in lines)  # one program
