"""Fixtures of the learner's pages: a ledger counter of the test's own, and the manager of its project."""

from pathlib import Path

import pytest

from tests.counting import new_counter


@pytest.fixture(autouse=True)
def own_counter(settings, tmp_path: Path) -> None:
    """Count in a file of the test's own, which would miss the projects of other tests."""
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)


@pytest.fixture
def manager(project):
    return project.created_by
