"""Pages for probes: liveness and readiness."""

from django.http import HttpRequest, HttpResponse

from dpal_site.operations import checks

PLAIN = "text/plain; charset=utf-8"


def alive(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type=PLAIN)


def ready(request: HttpRequest) -> HttpResponse:
    names = request.GET.getlist("check") or list(checks.CHECKS)
    if unknown := sorted(set(names) - set(checks.CHECKS)):
        wanted = ", ".join(checks.CHECKS)
        # Not echoed: what was asked for may be anything.
        return HttpResponse(f"{len(unknown)} unknown; checks are {wanted}\n", status=400, content_type=PLAIN)
    found = checks.run(names)
    lines = "".join(f"{name}: {problem or 'ok'}\n" for name, problem in found.items())
    status = 503 if any(found.values()) else 200
    return HttpResponse(lines, status=status, content_type=PLAIN, headers={"Cache-Control": "no-store"})
