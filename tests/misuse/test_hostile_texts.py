"""Texts of users' that would be code, markup or rules if they were copied into what the compiler writes.

Each is the name of everything that has one: variables, results, functions, files, parameters of objects, ops,
optimizers, rules and their files. What is generated must still be what it was, and no text may run.
"""

import html.parser
import pickle
import sys
import types

import numpy as np
import pytest

import esat
from esat.errors import AssertionFailed, EsatError
from esat.graph.op import Family, Op

RUNS = "__import__('sys').modules['hostile'] = 1"
TEXTS = {
    "line break": f"a\n{RUNS}\n#",
    "indented line": f"m\n    {RUNS}\n    #",
    "deeper line": f"m\n        {RUNS}\n        #",
    "carriage return": f"a\r{RUNS}\r#",
    "both": f"a\r\n    {RUNS}\r\n    #",
    "form feed": f"a\f    {RUNS}\f#",
    "vertical tab": f"a\v{RUNS}",
    "line separator": f"a\u2028{RUNS}\u2029#",
    "next line": f"a\x85{RUNS}",
    "file separators": f"a\x1c{RUNS}\x1d{RUNS}\x1e",
    "null": "a\0b",
    "all control characters": "".join(map(chr, range(32))) + "".join(map(chr, range(127, 160))),
    "lone surrogates": "a\ud800b\udfff",
    "not a character": "a\ufffe\uffff\U0010ffff",
    "quote": "a'b",
    "double quote": 'a"b',
    "three quotes": f"a'''\n{RUNS}\n'''",
    "three double quotes": f'a"""\n{RUNS}\n"""',
    "backslash": "a\\",
    "backslash and line break": "a\\\n",
    "escape": "\\n\\x00\\u2028\\N{BULLET}",
    "braces": "{0} {a} {{}} {",
    "formats": "%s %d %(a)s %",
    "parentheses": ")]}",
    "comment of C": f"*/ {RUNS} /* //",
    "trigraph": "??/\nint a;",
    "comment": "# -*- coding: ascii -*-\n# é",
    "encoding": "coding: no-such",
    "rule": '") (panic "a") (rewrite x y :name "',
    "comment of rules": "; (panic)\n(panic 1)",
    "llvm": 'a"\ndefine void @f() { ret void }\n%0 = !',
    "script": "</script><script>document.title = 1</script>",
    "markup": "<b onclick='a'>&amp;&lt;<!-- ]]> <?php",
    "style": "</style></pre><img src=x onerror=alert(1)>",
    "right to left": "a\u202eb\u2066c",
    "unicode": "é漢𝔘\u0301\u200b\ufeff",
    "digits": "1",
    "empty": "",
    "spaces": " \t ",
    "keyword": "class",
    "assigned by nobody": "__debug__",
    "word of the driver": "arguments",
    "builtin": "NotImplemented",
    "kernel": "\n\n# kernel_0\n",
    "expression": "x, y; x",
    "megabyte": "ab\n" * 350_000,
}


class Named(Op):
    """Twice its operand, under any name."""

    constructor = "HostileNamed"
    family = Family.LIBRARY

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"{self.name}{{{self.name}}}"

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        return (2.0 * inputs[0],)


class Markup(html.parser.HTMLParser):
    """Counts the elements of a page."""

    def __init__(self, page):
        super().__init__()
        self.elements = {}
        self.attributes = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attributes}


def function_named(text):
    """A function from a file of this name, of this name, with this text as its documentation."""
    made = types.ModuleType("hostile_module")
    name = "".join(letter for letter in text[:5000] if letter != "\0")
    name = name.encode(errors="replace").decode()
    source = "def f(x, message, esat):\n    return esat.assert_(esat.exp(x), x[0] < 9.0, message=message)"
    exec(compile(source, name, "exec"), made.__dict__)
    made.f.__name__ = made.f.__qualname__ = text
    made.f.__doc__ = text
    return made.f


def named_graph(text):
    """A graph in which all that may have a name has this one."""
    x, y = esat.vector(text), esat.vector(f"{text}y")
    weights = esat.shared(np.ones(3), name=text)
    checked = function_named(text)(x, text, esat)
    matrix = esat.outer(checked, y)
    (twice,) = Named(text).make_node(x).outputs
    total = (esat.softmax(matrix, axis=1) * weights).sum(axis=0) + twice
    total.name = text
    chosen = esat.ifelse(x[0] > 0.0, total, y)
    chosen.name = text
    inverse = esat.linalg.inv(matrix @ matrix.T + 4.0 * esat.eye(3))
    inverse.name = text
    return esat.Graph([x, y], [chosen, inverse], updates=[(weights, weights * 1.0)])


def values(x, y):
    matrix = np.outer(np.exp(x), y)
    softmax = np.exp(matrix) / np.exp(matrix).sum(axis=1, keepdims=True)
    return softmax.sum(axis=0) + 2.0 * x, np.linalg.inv(matrix @ matrix.T + 4.0 * np.eye(3))


def shown(made):
    """What others read: the source and a picture; what people read is only made."""
    assert all(map(str, (made.report, made.profile, made, esat.debugprint(made, file="str"))))
    return [made.source(), esat.pydotprint(made) or ""]


