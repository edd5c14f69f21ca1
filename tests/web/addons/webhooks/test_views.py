import datetime
import json
import socket
import time

import pytest
import standardwebhooks
from django.conf import settings as site_settings
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from addons.webhooks import events as webhook_events
from addons.webhooks import services as webhooks
from addons.webhooks.models import DeliveryState, Webhook, WebhookDelivery
from annotation.models import Report, ReportKind
from annotation.models.history import Action
from annotation.models.people import OutgoingKey
from annotation.projects.services import lifecycle
from annotation.questions.services import flags, queue
from annotation.work import outgoing
from annotation.work.services import tokens
from learner.errors import LearnerError
from privacy.ledger import services as ledger
from privacy.ledger.selectors import guarantee
from tests import documented, learning
from tests.clients import browser_of
from tests.factories import make_annotators, make_project, make_user, open_records, write_settings
from tests.webhook_receiver import receiving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(tmp_path, settings):
    with receiving(tmp_path) as server:
        settings.WEBHOOK_HOSTS = [server.name]
        settings.WEBHOOK_LOOPBACK_IN_TESTS = server.name
        settings.WEBHOOK_CA_FILE = str(server.certificate)
        yield server


@pytest.fixture
def project(manager):
    return learning.open_trusted(manager)


def test_nothing_on_this_machine_is_allowed_by_default():
    assert site_settings.WEBHOOK_LOOPBACK_IN_TESTS == ""
    assert site_settings.WEBHOOK_HOSTS == []


def test_a_release_is_told_once_signed_and_can_be_sent_again(project, manager, receiver, sent_tasks, tmp_path):
    client, page = browser_of(manager), reverse("webhooks:webhooks", args=[project.slug])
    url = f"https://{receiver.name}/hook"
    added = client.post(page, {"url": url, "events": ["release", "round", "budget"]})
    webhook = Webhook.objects.get()
    secret = webhooks.secret_of(webhook)
    assert secret in added.content.decode()
    assert added["Cache-Control"] == "no-store"
    assert secret not in client.get(page).content.decode()
    assert secret.encode() not in bytes(webhook.salt)

    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    assert webhook_events.record_events() == 2
    assert webhook_events.record_events() == 0
    sent_tasks.clear()
    webhooks.send_due()
    assert sent_tasks == ["addons.webhooks.tasks.send_webhook_task"] * 2
    delivery = WebhookDelivery.objects.get(event="release")
    webhooks.send_delivery(delivery_id=str(delivery.pk))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.answer, delivery.attempts) == (DeliveryState.SENT, "HTTP 204", 1)
    ((headers, body),) = receiver.taken
    told = json.loads(body)
    assert told == {"schema": "dpal-event/1", "event": "release", "project": project.slug, "version": 1}
    # The public library of the standard believes this message, and none that differs.
    verifier = standardwebhooks.Webhook(secret)
    assert verifier.verify(body, headers) == told
    for changed in (body + b" ", body.replace(b"1", b"2")):
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            verifier.verify(changed, headers)
    # So does a receiver that checks as the documents print it.
    documented.write_examples(tmp_path)
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    known = {"WEBHOOK_SECRET": secret} | {name.upper().replace("-", "_"): headers[name] for name in names}
    assert documented.run("check_message.py", tmp_path, known, sent=body).stdout == "genuine\n"

    webhooks.send_delivery(delivery_id=str(delivery.pk))
    assert len(receiver.taken) == 1
    shown = client.get(page).content.decode()
    assert "HTTP 204" in shown
    assert client.post(reverse("webhooks:send_webhook_again", args=[project.slug, delivery.pk])).status_code == 302
    webhooks.send_delivery(delivery_id=str(delivery.pk))
    assert [headers["webhook-id"] for headers, _ in receiver.taken] == [f"msg_{delivery.pk.hex}"] * 2
    assert receiver.taken[1][1] == body

    # At 80 % of the limit, once for each limit.
    account = project.pool_account
    spent = guarantee(account).epsilon_spent
    assert not WebhookDelivery.objects.filter(event="budget").exists()
    webhook_events.BUDGET_SHARE, share = spent / 20.0, webhook_events.BUDGET_SHARE
    try:
        assert webhook_events.record_events() == 1
        assert webhook_events.record_events() == 0
    finally:
        webhook_events.BUDGET_SHARE = share
    assert json.loads(WebhookDelivery.objects.get(event="budget").body)["limit_epsilon"] == 20.0


