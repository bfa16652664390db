"""Loops whose body is traced once: values, derivatives and batches against loops of Python's."""

import pickle

import numpy as np
import pytest

import esat
from esat.ops.loops.record import Scan, While

MODES = ["fast_compile", "fast_run", "greedy", "strict", "debug"]
rng = np.random.default_rng(0)


def loop(f, init, xs):
    carry, rows = init, []
    for x in xs:
        carry, y = f(carry, x)
        rows.append(y)
    return carry, np.stack(rows)


def numeric(f, arguments, place, eps=1e-6):
    result = np.zeros_like(arguments[place])
    for index in np.ndindex(result.shape):
        changed = [[np.array(one) for one in arguments] for _ in range(2)]
        changed[0][place][index] += eps
        changed[1][place][index] -= eps
        result[index] = (f(*changed[0]) - f(*changed[1])) / (2 * eps)
    return result


def step(w, u, h, x):
    h = np.tanh(w @ h + u @ x)
    return h, h * x.sum()


def cost(w, u, h, xs, scan=esat.scan):
    h, rows = scan(lambda h, x: step(w, u, h, x), h, xs)
    return (rows**2).sum() + h[0] * h[1]


def by_python(w, u, h, xs):
    return cost(w, u, h, xs, loop)


def arguments(steps=6, size=3):
    # Jacobians of the steps do not commute: a gradient that multiplies them in the wrong order is wrong.
    return (rng.standard_normal((size, size)), rng.standard_normal((size, 2)), rng.standard_normal(size),
            rng.standard_normal((steps, 2)))  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_scan_is_the_loop_in_every_mode(mode):
    given = arguments()
    compiled = esat.jit(cost, mode=mode)
    assert compiled(*given) == pytest.approx(by_python(*given), rel=1e-12)
    assert compiled(*given) == pytest.approx(by_python(*given), rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_differences(mode):
    given = arguments()
    found = esat.grad(esat.jit(cost, mode=mode), argnums=(0, 1, 2, 3))(*given)
    for place, part in enumerate(found):
        assert np.allclose(part, numeric(by_python, given, place), atol=1e-6), place


def test_the_forward_derivative_is_that_of_the_gradient():
    given = arguments()
    tangents = tuple(rng.standard_normal(one.shape) for one in given)
    value, tangent = esat.jvp(cost, given, tangents)
    gradient = esat.grad(cost, argnums=(0, 1, 2, 3))(*given)
    assert value == pytest.approx(by_python(*given))
    assert tangent == pytest.approx(sum((a * b).sum() for a, b in zip(gradient, tangents, strict=True)))


def test_second_derivatives():
    w, u, h, xs = arguments(4)
    found = esat.hessian(cost, argnums=2)(w, u, h, xs)
    gradient = esat.grad(cost, argnums=2)
    for place, unit in enumerate(1e-5 * np.eye(3)):
        row = (gradient(w, u, h + unit, xs) - gradient(w, u, h - unit, xs)) / 2e-5
        assert np.allclose(found[place], row, atol=1e-6)


@pytest.mark.parametrize("mode", ["fast_compile", "fast_run"])
@pytest.mark.parametrize("axes", [(None, None, 0, 0), (0, None, None, None), (None, None, None, 0)])
def test_batches(mode, axes):
    given = [np.stack([one, one * 0.5, -one]) if axis == 0 else one
             for one, axis in zip(arguments(), axes, strict=True)]  # fmt: skip
    found = esat.vmap(esat.jit(cost, mode=mode), in_axes=axes)(*given)
    for place in range(3):
        one = [value if axis is None else value[place] for value, axis in zip(given, axes, strict=True)]
        assert found[place] == pytest.approx(by_python(*one))


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_any_number_of_steps_either_way(steps, reverse):
    xs = rng.standard_normal((steps, 3))

    def body(carry, x):
        return carry * 0.5 + x, carry[0] + x

    carry, rows = esat.jit(lambda h, xs: esat.scan(body, h, xs, reverse=reverse))(np.ones(3), xs)
    wanted, kept = np.ones(3), np.zeros((steps, 3))
    for place in reversed(range(steps)) if reverse else range(steps):
        wanted, kept[place] = body(wanted, xs[place])
    assert np.allclose(carry, wanted, rtol=1e-14)
    assert np.allclose(rows, kept, rtol=1e-14)
    assert rows.shape == (steps, 3)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_gradients_of_few_steps(steps):
    given = (0.7, rng.standard_normal(steps))

    def total(a, xs, scan=esat.scan):
        return scan(lambda y, x: (np.sin(a * y) + x, y), a, xs)[0]

    def plain(a, xs):
        y = a
        for x in xs:
            y = np.sin(a * y) + x
        return y

    by_a, by_xs = esat.grad(total, argnums=(0, 1))(*given)
    assert by_a == pytest.approx(numeric(plain, (np.array(given[0]), given[1]), 0), abs=1e-7)
    assert np.allclose(by_xs, numeric(plain, given, 1), atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_dtypes_stay(dtype):
    xs = (10 * rng.standard_normal((5, 2))).astype(dtype)
    carry, rows = esat.jit(lambda xs: esat.scan(lambda c, x: (c + x, c * x), xs[0], xs))(xs)
    wanted = loop(lambda c, x: (c + x, c * x), xs[0], xs)
    assert carry.dtype == rows.dtype == dtype
    assert np.allclose(carry, wanted[0])
    assert np.allclose(rows, wanted[1])


def test_carries_widen_to_what_steps_give():
    carry, _ = esat.jit(lambda xs: esat.scan(lambda c, x: (c + x, None), 0, xs))(np.float32([0.5, 0.25]))
    assert carry == 0.75
    assert carry.dtype == np.float32


def test_trees_are_handed_on():
    def body(carry, x):
        return {"a": carry["a"] + x["v"], "b": (carry["b"][0] * 2, carry["a"])}, (x["v"] * 2, carry["b"][0])

    def run(v):
        return esat.scan(body, {"a": 0.0, "b": (1, 0.0)}, {"v": v})

    carry, rows = esat.jit(run)(np.array([1.0, 2.0, 4.0]))
    assert (carry["a"], carry["b"]) == (7.0, (8, 3.0))
    assert np.array_equal(rows[0], [2.0, 4.0, 8.0])
    assert np.array_equal(rows[1], [1, 2, 4])


def test_what_does_not_change_in_the_loop_is_computed_before_it():
    compiled = esat.jit(lambda m, xs: esat.scan(lambda c, x: (np.linalg.inv(m) @ c + x, None), xs[0], xs)[0])
    m, xs = rng.standard_normal((2, 2)), rng.standard_normal((4, 2))
    wanted = xs[0]
    for x in xs:
        wanted = np.linalg.inv(m) @ wanted + x
    assert np.allclose(compiled(m, xs), wanted)
    (node,) = [node for node in compiled.latest.graph.apply_nodes if isinstance(node.op, Scan)]
    assert "inv" not in str(node.op)
    assert "solve" not in str(node.op)


def test_a_loop_that_may_not_run_computes_nothing_that_raises():
    compiled = esat.jit(lambda m, n: esat.fori_loop(0, n, lambda i, c: np.linalg.inv(m) @ c, np.ones(2)))
    assert np.array_equal(compiled(np.zeros((2, 2)), 0), [1.0, 1.0])
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((2, 2)), 1)
    assert np.allclose(compiled(2 * np.eye(2), 3), [0.125, 0.125])


def power(n, x):
    return esat.fori_loop(0, n, lambda i, y: np.sin(y) + i * x, x)


def power_by_python(n, x):
    y = x
    for i in range(n):
        y = np.sin(y) + i * x
    return y


def test_one_program_serves_for_all_numbers_of_steps():
    compiled = esat.jit(power)
    for n in (0, 1, 5, -3, 1000):
        assert compiled(n, 0.3) == pytest.approx(power_by_python(n, 0.3), rel=1e-12)
    assert len(compiled.programs) == 1
    gradient = esat.grad(compiled, argnums=1)
    for n in (0, 1, 5):
        slope = (power_by_python(n, 0.3 + 1e-6) - power_by_python(n, 0.3 - 1e-6)) / 2e-6
        assert gradient(n, 0.3) == pytest.approx(slope, rel=1e-6)
    tangent = esat.jvp(lambda x: power(5, x), (0.3,), (1.0,))[1]
    assert tangent == pytest.approx(gradient(5, 0.3))


def newton(a):
    return esat.while_loop(lambda x: abs(x * x - a) > 1e-13 * a, lambda x: (x + a / x) / 2, a, max_steps=60)


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_with_a_condition(mode):
    compiled = esat.jit(newton, mode=mode)
    for a in (1.0, 3.0, 1e6):
        assert compiled(a) == pytest.approx(np.sqrt(a), rel=1e-12)
    assert esat.grad(compiled)(3.0) == pytest.approx(0.5 / np.sqrt(3.0))
    assert esat.jvp(compiled, (3.0,), (2.0,))[1] == pytest.approx(1 / np.sqrt(3.0))


def test_elements_of_a_batch_end_each_for_itself():
    a = np.array([1.0, 3.0, 1e6, 2.5])
    assert np.allclose(esat.vmap(newton)(a), np.sqrt(a), rtol=1e-12)
    gradient = esat.grad(newton)
    assert np.allclose(esat.vmap(gradient)(a), [gradient(one) for one in a])

    def doublings(x):
        state = esat.while_loop(lambda s: s[0] < 100.0, lambda s: (s[0] * 2, s[1] + 1), (x, 0))
        return state[1]

    assert np.array_equal(esat.vmap(doublings)(np.array([1.0, 300.0, 60.0])), [7, 0, 1])


def test_a_condition_may_not_hold_at_all():
    compiled = esat.jit(lambda x: esat.while_loop(lambda v: v < 0.0, lambda v: v + 1.0, x))
    assert compiled(2.0) == 2.0
    assert compiled(-1.5) == 0.5
    assert any(isinstance(node.op, While) for node in compiled.latest.graph.apply_nodes)


def test_the_most_steps_are_an_error_when_they_are_not_enough():
    compiled = esat.jit(lambda x: esat.while_loop(lambda v: v > 0.0, lambda v: v / 2, x, max_steps=5))
    for _ in range(2):
        with pytest.raises(esat.AssertionFailed, match="still holds after 5 steps"):
            compiled(1.0)
    assert compiled(-1.0) == -1.0


def test_a_gradient_asks_for_the_most_steps():
    def unbounded(x):
        return esat.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x)

    with pytest.raises(esat.GradientError, match="max_steps"):
        esat.grad(unbounded)(1.0)
    assert esat.jvp(unbounded, (1.0,), (1.0,)) == (16.0, 16.0)


