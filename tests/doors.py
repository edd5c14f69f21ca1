"""The doors by which a choice is met: the page that opens a project, the page of settings, and the API."""

import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from privacy.choices import Choice, Parameter
from tests import openings
from tests.clients import program_of
from tests.declaring import fields_shown


def as_sent(page, *left_out: Any) -> dict[str, Any]:
    """Return what a browser sends of the fields of a page."""
    return {name: value for name, value in fields_shown(page).items() if value not in (None, *left_out)}


def parameter_of(choice: type[Choice], name: str) -> Parameter:
    (found,) = [each for each in choice.parameters() if each.name == name]
    return found


def choose_on_opening(client: Client, choice: type[Choice], preset: str, around: Mapping[str, str] | None = None):
    """Choose it on the page that opens a project, after `around`; return the page's address."""
    url = openings.begin(client, preset)
    client.post(url, openings.sent_by(client.get(url)) | dict(around or {}))
    assert choice.label in client.get(url).content.decode()
    client.post(url, openings.sent_by(client.get(url)) | {choice.kind.key: choice.name})
    return url


def opening_asks_for(client: Client, choice: type[Choice], name: str, preset: str, *, wrong, rule: str, around=None):
    """It shows the parameter's default and texts, and refuses a wrong value; return the names of the other fields."""
    url = choose_on_opening(client, choice, preset, around)
    page, declared = client.get(url), parameter_of(choice, name)
    shown = openings.sent_by(page)
    assert shown[name] in (declared.default, str(declared.default))
    assert declared.label in page.content.decode()
    assert declared.help in page.content.decode()
    needed = {"name": "Kept", "question": "Which is it?", "classes": "one\ntwo"}
    refused = client.post(url, shown | needed | {name: str(wrong), "open": "1"})
    assert (refused.status_code, rule in refused.content.decode()) == (422, True)
    return page.context["form"].fields.keys() - {name}


def settings_page_changes(client: Client, project: Project, choice: type[Choice], name: str, value, *, wrong) -> None:
    """It shows the parameter, changes it in its section with a history, and refuses a wrong value."""
    url = reverse("annotation:configuration", args=[project.slug])
    page = client.get(url)
    assert fields_shown(page)[name] in (project.settings[name], str(project.settings[name]))
    sent = as_sent(page, "false") | {"boxes": page.context["boxes"], "fields": page.context["sent_fields"]}
    assert client.post(url, sent | {name: str(value)}).status_code == 302
    project.refresh_from_db()
    section = project.configuration.document[choice.kind.section]
    assert (section[choice.kind.key], section[name]) == (choice.name, value)
    history = client.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    assert parameter_of(choice, name).label in history
    assert client.post(url, sent | {name: str(wrong)}).status_code == 422


def rest_changes(person: User, project: Project, choice: type[Choice], name: str, value, *, wrong, rule: str) -> dict:
    """It changes the parameter and refuses a wrong value by its rule; return what the list of choices says of it."""
    program = program_of(person)
    url = f"/api/v1/projects/{project.slug}/configuration"
    refused, changed = [
        program.patch(url, json.dumps({"settings": {name: each}}), content_type="application/json")
        for each in (wrong, value)
    ]
    assert (refused.status_code, rule in refused.json()["detail"]) == (422, True)
    assert changed.json()["document"][choice.kind.section][name] == value
    listed = {one["name"]: one for one in program.get(f"/api/v1/choices?kind={choice.kind}").json()}[choice.name]
    assert listed["parameters"]["properties"][name]["maximum"] == parameter_of(choice, name).at_most
    return listed
