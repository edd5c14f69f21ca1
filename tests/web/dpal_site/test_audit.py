"""What changes something is told by who did it: pages that only show write nothing, whoever looks or sends."""

import re
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver

from annotation.action_words import SENTENCES
from annotation.services.history import UNNOTED
from tests.permission_scene import PEOPLE, Scene, named_patterns, undone
from tests.web.dpal_site.test_permissions import PAGES

pytestmark = pytest.mark.django_db(transaction=True)
WRITES = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?((?:annotation|learner|privacy)_\w+)')
# The line itself, and how often somebody tried.
NOTES = {"annotation_action", "annotation_ratecount"}
# What a page that shows writes down although nobody did it.
BY_ITSELF = {
    "annotation:limit_requests": "a request over its time is marked as lapsed",
    "annotation:retention": "the row of the defaults is made when it is first asked for",
    "learner:draft_plan": "a project is opened to count with and taken back in the same transaction",
}


def written(send: Any) -> set[str]:
    """Return the tables a request writes to."""
    with CaptureQueriesContext(
        connection,
    ) as captured:
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
        person = PEOPLE[PAGES[name].index("+")]
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
