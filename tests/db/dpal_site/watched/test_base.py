"""A connection that was just used is used again unasked, and one whose server went is not."""

import time

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection

from dpal_site.owner import as_owner
from dpal_site.watched import base

pytestmark = pytest.mark.django_db


@pytest.fixture
def watched():
    settings = connection.settings_dict
    database = base.DatabaseWrapper(
        {**settings, "OPTIONS": {**settings["OPTIONS"], base.OPTION: 5.0}}, DEFAULT_DB_ALIAS
    )
    database.connect()
    yield database
    database.close()


def asked(database, statement):
    with database.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def last_statement(process):
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [process])
        return cursor.fetchone()[0]


def end(process):
    """Have the server end a session, and wait until it is gone."""
    with as_owner():
        asked(connection, f"SELECT pg_terminate_backend({process}, 5000)")


def test_one_that_was_just_used_is_asked_nothing(watched):
    process = asked(watched, "SELECT pg_backend_pid()")
    asked(watched, "SELECT 42")
    assert watched.is_usable()
    assert last_statement(process) == "SELECT 42"


def test_one_that_was_idle_is_asked(watched, monkeypatch):
    process = asked(watched, "SELECT pg_backend_pid()")
    asked(watched, "SELECT 42")
    monkeypatch.setattr(base, "FRESH_SECONDS", 0.0)
    time.sleep(0.01)
    assert watched.is_usable()
    assert last_statement(process) == "SELECT 1"


def test_one_that_ended_is_not_usable_however_fresh(watched):
    end(asked(watched, "SELECT pg_backend_pid()"))
    assert not watched.connection.is_fresh()
    assert not watched.is_usable()


def test_one_whose_last_statement_failed_is_asked(watched):
    process = asked(watched, "SELECT pg_backend_pid()")
    with pytest.raises(DatabaseError):
        asked(watched, "SELECT 1 / 0")
    assert not watched.connection.is_fresh()
    assert watched.is_usable()
    assert last_statement(process) == "SELECT 1"


def test_one_whose_transaction_broke_is_not_usable(watched):
    with watched.cursor() as cursor:
        cursor.execute("BEGIN")
    asked(watched, "SELECT 42")
    assert not watched.connection.is_fresh()
    with pytest.raises(DatabaseError):
        asked(watched, "SELECT 1 / 0")
    assert not watched.is_usable()


def test_one_that_was_closed_is_not_usable(watched):
    asked(watched, "SELECT 42")
    watched.connection.close()
    assert not watched.connection.is_fresh()
    assert not watched.is_usable()


def test_without_the_option_every_one_is_asked(watched):
    plain = base.DatabaseWrapper(connection.settings_dict, DEFAULT_DB_ALIAS)
    plain.connect()
    try:
        process = asked(plain, "SELECT pg_backend_pid()")
        assert plain.is_usable()
        assert last_statement(process) == "SELECT 1"
    finally:
        plain.close()
