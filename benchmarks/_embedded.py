"""A site of a benchmark's own: embedded servers in a folder that goes away with them."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Run as a file, a benchmark finds the packages beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SERVERS = ("DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL", "LEDGER_COUNTER_PATH", "SPARK_MASTER")


@contextmanager
def own_site(prefix: str, **environment: str) -> Iterator[Path]:
    """Set Django up on new embedded servers, whatever servers the environment names, and stop them."""
    for name in (*SERVERS, "POOLS_IN_DATABASE"):
        os.environ.pop(name, None)
    # Sockets have short paths only below /tmp.
    with tempfile.TemporaryDirectory(prefix=prefix, dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        os.environ |= {"DPAL_VAR": folder, "DJANGO_SETTINGS_MODULE": "dpal_site.settings", **environment}
        import django
        from django.core.management import call_command
        from django.db import connections

        from dpal_site.embedded import servers

        try:
            django.setup()
            call_command("prepare_database", verbosity=0, skip_checks=True)
            yield Path(folder)
        finally:
            connections.close_all()
            servers.stop_started()
