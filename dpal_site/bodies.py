"""Bodies that could not be kept are refused by their declared length, before they are received."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from annotation.errors import StorageFull
from dpal_site.middleware import Middleware
from dpal_site.problems import problem_response

API_PATH = "/api/"
# What a form says besides its file.
FIELDS_BYTES = 1024 * 1024
# Set by our server on a request whose body it did not receive; who sends it by themselves is refused.
REFUSED = "DPAL_BODY_REFUSED"


def is_large(declared: int) -> bool:
    return bool(declared > settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def has_room(declared: int, *, arriving: int) -> bool:
    """Say whether a body is short enough and finds room beside those that arrive; it lies twice while it is read."""
    wanted = 2 * (declared + arriving)
    return not _is_too_long(declared) and all(shutil.disk_usage(folder).free >= wanted for folder in _folders())


class RoomMiddleware(Middleware):
    """Answer for bodies that the server did not receive; stands above whatever looks into forms."""

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        declared = _declared_bytes(request)
        if _is_too_long(declared):
            most = {"most": f"{settings.UPLOAD_MAX_BYTES:,}"}
            return _refused(request, 413, _("A file may hold %(most)s bytes at most.") % most)
        if f"HTTP_{REFUSED}" in request.META:
            response = _refused(request, 507, _("The disk is full. Nothing was stored; tell your administrator."))
            response.headers["Retry-After"] = str(StorageFull.retry_after_seconds)
            return response
        return None


def _is_too_long(declared: int) -> bool:
    return bool(declared > settings.UPLOAD_MAX_BYTES + FIELDS_BYTES)


def _declared_bytes(request: HttpRequest) -> int:
    declared = request.META.get("CONTENT_LENGTH") or "0"
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def _folders() -> set[Path]:
    folders = {Path(tempfile.gettempdir())}
    if isinstance(default_storage, FileSystemStorage):
        stored = Path(default_storage.location)
        folders.add(next(path for path in (stored, *stored.parents) if path.exists()))
    return folders


def _refused(request: HttpRequest, status: int, reason: str) -> HttpResponse:
    if request.path.startswith(API_PATH):
        return problem_response(status, reason)
    return render(request, "refused.html", {"reason": reason}, status=status)
