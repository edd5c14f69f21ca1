"""The client package as an index of Python packages (PEP 503; PEP 691 has its JSON form)."""

import hashlib
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from dpal_site.embedded.servers import REPOSITORY

NAME = "dpal-client"
CLIENT = REPOSITORY / "client"
JSON_FORM = "application/vnd.pypi.simple.v1+json"
LONGEST_BUILD_SECONDS = 60


@cache
def client_wheel() -> tuple[str, bytes]:
    """Return name and bytes of the wheel, built from the sources beside the site; every build gives the same bytes."""
    backend = Path(sys.executable).with_name("uv-build")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(backend), "build-wheel", folder]
        subprocess.run(command, cwd=CLIENT, check=True, capture_output=True, timeout=LONGEST_BUILD_SECONDS)
        (wheel,) = Path(folder).glob("*.whl")
        return wheel.name, wheel.read_bytes()


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    name, content = client_wheel()
    address, digest = reverse("wheel:file", args=[name]), hashlib.sha256(content).hexdigest()
    if request.accepts(JSON_FORM) and not request.accepts("text/html"):
        file = {"filename": name, "url": address, "hashes": {"sha256": digest}}
        body = {"meta": {"api-version": "1.0"}, "name": NAME, "files": [file]}
        return JsonResponse(body, content_type=JSON_FORM)
    title = f"Links for {NAME}"
    page = '<!DOCTYPE html><html lang="en"><title>{}</title><h1>{}</h1><a href="{}#sha256={}">{}</a></html>'
    return HttpResponse(format_html(page, title, title, address, digest, name))


@require_safe
def file(request: HttpRequest, name: str) -> HttpResponse:
    found, content = client_wheel()
    if name != found:
        raise Http404(name)
    return HttpResponse(content, content_type="application/octet-stream")


app_name = "wheel"
urlpatterns = [
    path(f"simple/{NAME}/", index, name="index"),
    path(f"simple/{NAME}/<str:name>", file, name="file"),
]
