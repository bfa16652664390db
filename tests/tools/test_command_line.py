"""``python -m esat``: what it prints and how it ends."""

import os
import subprocess
import sys

import pytest

import esat
from esat.__main__ import main
from esat.base.storage import KINDS, DiskStore

GOOD = """
(ruleset mine :tags (canonicalize) :soundness real)
(rewrite (Add (Exp x) (Exp y)) (Exp (Logaddexp x y)) :when ((<= (dt x) 11)) :ruleset mine :name "good")
"""
WRONG = '(rewrite (Sqrt (Sqr x)) x :name "wrong")'
IDLE = '(rewrite (Add x (Neg y)) (Sub x y) :name "idle")'


def write(tmp_path, text):
    path = tmp_path / "my.egg"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_sound_file_passes(tmp_path, capsys):
    assert main(["rules", "check", "--verbose", write(tmp_path, GOOD)]) == 0
    output = capsys.readouterr().out
    assert "rule 'good' (real): sound at" in output
    assert "1 of 1 rules are sound" in output


def test_a_wrong_rule_is_named_with_its_place_and_a_counterexample(tmp_path, capsys):
    path = write(tmp_path, WRONG)
    assert main(["rules", "check", path]) == 1
    output = capsys.readouterr().out
    assert f"{path}:1:1: rule 'wrong' (real): wrong" in output
    assert "left" in output


def test_a_rule_that_never_fires_is_named(tmp_path, capsys):
    path = write(tmp_path, IDLE)
    assert main(["rules", "check", path]) == 1
    assert f"{path}:1:1: rule 'idle' does not fire on its own left side" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [("(rewrite (Expp x) x)", "1:10: rule 'my.egg:1:1': unknown op Expp"), ("(rewrite", "never closed")],
)
def test_a_malformed_file_is_an_error_with_its_place(tmp_path, capsys, text, message):
    assert main(["rules", "check", write(tmp_path, text)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_file_is_an_error(tmp_path, capsys):
    assert main(["rules", "check", str(tmp_path / "none.egg")]) == 2
    assert "cannot read the rule file" in capsys.readouterr().err


def test_rules_are_listed_and_shown(capsys):
    assert main(["rules", "list", "--tag", "stabilize"]) == 0
    listed = capsys.readouterr().out
    assert "log1p" in listed
    assert "neg-neg" not in listed
    assert main(["rules", "show", "neg-neg"]) == 0
    assert "(rewrite (Neg (Neg x)) x" in capsys.readouterr().out
    assert main(["rules", "show", "neg-negg"]) == 2
    assert "did you mean neg-neg" in capsys.readouterr().err


def test_the_cache_is_shown_and_cleared(tmp_path):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(tmp_path)}
    for kind in KINDS:
        DiskStore(tmp_path, kind).save("ab" * 32, b"content")
    steps = (("info", str(tmp_path)), ("info", "1 e-graphs, 0.0 MiB"), ("clear", "1 kernels, 1 e-graphs"))
    for command, shown in (*steps, ("info", "0 kernels, 0.0 MiB")):
        process = subprocess.run(
            [sys.executable, "-m", "esat", "cache", command],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown in process.stdout


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"esat {esat.__version__}\n"


def test_the_doctor_tries_a_program(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert f"esat:         {esat.__version__}" in output
    assert "its result is right" in output


def test_the_doctor_names_what_is_wrong(capsys, monkeypatch):
    wrong = esat.errors.EsatError("nothing works")

    def fail():
        raise wrong

    monkeypatch.setattr("esat.tools.command_line._EXAMINATIONS", (("a program", fail),))
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out == "! a program:    EsatError: nothing works\n"


SCRIPT = """
import sys
import numpy as np
import esat

@esat.jit
def total(x):
    return (2.0 * x).sum()

print(sys.argv[1:], __name__, total(np.ones(3)), total(np.ones(3)))
"""


def test_a_script_is_reported_with_its_calls_and_pages(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    pages = tmp_path / "pages"
    before = list(sys.argv)
    assert main(["report", "--pages", str(pages), str(script), "a", "-b"]) == 0
    output = capsys.readouterr().out
    assert "['a', '-b'] __main__ 6.0 6.0" in output
    assert "1 functions compiled" in output
    assert f"1. total at {script}:6" in output
    assert "kernel: sum{0}, mul" in output
    assert "</html>" in (pages / "function_1.html").read_text(encoding="utf-8")
    assert sys.argv == before


def test_a_script_that_is_not_there_is_an_error(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none.py")]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_error(tmp_path):
    command = f"{sys.executable} -m esat rules list | head -1"
    process = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert process.stdout.count("\n") == 1
    assert process.stderr == ""


def test_an_unknown_tag_is_an_error(capsys):
    assert main(["rules", "list", "--tag", "nope"]) == 2
    assert "no rule has the tag nope; tags and rule sets are algebra," in capsys.readouterr().err


def test_the_error_of_a_script_has_no_frames_but_its_own(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text("def f():\n    raise ValueError('of the script')\nf()\n")
    with pytest.raises(SystemExit):
        main(["report", str(path)])
    printed = capsys.readouterr().err
    assert "ValueError: of the script" in printed
    assert printed.count("  File ") == 2
