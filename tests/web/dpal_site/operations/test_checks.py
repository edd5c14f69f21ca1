from datetime import timedelta

import pytest
from celery import Celery
from django.db.models.functions import Now
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from annotation.models import Record
from annotation.questions.services import queue
from dpal_site.models import Heartbeat
from dpal_site.operations import checks
from dpal_site.tasks import heartbeat_task
from tests.factories import make_account, make_annotators, make_project, make_records, open_records, write_settings

pytestmark = pytest.mark.django_db


def samples(client, **headers):
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content
    families = text_string_to_metric_families(answer.content.decode())
    return {(one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples}


def test_alive_asks_nobody(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert Client().get("/healthz").content == b"ok\n"


class TestReadiness:
    def test_all_is_well_once_every_queue_was_heard_of(self, broker, settings):
        assert Client().get("/readyz").status_code == 503
        for name in settings.QUEUES:
            heartbeat_task(name=name)
        answer = Client().get("/readyz")
        assert (answer.status_code, answer.content) == (200, b"database: ok\nbroker: ok\nworker: ok\ndisk: ok\n")

    def test_a_silent_queue_is_named(self, settings):
        for name in ("light", "outside"):
            checks.write_heartbeat(name)
        Heartbeat.objects.create(name="heavy", seen_at=Now() - timedelta(seconds=settings.HEARTBEAT_LIMIT_SECONDS + 9))
        answer = Client().get("/readyz?check=worker")
        assert answer.status_code == 503
        assert answer.content == b"worker: nothing heard for 600 s from queue heavy\n"

    def test_a_full_disk(self, settings):
        settings.DISK_FREE_LIMIT_MEBIBYTES = 2**40
        answer = Client().get("/readyz?check=disk")
        assert answer.status_code == 503
        assert b"MiB free" in answer.content

    def test_a_dead_broker(self, monkeypatch):
        nowhere = Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
        monkeypatch.setattr("dpal_site.operations.checks.current_app", nowhere)
        assert checks.broker() == "no answer"

    def test_an_unknown_check_is_refused_and_not_echoed(self):
        answer = Client().get("/readyz?check=<script>")
        assert answer.status_code == 400
        assert b"script" not in answer.content


class TestMetrics:
    def test_the_queue_and_the_budget(self, broker):
        project = make_project(slug="voices")
        open_records(project, 3)
        queue.claim_next(project=project, user=make_annotators(project, 1)[0])
        found = samples(Client())
        assert found["dpal_queue_depth", ("project", "voices")] == 2
        assert found["dpal_leases", ("project", "voices")] == 1
        assert found["dpal_lease_age_seconds", ("project", "voices")] >= 0
        limit = found["dpal_budget_epsilon_limit", ("account", "pool"), ("project", "voices")]
        assert limit == found["dpal_budget_epsilon_left", ("account", "pool"), ("project", "voices")] > 0
        assert found["dpal_broker_messages", ("queue", "heavy")] == 0

    def test_what_a_project_hides_is_not_counted(self, broker):
        project = make_project(slug="hidden")
        open_records(project, 3)
        queue.claim_next(project=project, user=make_annotators(project, 1)[0])
        names = {"dpal_queue_depth", "dpal_leases", "dpal_lease_age_seconds"}
        assert {name for name, *labels in samples(Client()) if ("project", "hidden") in labels} >= names
        write_settings(project, selection="secret_sample", selection_rate=0.2)
        assert not {name for name, *labels in samples(Client()) if ("project", "hidden") in labels} & names

    def test_the_account_of_a_private_start_is_among_the_budgets(self, broker):
        project = make_project(slug="voices")
        start = make_account(epsilon_limit=2.0)
        make_records(project, ["mine"], role="charged_start", account=start)
        found = samples(Client())
        assert found["dpal_budget_epsilon_left", ("account", "start"), ("project", "voices")] == 2.0

    def test_no_text_reaches_a_scraper(self, broker):
        open_records(make_project())
        assert Record.objects.get().text == "record 0"
        assert b"record 0" not in Client().get("/metrics").content

    def test_without_a_token_only_this_machine_may_read(self):
        assert Client(REMOTE_ADDR="192.0.2.1").get("/metrics").status_code == 403
        assert Client().get("/metrics", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 403

    def test_with_a_token_its_bearer_may(self, settings, broker):
        settings.METRICS_TOKEN = "a long token"
        assert Client().get("/metrics").status_code == 403
        assert Client().get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 403
        assert samples(Client(REMOTE_ADDR="192.0.2.1"), Authorization="Bearer a long token")


def test_every_answer_names_its_request():
    assert len(Client().get("/healthz")["X-Request-ID"]) == 32
    assert Client().get("/healthz", headers={"X-Request-ID": "from-proxy-1"})["X-Request-ID"] == "from-proxy-1"
