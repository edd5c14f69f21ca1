"""What a site needs before its processes start: the tables of this version and the files its pages load."""

from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connections


def prepare_site() -> None:
    """Apply migrations and collect the static files when any has changed."""
    call_command("migrate", verbosity=0, interactive=False)
    if not static_files_are_collected():
        call_command("collectstatic", verbosity=0, interactive=False)
    # The processes started next make their own connections.
    connections.close_all()


def static_files_are_collected() -> bool:
    """Say whether the collected files are younger than all their sources."""
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if not manifest.exists():
        return False
    sources = (storage.path(name) for finder in get_finders() for name, storage in finder.list([]))
    return max(Path(source).stat().st_mtime for source in sources) < manifest.stat().st_mtime
