"""The test database can be emptied, and has the same rules afterwards."""

import pytest
from django.core.management import call_command
from django.db import connection

TRIGGERS = "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"


def triggers():
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS)
        return cursor.fetchall()


@pytest.mark.django_db
def test_emptying_leaves_every_rule_as_it_was():
    before = triggers()
    assert ("privacy_ledgerentry", "privacy_entry_forever", "A") in before
    call_command("flush", interactive=False, verbosity=0, inhibit_post_migrate=True)
    assert triggers() == before


@pytest.mark.django_db
def test_this_run_has_a_database_of_its_own():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_setting('fsync')")
        name, fsync = cursor.fetchone()
    assert name.startswith("test_")
    assert fsync == "off"
