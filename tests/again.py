"""A second try for a test whose browser went away or did not answer; what a test says of the product is said once.

Among thousands of tests a hiccup of Chromium would refuse a whole change. The run's summary names every test that was
tried again (`RERUN`). Nothing else is: no assertion, no test of the database, no statistical one.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

FOLDERS = {("tests", each) for each in ("browser", "faults", "hosts", "journeys")}
# Errors of Playwright that have no class of their own.
CRASHES = r"\AError: [^\n]*([Cc]rashed|Connection closed)"


def try_again(items: Iterable[pytest.Item], root: Path) -> None:
    """Mark those tests that may be tried a second time."""
    chosen = [
        item
        for item in items
        if item.path.relative_to(root).parts[:2] in FOLDERS and item.get_closest_marker("browser")
    ]
    if not chosen:
        return
    from playwright._impl._errors import TargetClosedError  # noqa: PLC0415  # slow import
    from playwright.sync_api import TimeoutError as NoAnswer  # noqa: PLC0415

    hiccups = [TargetClosedError, NoAnswer, CRASHES]
    for item in chosen:
        # A failure that was raised while one of these was handled is a failure.
        item.add_marker(
            pytest.mark.flaky(reruns=1, only_rerun=hiccups, rerun_except=[AssertionError, pytest.fail.Exception])
        )