@pytest.fixture(autouse=True)
def _nothing_ran():
    yield
    assert sys.modules.pop("hostile", None) is None


X, Y = np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.25, -1.0])


@pytest.mark.parametrize(
    ("name", "mode"), [(name, "fast_run") for name in TEXTS] + [(name, "debug") for name in [*TEXTS][:3]]
)
def test_names_in_graphs(name, mode, tmp_path):
    text = TEXTS[name]
    made = esat.compile(named_graph(text), mode)
    made.measure()
    for _ in range(2):
        for found, wanted in zip(made(X, Y), values(X, Y), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10)
    with pytest.raises(AssertionFailed) as caught:
        made(X + 9.0, Y)
    assert text in str(caught.value)
    for part in shown(made):
        assert "\0" not in part
        part.encode()
    if mode == "debug":
        return
    made.save_html(tmp_path / "page.html")
    plain = esat.compile(named_graph("a"), mode)
    plain.measure()
    plain(X, Y)
    plain.save_html(tmp_path / "plain.html")
    page, wanted = (Markup((tmp_path / f"{one}.html").read_text("utf-8")) for one in ("page", "plain"))
    for tag in ("script", "style", "a", "b", "img", "svg", "section", "h3", "pre", "table", "body", "g"):
        assert page.elements.get(tag) == wanted.elements.get(tag), tag
    assert page.attributes == wanted.attributes
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_allclose(again(X, Y)[0], values(X, Y)[0], rtol=1e-10)


@pytest.mark.parametrize("name", TEXTS)
def test_names_in_jitted_functions(name):
    text = TEXTS[name]

    class Holder:
        pass

    def f(holder, named, static, x):
        held = getattr(holder, text)
        return {text: np.exp(held) * named[text] + len(static) * x, f"{text}2": x[::-1]}

    f.__name__ = f.__qualname__ = f.__doc__ = text
    Holder.__name__ = Holder.__qualname__ = (
        "".join(one for one in text[:100] if one != "\0").encode(errors="replace").decode()
    )
    holder = Holder()
    setattr(holder, text, X)
    jitted = esat.jit(f, static_argnames="static")
    for _ in range(2):
        found = jitted(holder, {text: Y}, text, Y)
        assert list(found) == [text, f"{text}2"]
        np.testing.assert_allclose(found[text], np.exp(X) * Y + len(text) * Y, rtol=1e-13)
        np.testing.assert_array_equal(found[f"{text}2"], Y[::-1])
    jitted.measure()
    jitted(holder, {text: Y}, text, Y)
    for part in shown(jitted.latest):
        part.encode()
    for bad in ({text: np.array(["a"])}, {text: Y[:2]}):
        with pytest.raises(EsatError):
            jitted(holder, bad, text, Y)


@pytest.mark.parametrize("name", TEXTS)
def test_names_of_rules_files_optimizers_and_modes(name, tmp_path):
    text = TEXTS[name]
    x = esat.vector("x")
    graph = esat.Graph([x], [esat.sqrt(x**2) + esat.exp(x)])
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    for rule in (
        f"(rewrite (Sqrt (Sqr x)) (Abs x) :name {quoted})",
        f'(rewrite (Sqrt (Sqr x)) (Abs x) :name "{text}")',
        f"(ruleset {text})",
        f"(rewrite (Sqrt (Sqr x)) (Abs x) :ruleset {text})",
    ):
        try:
            added = esat.rules.add(rule)
        except EsatError:
            continue
        with added:
            np.testing.assert_allclose(esat.compile(graph, "greedy")(X), np.abs(X) + np.exp(X), rtol=1e-13)
    for wrong in (
        lambda: esat.Mode(text),
        lambda: esat.compile(graph, text),
        lambda: esat.jit(np.exp, mode=text)(X),
        lambda: esat.rules.show(text),
    ):
        with pytest.raises((EsatError, KeyError)):
            wrong()
    mode = esat.Mode("greedy").excluding(text).including(text)
    np.testing.assert_allclose(esat.compile(graph, mode)(X), np.abs(X) + np.exp(X), rtol=1e-13)
    try:
        path = tmp_path / f"{text}.egg"
        path.write_text("(rewrite (Sqrt (Sqr x)) (Abs x))")
    except (OSError, ValueError):
        return
    with esat.rules.load(path):
        made = esat.compile(graph, "greedy")
        np.testing.assert_allclose(made(X), np.abs(X) + np.exp(X), rtol=1e-13)
        for part in shown(made):
            part.encode()


@pytest.mark.parametrize("name", ["line break", "deeper line", "comment of C", "lone surrogates"])
def test_names_in_programs_for_a_device(name):
    text = TEXTS[name]
    x = esat.vector(text)
    total = function_named(text)(x, text, esat) * 2.0
    total.name = text
    made = esat.compile(esat.Graph([x], [total, esat.sum(total)]), esat.Mode("debug", device="cuda"))
    np.testing.assert_allclose(made(X)[0], 2.0 * np.exp(X), rtol=1e-13)
    made.source().encode()
