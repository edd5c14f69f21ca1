"""A project with lines in its log."""

import pytest


@pytest.fixture
def project():
    from annotation.models.history import Action  # noqa: PLC0415  # tables are not known when this file is read
    from tests.factories import make_project  # noqa: PLC0415

    opened = make_project()
    for actor, route, target in (
        ("ann", "annotation:people", {}),
        ("ben", "learner:retire", {"version": 3}),
        ("=cmd()", "annotation:people", {}),
        ("", "retention", {"records": 5}),
    ):
        Action.objects.create(project=opened, actor=actor, route=route, target=target)
    return opened
