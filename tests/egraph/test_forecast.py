"""Extrapolation of run times."""

from esat.egraph.forecast import Forecast


def test_the_square_of_the_nodes():
    forecast = Forecast()
    assert forecast.seconds("rules", 100) == 0.0
    forecast.record("rules", 0.1, 1000)
    assert forecast.seconds("rules", 3000) == 0.1 * 9
    assert forecast.seconds("rules", 500) == 0.1


def test_the_trend_of_faster_growth():
    forecast = Forecast()
    forecast.record("rules", 0.04, 1700)
    forecast.record("rules", 0.4, 5000)
    assert 3.9 < forecast.seconds("rules", 7000) < 4.1


def test_short_runs_are_noise():
    forecast = Forecast()
    forecast.record("rules", 1e-5, 10)
    forecast.record("rules", 4e-3, 10)
    assert forecast.seconds("rules", 10) == 4e-3


def test_a_run_that_others_held_up_is_no_trend():
    forecast = Forecast()
    forecast.record("rules", 0.002, 20)
    forecast.record("rules", 0.3, 60)
    assert forecast.seconds("rules", 250) == 0.6
    forecast.record("rules", 0.002, 250)
    assert forecast.seconds("rules", 250) == 0.002
    forecast.record("rules", 0.3, 2000)
    assert forecast.seconds("rules", 2000) > 10
