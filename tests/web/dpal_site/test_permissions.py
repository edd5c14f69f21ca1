import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from annotation.models import Project
from tests import learning
from tests.factories import make_user
from tests.permission_rows import ELSEWHERE, OPEN, OPEN_ANSWERS, PAGES, ROUTES, TWICE
from tests.permission_scene import named_patterns

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_address_has_a_row() -> None:
    names = {name for name, _ in named_patterns(get_resolver().url_patterns)}
    elsewhere = {name for name in names if name == "" or name.startswith(ELSEWHERE)}
    routes = {f"api:{name}" for name in ROUTES}
    assert names - elsewhere == set(PAGES) | OPEN | routes
    # One name, one address: a second one under the name of a page with a row would hide behind it.
    told_apart = [name for name, _ in named_patterns(get_resolver().url_patterns) if name not in elsewhere]
    assert len(told_apart) == len(names - elsewhere) + len(TWICE)


def test_addresses_that_need_no_login_give_nothing_away() -> None:
    """Whoever comes without the secret in the address, and whoever has no part in a project, gets one and the same."""
    project: Project = learning.open_crowd(make_user("owner"))
    outsider = make_user("outsider")
    values = {"secret": "s" * 43, "token": "t" * 43, "slug": project.slug, "revision": "main", "name": "weights.json"}
    got = {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in OPEN:
            continue
        address = reverse(name, kwargs={argument: values[argument] for argument in pattern.pattern.converters})
        for person in (None, outsider):
            client = Client(raise_request_exception=False)
            if person is not None:
                client.force_login(person)
            answer = client.get(address)
            body = b"" if answer.streaming else answer.content
            assert project.name.encode() not in body, name
            if name == "readyz":  # depends on workers and disk
                assert answer.status_code in (200, 503)
                continue
            got.setdefault(name, []).append(answer.status_code)
    assert got == OPEN_ANSWERS
