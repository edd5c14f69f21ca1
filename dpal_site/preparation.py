"""What a site needs before its processes start: the tables of this version, rights to them, files its pages load."""

from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connections

from dpal_site import environment, label_role
from dpal_site.embedded import servers


def prepare_site() -> None:
    """Prepare the database and collect the static files when any has changed."""
    prepare_database(verbosity=0)
    if not static_files_are_collected():
        call_command("collectstatic", verbosity=0, interactive=False)
    # The processes started next make their own connections.
    connections.close_all()


def prepare_database(*, verbosity: int = 1) -> None:
    """Apply migrations, and give the role of the label process its rights where the site has one."""
    call_command("migrate", verbosity=verbosity, interactive=False)
    if url := label_database_url():
        label_role.grant_label_role(label_role.role_of(url))


def label_database_url() -> str:
    """Return the address the label process uses, empty where a site with its own database gave it none."""
    given = environment.read("LABEL_DATABASE_URL")
    return given or (servers.label_database_url() if settings.EMBEDDED else "")


def static_files_are_collected() -> bool:
    """Say whether the collected files are younger than all their sources."""
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if not manifest.exists():
        return False
    sources = (storage.path(name) for finder in get_finders() for name, storage in finder.list([]))
    return max(Path(source).stat().st_mtime for source in sources) < manifest.stat().st_mtime
