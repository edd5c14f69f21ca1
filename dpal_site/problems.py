"""Errors of the REST interface as RFC 9457 problem documents, and their description."""

import sys
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from annotation.work.services import interruptions
from privacy.wording import message_of

MEDIA_TYPE = "application/problem+json"
SCHEMA = {
    "title": "Problem",
    "description": "An error as RFC 9457 writes it; it never repeats what was sent.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "What `detail` was made from: the sentence with named fields."},
        "plural": {"type": "string", "description": "The sentence for several, where `n` of the parameters counts."},
        "parameters": {
            "type": "object",
            "description": "By field: a number, a name, a moment, or another code with its parameters.",
        },
        "separator": {"type": "string", "description": "What stands between `messages`, where there are several."},
        "messages": {"type": "array", "items": {"type": "object"}, "description": "Codes with their parameters."},
        "errors": {"type": "array", "items": {"type": "object"}, "description": "Fields or rows, and the rule broken."},
    },
    "additionalProperties": False,
}
MEANINGS = {
    400: "The body cannot be read.",
    401: "There is no valid token.",
    402: "The budget does not suffice.",
    403: "The token lacks the scope, or the person the role.",
    404: "There is no such thing, or the caller has no part in it.",
    405: "The route does not take this method.",
    409: "The state of things does not allow it now.",
    410: "It was there, and is withdrawn.",
    413: "The body is too long.",
    416: "The file has no such part.",
    422: "The request does not fit its description.",
    429: "Too often; wait as long as Retry-After says.",
    500: "A fault of the site.",
    503: "The site or its database is too busy; nothing was stored. Wait as long as Retry-After says.",
    507: "There is no room for the file.",
}
HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string", "const": "Bearer"}}},
    416: {"Content-Range": {"required": True, "schema": {"type": "string", "pattern": r"^bytes \*/[0-9]+$"}}},
    **{
        status: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}}
        for status in (429, 503, 507)
    },
}


def problem_response(status: int, detail: str, **extra: Any) -> HttpResponse:
    """Return an error as a problem document: `detail` in English, and the code and parameters it was made from."""
    said = message_of(detail).as_json()
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **said, **extra}
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)


def problem_components() -> dict[str, Any]:
    return {
        f"Problem{status}": {
            "description": meaning,
            "headers": HEADERS.get(status, {}),
            "content": {
                MEDIA_TYPE: {
                    "schema": {
                        "allOf": [
                            {"$ref": "#/components/schemas/Problem"},
                            {"properties": {"status": {"const": status}}},
                        ]
                    }
                }
            },
        }
        for status, meaning in MEANINGS.items()
    }


RETRY_AFTER_SECONDS = 5
SAID = {
    500: "Something broke on our side. It was noted; trying again is safe.",
    503: "The database does not answer in time. Nothing was stored; try again in a moment.",
}


def failed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """Answer 503 with Retry-After where the database was the reason, else 500; asks the database for nothing."""
    error = sys.exc_info()[1]
    status = 503 if error is not None and interruptions.database_unavailable(error) else 500
    if request.path.startswith("/api/"):
        response = problem_response(status, SAID[status])
    else:
        # Without the request: who is asking is a question to the database.
        page = render_to_string("unavailable.html" if status == 503 else "500.html")
        response = HttpResponse(page, status=status)
    if status == 503:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
