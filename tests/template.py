"""A database with the tables of this version and no rows, from which every test process has its own copied.

Migrations take a test process over ten seconds, a copy takes one. The database stays for later runs, under a name drawn
from everything that makes tables; runs of other versions leave theirs beside it, until a run that is alone drops them.
"""

import fcntl
import hashlib
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.commands import migrate
from django.test import override_settings
from psycopg import sql

from dpal_site.embedded import servers
from dpal_site.embedded.postgres import EmbeddedPostgres

APPS = ("annotation", "dpal_site", "learner", "privacy/ledger")
# The libraries' own tables, the field types that ours use, and how first migrations make them.
BESIDE = ("requirements.lock.txt", "privacy/message_fields.py", "privacy/first_migration.py")
PREFIX = "template_"


def template_name(root: Path = servers.REPOSITORY) -> str:
    """Return the name of the database with the tables of the files under `root`."""
    made_by = [root / name for name in BESIDE]
    apps = (*APPS, *(f"addons/{name}" for name in settings.ADDONS))
    made_by += (file for app in apps for file in root.glob(f"{app}/migrations/**/*") if file.suffix in (".py", ".sql"))
    digest = hashlib.sha256()
    for file in sorted(made_by):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(root)} {len(content)}\n".encode() + content)
    return PREFIX + digest.hexdigest()[:16]


def make_template(postgres: EmbeddedPostgres, name: str, lock: Path) -> None:
    """Make the database unless it is there; processes beside this one wait for it at the lock."""
    from dpal_site.operations.preparation import as_owner  # noqa: PLC0415 - loads models

    making = f"test_{name}"
    with lock.open("a") as file, psycopg.connect(postgres.url(), autocommit=True) as connection:
        fcntl.flock(file, fcntl.LOCK_EX)
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            return
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(making)))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(making)))
        with override_settings(DATABASE_OWNER_URL=postgres.url(making)), as_owner():
            # Django's own command: the rights of the site's role are for each copy.
            call_command(migrate.Command(), verbosity=0, interactive=False)
        with psycopg.connect(postgres.url(making)) as made:
            # What a project can choose is told to every copy by the code of that run.
            made.execute("TRUNCATE annotation_knownchoice RESTART IDENTITY")
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (making, name))))


def drop_others(connection: psycopg.Connection, name: str) -> None:
    """Remove the databases of other versions."""
    query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND datname <> %s"
    for (other,) in connection.execute(query, [PREFIX, name]).fetchall():
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(other)))
