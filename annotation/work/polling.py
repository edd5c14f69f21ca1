"""Parts of pages that are asked for again and again: sent only where they differ from what the page shows."""

import re
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.crypto import salted_hmac

# Drawn anew for each answer, and no part of what is shown.
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')


def part_of_page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Return a part of a page, or nothing (204) where the page shows it already.

    The tag is keyed, so numbers cannot be guessed from it.
    """
    shown = TOKEN.sub("", render_to_string(template, context, request))
    tag = salted_hmac("part of a page", f"{request.path} {shown}", algorithm="sha256").hexdigest()[:32]
    if request.headers.get("If-None-Match") == tag:
        return HttpResponse(status=204)
    return HttpResponse(render_to_string(template, context | {"seen": tag}, request))


def moving_page(
    request: HttpRequest, template: str, facts: object, context: Callable[[], dict[str, Any]]
) -> HttpResponse:
    """Return a page whose moving part asks for it again, or 204 while `facts`, all that moves it, are the same."""
    tag = salted_hmac("moving page", f"{request.get_full_path()} {facts!r}", algorithm="sha256").hexdigest()[:32]
    if request.headers.get("If-None-Match") == tag:
        return HttpResponse(status=204)
    # What was said for the next page is not used up by a part of this one.
    kept = {"messages": ()} if request.headers.get("HX-Request") else {}
    return render(request, template, context() | {"seen": tag} | kept)