def test_loops_in_loops():
    def inner(row):
        return esat.scan(lambda c, x: (np.cos(c) * x, c), 1.0, row)[0]

    def outer(rows):
        return esat.scan(lambda c, row: (c + inner(row) * c, inner(row)), 1.0, rows)

    rows = rng.standard_normal((4, 3))
    carry, kept = esat.jit(outer)(rows)
    wanted, values = 1.0, []
    for row in rows:
        c = 1.0
        for x in row:
            c = np.cos(c) * x
        wanted, values = wanted + c * wanted, [*values, c]
    assert carry == pytest.approx(wanted)
    assert np.allclose(kept, values)
    gradient = esat.grad(lambda rows: outer(rows)[0])(rows)

    def plain(rows):
        return float(esat.jit(outer)(rows)[0])

    assert np.allclose(gradient, numeric(plain, (rows,), 0), atol=1e-6)


def test_graphs_of_variables_take_loops():
    x, w = esat.vector("x"), esat.scalar("w")
    last, rows = esat.scan(lambda c, v: (c * w + v, c), 0.0, x)
    compiled = esat.compile(esat.Graph([x, w], [last, rows, esat.grad(last, w)]))
    data = rng.standard_normal(5)
    for given in (data, data[:3], data[:0]):
        found = compiled(given, 0.5)
        c, kept = 0.0, []
        for v in given:
            kept.append(c)
            c = c * 0.5 + v
        assert found[0] == pytest.approx(c)
        assert np.allclose(found[1], kept)


