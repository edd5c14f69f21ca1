"""Telling a database that another version made, before anything in it is changed."""

from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

OURS = frozenset({"annotation", "dpal_site", "learner", "privacy"})


def refuse_tables_of_another_version() -> None:
    """Refuse a database with migrations that this version does not have.

    Raises
    ------
    CommandError
        With what to do: tables of another version are neither read rightly nor brought to this one's shape.
    """
    loader = MigrationLoader(connection)
    known = frozenset(loader.disk_migrations or ())
    strange = sorted(name for name in loader.applied_migrations or () if name[0] in OURS and name not in known)
    if not strange:
        return
    app, name = strange[0]
    raise CommandError(
        f"Another version of DPAL made this database ({app} {name} is not known here). Run "
        "that version to export releases, labels and the statement, then start this one anew: with another DPAL_VAR, "
        "or an empty database in DATABASE_URL. Nothing was changed."
    )
