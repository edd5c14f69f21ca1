"""The statements behind every click are prepared where a connection may, and behave like any other statement."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from annotation.models.prepared import fetch_one

pytestmark = pytest.mark.django_db
STATEMENT = "SELECT %s::int + 1, 'prepared here'"


def prepared_here() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%prepared here%'")
        return int(cursor.fetchone()[0])


@pytest.fixture
def threshold():
    """Let a test say when the connection prepares, and put back what was."""
    connection.ensure_connection()
    before = connection.connection.prepare_threshold

    def set_to(value):
        connection.connection.prepare_threshold = value

    yield set_to
    set_to(before)


def test_it_is_prepared_at_its_first_run(threshold):
    threshold(0)
    assert [fetch_one(STATEMENT, [n]) for n in (1, 2, 3)] == [(n + 1, "prepared here") for n in (1, 2, 3)]
    assert prepared_here() == 1


def test_behind_a_pooler_the_same_statement_runs_unprepared(threshold):
    threshold(None)
    before = prepared_here()
    assert fetch_one(STATEMENT, [4]) == (5, "prepared here")
    assert prepared_here() == before


def test_no_row_is_none():
    assert fetch_one("SELECT 1 WHERE %s::bool", [False]) is None


def test_a_broken_rule_is_the_error_that_services_know():
    with pytest.raises(IntegrityError), transaction.atomic():
        fetch_one("INSERT INTO dpal_site_session (session_key) VALUES (%s) RETURNING session_key", ["no data"])


def test_it_is_in_the_list_of_statements_each_time(threshold):
    threshold(0)
    with CaptureQueriesContext(connection) as statements:
        fetch_one(STATEMENT, [1])
        fetch_one(STATEMENT, [2])
    assert [one["sql"] for one in statements] == [STATEMENT] * 2
