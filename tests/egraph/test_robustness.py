"""Users' rules through ``esat.compile``: what is wrong is said, and the next compilation works."""

import gc
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import esat
from esat.errors import EsatWarning, RuleError

X = np.array([0.5, -1.0, 2.0])


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def compiled(rules=(), expression=lambda x, y: esat.exp(x) + esat.exp(y)):
    x, y = esat.vector("x"), esat.vector("y")
    return esat.compile(esat.Graph([x, y], expression(x, y)), rules=rules)


def ops(function):
    return [node.op.name for node in function.optimized.toposort()]


def check_next_compilation():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(compiled()(X, X), 2 * np.exp(X))


MISTAKES = {
    "malformed": ("; a comment\n(rewrite (Add (Exp x) (Exp y) (Logaddexp x y)", 2, 10, "never closed"),
    "unknown op": ('\n(rewrite (Floot x) x :name "u")', 2, 10, "unknown op Floot.*Floor"),
    "arity": ('\n\n   (rewrite (Exp x y) x :name "a")', 3, 13, "Exp takes 1 operands"),
    "clash": (
        '(rewrite (Exp x) (Sin x) :name "c")\n(rewrite (Tan x) (Sin x) :name "c")',
        2,
        1,
        "'c' is taken",
    ),
    "clash with esat's own": (
        '(rewrite (Exp x) (Sin x) :name "log-exp")',
        1,
        1,
        "taken by the rule at .*egg:",
    ),
    "unbound": ('(rewrite (Exp x)\n (Exp z) :name "z")', 2, 7, "z is not bound"),
    "bool for a float": ('(rewrite (Exp x) (Lt x x) :name "t")', 1, 1, "'t'.*never fire.*bool and a float"),
    "integer for a float": ('(rewrite (Exp x) (Cast x 4) :name "t")', 1, 1, "'t'.*int64 and a float"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_a_place(tmp_path, mistake):
    text, line, column, message = MISTAKES[mistake]
    file = tmp_path / "mine.egg"
    file.write_text(text)
    with pytest.raises(RuleError, match=message) as refused:
        compiled(file)
    assert (refused.value.line, refused.value.column) == (line, column)
    if mistake != "clash with esat's own":
        assert refused.value.file == str(file)
    check_next_compilation()


def test_a_missing_file(tmp_path):
    with pytest.raises(RuleError, match=r"none\.egg: cannot read"):
        compiled(tmp_path / "none.egg")
    check_next_compilation()


def test_a_rule_that_changes_a_shape_cannot_fire():
    rule = '(rewrite (Exp x) (ReduceSum (Exp x) 1) :name "shrinks")'
    np.testing.assert_allclose(compiled(rule)(X, X), 2 * np.exp(X))


@pytest.mark.parametrize(
    "rules",
    [
        '(rewrite (Exp x) (Exp (Tanh x)) :name "endless")',
        '(rewrite (Exp x) (Exp (Add (Sin x) (Cos (Exp x)))) :name "endless")'
        '(rewrite (Cos x) (Add (Cos (Sin x)) (Cos (Tan x))) :name "more")',
    ],
    ids=["slowly", "fast"],
)
def test_a_rule_without_end_is_named(rules):
    with pytest.warns(EsatWarning, match="saturation ended by its .* limit .*endless"):
        compiled(rules)
    check_next_compilation()


def test_a_file_outside_the_package_fires_anywhere_in_a_sum(tmp_path):
    file = tmp_path / "mine.egg"
    file.write_text("""
        ; sin(x) + cos(x) = sqrt(2) sin(x + pi / 4)
        (rewrite (Add (Sin x) (Cos x)) (Mul (K 1.4142135623730951 11) (Sin (Add x (K 0.7853981633974483 11))))
          :when ((= (dt x) 11)) :name "mine" :soundness real)""")
    x, a, b, c, d = vectors = [esat.vector(name) for name in "xabcd"]
    values = [X, X + 1, X - 1, X * 2, X * 3]
    mode = esat.Mode("fast_run", accuracy="ignore")  # x + pi/4 is x where x is huge
    for order in ([esat.sin(x), a, b, c, d, esat.cos(x)], [a, esat.cos(x), b, c, esat.sin(x), d]):
        total = sum(order[1:], start=order[0])
        function = esat.compile(esat.Graph(vectors, total), mode, rules=file)
        assert ops(function).count("sin") == 1
        assert "cos" not in ops(function)
        np.testing.assert_allclose(function(*values), np.sin(X) + np.cos(X) + sum(values[1:]))


def test_a_factor_cancels_inside_a_long_product():
    vectors = [esat.vector(f"v{index}") for index in range(9)]
    y = esat.vector("y")
    product = vectors[0]
    for vector in [*vectors[1:4], y, *vectors[4:]]:
        product = product * vector
    function = esat.compile(esat.Graph([*vectors, y], product / y))
    assert ops(function).count("mul") == 8
    assert "div" not in ops(function)


@pytest.fixture
def no_collector_callbacks():
    """Python goes on after an interrupt in a function that the garbage collector calls, as Hypothesis's."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = kept


@pytest.mark.usefixtures("no_collector_callbacks")
def test_control_c_ends_a_compilation():
    x = esat.vector("x")
    total = x
    for index in range(400):
        total = esat.tanh(total * float(index)) + x / (total + 2.0)
    graph = esat.Graph([x], total)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        with pytest.raises(KeyboardInterrupt):
            esat.compile(graph)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    check_next_compilation()


def test_several_threads_compile_at_once():
    expressions = [
        lambda x, y: esat.exp(x) * esat.exp(y),
        lambda x, y: esat.log(esat.exp(x) + 1.0) - y,
        lambda x, y: (x * y) / y + x,
        lambda x, y: esat.tanh(x) - esat.tanh(-y),
    ]
    wanted = [(ops(function), function(X, X)) for function in (compiled((), each) for each in expressions)]
    found = {}

    def work(number):
        for turn in range(3):
            function = compiled((), expressions[number])
            found[number, turn] = (ops(function), function(X, X))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(expressions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 * len(expressions)
    for (number, _), (names, values) in found.items():
        assert names == wanted[number][0]
        np.testing.assert_array_equal(values, wanted[number][1])


def test_memory_stays_flat():
    for _ in range(20):
        compiled()
    before = resident_bytes()
    for _ in range(40):
        compiled()
    assert resident_bytes() - before < 40e6  # two tenths of a megabyte each; an e-graph that stays takes ten


SELF_FEEDING = {
    "unrelated": """
(relation quad-t (T T T T))
(rule ((= e (Tanh x))) ((quad-t e e e e)) :ruleset mine :name "begin-t")
(rule ((quad-t a b c d) (quad-t e f g h) (quad-t i j k l))
      ((quad-t a f k d) (quad-t e j c l) (quad-t i b g h)) :ruleset mine :name "mix-t")""",
    "related by a key": """
(relation keyed-t (i64 T T T T))
(rule ((= e (Tanh x))) ((keyed-t 1 e e e e)) :ruleset mine :name "begin-t")
(rule ((keyed-t n a b c d) (keyed-t n e f g h) (keyed-t n i j k l))
      ((keyed-t n a f k d) (keyed-t n e j c l) (keyed-t n i b g h)) :ruleset mine :name "mix-t")""",
    "a function": """
(function weight-t (T i64 i64) i64 :merge (max old new))
(rule ((= e (Tanh x))) ((set (weight-t e 1 2) 1) (set (weight-t x 2 1) 1)) :ruleset mine :name "begin-t")
(rule ((= u (weight-t a k l)) (= v (weight-t b m n)) (= w (weight-t c o p)))
      ((set (weight-t a (+ k (* 100 m)) (+ l o)) (+ u v)) (set (weight-t b (+ n (* 7 p)) k) w)
       (set (weight-t c o (+ 1 (* l m))) (+ u w))) :ruleset mine :name "mix-t")""",
}


@pytest.mark.parametrize("name", SELF_FEEDING)
def test_tables_of_users_that_feed_themselves_are_foreseen(name):
    """In the second round each of them has tens of billions of matches, and no new e-node."""
    x = esat.vector("x")
    y = x
    for number in range(15):
        y = esat.tanh(y) + float(number)
    rules = "(ruleset mine :tags (fast_run) :soundness real)" + SELF_FEEDING[name]
    with pytest.warns(esat.EsatWarning, match="still had something to add: .*mix-t"):
        function = esat.compile(esat.Graph([x], [y]), rules=rules)
    assert "match limit" in str(function.report)
    assert function.report.rules["begin-t"] >= 15
    expected = np.array([0.25, -1.0])
    for number in range(15):
        expected = np.tanh(expected) + number
    np.testing.assert_allclose(function(np.array([0.25, -1.0])), expected)


def test_a_relation_that_stays_small_is_followed_to_its_end():
    """Transitive closure: what each step reaches is foreseen too high, and must run all the same."""
    x = esat.vector("x")
    y = x
    for _ in range(8):
        y = esat.sin(esat.tanh(y))
    rules = """
(ruleset mine :tags (fast_run) :soundness real)
(relation below-t (T T))
(rule ((= e (Tanh x))) ((below-t e x)) :ruleset mine :name "step-t")
(rule ((= e (Sin x))) ((below-t e x)) :ruleset mine :name "other-step-t")
(rule ((below-t a b) (below-t b c)) ((below-t a c)) :ruleset mine :name "further-t")"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EsatWarning)
        function = esat.compile(esat.Graph([x], [y]), esat.Mode("fast_run", round_limit=10), rules=rules)
    assert "match limit" not in str(function.report)
    assert function.report.rules["further-t"] >= 16 * 17 // 2 - 16