def test_symbolic_sizes_have_one_program():
    compiled = esat.jit(cost, shapes="symbolic")
    gradient = esat.grad(compiled, argnums=3)
    for steps in (2, 5, 9):
        given = arguments(steps)
        assert compiled(*given) == pytest.approx(by_python(*given))
        assert np.allclose(gradient(*given), numeric(by_python, given, 3), atol=1e-6)
    assert len(compiled.programs) == 1


def test_the_trace_of_nobody_is_not_kept():
    compiled = esat.jit(lambda xs: esat.scan(lambda c, x: (c + x, c * x), 0.0, xs)[0])
    assert compiled(np.arange(4.0)) == 6.0
    (node,) = [node for node in compiled.latest.graph.apply_nodes if isinstance(node.op, Scan)]
    assert len(node.outputs) == 1


def test_value_and_gradient_run_the_loop_once():
    both = esat.value_and_grad(cost, argnums=0)
    given = arguments()
    assert both(*given)[0] == pytest.approx(by_python(*given))
    nodes = [node for node in both.latest.graph.apply_nodes if isinstance(node.op, Scan)]
    assert len(nodes) == 2  # forward and backward


def test_equal_loops_are_one():
    def twice(xs):
        return [esat.scan(lambda c, x: (c * 0.5 + x, None), 0.0, xs)[0] for _ in range(2)]

    compiled = esat.jit(twice)
    assert compiled(np.arange(4.0))[0] == compiled(np.arange(4.0))[1]
    assert sum(isinstance(node.op, Scan) for node in compiled.latest.graph.apply_nodes) == 1


