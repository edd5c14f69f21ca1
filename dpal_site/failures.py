"""Answer to a request that ended in an unexpected error, or found the database away or slow."""

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from annotation.work.services import interruptions
from dpal_site.problems import problem_response

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