def test_replaced_keys_change_no_secret_that_a_receiver_knows(project, receiver, settings):
    url = f"https://{receiver.name}/hook"
    made, secret = webhooks.add_webhook(project=project, url=url, events=["release"])

    def message():
        webhooks.write_event(project=project, event="release", subject=str(len(receiver.taken)), facts={"version": 1})
        webhooks.send_delivery(delivery_id=str(WebhookDelivery.objects.get(state=DeliveryState.WAITING).pk))
        headers, body = receiver.taken[-1]
        return body, headers

    settings.SECRET_KEY = "another key of the same length, more or less"
    assert webhooks.secret_of(made) == secret
    tokens.replace_outgoing_key(kept=datetime.timedelta(days=1))
    assert webhooks.secret_of(made) != secret
    for known in (secret, webhooks.secret_of(made)):
        assert standardwebhooks.Webhook(known).verify(*message())
    tokens.replace_outgoing_key(kept=datetime.timedelta())
    OutgoingKey.objects.filter(ends_at__gt=Now()).update(ends_at=Now())
    assert standardwebhooks.Webhook(webhooks.secret_of(made)).verify(*message())
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(secret).verify(*message())


def test_the_signature_is_the_one_the_standards_library_makes():
    """For the secret and message of the standard's example."""
    secret, message = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    moment, body = datetime.datetime(2021, 2, 25, 15, 2, 10, tzinfo=datetime.UTC), '{"test": 2432232314}'
    theirs = standardwebhooks.Webhook(secret).sign(message, moment, body)
    ours = webhooks.signature(secret=secret, message_id=message, moment=int(moment.timestamp()), body=body.encode())
    assert ours == theirs
    assert theirs.startswith("v1,")


def test_what_managers_set_going_is_told_once(project, manager, receiver):
    chosen = ["limit", "upload", "gate", "settings"]
    webhook, _ = webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=chosen)
    dataset = learning.upload(project, [["apple saw", "anna"]], ["text", "contributor"])
    ledger.change_account_limits(
        account=project.pool_account, epsilon_limit=25.0, delta_limit=1e-4, actor=manager, reason="agreed"
    )
    lifecycle.archive_project(project=project)
    webhook_events.record_events()
    assert webhook_events.record_events() == 0
    told = {one.event: json.loads(one.body) for one in WebhookDelivery.objects.filter(webhook=webhook)}
    common = {"schema": "dpal-event/1", "project": project.slug}
    assert told == {
        "limit": common | {"event": "limit", "account": project.pool_account.scope},
        "upload": common | {"event": "upload", "dataset": dataset.pk, "state": "ready"},
        "settings": common | {"event": "settings", "settings": ["state"], "state": "archived"},
    }


def test_an_upload_that_went_through_the_gate_is_told(manager, receiver):
    project = learning.open_crowd(manager)
    webhook, _ = webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=["gate"])
    dataset = learning.upload(project, [[f"play jazz {n}", f"p{n}"] for n in range(9)], ["text", "contributor"])
    assert webhook_events.record_events() == 1
    (delivery,) = WebhookDelivery.objects.filter(webhook=webhook)
    assert json.loads(delivery.body)["dataset"] == dataset.pk


class TestReports:
    def report(self, project):
        (person,) = make_annotators(project, 1)
        asked = open_records(project, 3)
        for kind in (ReportKind.BROKEN, ReportKind.SENSITIVE):
            flags.flag_question(assignment=queue.claim_next(project=project, user=person), kind=kind, comment="secret")
        flags.comment_on(assignment=queue.claim_next(project=project, user=person), comment="secret, too")
        return [query.pk for query in asked]

    def test_a_report_is_told_once_by_the_number_of_its_question(self, receiver):
        project = make_project()
        webhook, secret = webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=["report"])
        asked = self.report(project)
        assert webhook_events.record_events() == 3
        assert webhook_events.record_events() == 0
        told = WebhookDelivery.objects.filter(webhook=webhook)
        common = {"schema": "dpal-event/1", "event": "report", "project": project.slug}
        bodies = sorted((json.loads(one.body) for one in told), key=lambda body: body["question"])
        assert bodies == [common | {"question": number} for number in sorted(asked)]
        webhooks.send_delivery(delivery_id=str(told[0].pk))
        ((headers, body),) = receiver.taken
        assert standardwebhooks.Webhook(secret).verify(body, headers) in bodies

    def test_a_fault_of_one_webhook_keeps_no_other_waiting(self, receiver, monkeypatch):
        project = make_project()
        broken, webhook = (
            webhooks.add_webhook(project=project, url=f"https://{receiver.name}/{name}", events=["report"])[0]
            for name in ("one", "other")
        )
        self.report(project)
        record = webhook_events._record

        def record_or_break(each):
            if each == broken:
                raise LearnerError("a fault")
            return record(each)

        monkeypatch.setattr(webhook_events, "_record", record_or_break)
        with pytest.raises(LearnerError, match="a fault"):
            webhook_events.record_events()
        assert set(WebhookDelivery.objects.values_list("webhook", flat=True)) == {webhook.pk}

    def test_what_a_manager_writes_is_no_report(self, receiver):
        project = make_project()
        webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=["report"])
        (person,), (query,) = make_annotators(project, 1), open_records(project, 1)
        queue.claim_next(project=project, user=person)
        said = {"project": project, "query": query, "annotator": person, "comment": "look again"}
        Report.objects.create(kind=ReportKind.RETURNED, **said)
        assert webhook_events.record_events() == 0

    def test_where_the_choice_is_secret_nobody_is_told(self, receiver):
        project = make_project()
        webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=["report"])
        self.report(project)
        write_settings(project, selection="secret_sample", selection_rate=0.1)
        with pytest.raises(webhooks.WebhookRefused, match="Not with secret selection: messages"):
            webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=["report", "round"])
        assert webhook_events.record_events() == 0


