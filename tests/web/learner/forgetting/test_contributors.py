import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Record
from annotation.models.history import Action
from annotation.models.retention import Forgetting
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from learner.rounds.services import forgetting
from tests import learning
from tests.clients import browser_of

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "Anna Nym"


@pytest.fixture
def project(manager):
    opened = learning.open_trusted(manager)
    rows = [["one apple", NAME], ["two pears", NAME], ["a saw", "ben"]]
    learning.upload(opened, rows, ["text", "contributor"])
    return opened


@pytest.fixture
def client(manager):
    return browser_of(manager)


def post(client, project, page, **fields):
    return client.post(reverse(f"learner:{page}", args=[project.slug]), {"contributor": NAME} | fields)


def test_the_preview_says_what_would_happen_and_changes_nothing(client, project) -> None:
    before = list(Record.objects.order_by("pk").values())
    text = post(client, project, "preview_forget").content.decode()
    assert "2 records are emptied" in text
    assert "For these 2 records together" not in text  # no release used them
    assert list(Record.objects.order_by("pk").values()) == before
    assert not Forgetting.objects.exists()


def test_only_a_confirmed_preview_forgets(client, project) -> None:
    assert post(client, project, "forget_now").status_code == 422
    assert not Forgetting.objects.exists()
    assert post(client, project, "forget_now", understood="yes").status_code == 302
    asked = Forgetting.objects.get()
    forgetting.forget_contributor(job_id=asked.job_id)
    assert Record.objects.filter(emptied=True).count() == 2
    page = client.get(reverse("learner:forget", args=[project.slug])).content.decode()
    assert asked.reference in page
    assert NAME not in page


def test_the_log_says_who_asked_and_not_about_whom(client, project) -> None:
    post(client, project, "preview_forget")
    post(client, project, "forget_now", understood="yes")
    lines = list(Action.objects.order_by("pk").values_list("actor", "route", "target"))
    assert lines == [("manager", "learner:preview_forget", {}), ("manager", "learner:forget_now", {})]


def test_a_program_forgets_once_by_one_key(client, manager, project) -> None:
    _, secret = tokens.create_token(user=manager, name="t", scopes=[Scope.DATASETS_WRITE], lifetime=timedelta(days=1))
    program = Client(headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": "k"})
    body = json.dumps({"contributor": NAME})
    address = reverse("api:forget_contributor", args=[project.slug])
    preview = program.post(f"{address}/preview", body, content_type="application/json").json()
    assert (preview["records"], preview["releases"]) == (2, [])
    first = program.post(address, body, content_type="application/json")
    assert first.status_code == 202
    forgetting.forget_contributor(job_id=first.json()["job"])
    again = program.post(address, body, content_type="application/json")
    assert again.json() == first.json()
    (listed,) = program.get(address).json()
    assert listed["state"] == "done"
    assert NAME not in json.dumps(listed)
    refused = Client(headers={"Authorization": f"Bearer {secret}"}).post(address, body, content_type="application/json")
    assert refused.status_code == 409


def run(monkeypatch, *arguments, name=NAME):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{name}\n"))
    out = io.StringIO()
    call_command("forget_contributor", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_previews_and_forgets(project, monkeypatch) -> None:
    said = run(monkeypatch, project.slug, "--dry-run")
    assert "2 records" in said
    assert not Forgetting.objects.exists()
    said = run(monkeypatch, project.slug)
    assert Forgetting.objects.get().reference in said
    assert NAME not in said
    assert Record.objects.filter(emptied=True).count() == 2
    assert Action.objects.get().route == "command:forget_contributor"
    with pytest.raises(CommandError, match="No record"):
        run(monkeypatch, project.slug)
