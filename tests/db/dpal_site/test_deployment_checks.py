from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from celery import current_app
from celery.signals import task_prerun
from django.conf import settings
from django.core.checks import run_checks
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils.module_loading import import_string

from addons.webhooks import services as webhooks
from annotation.models import DueLook
from annotation.work.services import looks
from dpal_site import clock
from dpal_site.models import SentTask
from dpal_site.operations.deployment_checks import KEEPS_OUT, check_page_limit, check_statement_log
from learner.rounds.services import loop
from tests import learning, streaming
from tests.factories import make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled(settings):
    settings.DATABASE_POOLER, settings.SITE_PART = "transaction", "web"
    return settings


def give_a_limit(limit):
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])


def remarked(databases=("default",)):
    return [warning.id for warning in check_page_limit(None, databases)]


@pytest.mark.parametrize("part", ["web", "label"])
def test_pages_without_a_time_limit_are_remarked(pooled, part):
    pooled.SITE_PART = part
    give_a_limit("0")
    assert remarked() == ["dpal.W003"]
    give_a_limit("20s")
    assert remarked() == []


@pytest.mark.parametrize(("setting", "value"), [("DATABASE_POOLER", ""), ("SITE_PART", "")])
def test_workers_and_sessions_of_their_own_need_none(pooled, setting, value):
    """A worker's statements take as long as its work, and without a pooler the web server sets the limit itself."""
    give_a_limit("0")
    setattr(pooled, setting, value)
    assert remarked() == []


def test_the_database_is_asked_only_where_it_is_named(pooled):
    give_a_limit("0")
    assert "dpal.W003" in [warning.id for warning in run_checks(databases=["default"])]
    assert "dpal.W003" not in [warning.id for warning in run_checks()]


def test_a_database_that_is_away_is_remarked_by_others(pooled, monkeypatch):
    @contextmanager
    def away():
        raise OperationalError("away")
        yield

    monkeypatch.setattr(connection, "cursor", away)
    assert remarked() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_error_verbosity", "default"),
        ("log_min_error_statement", "error"),
        ("log_statement", "mod"),
        ("log_min_duration_statement", "250"),
    ],
)
def test_a_server_whose_log_quotes_rows_is_remarked(name, value):
    """What the embedded server is started with passes; Postgres's own defaults write refused rows into the log."""
    assert check_statement_log(None, ["default"]) == []
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
    (warning,) = check_statement_log(None, ["default"])
    assert warning.id == "dpal.W005"
    assert f"{name}=" in warning.hint
    assert check_statement_log(None, None) == []


def test_the_server_of_the_containers_keeps_rows_out_of_its_log():
    started = (Path(__file__).parents[3] / "docker-compose.yml").read_text()
    assert all(
        f"-c {name}={KEEPS_OUT[name][0]}" in started for name in ("log_error_verbosity", "log_min_error_statement")
    )


class TestWaitingTasks:
    def test_one_that_waits_is_not_sent_again(self):
        assert clock.note_sent("advance-projects", seconds=30)
        assert not clock.note_sent("advance-projects", seconds=30)
        assert clock.note_sent("write-letters", seconds=30)

    def test_one_that_was_taken_is(self):
        assert clock.note_sent("advance-projects", seconds=30)
        clock.note_taken("advance-projects")
        assert clock.note_sent("advance-projects", seconds=30)

    def test_one_that_was_lost_is_once_it_has_expired(self):
        assert clock.note_sent("advance-projects", seconds=30)
        SentTask.objects.update(sent_at=Now() - timedelta(seconds=31))
        assert clock.note_sent("advance-projects", seconds=30)

    @pytest.mark.django_db(transaction=True)
    def test_a_queue_that_nobody_serves_holds_one_of_each(self, broker, tmp_path):
        sending = clock.Clock(current_app, schedule_filename=str(tmp_path / "schedule"))
        entries = [sending.schedule[name] for name in settings.CELERY_BEAT_SCHEDULE]
        for _ in range(3):
            for entry in entries:
                sending.apply_entry(entry)
        with redis.Redis.from_url(broker) as client:
            waiting = sum(client.llen(queue) for queue in settings.QUEUES)
        assert waiting == len(entries)

    def test_each_expires_and_says_what_it_is(self):
        for name, entry in settings.CELERY_BEAT_SCHEDULE.items():
            assert entry["options"]["expires"] >= entry["schedule"]
            assert entry["options"]["headers"] == {"clock_name": name}

    def test_a_worker_says_that_it_took_one(self):
        clock.note_sent("heartbeat-light", seconds=30)
        request = SimpleNamespace(clock_name="heartbeat-light")
        task = SimpleNamespace(name="dpal_site.tasks.heartbeat_task", request=request)
        task_prerun.send(sender=None, task_id="1", task=task)
        assert not SentTask.objects.exists()


def idle_projects(number):
    for place in range(number):
        opened = streaming.open_stream if place % 5 == 4 else learning.open_trusted
        project = opened(make_user())
        webhooks.add_webhook(project=project, url="https://hooks.example/", events=["round", "release"])


def statements_of(entry):
    with CaptureQueriesContext(connection) as captured:
        import_string(entry["task"])(**entry.get("kwargs", {}))
    return len(captured)


def test_the_number_of_idle_projects_costs_the_clock_nothing(broker, settings):
    settings.WEBHOOK_HOSTS = ["hooks.example"]
    # What has a share of the projects looked at anew is in proportion to them, once an hour.
    entries = {name: one for name, one in settings.CELERY_BEAT_SCHEDULE.items() if name != "look-again"}
    counted = []
    for number in (5, 45):
        idle_projects(number)
        for _ in range(-(-number // looks.MOST_LOOKS)):
            loop.advance_projects()
        assert not DueLook.objects.filter(due_at__lte=Now()).exists()
        for one in entries.values():
            statements_of(one)
        counted.append({name: statements_of(one) for name, one in entries.items()})
    assert counted[0] == counted[1]
    assert counted[1]["advance-projects"] <= 20
