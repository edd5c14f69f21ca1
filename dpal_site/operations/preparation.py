"""Prepares a site before its processes start: tables, rights to them, static files."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, cast

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.utils import load_backend

from dpal_site.embedded import servers
from dpal_site.embedded.database_address import parse_database_url, through_pooler
from dpal_site.environment import env
from dpal_site.operations import preparation, roles
from privacy.errors import RollbackDetected
from privacy.first_migration import FirstMigration
from privacy.ledger import counter
from privacy.ledger.models import LedgerCounter

logger = logging.getLogger(__name__)


def prepare_site() -> None:
    prepare_database(verbosity=0)
    if not static_files_are_collected():
        call_command("collectstatic", verbosity=0, interactive=False)
    # The processes started next make their own connections.
    connections.close_all()


def prepare_database(*, verbosity: int = 1) -> None:
    call_command("migrate", verbosity=verbosity, interactive=False)
    with preparation.as_owner():
        try:
            see_to_counter()
        except RollbackDetected as error:
            logger.error("%s", error)


def see_to_counter() -> None:
    earlier, now = Path(settings.VAR_DIR) / "ledger-counter.json", Path(settings.LEDGER_COUNTER_PATH)
    moved = not settings.LEDGER_COUNTER_URL and earlier != now and earlier.exists() and not now.exists()
    if moved and not LedgerCounter.objects.exists():
        now.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(earlier, now)
    counter.begin_counter()


def grant_roles() -> None:
    """Give the role of web servers and workers its rights, and that of the label process where the site has one."""
    roles.grant_site_role(roles.role_of(settings.DATABASE_URL))
    if url := label_process_database_url():
        roles.grant_label_role(roles.role_of(url))


def label_process_database_url() -> str:
    """Return the address the label process uses, empty where a site with its own database gave it none."""
    given = env.str("LABEL_DATABASE_URL", "")
    return given or (servers.label_database_url() if settings.EMBEDDED else "")


def static_files_are_collected() -> bool:
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if not manifest.exists():
        return False
    sources = (storage.path(name) for finder in get_finders() for name, storage in finder.list([]))
    return max(Path(source).stat().st_mtime for source in sources) < manifest.stat().st_mtime


def owner_address() -> str:
    if settings.DATABASE_OWNER_URL:
        return settings.DATABASE_OWNER_URL
    if settings.EMBEDDED:
        return servers.owner_database_url()
    raise ImproperlyConfigured(
        "this changes tables: set DATABASE_OWNER_URL to the address of the role that owns them, and let DATABASE_URL "
        "name another one, which `manage.py prepare_database` makes"
    )


@contextmanager
def as_owner() -> Iterator[None]:
    """Have this thread talk to the database as its owner, over a connection of its own, until the block ends."""
    used = connections[DEFAULT_DB_ALIAS]
    address = parse_database_url(owner_address())
    if settings.DATABASE_POOLER:
        address = through_pooler(address)
    backend = load_backend(address["ENGINE"])
    owned = backend.DatabaseWrapper(used.settings_dict | address, DEFAULT_DB_ALIAS)
    connections[DEFAULT_DB_ALIAS] = owned
    try:
        yield
    finally:
        owned.close()
        connections[DEFAULT_DB_ALIAS] = used


# Tables of an add-on that is switched off may be any version's.
OURS = frozenset({"annotation", "dpal_site", "learner", "privacy", *settings.ADDONS})


def refuse_tables_of_another_version() -> None:
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
