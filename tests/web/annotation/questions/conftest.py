"""A project with guidelines, and the browser of its manager."""

import pytest


@pytest.fixture
def project():
    from tests.factories import make_project  # noqa: PLC0415  # tables are not known when this file is read

    return make_project(guidelines="As it is.")


@pytest.fixture
def web(project):
    from tests.clients import browser_of  # noqa: PLC0415
    from tests.factories import make_manager  # noqa: PLC0415

    return browser_of(make_manager(project))
