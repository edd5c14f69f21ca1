"""The manager who opens and changes projects here, and their browser."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def manager():
    from tests.factories import make_user  # noqa: PLC0415  # tables are not known when this file is read

    return make_user("manager", is_superuser=True)


@pytest.fixture
def client(client, manager):
    client.force_login(manager)
    return client


@pytest.fixture
def declared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the choice that a test module names `DECLARED`."""
    from tests.declaring import declaring  # noqa: PLC0415  # tables are not known when this file is read

    with declaring(request.module.DECLARED):
        yield
