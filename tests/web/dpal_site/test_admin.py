import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.staticfiles import finders
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from annotation.data.services import retention
from annotation.models import ApiToken, Assignment, Encounter, GateRun, Label, Query, Record, RecordPost, Report
from annotation.models.history import Action
from annotation.models.retention import Deletion, Forgetting
from learner.models import ModelRelease, SecretDraw
from privacy.ledger.models import BudgetAccount, LedgerEntry
from tests import learning
from tests.clients import browser_of
from tests.factories import make_candidates, make_project, make_user, write_settings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_counter")]
OURS = ("annotation", "learner", "privacy", "dpal_site", *settings.ADDONS)
# What an administrator is there for: who is who, and who does what.
WRITABLE = {"annotation.membership"}
# An administrator of the site need not be inside a project's boundary.
NEVER_SHOWN = (Record, RecordPost, Query, Assignment, Report, Encounter, SecretDraw)


@pytest.fixture
def superuser():
    return make_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def client(superuser):
    return browser_of(superuser)


def registered(*, writable: bool) -> list[tuple[type[Any], Any]]:
    return [
        (model, page)
        for model, page in admin.site._registry.items()
        if model._meta.app_label in OURS and (model._meta.label_lower in WRITABLE) == writable
    ]


def test_facts_are_registered_and_nobody_changes_them(superuser) -> None:
    request = RequestFactory().get("/")
    request.user = superuser
    read_only = registered(writable=False)
    assert {BudgetAccount, LedgerEntry, Label, Action, ModelRelease} <= {model for model, _ in read_only}
    for model, page in read_only:
        assert not page.has_add_permission(request), model
        assert not page.has_change_permission(request), model
        assert not page.has_delete_permission(request), model
        assert page.has_view_permission(request), model
        assert "delete_selected" not in page.get_actions(request), model
    assert {model._meta.label_lower for model, _ in registered(writable=True)} == WRITABLE


def test_what_lies_inside_a_project_is_not_there() -> None:
    assert [model for model in NEVER_SHOWN if admin.site.is_registered(model)] == []
    label = admin.site._registry[Label]
    assert "choice" not in (*label.list_display, *(label.fields or ()))
    for model, hidden in ((ApiToken, "digest"), (Forgetting, "contributor")):
        page = admin.site._registry[model]
        assert hidden in (page.exclude or ())
        assert hidden not in page.list_display


@pytest.fixture
def full_site(superuser) -> None:
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    Action.objects.create(project=project, actor="a", route="r")
    values = {"project": project, "actor": "a"}
    Forgetting.objects.create(
        job=project.jobs.create(kind="forget"), reference="0" * 32, finished_at=timezone.now(), **values
    )
    Deletion.objects.create(job=project.jobs.create(kind="delete"), keep_releases=True, **values)
    retention.retention_of(project)
    ApiToken.objects.create(user=superuser, name="t", digest="0" * 64, expires_at=timezone.now())
    make_candidates(make_project(oracle="crowd"), ["a text"])
    assert GateRun.objects.exists()
    write_settings(project, lease_seconds=601)


def test_a_browser_finds_every_file_a_page_names_and_asks_for_no_other_icon(client, superuser) -> None:
    """Without an icon named, it asks for /favicon.ico, which is nowhere."""
    user = reverse("admin:auth_user_change", args=[superuser.pk])
    pages = [reverse(f"admin:{name}") for name in ("index", "auth_user_changelist", "auth_user_add")]
    for address in [*pages, user, reverse("admin:auth_user_delete", args=[superuser.pk])]:
        page = client.get(address).content.decode()
        assert re.search(r'<link rel="icon" href="/static/favicon[^"]*\.svg"', page), address
        files = re.findall(r'(?:href|src)="/static/([^"?]+)', page)
        assert files, address
        assert [name for name in files if finders.find(name) is None] == [], address


def contents(model: type[Any]) -> list[dict[str, Any]]:
    return list(model._default_manager.order_by("pk").values())


def writing_tries(model: type[Any], page: Any, row: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    fields = {field.name: "1" for field in model._meta.concrete_fields}
    listed, change = reverse(f"{name}_changelist"), reverse(f"{name}_change", args=[row.pk])
    for button in ("_save", "_continue", "_addanother", "_saveasnew"):
        yield change, {**fields, button: "1"}
        yield change + "?_popup=1", {**fields, button: "1", "_popup": "1"}
    yield reverse(f"{name}_add"), {**fields, "_save": "1"}
    yield reverse(f"{name}_add") + "?_popup=1", {**fields, "_save": "1", "_popup": "1"}
    yield reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}
    yield reverse(f"{name}_delete", args=[row.pk]) + "?_to_field=id&_popup=1", {"post": "yes", "_popup": "1"}
    yield reverse(f"{name}_history", args=[row.pk]), {"post": "yes"}
    for action in {"delete_selected", *admin.site._actions, *(str(each) for each in page.actions or ())}:
        yield listed, {"action": action, "_selected_action": [row.pk], "post": "yes", "index": "0"}
        yield listed, {"action": action, "_selected_action": [row.pk], "select_across": "1", "post": "yes"}
    rows = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(row.pk), "_save": "1"}
    yield listed, rows | {f"form-0-{field}": "1" for field in fields}


@pytest.mark.slow
def test_every_way_of_writing_is_refused_and_changes_nothing(client, full_site) -> None:
    seen = 0
    for model, page in registered(writable=False):
        assert list(page.inlines) == [], model
        assert tuple(page.list_editable) == (), model
        row = model._default_manager.order_by("pk").first()
        if row is None:
            continue
        seen += 1
        before = contents(model)
        for address, sent in writing_tries(model, page, row):
            status = client.post(address, sent).status_code
            # A list that is sent something shows itself again.
            listed = address == reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            history = address.endswith("/history/")
            assert status == 403 or ((listed or history) and status in (200, 302)), (model, address, sent, status)
            after = contents(model)
            # The log says that somebody sent something; that is a line more, and none changed.
            assert (after[: len(before)] if model is Action else after) == before, (model, address, sent)
    assert seen >= 15
    assert not LogEntry.objects.exists()


def test_every_page_opens(client, full_site) -> None:
    seen = 0
    for model, _page in registered(writable=False):
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        row = model._default_manager.order_by("pk").first()
        assert client.get(reverse(f"{name}_changelist")).status_code == 200, model
        assert client.get(reverse(f"{name}_add")).status_code == 403, model
        if row is not None:
            seen += 1
            assert client.get(reverse(f"{name}_change", args=[row.pk])).status_code == 200, model
            assert client.get(reverse(f"{name}_history", args=[row.pk])).status_code == 200, model
    assert seen >= 15
