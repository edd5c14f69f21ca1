"""One site with everything in it, read and written to as everybody: who gets in, pages, answers, headers and files."""

import json
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import get_resolver

from annotation.work.reads import Reader
from annotation.work.services.tokens import Scope
from dpal_site.api import api
from tests.observing import looked_up, names_in
from tests.permission_rows import BODIES, FILES, PAGES, ROUTES, SENT
from tests.permission_scene import (
    PEOPLE,
    Scene,
    api_routes,
    letters_of,
    look,
    named_patterns,
    outcome,
    send_nothing,
    undone,
)

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
    name: str
    person: str
    templates: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Walk:
    """A site, and all that was read there.

    `let_in` has the letters of each page, one text for each of `PEOPLE`; `alone` and `lacking` those of each route, for
    programs that hold the one scope it needs, and all scopes but that one.
    """

    scene: Scene
    pages: list[Page] = field(default_factory=list)
    answers: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: set[str] = field(default_factory=set)
    files: list[tuple[str, str, frozenset[str]]] = field(default_factory=list)
    let_in: dict[str, list[str]] = field(default_factory=dict)
    alone: dict[str, list[str]] = field(default_factory=dict)
    lacking: dict[str, list[str]] = field(default_factory=dict)


def walk_through(scene: Scene) -> Walk:
    found = Walk(scene)
    for person in PEOPLE:
        try_pages(found, person)
        try_routes(found, person)
    read_files(found)
    return found


def try_pages(walk: Walk, person: str) -> None:
    client = walk.scene.client(person)
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in PAGES:
            continue
        address = walk.scene.address(name, pattern, person)
        with looked_up() if person in OTHERS else nullcontext(set[str]()) as names:
            looked = look(client, address)
        templates = frozenset(one.name for one in getattr(looked, "templates", []) if one.name)
        if looked.status_code == 200 or (templates and person in OTHERS):
            walk.pages.append(Page(name, person, templates, frozenset(names)))
        walk.headers.update(looked.headers)
        walk.let_in.setdefault(name, []).append(letters_of(looked, send_nothing(client, address)))


def try_routes(walk: Walk, person: str) -> None:
    patterns = dict(named_patterns(get_resolver().url_patterns))
    needs = {needed for _row, needed in ROUTES.values()}
    everything = walk.scene.with_token(person, list(Scope))
    alone = {needed: walk.scene.with_token(person, [needed]) for needed in needs}
    lacking = {needed: walk.scene.with_token(person, [one for one in Scope if one != needed]) for needed in needs}
    for name, method in api_routes():
        needed, address = ROUTES[name][1], walk.scene.address(f"api:{name}", patterns[f"api:{name}"], person)
        response = send(alone[needed], name, method, address)
        walk.headers.update(response.headers)
        walk.alone.setdefault(name, []).append(letter := outcome(response))
        walk.lacking.setdefault(name, []).append(outcome(send(lacking[needed], name, method, address)))
        if letter == "+":
            # Who is let in is answered with every scope: none of them may tell more than the role does.
            response = send(everything, name, method, address)
            walk.headers.update(response.headers)
        written = not response.streaming and response.headers["Content-Type"].startswith("application/json")
        if response.status_code < 400 and written and response.content:
            walk.answers.append((name, person, json.loads(response.content)))


def send(client: Client, name: str, method: str, address: str) -> Any:
    if name in FILES:
        return undone(lambda: client.post(address, SENT | {"file": SimpleUploadedFile(*FILES[name])}))
    body = json.dumps(BODIES.get(name, {}))
    return undone(lambda: client.generic(method, address, body, content_type="application/json"))


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
    found = {}
    for methods in api.get_openapi_schema()["paths"].values():
        for operation in methods.values():
            told = [operation["responses"][status] for status in operation["responses"] if int(status) < 300]
            kinds = [one.get("content", {}).get("application/json", {}).get("schema") for one in told]
            found[operation["operationId"].rpartition("_api_")[2]] = next((kind for kind in kinds if kind), {})
    return found
