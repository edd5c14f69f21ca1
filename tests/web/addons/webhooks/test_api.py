import pytest
from django.db import connection

from addons.webhooks import events as webhook_events
from addons.webhooks import services as webhooks
from addons.webhooks.models import Webhook, WebhookDelivery
from annotation.models.history import Action
from annotation.projects.services import lifecycle
from tests import learning
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)
URL = "https://hooks.example/dpal"


@pytest.fixture(autouse=True)
def one_host(settings):
    settings.WEBHOOK_HOSTS = ["hooks.example"]


@pytest.fixture
def project(manager):
    return learning.open_trusted(manager)


def test_the_secret_is_shown_once_and_kept_nowhere(ask, project):
    added = ask("POST", "webhooks", {"url": f" {URL} ", "events": ["release", "channel"]}, key="k")
    assert (added.status_code, added.headers["Cache-Control"]) == (201, "no-store")
    made = Webhook.objects.get()
    told = added.json()
    assert (told["webhook"], told["url"], told["events"]) == (made.pk, URL, ["channel", "release"])
    assert told["secret"] == webhooks.secret_of(made)
    (listed,) = ask("GET", "webhooks").json()
    assert listed == {name: value for name, value in told.items() if name != "secret"}
    # Not even under the key, by which other writes are answered the same again.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM annotation_idempotentanswer")
        assert cursor.fetchone() == (0,)


def test_an_event_that_would_tell_a_secret_is_refused(manager):
    project = learning.open_secret(manager)
    refused = Program(manager, project)("POST", "webhooks", {"url": URL, "events": ["report"]})
    assert refused.status_code == 422
    assert refused.json()["code"].startswith("Not with secret selection: messages")


def test_messages_are_listed_and_sent_again(ask, project, sent_tasks):
    ask("POST", "webhooks", {"url": URL, "events": ["round"]})
    learning.fill_trusted(project)
    learning.work_off(project)
    assert webhook_events.record_events() == 1
    (row,) = ask("GET", "webhooks/deliveries").json()
    assert (row["event"], row["subject"], row["state"], row["attempts"]) == ("round", "round 1", "waiting", 0)
    WebhookDelivery.objects.update(state="given_up", attempts=8, answer="HTTP 500")
    sent_tasks.clear()
    again = ask("POST", f"webhooks/deliveries/{row['delivery']}", {})
    assert (again.status_code, again.json()["state"], again.json()["attempts"]) == (202, "waiting", 0)
    assert sent_tasks == ["addons.webhooks.tasks.send_webhook_task"]
    made = Webhook.objects.get()
    assert ask("DELETE", f"webhooks/{made.pk}").status_code == 204
    assert ask("DELETE", f"webhooks/{made.pk}").status_code == 404
    assert ask("GET", "webhooks").json() == []
    # What was sent stays listed.
    assert [one["answer"] for one in ask("GET", "webhooks/deliveries").json()] == ["removed"]


def test_another_address_takes_what_waits_and_the_secret_stays(ask, project, settings):
    settings.WEBHOOK_HOSTS = ["hooks.example", "other.example"]
    told = ask("POST", "webhooks", {"url": URL, "events": ["round"]}).json()
    made = Webhook.objects.get()
    sent = WebhookDelivery.objects.create(
        webhook=made, event="round", subject="round 1", body="{}", state="sent", sent_at=made.created_at, url=URL
    )
    at = f"webhooks/{made.pk}"
    changed = ask("PATCH", at, {"url": " https://other.example/new "}, key="k")
    assert (changed.status_code, changed.json()["url"]) == (200, "https://other.example/new")
    assert changed.json()["events"] == ["round"]
    assert "secret" not in changed.json()
    made.refresh_from_db()
    assert webhooks.secret_of(made) == told["secret"]
    # Where something went stays true.
    assert [one["url"] for one in ask("GET", "webhooks/deliveries").json()] == [URL]
    refused = [
        {"url": "https://elsewhere.example/"},
        {"events": []},
        {"events": ["none"]},
        {"url": "http://hooks.example/"},
    ]
    assert [ask("PATCH", at, body).status_code for body in refused] == [422] * 4
    made.refresh_from_db()
    assert (made.url, made.events) == ("https://other.example/new", ["round"])
    assert sent.webhook_id == made.pk
    lines = Action.objects.filter(project=project, route="api:change_webhook")
    assert [(line.actor, line.target) for line in lines] == [("manager", {"webhook_id": made.pk})]


def test_an_event_that_is_added_is_told_from_then_on_and_one_that_is_dropped_no_more(ask, project):
    ask("POST", "webhooks", {"url": URL, "events": ["round", "limit"]})
    made = Webhook.objects.get()
    lifecycle.archive_project(project=project)
    lifecycle.unarchive_project(project=project)
    waiting = WebhookDelivery.objects.create(webhook=made, event="limit", subject="entry 1", body="{}")
    assert ask("PATCH", f"webhooks/{made.pk}", {"events": ["round", "settings"]}).json()["events"] == [
        "round",
        "settings",
    ]
    waiting.refresh_from_db()
    assert (waiting.state, waiting.answer) == ("given_up", "removed")
    # Nothing of before, as with a webhook that is new.
    assert webhook_events.record_events() == 0
    lifecycle.archive_project(project=project)
    assert webhook_events.record_events() == 1
    assert WebhookDelivery.objects.get(event="settings").subject.startswith("change ")


def test_a_secret_event_cannot_be_added_later(manager):
    project = learning.open_secret(manager)
    made, _secret = webhooks.add_webhook(project=project, url=URL, events=["round"])
    refused = Program(manager, project)("PATCH", f"webhooks/{made.pk}", {"events": ["report"]})
    assert refused.status_code == 422
    assert refused.json()["code"].startswith("Not with secret selection: messages")


def test_a_secret_is_replaced_and_shown_once(ask, project):
    before = ask("POST", "webhooks", {"url": URL, "events": ["round"]}).json()
    at = f"webhooks/{before['webhook']}/secret"
    replaced = ask("POST", at, key="k")
    assert (replaced.status_code, replaced.headers["Cache-Control"]) == (201, "no-store")
    told = replaced.json()
    assert {**told, "secret": ""} == {**before, "secret": ""}
    assert told["secret"] == webhooks.secret_of(Webhook.objects.get()) != before["secret"]
    again = ask("POST", at, key="k").json()
    assert again["secret"] not in (told["secret"], before["secret"])
    ask("DELETE", f"webhooks/{before['webhook']}")
    assert ask("POST", at).status_code == ask("PATCH", at.removesuffix("/secret"), {}).status_code == 404
    assert Action.objects.filter(project=project, route="api:rotate_webhook_secret", actor="manager").count() == 2
