"""One site with everything in it, read as everybody: pages, answers, headers and files."""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import get_resolver

from annotation.people.services.tokens import Scope
from dpal_site.api import api
from dpal_site.observables.kinds import Reader
from tests.observing import looked_up, names_in
from tests.permission_scene import PEOPLE, Scene, api_routes, named_patterns, undone
from tests.web.dpal_site.test_permissions import BODIES
from tests.web.dpal_site.test_permissions import FILES as SENT_FILES
from tests.web.dpal_site.test_permissions import PAGES as PERMITTED

ROLES = {
    "anonymous": Reader.OUTSIDER,
    "outsider": Reader.OUTSIDER,
    "annotator": Reader.ANNOTATOR,
    "engineer": Reader.ENGINEER,
    "manager": Reader.MANAGER,
    "administrator": Reader.OPERATOR,
    "participant": Reader.PARTICIPANT,
    "reviewer": Reader.REVIEWER,
}
OTHERS = [person for person in PEOPLE if person not in ("manager", "administrator")]
# What says nothing: a field that is for others is there, and empty.
EMPTY = ("", None, [], {})
WIDGETS = "django/forms/"
RELEASE_FILES = (
    "weights.json",
    "features.json",
    "samples.json",
    "privacy.json",
    "manifest.json",
    "card.md",
    "model.onnx",
    "model.skops",
)


@dataclass(frozen=True, slots=True)
class Page:
    """What one person got at one address."""

    name: str
    person: str
    templates: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Walk:
    """A site, and all that was read there."""

    scene: Scene
    pages: list[Page]
    answers: list[tuple[str, str, Any]]
    headers: set[str]
    files: list[tuple[str, str, frozenset[str]]]


def walk_through(scene: Scene) -> Walk:
    """Read one site as everybody."""
    found = Walk(scene, [], [], set(), [])
    for person in PEOPLE:
        read_pages(found, person)
        read_answers(found, person)
    read_files(found)
    return found


def read_pages(walk: Walk, person: str) -> None:
    client = walk.scene.client(person)
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in PERMITTED:
            continue
        address = walk.scene.address(name, pattern, person)
        with looked_up() if person in OTHERS else nullcontext(set[str]()) as names:
            response = undone(lambda client=client, address=address: client.get(address))
        templates = frozenset(one.name for one in getattr(response, "templates", []) if one.name)
        if response.status_code == 200 or (templates and person in OTHERS):
            walk.pages.append(Page(name, person, templates, frozenset(names)))
        walk.headers.update(response.headers)


def read_answers(walk: Walk, person: str) -> None:
    client, patterns = walk.scene.with_token(person, list(Scope)), dict(named_patterns(get_resolver().url_patterns))
    for name, method in api_routes():
        address = walk.scene.address(f"api:{name}", patterns[f"api:{name}"], person)
        response = undone(lambda name=name, method=method, address=address: send(client, name, method, address))
        walk.headers.update(response.headers)
        written = not response.streaming and response.headers["Content-Type"].startswith("application/json")
        if response.status_code < 400 and written and response.content:
            walk.answers.append((name, person, json.loads(response.content)))


def send(client: Client, name: str, method: str, address: str) -> Any:
    if name in SENT_FILES:
        return client.post(address, {"file": SimpleUploadedFile(*SENT_FILES[name])})
    return client.generic(method, address, json.dumps(BODIES.get(name, {})), content_type="application/json")


def read_files(walk: Walk) -> None:
    base = f"/projects/{walk.scene.project.slug}"
    addresses = {f"{name}.csv": f"/dashboard/{name}.csv" for name in ("spending", "purposes", "releases")}
    addresses |= {f"statement.{kind}": f"/budget/statement.{kind}" for kind in ("csv", "json")}
    addresses |= {name: f"/releases/1/files/{name}" for name in RELEASE_FILES}
    client = walk.scene.client("engineer")
    for name, address in addresses.items():
        response = client.get(base + address)
        assert response.status_code == 200, name
        walk.headers.update(response.headers)
        walk.files.append((name, "engineer", frozenset(names_in(response))))


@cache
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = api.get_openapi_schema()["components"]["schemas"]
    return found


@cache
def answer_schemas() -> dict[str, Any]:
    """Return what each route answers when it does what it is asked."""
    found = {}
    for methods in api.get_openapi_schema()["paths"].values():
        for operation in methods.values():
            told = [operation["responses"][status] for status in operation["responses"] if int(status) < 300]
            kinds = [one.get("content", {}).get("application/json", {}).get("schema") for one in told]
            found[operation["operationId"].rpartition("_api_")[2]] = next((kind for kind in kinds if kind), {})
    return found
