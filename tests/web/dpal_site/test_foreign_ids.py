from collections.abc import Callable
from typing import Any

import pytest
from django.urls import get_resolver, reverse
from django.urls.converters import IntConverter, UUIDConverter

from annotation.work.services.tokens import Scope
from tests.permission_rows import BODIES, PAGES, ROUTES
from tests.permission_scene import PEOPLE, Scene, api_routes, as_letters, letter, named_patterns, outcome
from tests.site_walk import send

pytestmark = pytest.mark.django_db(transaction=True)
# Whoever may come here may name any row of the site: groups belong to no project, and work is looked at as a whole.
SITE_WIDE = {
    "api:send_work_again": "whoever runs the site sees all work",
    "api:stop_work": "whoever runs the site sees all work",
    "operations:send_again": "whoever runs the site sees all work",
    "operations:cancel": "whoever runs the site sees all work",
}
# Not ids of rows: every project has a version 1.
NUMBERS = {"version"}


def exchanged(here: dict[str, Any], there: dict[str, Any]) -> list[dict[str, Any]]:
    foreign = [name for name in here if here[name] != there[name]]
    return [here | {name: there[name]} for name in foreign] + ([here | there] if foreign else [])


@pytest.fixture
def both(remembered: Callable[..., tuple[Scene, Scene]]) -> tuple[Scene, Scene]:
    return remembered("two scenes", lambda: (Scene(), Scene("-there")))


def test_no_page_takes_an_id_of_another_project(both: tuple[Scene, Scene]) -> None:
    here, there = both
    clients = {person: here.client(person) for person in PEOPLE}
    tried, let_in, same = 0, [], set()
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in PAGES or name in SITE_WIDE:
            continue
        for person, known in zip(PEOPLE, as_letters(PAGES[name]), strict=True):
            if "+" not in known:
                continue
            own, other = here.values(name, pattern, person), there.values(name, pattern, person)
            same |= {
                (name, part)
                for part, kind in pattern.pattern.converters.items()
                if isinstance(kind, IntConverter | UUIDConverter) and own[part] == other[part]
            }
            for values in exchanged(own, other):
                tried += 1
                got = letter(clients[person], reverse(name, kwargs=values))
                if got != "-":
                    let_in.append((name, person, sorted(part for part in values if values[part] != own[part]), got))
    assert let_in == []
    assert {part for _name, part in same} <= NUMBERS
    assert tried > len(PAGES)


def test_no_route_of_the_api_takes_an_id_of_another_project(both: tuple[Scene, Scene]) -> None:
    here, there = both
    patterns = dict(named_patterns(get_resolver().url_patterns))
    clients = {person: here.with_token(person, list(Scope)) for person in PEOPLE}
    tried, let_in = 0, []
    for name, method in api_routes():
        pattern = patterns[f"api:{name}"]
        if f"api:{name}" in SITE_WIDE:
            continue
        for person, known in zip(PEOPLE, ROUTES[name][0], strict=True):
            if known != "+":
                continue
            own, other = here.values(f"api:{name}", pattern, person), there.values(f"api:{name}", pattern, person)
            for values in exchanged(own, other):
                tried += 1
                to = reverse(f"api:{name}", kwargs=values)
                answer = send(clients[person], name, method, to)
                if outcome(answer) != "-":
                    let_in.append((name, person, answer.status_code))
    assert let_in == []
    assert tried > len(ROUTES)
    assert BODIES.keys() <= ROUTES.keys()
