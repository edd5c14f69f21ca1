"""Sending a stored file, to a browser as to a program: whole or in part, at constant memory."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse

BLOCK_BYTES = 256 * 1024
# One range, as RFC 9110 section 14.1.2 writes it; who asks for several gets the whole file, which that allows.
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# What a route that sends a file adds to its description.
TAG = {"ETag": {"required": True, "schema": {"type": "string", "pattern": '^"[0-9a-f]{64}"$'}}}
PART = {"Content-Range": {"required": True, "schema": {"type": "string", "pattern": "^bytes [0-9]+-[0-9]+/[0-9]+$"}}}
LENGTH = {
    "Content-Length": {"required": True, "schema": {"type": "integer", "minimum": 0}},
    "Accept-Ranges": {"required": True, "schema": {"const": "bytes"}},
}
CONDITIONS = [
    {"in": "header", "name": name, "schema": {"type": "string"}} for name in ("Range", "If-Range", "If-None-Match")
]


def file_answers(content: Mapping[str, Any], headers: Mapping[str, Any] | None = None) -> dict[int, Any]:
    """Return how a route describes its answers: the whole file, a part of it, or that the caller has it."""
    more = dict(headers or {})
    return {
        200: {"description": "The file", "headers": more | TAG | LENGTH, "content": dict(content)},
        206: {"description": "The part asked for", "headers": more | TAG | LENGTH | PART, "content": dict(content)},
        304: {"description": "The caller has it already", "headers": more | TAG},
    }


def send_file(
    request: HttpRequest,
    opener: Callable[[], BinaryIO],
    *,
    name: str,
    sha256: str,
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse | StreamingHttpResponse:
    """Send a file whose bytes match its digest; the digest is the ETag, so nobody fetches the same bytes twice."""
    tag = f'"{sha256}"'
    header_fields = {"ETag": tag, "Cache-Control": "private, no-cache", "Accept-Ranges": "bytes", **(headers or {})}
    if _names(request.headers.get("If-None-Match", ""), tag):
        return HttpResponseNotModified(headers=header_fields)
    file = opener()
    size = file.seek(0, 2)
    part = _part(request, tag, size)
    if part is not None and part[0] >= size:
        file.close()
        return HttpResponse(status=416, headers={**header_fields, "Content-Range": f"bytes */{size}"})
    start, end = part or (0, size - 1)
    header_fields |= {"Content-Length": str(end - start + 1), "Content-Disposition": f'attachment; filename="{name}"'}
    if part is not None:
        header_fields["Content-Range"] = f"bytes {start}-{end}/{size}"
    blocks = FilePart(file, start=start, length=end - start + 1)
    return StreamingHttpResponse(blocks, status=206 if part else 200, content_type=media_type, headers=header_fields)


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
