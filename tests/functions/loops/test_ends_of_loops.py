"""Ends of loops as programs have them: errors, breaks, steps that may fail, and what stays afterwards."""

import json

import numpy as np
import pytest

import esat
from esat.errors import TracingError
from esat.ops.loops.record import While

START = np.array([3.0, 1.0, 2.0])
POSITIVE = np.array([[2.0, 0.5, 0.0], [0.5, 3.0, 0.1], [0.0, 0.1, 1.5]])


def is_one_op(compiled):
    """Whether a loop of the function is one op."""
    (program,) = compiled.programs.values()
    return any(isinstance(node.op, While) for node in program.graph.toposort())


def same(function, *arguments):
    """The compiled function, whose results are those of the function."""
    compiled = esat.jit(function)
    for _ in range(2):
        found = compiled(*[np.array(one) if isinstance(one, np.ndarray) else one for one in arguments])
        wanted = function(*[np.array(one) if isinstance(one, np.ndarray) else one for one in arguments])
        for one, other in zip(_parts(wanted), _parts(found), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12)
            assert np.asarray(one).dtype == np.asarray(other).dtype
    return compiled


def _parts(value):
    return value if isinstance(value, tuple) else (value,)


def test_one_break_after_another():
    def settled(x, eps):
        change, before, count = np.inf, np.inf, 0
        while change >= eps:
            count += 1
            error = (x**2).sum()
            x = x * 0.7
            change = before - error
            if change < 0:
                print("rises", change)
                break
            before = error
            if change <= eps:
                break
            elif count >= 50:  # noqa: RET508 - as people write it
                print(f"{count} steps, {error:.3f}, %d of %5.2f" % (count, error))
                break
        return x, count

    same(settled, START, 1e-3)
    same(settled, START, -1.0)


def test_a_break_in_the_other_branch_and_numbers_that_are_counted():
    def counted(x):
        count = 0
        for _ in range(100):
            if x.sum() > 1:
                x = x * 0.9
                count += 1
            else:
                break
            x = x - 0.01
        return x, count

    same(counted, START)
    same(counted, START * 0)


def test_errors_in_steps():
    def doubled(a, most):
        total, change, count = a, 5.0, 1
        while change > 1e-12:
            following = a @ total @ a.T + a
            change = np.abs(following - total).max()
            total = following
            count += 1
            if count > most:
                message = "{} steps, {:.2f}"
                raise ValueError(message.format(count, total[0, 0]))
        return total, count

    def found(x, wanted):
        place = 0
        while x[place] != wanted:
            if place >= 2:
                raise LookupError("it is not there")
            else:  # noqa: RET506 - as people write it
                place += 1
        return place

    compiled = same(doubled, POSITIVE * 0.2, 60)
    with pytest.raises(ValueError, match=r"^41 steps, \d+\.\d\d$") as caught:
        compiled(POSITIVE, 40)
    with pytest.raises(ValueError) as wanted:
        doubled(POSITIVE, 40)
    assert str(caught.value) == str(wanted.value)
    compiled = same(found, START, 2.0)
    with pytest.raises(LookupError, match="it is not there"):
        compiled(START, 7.0)


def test_names_beside_an_error_that_others_look_at():
    def checked(x):
        text = "fine"
        try:
            if x.shape[0] < 4:
                code, text = 3, "short"
                reason = f"{text} {code}"
                raise ValueError(reason)
        except ValueError as error:
            return text, code, str(error), reason
        return text, 0, "", ""

    assert esat.jit(checked)(START) == checked(START)


def test_what_comes_before_an_error_that_comes_first():
    def first(x):
        place = 0
        while x[place] < 3:
            if x[place] < 0:
                break
            if x[place] == 2:
                raise ValueError("two")
            place += 1
        return place

    same(first, np.array([0.0, 1.0, -1.0, 2.0]))
    with pytest.raises(ValueError, match="two"):
        esat.jit(first)(np.array([0.0, 1.0, 2.0, -1.0]))


