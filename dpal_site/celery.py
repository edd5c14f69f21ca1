"""The Celery application; tasks are found in each app's `tasks.py`."""

import os
import re
import uuid
from typing import Any

import structlog
from celery import Celery
from celery.signals import before_task_publish, task_postrun, task_prerun, worker_ready

REQUEST_HEADER = "X-Request-ID"
# Whatever else a client sends is replaced: a log line is no place for its words.
ACCEPTED = re.compile(r"[A-Za-z0-9_-]{8,64}")

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


def request_id(sent: str | None) -> str:
    return sent if sent and ACCEPTED.fullmatch(sent) else uuid.uuid4().hex


@before_task_publish.connect
def _carry(headers: dict[str, Any] | None = None, **_: Any) -> None:
    known = structlog.contextvars.get_contextvars().get("request_id")
    if headers is not None and known:
        headers["request_id"] = known


@task_prerun.connect
def _enter(task_id: str, task: Any, **_: Any) -> None:
    if name := getattr(task.request, "clock_name", None):
        from dpal_site import clock  # noqa: PLC0415 - only workers take tasks

        clock.note_taken(name)
    caused_by = getattr(task.request, "request_id", None)
    structlog.contextvars.bind_contextvars(
        task_id=task_id, task=task.name, **({"request_id": caused_by} if caused_by else {})
    )


@task_postrun.connect
def _leave(**_: Any) -> None:
    structlog.contextvars.clear_contextvars()
