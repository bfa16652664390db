"""A plugin of pytest: each failure is told at once, for runs that may be ended before they are done."""

from __future__ import annotations

import os

import pytest

LINES = 14
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
"""Workers hand their reports to the process that prints."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print the end of what a failed test says."""
    if not report.failed or _IS_WORKER:
        return
    said = report.longreprtext.strip().splitlines()
    told = [line for line in said if line.startswith("E ")] or said
    print(f"\nFAILED {report.nodeid}", *told[:LINES], *said[-2:], sep="\n  ", flush=True)
