"""The Celery application; tasks are found in each app's `tasks.py`."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dpal_site.settings")

app = Celery("dpal")
# Celery remembers the current application for one thread only; web requests run in others.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def see_to_files(**given: Any) -> None:
    """Let what was deleted elsewhere while this host stood still go from it as well."""
    from annotation.work.services import files  # noqa: PLC0415 - loads models

    files.begin()
