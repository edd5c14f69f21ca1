from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.db import OperationalError, connection

from dpal_site.operations.deployment_checks import KEEPS_OUT, check_page_limit, check_statement_log
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
