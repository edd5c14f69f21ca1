"""A ledger counter of the test's own."""

import pytest


@pytest.fixture(autouse=True)
def counted_alone(own_counter: None) -> None:
    pass
