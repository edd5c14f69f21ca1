import contextlib
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, get_resolver, reverse

from annotation.budget.action_words import SENTENCES
from annotation.models import Role
from annotation.models.history import Action
from annotation.people.services import invitations
from annotation.work.services import tokens
from annotation.work.services.history import UNNOTED
from annotation.work.services.tokens import Scope
from dpal_site.accountability import is_page
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user
from tests.permission_rows import PAGES
from tests.permission_scene import PEOPLE, Scene, as_letters, named_patterns, undone

pytestmark = pytest.mark.django_db(transaction=True)
WRITES = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?((?:annotation|learner|privacy)_\w+)')
# The line itself, and how often somebody tried.
NOTES = {"annotation_action", "annotation_ratecount"}
# What a page that shows writes down although nobody did it.
BY_ITSELF = {
    "annotation:limit_requests": "a request over its time is marked as lapsed",
    "annotation:population": "so is a wish for a higher common limit",
    "annotation:retention": "the row of the defaults is made when it is first asked for",
}


def written(send: Any) -> set[str]:
    with CaptureQueriesContext(connection) as captured:
        undone(send)
    found = {table for query in captured for table in WRITES.findall(query["sql"])}
    return found - NOTES


def test_what_writes_leaves_a_sentence_or_is_declared() -> None:
    scene = Scene()
    clients = {person: scene.client(person) for person in PEOPLE}
    looking, sending = {}, {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in PAGES or "+" not in PAGES[name]:
            continue
        person = next(one for one, known in zip(PEOPLE, as_letters(PAGES[name]), strict=True) if "+" in known)
        address = scene.address(name, pattern, person)
        if tables := written(partial(clients[person].get, address)):
            looking[name] = tables
        if tables := written(partial(clients[person].post, address)):
            sending[name] = tables
    told = {*UNNOTED, *BY_ITSELF}
    untold = {name: tables for name, tables in (looking | sending).items() if name not in told}
    # Whoever looks changes nothing, so the log needs no line; whoever sends has a sentence.
    assert {name: tables for name, tables in untold.items() if name in looking} == {}
    assert {name: tables for name, tables in untold.items() if name not in SENTENCES} == {}
    assert set(BY_ITSELF) <= set(looking)
    # The captured statements are the real ones.
    assert {"annotation_membership"} <= sending["annotation:remove_member"]


SENDING = ("POST", "PUT", "PATCH", "DELETE")


def addresses(scene: Scene, person: str = "") -> Iterator[tuple[str, str]]:
    for name, pattern in named_patterns(get_resolver().url_patterns):
        with contextlib.suppress(KeyError, NoReverseMatch):
            yield name, scene.address(name, pattern, person)


def lines_of(client: Client, method: str, address: str) -> list[str]:
    """Return the lines a request leaves in the log, which no one could take back; here they are."""
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    left: list[str] = []

    def send() -> Any:
        answer = client.generic(method, address, "", content_type="application/x-www-form-urlencoded")
        left.extend(Action.objects.values_list("route", flat=True))
        return answer

    undone(send)
    client.cookies.load(cookies)
    return left


@pytest.mark.slow
@pytest.mark.one_in(4)
@pytest.mark.parametrize("method", SENDING)
def test_nobody_fills_the_log_by_doing_nothing(method: str) -> None:
    """The log is never rewritten and outlives whoever is named in it: an empty form of an annotator leaves no line."""
    scene = Scene()
    assert not Action.objects.exists()
    left = {}
    for person in ("outsider", "annotator", "engineer", "participant"):
        client = scene.client(person)
        for name, address in addresses(scene, person):
            if lines := lines_of(client, method, address):
                left[person, name] = lines
    assert left == {}


@pytest.mark.slow
def test_a_page_that_only_shows_takes_nothing_that_is_sent() -> None:
    scene = Scene()
    manager = scene.client("manager")
    for name, address in addresses(scene):
        if not is_page(name):
            continue
        methods = SENDING[1:] if name in SENTENCES or name in UNNOTED else SENDING
        for method in methods:
            answer = undone(partial(manager.generic, method, address))
            assert answer.status_code == 405, (name, method)


def test_what_was_done_already_leaves_no_second_line() -> None:
    project, manager, ann = make_project(), make_user("manager"), make_user("ann")
    add_members(project, manager, role=Role.MANAGER)
    _, secret = invitations.create_invitation(
        project=project, owner=manager, role=Role.ANNOTATOR, maximum_uses=5, lifetime=timedelta(days=1)
    )
    token, _ = tokens.create_token(user=ann, name="t", scopes=[Scope.PROJECTS_READ], lifetime=timedelta(days=1))
    client = browser_of(ann)
    for _time in range(3):
        assert client.post(reverse("annotation:join", args=[secret])).status_code == 302
        assert client.post(reverse("annotation:revoke_token", args=[token.pk])).status_code == 302
    routes = list(Action.objects.order_by("pk").values_list("route", flat=True))
    assert routes == ["annotation:join", "annotation:revoke_token"]


def test_what_another_layer_answered_was_not_done(settings: Any) -> None:
    """Whoever is sent to set up a second factor, or to the other process, has made no token."""
    client = browser_of(make_user("ann"))
    sent = {"name": "t", "scopes": ["projects:read"], "days": "7"}
    settings.SECOND_FACTOR = frozenset({"all"})
    assert client.post(reverse("annotation:tokens"), sent).status_code == 302
    settings.SECOND_FACTOR = frozenset()
    settings.SITE_PART, settings.WEB_URL = "label", "http://web.test"
    assert client.post(reverse("annotation:tokens"), sent).status_code == 307
    assert not Action.objects.exists()
