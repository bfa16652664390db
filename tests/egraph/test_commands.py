"""Schedules in egglog's own terms do what their text says."""

from __future__ import annotations

import pytest

from esat.egraph.bindings import native_module
from esat.egraph.commands import quicker, scheduled, unfinished
from esat.egraph.engine import Engine

COUNTING = """
(relation number (i64))
(relation doubled (i64))
(ruleset count)
(ruleset double)
(rule ((number n) (< n 5)) ((number (+ n 1))) :ruleset count :name "count")
(rule ((number n)) ((doubled (* 2 n))) :ruleset double :name "double")
(number 0)
"""


def _rows(schedule: str, translated: bool) -> dict[str, int]:
    """Rows of the tables after a schedule has run."""
    engine = Engine()
    engine.load(COUNTING)
    commands = engine._egraph.parse_program(f"(run-schedule {schedule})")
    engine._egraph.run_program(*(map(quicker, commands) if translated else commands))
    return engine.sizes()


@pytest.mark.parametrize(
    "schedule",
    [
        "(run count)",
        "(seq)",
        "(seq (run count) (run double))",
        "(run count) (run double) (run count)",
        "(saturate (run count))",
        "(saturate (seq (run count) (run double)))",
        "(saturate (run double) (seq (saturate (run count)) (run double)))",
    ],
)
def test_a_schedule_does_what_its_text_says(schedule):
    native = native_module()
    (command,) = Engine().parse(f"(run-schedule {schedule})")
    assert isinstance(command, native.RunSchedule)
    assert _rows(schedule, translated=True) == _rows(schedule, translated=False)


def _rows_after(*commands: object) -> dict[str, int]:
    engine = Engine()
    engine.load(COUNTING)
    engine.execute("(unstable-combined-ruleset both count double)")
    engine.run(commands)
    return engine.sizes()


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("(run {a})", "(run count)"),
        ("(saturate (run {a b}))", "(saturate (run both))"),
        ("(seq (run {none}) (saturate (run {a})) (run {b}))", "(seq (saturate (run count)) (run double))"),
        ("(seq (saturate (run {none})))", "(seq)"),
    ],
)
def test_rule_sets_take_the_places_of_names(program, text):
    names = (("a", "count"), ("b", "double"), ("a b", "both"), ("none", ""))
    command = scheduled(program, names)
    (other,) = Engine().parse(f"(run-schedule {text})")
    assert _rows_after(command) == _rows_after(other)


def test_what_runs_nothing_is_no_part_of_a_schedule():
    native = native_module()
    schedule = scheduled("(seq (saturate (run {a})) (run {b}))", (("a", "x"), ("b", ""))).schedule
    assert isinstance(schedule, native.Repeat)
    assert isinstance(schedule.schedule, native.Run)


def changed(output) -> list[bool]:
    return [iteration.rule_set_report.changed for iteration in output.report.iterations]


@pytest.mark.parametrize(
    ("program", "rest", "rows"),
    [
        (
            "(seq (run {b}) (run {none}) (saturate (run {a})) (run {b}))",
            "(seq (saturate (run {a})) (run {b}))",
            9,
        ),
        (
            "(seq (saturate (run {none})) (saturate (run {b})) (saturate (run {a})))",
            "(seq (saturate (run {a})))",
            1,
        ),
        ("(seq (saturate (run {b})) (run {a}))", "", 1),
        ("(saturate (run {a b}))", "(seq (saturate (run {a b})))", 8),
    ],
)
def test_what_is_saturated_comes_back_before_its_end(program, rest, rows):
    names = {"a": "count", "b": "double", "a b": "both", "none": ""}
    engine = Engine()
    engine.load(COUNTING.replace("(< n 5)", "(< n 20)"))
    engine.execute("(unstable-combined-ruleset both count double)")
    (output,) = engine.run([scheduled(program, tuple(names.items()))])
    assert unfinished(program, names, changed(output)) == rest
    assert engine.sizes()["doubled"] == rows
    while program := unfinished(program, names, changed(output)):
        (output,) = engine.run([scheduled(program, tuple(names.items()))])
    assert not rest or engine.sizes()["number"] == 21


@pytest.mark.parametrize(
    "text",
    [
        "(run-schedule (let-scheduler fuel (back-off :match-limit 3)) (run-with fuel count))",
        "(run-schedule (saturate (run count :until (number 3))))",
        "(run-schedule (repeat 2 (run count)))",
        "(print-size)",
    ],
)
def test_other_commands_are_left_as_they_are(text):
    engine = Engine()
    (command,) = engine._egraph.parse_program(text)
    assert quicker(command) is command


def test_rows_are_counted_over_all_tables():
    engine = Engine()
    engine.load(COUNTING)
    assert engine.rows() == 1
    engine.execute("(run-schedule (saturate (run count)) (run double))")
    assert engine.rows() == 6 + 6 == sum(rows for _, rows in engine.all_sizes())
