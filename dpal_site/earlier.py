"""Telling a database that another version made, before anything in it is changed."""

from typing import NoReturn, cast

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from privacy.first_migration import FirstMigration

# Tables of an add-on that is switched off may be any version's.
OURS = frozenset({"annotation", "dpal_site", "learner", "privacy", *settings.ADDONS})


def refuse_tables_of_another_version() -> None:
    """Refuse a database that has migrations this version does not have, or was made by another first migration."""
    loader = MigrationLoader(connection)
    known = loader.disk_migrations or {}
    ours = sorted(name for name in loader.applied_migrations or () if name[0] in OURS)
    for app, name in ours:
        migration = known.get((app, name))
        if migration is None:
            _refuse(f"{app} {name} is not known here")
        if isinstance(migration, FirstMigration) and _comment_of(migration.marked_table) != migration.digest:
            _refuse(f"the tables of {app} are others here")


def _comment_of(table: str) -> str | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT obj_description(to_regclass(%s), 'pg_class')", [connection.ops.quote_name(table)])
        return cast("str | None", cursor.fetchone()[0])


def _refuse(why: str) -> NoReturn:
    raise CommandError(
        f"Another version of DPAL made this database ({why}). Run "
        "that version to export releases, labels and the statement, then start this one anew: with another DPAL_VAR, "
        "or an empty database in DATABASE_URL. Nothing was changed."
    )
