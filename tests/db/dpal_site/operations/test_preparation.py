import shutil
from importlib import import_module
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from dpal_site.embedded.servers import REPOSITORY
from dpal_site.operations.preparation import refuse_tables_of_another_version
from tests.evidence.planting import mark_of
from tests.owning import as_owner

pytestmark = pytest.mark.django_db


def record(app, name):
    with as_owner():
        MigrationRecorder(connection).record_applied(app, name)


def test_a_database_of_this_version_is_taken():
    refuse_tables_of_another_version()


@pytest.mark.parametrize("app", ["annotation", "learner", "privacy", "dpal_site"])
def test_a_migration_nobody_here_knows_is_named_with_what_to_do(app):
    record(app, "0002_oracle_rules")
    with pytest.raises(CommandError, match=f"{app} 0002_oracle_rules is not known here.*start this one anew"):
        refuse_tables_of_another_version()


@pytest.mark.parametrize("app", ["annotation", "learner", "privacy", "dpal_site"])
@pytest.mark.parametrize("comment", ["NULL", "'0123'"])
def test_tables_that_another_first_migration_made_are_refused(app, comment):
    """Until a version is released, its first migration changes in place: only what it made tells which one it was."""
    first = MigrationLoader(connection).disk_migrations[app, "0001_tables"]
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"COMMENT ON TABLE {first.marked_table} IS {comment}")
    with pytest.raises(CommandError, match=f"the tables of {app} are others here.*start this one anew"):
        refuse_tables_of_another_version()


def test_other_programs_migrations_are_their_own():
    record("somebody_elses", "0001_initial")
    refuse_tables_of_another_version()


@pytest.mark.parametrize("app", [("annotation",), ("privacy", "ledger")])
def test_a_fault_planted_in_rules_leaves_the_database_its_programs_own(app, tmp_path):
    """Or its killers would err before they could judge: a planted fault is another first migration."""
    folder = Path(*app, "migrations")
    shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(mark_of(app, tmp_path))
    refuse_tables_of_another_version()
    rules = import_module(".".join([*folder.parts, "0001_tables"])).RULES
    fault = tmp_path / folder / "sql" / f"{rules[0]}.sql"
    fault.write_text(fault.read_text() + "\n-- A fault.\n")
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(mark_of(app, tmp_path))
    with pytest.raises(CommandError, match=f"the tables of {app[0]} are others here"):
        refuse_tables_of_another_version()
