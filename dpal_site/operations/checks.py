"""Readiness checks: each answers with nothing when it holds, else with what is wrong."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from celery import current_app
from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from django.db import DatabaseError, connection

from annotation.errors import StorageAway
from annotation.work import scanning
from annotation.work.services import files
from annotation.work.services.broker import AWAY

if TYPE_CHECKING:
    from annotation.work.object_storage import ObjectStorage
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from dpal_site.models import Heartbeat


def write_heartbeat(name: str) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"seen_at": Now()})


def ages() -> dict[str, timedelta | None]:
    age = ExpressionWrapper(Now() - F("seen_at"), output_field=DurationField())
    heard = dict(Heartbeat.objects.annotate(age=age).values_list("name", "age"))
    return {queue: heard.get(queue) for queue in settings.QUEUES}


MEBIBYTE = 1024 * 1024
LIGHT_LIMIT_SECONDS = 30


def database() -> str | None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "no answer"
    return None


def broker() -> str | None:
    try:
        with current_app.connection_for_write(connect_timeout=2) as broker_connection:
            broker_connection.ensure_connection(max_retries=1, timeout=2)
    except AWAY:
        return "no answer"
    return None


def every_worker() -> str | None:
    limits = dict.fromkeys(settings.QUEUES, settings.HEARTBEAT_LIMIT_SECONDS)
    # People wait for what is in it, and nothing of it takes long.
    limits["light"] = min(LIGHT_LIMIT_SECONDS, settings.HEARTBEAT_LIMIT_SECONDS)
    try:
        found = ages()
    except DatabaseError:
        return "unknown without the database"
    silent = sorted(name for name, age in found.items() if age is None or age > timedelta(seconds=limits[name]))
    said = ", ".join(f"for {limits[name]} s from queue {name}" for name in silent)
    return f"nothing heard {said}" if silent else None


def disk() -> str | None:
    folders = {settings.VAR_DIR}
    if isinstance(default_storage, FileSystemStorage):
        folders.add(Path(default_storage.location))
    for folder in folders:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free // MEBIBYTE
        if free < settings.DISK_FREE_LIMIT_MEBIBYTES:
            return f"{free} MiB free, {settings.DISK_FREE_LIMIT_MEBIBYTES} wanted"
    return None


def storage() -> str | None:
    try:
        cast("ObjectStorage", default_storage).check()
    except StorageAway:
        return "no answer"
    return None


def scanner() -> str | None:
    return None if scanning.is_there() else "no answer"


CHECKS: dict[str, Callable[[], str | None]] = {
    "database": database,
    "broker": broker,
    "worker": every_worker,
    "disk": disk,
}
if not files.are_local():
    CHECKS["storage"] = storage
if scanning.is_on():
    CHECKS["scanner"] = scanner


def run(names: list[str]) -> dict[str, str | None]:
    return {name: CHECKS[name]() for name in names}


PLAIN = "text/plain; charset=utf-8"


def alive(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type=PLAIN)


def ready(request: HttpRequest) -> HttpResponse:
    names = request.GET.getlist("check") or list(CHECKS)
    if unknown := sorted(set(names) - set(CHECKS)):
        wanted = ", ".join(CHECKS)
        # Not echoed: what was asked for may be anything.
        return HttpResponse(f"{len(unknown)} unknown; checks are {wanted}\n", status=400, content_type=PLAIN)
    found = run(names)
    lines = "".join(f"{name}: {problem or 'ok'}\n" for name, problem in found.items())
    status = 503 if any(found.values()) else 200
    return HttpResponse(lines, status=status, content_type=PLAIN, headers={"Cache-Control": "no-store"})
