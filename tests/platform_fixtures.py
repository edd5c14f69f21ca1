"""Fixtures of studies for every layer: apps are loaded after a `conftest.py` is."""

import pytest


@pytest.fixture
def server(settings):
    from tests.prolific_server import prolific_server  # noqa: PLC0415  # see above

    with prolific_server(settings) as running:
        yield running


@pytest.fixture
def manager():
    from tests.factories import make_user  # noqa: PLC0415  # the same

    return make_user()


@pytest.fixture
def crowd(manager):
    from tests.studies import open_paid_crowd  # noqa: PLC0415  # the same

    return open_paid_crowd(manager)


@pytest.fixture
def study(server, crowd, manager):
    from tests.studies import connect, open_study  # noqa: PLC0415  # the same

    connect(crowd, manager)
    return open_study(crowd, manager)


@pytest.fixture
def published(study):
    from tests.studies import publish  # noqa: PLC0415  # the same

    return publish(study)
