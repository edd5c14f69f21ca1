"""The header Idempotency-Key for write routes of the REST interface."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from ninja.decorators import decorate_view
from ninja.errors import HttpError

from annotation.errors import AnnotationError
from annotation.rest.responses import LONGEST_KEY
from annotation.tokens import services as tokens
from annotation.work.services.idempotency import StoredReply, answer_once


def _once(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return _answer(view, request, *args, **kwargs)
        except (HttpError, AnnotationError) as error:
            # Raised around the route, where its own handling of errors does not reach.
            operation: Any = view
            problem: HttpResponse = operation.__self__.api.on_exception(request, error)
            return problem

    return answer


def _answer(view: Callable[..., HttpResponse], request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    key = request.headers.get("Idempotency-Key", "")
    token = tokens.find_token(secret=request.headers.get("Authorization", "").removeprefix("Bearer ").strip())
    # Who may not come in is told so by the route itself.
    if not key or token is None:
        return view(request, *args, **kwargs)
    if len(key) > LONGEST_KEY:
        raise HttpError(422, f"Idempotency-Key: is longer than {LONGEST_KEY} characters")
    refused: list[HttpResponse] = []

    def perform() -> StoredReply:
        response = view(request, *args, **kwargs)
        if response.status_code >= 400:
            refused.append(response)
        return StoredReply(response.status_code, response.content.decode())

    given = answer_once(user=token.user, key=key, request_digest=_digest(request, token.pk), perform=perform)
    if refused:
        return refused[0]
    response = HttpResponse(given.body, status=given.status, content_type="application/json; charset=utf-8")
    if given.repeated:
        response.headers["Idempotency-Replayed"] = "true"
    return response


once = decorate_view(_once)


def _digest(request: HttpRequest, token_id: int) -> bytes:
    """Return a digest of what is asked: by which token, which route, with which content."""
    # Keyed: a body may hold a record or a name, and nobody shall try them out.
    digest = hashlib.blake2b(digest_size=32, key=settings.PSEUDONYM_KEY.encode()[:64], person=b"request")
    digest.update(f"{token_id}\0{request.method}\0{request.get_full_path()}\0".encode())
    if not (request.content_type or "").startswith("multipart/"):
        digest.update(request.body)
        return digest.digest()
    for name, values in sorted(request.POST.lists()):
        digest.update(repr((name, values)).encode())
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            assert isinstance(file, UploadedFile)
            digest.update(repr((name, file.name, file.size)).encode())
            for chunk in file.chunks():
                digest.update(chunk)
            file.seek(0)
    return digest.digest()