def waiting(project, receiver) -> WebhookDelivery:
    webhook, _ = webhooks.add_webhook(project=project, url=f"https://{receiver.name}/", events=["round"])
    return WebhookDelivery.objects.create(webhook=webhook, event="round", subject="round 1", body="{}")


def test_what_is_not_taken_is_tried_again_with_growing_pauses_and_given_up(project, receiver):
    delivery = waiting(project, receiver)
    receiver.statuses = [500, 302, 404]
    pauses = []
    for _ in range(3):
        webhooks.send_delivery(delivery_id=str(delivery.pk))
        delivery.refresh_from_db()
        pauses.append(delivery.next_at - timezone.now())
        webhooks.send_delivery(delivery_id=str(delivery.pk))
        WebhookDelivery.objects.filter(pk=delivery.pk).update(next_at=Now())
    # The redirect was not followed: three requests, all to the address itself.
    assert len(receiver.taken) == 3
    assert [round(pause.total_seconds(), -1) for pause in pauses] == [30, 60, 120]
    assert (delivery.state, delivery.answer) == (DeliveryState.WAITING, "HTTP 404")
    WebhookDelivery.objects.filter(pk=delivery.pk).update(attempts=webhooks.MAX_ATTEMPTS - 1)
    receiver.statuses = [503]
    webhooks.send_delivery(delivery_id=str(delivery.pk))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.answer) == (DeliveryState.GIVEN_UP, "HTTP 503")


def test_no_redirect_is_followed_wherever_it_leads(project, receiver):
    delivery = waiting(project, receiver)
    # The first would be seen here, if it were followed; the others lead where nothing may be asked.
    leading = (
        f"https://{receiver.name}/followed",
        "http://169.254.169.254/",
        "https://[::ffff:127.0.0.1]/",
        "//0/",
        "/",
    )
    for receiver.location in leading:
        for status in (301, 302, 303, 307, 308):
            receiver.statuses = [status]
            WebhookDelivery.objects.filter(pk=delivery.pk).update(next_at=Now(), attempts=0)
            webhooks.send_delivery(delivery_id=str(delivery.pk))
            delivery.refresh_from_db()
            assert (delivery.state, delivery.answer) == (DeliveryState.WAITING, f"HTTP {status}")
    assert receiver.paths == ["/"] * 5 * len(leading)


def test_a_silent_receiver_delays_its_own_messages_alone_and_each_is_queued_once(
    project, receiver, settings, sent_tasks
):
    settings.WEBHOOK_HOSTS = [*settings.WEBHOOK_HOSTS, "silent.example.org"]
    silent, _ = webhooks.add_webhook(project=project, url="https://silent.example.org/", events=["round"])
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(webhook=silent, event="round", subject=f"round {number}", body="{}") for number in range(1000)
    )
    waiting(project, receiver)
    sent_tasks.clear()
    for _ in range(3):
        webhooks.send_due()
    assert len(sent_tasks) == webhooks.MOST_QUEUED_PER_HOST + 1
    queued = WebhookDelivery.objects.exclude(queued_until=None)
    assert queued.filter(webhook=silent).count() == webhooks.MOST_QUEUED_PER_HOST
    # One whose worker died is queued again once its lease is over.
    queued.update(queued_until=Now() - webhooks.LEASE)
    webhooks.send_due()
    assert len(sent_tasks) == 2 * (webhooks.MOST_QUEUED_PER_HOST + 1)


