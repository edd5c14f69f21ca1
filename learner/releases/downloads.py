"""Sending a file of a release, to a browser as to a program: whole or in part, at constant memory."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse

from learner.errors import ReleaseBuried, not_released
from learner.models import ModelRelease, ReleaseState
from learner.releases.selectors import encoder_files
from learner.releases.services import described, releases
from learner.releases.services.described import DescribedRelease

MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8"}
RETIRED_WARNING = '299 - "This version is retired; its page says why"'
BLOCK_BYTES = 256 * 1024
# One range, as RFC 9110 section 14.1.2 writes it; who asks for several gets the whole file, which that allows.
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def file_response(request: HttpRequest, release: ModelRelease, name: str) -> HttpResponse | StreamingHttpResponse:
    """Send a file whose bytes match its digest; the digest is the ETag, so nobody fetches the same bytes twice."""
    public = {one.name: one for one in encoder_files(release)}
    if name not in release.digests and name not in public:
        raise Http404
    if release.state == ReleaseState.CANDIDATE:
        raise not_released(release.version, release.held_back)
    if release.is_buried:
        raise ReleaseBuried("This release was deleted with its project; its digests and its guarantee are left.")
    digest = public[name].sha256 if name in public else release.digests[name]
    warning = {"Warning": RETIRED_WARNING} if release.state == ReleaseState.RETIRED else {}

    def opened() -> BinaryIO:
        return public[name].path.open("rb") if name in public else releases.open_file(release=release, name=name)

    return _answer(request, name, digest, opened, warning)


def described_response(
    request: HttpRequest, release: DescribedRelease, name: str
) -> HttpResponse | StreamingHttpResponse:
    """Send a file of version 0, or one of the public encoder it reads."""
    public = {one.name: one for one in described.encoder_of(release.project)}
    if name not in release.digests and name not in public:
        raise Http404
    digest = public[name].sha256 if name in public else release.digests[name]
    return _answer(
        request, name, digest, lambda: public[name].path.open("rb") if name in public else release.open(name), {}
    )


def _answer(
    request: HttpRequest, name: str, digest: str, opened: Callable[[], BinaryIO], more: Mapping[str, str]
) -> HttpResponse | StreamingHttpResponse:
    tag = f'"{digest}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Accept-Ranges": "bytes", **more}
    if _names(request.headers.get("If-None-Match", ""), tag):
        return HttpResponseNotModified(headers=headers)
    file = opened()
    size = file.seek(0, 2)
    part = _part(request, tag, size)
    if part is not None and part[0] >= size:
        file.close()
        return HttpResponse(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
    start, end = part or (0, size - 1)
    headers |= {"Content-Length": str(end - start + 1), "Content-Disposition": f'attachment; filename="{name}"'}
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    kind = next((kind for suffix, kind in MEDIA_TYPES.items() if name.endswith(suffix)), "application/octet-stream")
    blocks = FilePart(file, start=start, length=end - start + 1)
    return StreamingHttpResponse(blocks, status=206 if part else 200, content_type=kind, headers=headers)


def _names(header: str, tag: str) -> bool:
    """Say whether If-None-Match names the tag; weak tags count, as they do for a GET."""
    given = [one.strip().removeprefix("W/") for one in header.split(",")]
    return tag in given or given == ["*"]


def _part(request: HttpRequest, tag: str, size: int) -> tuple[int, int] | None:
    """Return the first and last byte asked for; None where the whole file is due, a start beyond it if none fits."""
    asked = RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    # Parts of two different files must not be put together.
    if asked is None or asked.group() == "bytes=-" or request.headers.get("If-Range", tag) != tag:
        return None
    first, last = asked.groups()
    if not first:
        return (max(0, size - int(last)), size - 1) if int(last) else (size, size)
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last), size - 1) if last else size - 1


class FilePart:
    """Bytes of an open file, read a block at a time; whoever sends them closes it, sent or not."""

    def __init__(self, file: BinaryIO, *, start: int, length: int) -> None:
        file.seek(start)
        self.file = file
        self.left = length
        self.close = file.close

    def __iter__(self) -> Iterator[bytes]:
        while self.left > 0 and (block := self.file.read(min(BLOCK_BYTES, self.left))):
            self.left -= len(block)
            yield block
        self.close()
