"""Sending a file of a release, to a browser as to a program."""

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotModified

from learner.errors import NotReleased
from learner.models import ModelRelease, ReleaseState
from learner.services import releases

MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8"}


def file_response(request: HttpRequest, release: ModelRelease, name: str) -> HttpResponse | FileResponse:
    """Send a file whose bytes match its digest; the digest is the ETag, so nobody fetches the same bytes twice."""
    if name not in release.digests:
        raise Http404
    if release.state == ReleaseState.CANDIDATE:
        raise NotReleased(f"Version {release.version} has not passed the release gate. {release.held_back}".strip())
    tag = f'"{release.digests[name]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if release.state == ReleaseState.RETIRED:
        headers["Warning"] = '299 - "This version is retired; its page says why"'
    if tag in [given.strip() for given in request.headers.get("If-None-Match", "").split(",")]:
        return HttpResponseNotModified(headers=headers)
    file = releases.open_file(release=release, name=name)
    kind = next((kind for suffix, kind in MEDIA_TYPES.items() if name.endswith(suffix)), "application/octet-stream")
    return FileResponse(file, as_attachment=True, filename=name, content_type=kind, headers=headers)