def test_graphs_with_loops_are_pickled():
    x = esat.vector("x")
    last, _ = esat.scan(lambda c, v: (np.tanh(c) + v, None), 0.0, x)
    again_x, again = pickle.loads(pickle.dumps((x, last)))
    data = rng.standard_normal(4)
    assert again.eval({again_x: data}) == last.eval({x: data})
    compiled = pickle.loads(pickle.dumps(esat.compile(esat.Graph([x], last))))
    assert compiled(data) == pytest.approx(last.eval({x: data}))


def test_map_stacks_what_each_element_gives():
    rows = rng.standard_normal((5, 4))
    assert np.allclose(esat.jit(lambda r: esat.map(lambda row: np.sort(row)[::-1], r))(rows),
                       np.sort(rows)[:, ::-1])  # fmt: skip


def test_a_value_of_a_step_may_decide_what_it_computes():
    def body(c, x):
        if x > 0:
            c = c + x
        return (c + 1 if x > 3 else c), None

    assert esat.jit(lambda xs: esat.scan(body, 0.0, xs)[0])(np.array([1.0, -2.0, 4.0])) == 6.0

    def left(c, x):
        if x > 0:
            return c + x, None
        return c, None

    with pytest.raises(esat.TracingError, match=r"esat\.where or esat\.ifelse"):
        esat.jit(lambda xs: esat.scan(left, 0.0, xs)[0])(np.ones(3))

    def chosen(c, x):
        return esat.ifelse(x > 0, c + x, c), None

    assert esat.jit(lambda xs: esat.scan(chosen, 0.0, xs)[0])(np.array([1.0, -2.0, 4.0])) == 5.0


class TestMessages:
    def refused(self, error, text, function, *given):
        with pytest.raises(error, match=text) as caught:
            esat.jit(function)(*given)
        return str(caught.value)

    def test_a_carry_that_gets_an_axis(self):
        text = self.refused(
            esat.ShapeError,
            r"scan: the carry\['h'\]: it has 0 axes before a step, and 1 after it.*np.zeros",
            lambda w: esat.scan(lambda c, x: ({"h": w * c["h"]}, None), {"h": 1.0}, None, 3),
            np.ones(2),
        )
        assert "test_loops.py" in text

    def test_a_carry_that_grows(self):
        self.refused(
            esat.ShapeError,
            r"scan: the carry: it has shape \(2,\) before a step, and \(4,\) after it",
            lambda w: esat.scan(lambda c, x: (np.concatenate([c, c]), None), w, None, 3),
            np.ones(2),
        )

    def test_sequences_of_several_lengths(self):
        self.refused(
            esat.ShapeError,
            r"lengths \[2, 3\] differ",
            lambda a, b: esat.scan(lambda c, x: (c, None), 0.0, (a, b)),
            np.ones(2),
            np.ones(3),
        )

    def test_no_number_of_steps(self):
        self.refused(
            esat.CallError,
            "neither xs nor length",
            lambda a: esat.scan(lambda c, x: (c, None), a),
            np.ones(2),
        )

    def test_what_is_no_pair(self):
        self.refused(
            esat.CallError, "returns a pair", lambda a: esat.scan(lambda c, x: c + x, 0.0, a), np.ones(2)
        )

    def test_another_tree(self):
        self.refused(
            esat.CallError,
            "another form",
            lambda a: esat.scan(lambda c, x: ((c, x), None), 0.0, a),
            np.ones(2),
        )

    def test_draws_in_a_step(self):
        stream = esat.random.RandomStream(1)
        self.refused(
            esat.GraphError,
            "the same draws",
            lambda a: esat.scan(lambda c, x: (c + stream.normal(), None), 0.0, a)[0],
            np.ones(2),
        )

    def test_a_condition_with_axes(self):
        self.refused(
            esat.ShapeError,
            "the condition is a scalar",
            lambda a: esat.while_loop(lambda v: v > 0, lambda v: v - 1, a),
            np.ones(2),
        )

    def test_what_is_no_function(self):
        with pytest.raises(esat.CallError, match="body is a function"):
            esat.while_loop(lambda v: v > 0, 3, 1.0)
