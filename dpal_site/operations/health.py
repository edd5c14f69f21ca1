"""Whether the process answers, and whether it and what it needs can do their work."""

from django.http import HttpRequest, HttpResponse

from dpal_site.operations import checks

PLAIN = "text/plain; charset=utf-8"


def alive(request: HttpRequest) -> HttpResponse:
    """Answer while the process runs; asks nobody else."""
    return HttpResponse("ok\n", content_type=PLAIN)


def ready(request: HttpRequest) -> HttpResponse:
    """Answer 200 when every check holds, else 503, with a line for each; `?check=` picks some of them."""
    names = request.GET.getlist("check") or list(checks.CHECKS)
    if unknown := sorted(set(names) - set(checks.CHECKS)):
        wanted = ", ".join(checks.CHECKS)
        # Not echoed: what was asked for may be anything.
        return HttpResponse(f"{len(unknown)} unknown; checks are {wanted}\n", status=400, content_type=PLAIN)
    found = checks.run(names)
    lines = "".join(f"{name}: {problem or 'ok'}\n" for name, problem in found.items())
    status = 503 if any(found.values()) else 200
    return HttpResponse(lines, status=status, content_type=PLAIN, headers={"Cache-Control": "no-store"})