def test_the_last_step_does_not_go_on():
    def reduced(x):
        for _ in range(30):
            if abs(np.linalg.det(x)) < 1e-3:
                break
            x = np.round(np.linalg.inv(np.linalg.inv(x)) - 0.25, 12)
        return x

    assert is_one_op(same(reduced, np.eye(2)))
    same(reduced, np.zeros((2, 2)))  # which has no inverse


def test_values_that_only_later_steps_have():
    def solved(a, x, most):
        for step in range(most):
            rest = a @ x
            if (rest**2).sum() < 1e-6:
                return x, step
            inverse = np.linalg.pinv(a)
            x = x - 0.3 * inverse @ rest
        return x, -1

    def used(a, x):
        for _ in range(20):
            if (x**2).sum() < 1e-2:
                break
            inverse = np.linalg.pinv(a)
            x = 0.5 * inverse @ x
        return x + inverse[0]

    compiled = same(solved, POSITIVE, START, 80)
    assert is_one_op(compiled)
    same(solved, POSITIVE, START * 0, 80)
    with pytest.raises((TracingError, UnboundLocalError)):
        esat.jit(used)(POSITIVE, START * 0)


def test_a_name_that_is_assigned_what_it_stood_for():
    def relaxed(p, b):
        for _ in range(20):
            before = p.copy()
            p[1:-1] = 0.5 * (before[2:] + before[:-2]) - b[1:-1]
        return p

    def flow(u, p, least):
        change, count = 1.0, 0
        while change > least:
            before = u.copy()
            p = relaxed(p, u * 0.01)
            u[1:-1] = before[1:-1] * 0.9 + p[1:-1] * 0.01
            change = np.abs(u - before).max()
            count += 1
        return u, p, count

    same(flow, np.linspace(1, 2, 10), np.linspace(2, 1, 10), 0.03)


class Seen:
    """Objects whose loops may be seen, beside others that may not."""

    shared: list[int] = []  # noqa: RUF012 - it is to be shared

    def __init__(self):
        self.count, self.rate, self.log = 0, 0.01, []

    def show(self, x):
        return json.dumps(x.tolist())

    def raised(self):
        self.count += 1

    def settled(self, x):
        for _ in range(150):
            following = np.cos(x)
            if abs(following - x).max() < self.rate:
                break
            x = following
        return following

    def counting(self, x):
        for _ in range(30):
            self.raised()
            x = x * 0.9 + self.count
        return x

    def logging(self, x):
        for step in range(30):
            self.log.append(step)
            x = x * 0.9 + len(self.log)
        return x

    def writing(self, x):
        texts = []
        for _ in range(12):
            x = np.cos(x)
            texts.append(json.dumps(len(texts)))
        return x, len(texts)


class Derived(Seen):
    """One that shares a list with its base."""

    def sharing(self, x):
        for step in range(30):
            x = x * 0.9 + len(self.shared)
            self.shared.append(step)
        return x


def test_code_of_libraries_that_a_loop_does_not_run_hides_nothing():
    compiled = same(lambda x: Seen().settled(x), START)
    assert is_one_op(compiled)


@pytest.mark.parametrize("name", ["counting", "logging", "writing", "sharing"])
def test_what_steps_change_is_seen(name):
    def run(x):
        Derived.shared.clear()
        return getattr(Derived(), name)(x)

    same(run, START)


def test_texts_with_values_are_printed_and_raised_only():
    for function in (
        lambda x: f"{x.sum()}",
        lambda x: [str(x.sum()), x],
        lambda x: x if f"{x.sum():.1f}" == "6.0" else -x,
        lambda x: {"6.0": x}["%.1f" % x.sum()],  # noqa: UP031
    ):
        with pytest.raises(TracingError, match="printed and raised only"):
            esat.jit(function)(START)
    assert esat.jit(lambda x: f"{x.shape} %s" % x.dtype)(START) == "(3,) float64"
