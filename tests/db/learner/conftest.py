"""A ledger counter of the test's own: projects of other tests are gone, and the file would miss them."""

from pathlib import Path

import pytest

from tests.counting import new_counter


@pytest.fixture(autouse=True)
def own_counter(settings, tmp_path: Path) -> None:
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
