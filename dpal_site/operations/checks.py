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
from dpal_site.operations import heartbeats

if TYPE_CHECKING:
    from annotation.work.object_storage import ObjectStorage

MEBIBYTE = 1024 * 1024


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
    limit = timedelta(seconds=settings.HEARTBEAT_LIMIT_SECONDS)
    try:
        silent = sorted(name for name, age in heartbeats.ages().items() if age is None or age > limit)
    except DatabaseError:
        return "unknown without the database"
    return f"nothing heard for {settings.HEARTBEAT_LIMIT_SECONDS} s from queue {', '.join(silent)}" if silent else None


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