def test_an_attempt_ends_in_time_however_slowly_the_receiver_answers(project, receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "ATTEMPT_SECONDS", 1.0)
    delivery = waiting(project, receiver)
    receiver.drips, receiver.statuses = True, [200]
    began = time.monotonic()
    webhooks.send_delivery(delivery_id=str(delivery.pk))
    assert time.monotonic() - began < 5
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.queued_until) == (DeliveryState.WAITING, 1, None)


@pytest.mark.parametrize("inside", ["10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0"])
def test_a_name_that_leads_inside_by_now_gets_nothing_and_the_page_says_so(
    project, manager, receiver, settings, monkeypatch, inside
):
    settings.WEBHOOK_HOSTS = ["hooks.example.org"]
    webhook, _ = webhooks.add_webhook(project=project, url="https://hooks.example.org/", events=["round"])
    delivery = WebhookDelivery.objects.create(webhook=webhook, event="round", subject="round 1", body="{}")
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (inside, 443))]
    with monkeypatch.context() as patch:
        patch.setattr(outgoing.socket, "getaddrinfo", lambda *_, **__: found)
        patch.setattr(outgoing.socket, "create_connection", lambda *_, **__: pytest.fail("connected"))
        webhooks.send_delivery(delivery_id=str(delivery.pk))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (DeliveryState.WAITING, 1)
    shown = browser_of(manager).get(reverse("webhooks:webhooks", args=[project.slug])).content.decode()
    assert "leads to an address that is not public" in shown.replace("&#x27;", "'")
    assert receiver.taken == []


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("WEBHOOK_LOOPBACK_IN_TESTS", "", "not public"),
        ("WEBHOOK_HOSTS", [], "not allowed"),
        ("WEBHOOK_CA_FILE", "", "SSLCertVerificationError"),
    ],
)
def test_a_host_that_is_no_longer_trusted_gets_nothing(project, receiver, settings, setting, value, reason):
    delivery = waiting(project, receiver)
    setattr(settings, setting, value)
    webhooks.send_delivery(delivery_id=str(delivery.pk))
    delivery.refresh_from_db()
    assert reason in delivery.answer
    assert receiver.taken == []


def test_a_removed_webhook_hears_nothing_more(project, manager, receiver):
    delivery = waiting(project, receiver)
    client, webhook = browser_of(manager), delivery.webhook
    assert client.post(reverse("webhooks:remove_webhook", args=[project.slug, webhook.pk])).status_code == 302
    assert client.post(reverse("webhooks:remove_webhook", args=[project.slug, webhook.pk])).status_code == 404
    client.post(reverse("webhooks:send_webhook_again", args=[project.slug, delivery.pk]))
    webhooks.send_delivery(delivery_id=str(delivery.pk))
    assert webhook_events.record_events() == 0
    assert receiver.taken == []


def test_the_page_changes_a_webhook_and_replaces_its_secret(project, manager, receiver):
    client = browser_of(manager)
    made, before = webhooks.add_webhook(project=project, url=f"https://{receiver.name}/hook", events=["round"])
    page = reverse("webhooks:change_webhook", args=[project.slug, made.pk])
    assert page in client.get(reverse("webhooks:webhooks", args=[project.slug])).content.decode()
    shown = client.get(page).content.decode()
    assert f'value="{made.url}"' in shown
    assert 'value="round" checked' in shown
    refused = client.post(page, {"url": "https://elsewhere.example/", "events": ["round"]})
    assert refused.status_code == 422
    assert 'role="alert"' in refused.content.decode()
    waiting = WebhookDelivery.objects.create(webhook=made, event="round", subject="round 1", body="{}")
    moved = f"https://{receiver.name}/moved"
    assert client.post(page, {"url": moved, "events": ["round", "limit"]}).status_code == 302
    replace = reverse("webhooks:rotate_webhook_secret", args=[project.slug, made.pk])
    # Without the button's word nothing is done, and nothing noted.
    assert client.post(replace).status_code == 302
    answer = client.post(replace, {"replace": "yes"})
    made.refresh_from_db()
    secret = webhooks.secret_of(made)
    assert secret != before
    assert secret in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    webhooks.send_delivery(delivery_id=str(waiting.pk))
    ((headers, body),) = receiver.taken
    assert receiver.paths == ["/moved"]
    standardwebhooks.Webhook(secret).verify(body, headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(before).verify(body, headers)
    waiting.refresh_from_db()
    assert waiting.url == moved
    done = Action.objects.filter(project=project).order_by("pk").values_list("actor", "route")
    assert list(done) == [
        (manager.username, "webhooks:change_webhook"),
        (manager.username, "webhooks:rotate_webhook_secret"),
    ]
