"""Sending a file of a release to a browser or a program."""

from collections.abc import Callable, Mapping
from typing import BinaryIO

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse

from annotation.work.ranges import send_file
from learner.errors import ReleaseBuried, not_released
from learner.models import ModelRelease, ReleaseState
from learner.releases import storage
from learner.releases.services.described import DescribedRelease

MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8"}
RETIRED_WARNING = '299 - "This version is retired; its page says why"'


def file_response(request: HttpRequest, release: ModelRelease, name: str) -> HttpResponse | StreamingHttpResponse:
    """Send a file whose bytes match its digest; the digest is the ETag, so nobody fetches the same bytes twice."""
    if name not in release.digests:
        raise Http404
    if release.state == ReleaseState.CANDIDATE:
        raise not_released(release.version, release.held_back)
    if release.is_buried:
        raise ReleaseBuried("This release was deleted with its project; digests and guarantee remain.")
    warning = {"Warning": RETIRED_WARNING} if release.state == ReleaseState.RETIRED else {}
    return _answer(request, name, release.digests[name], lambda: storage.open_file(release=release, name=name), warning)


def described_response(
    request: HttpRequest, release: DescribedRelease, name: str
) -> HttpResponse | StreamingHttpResponse:
    if name not in release.digests:
        raise Http404
    return _answer(request, name, release.digests[name], lambda: release.open(name), {})


def _answer(
    request: HttpRequest, name: str, digest: str, opened: Callable[[], BinaryIO], more: Mapping[str, str]
) -> HttpResponse | StreamingHttpResponse:
    kind = next((kind for suffix, kind in MEDIA_TYPES.items() if name.endswith(suffix)), "application/octet-stream")
    return send_file(request, opened, name=name, sha256=digest, media_type=kind, headers=more)
