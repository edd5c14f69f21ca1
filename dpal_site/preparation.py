"""Prepares a site before its processes start: tables, rights to them, static files."""

import logging
import shutil
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connections

from dpal_site import label_role, owner, roles, site_role
from dpal_site.embedded import servers
from dpal_site.environment import env
from privacy.errors import RollbackDetected
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
    """Apply migrations, after which the site's roles may use the tables; a new ledger gets its counter."""
    call_command("migrate", verbosity=verbosity, interactive=False)
    with owner.as_owner():
        try:
            see_to_counter()
        except RollbackDetected as error:
            logger.error("%s", error)


def see_to_counter() -> None:
    """See that the database has its counter; that of an earlier version is taken from where it used to lie."""
    earlier, now = Path(settings.VAR_DIR) / "ledger-counter.json", Path(settings.LEDGER_COUNTER_PATH)
    moved = not settings.LEDGER_COUNTER_URL and earlier != now and earlier.exists() and not now.exists()
    if moved and not LedgerCounter.objects.exists():
        now.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(earlier, now)
    counter.begin_counter()


def grant_roles() -> None:
    """Give the role of web servers and workers its rights, and that of the label process where the site has one."""
    site_role.grant_site_role(roles.role_of(settings.DATABASE_URL))
    if url := label_process_database_url():
        label_role.grant_label_role(roles.role_of(url))


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
