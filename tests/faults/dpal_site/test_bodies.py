import shutil
import socket
import tempfile
from datetime import timedelta

import pytest

from annotation.models import Role
from annotation.people.services import members
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal_site.embedded import host
from tests.clients import browser_of
from tests.factories import make_project, make_user

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
FORM = b"Content-Type: multipart/form-data; boundary=b\r\n"
BEGINNING = b'--b\r\nContent-Disposition: form-data; name="file"; filename="rows.csv"\r\n\r\ntext\na\nb\n'


def answer_to(url, path, headers, length):
    with socket.create_connection((host.LOOPBACK, int(url.rpartition(":")[2])), 15) as connection:
        head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%sContent-Length: %d\r\n\r\n"
        connection.sendall(head % (path.encode(), FORM, headers, length) + BEGINNING)
        said = b""
        while piece := connection.recv(65536):
            said += piece
        return said


@pytest.mark.slow
def test_what_has_no_room_is_refused_before_it_is_sent(collected_static_files, supervisor):
    manager, project = make_user(), make_project()
    members.add_member(project=project, user=manager, role=Role.MANAGER)
    scopes = [scope.value for scope in Scope]
    _, secret = tokens.create_token(user=manager, name="t", scopes=scopes, lifetime=timedelta(days=1))
    browser = browser_of(manager)
    free = shutil.disk_usage(tempfile.gettempdir()).free
    supervisor._environment["UPLOAD_MAX_BYTES"] = str(10 * free)
    url = supervisor.start_web(host.free_port(), workers=1)
    supervisor.wait_until_ready()
    bearer = f"Authorization: Bearer {secret}\r\n".encode()
    cookie = f"Cookie: sessionid={browser.cookies['sessionid'].value}\r\n".encode()
    api, page = f"/api/v1/projects/{project.slug}/datasets", f"/projects/{project.slug}/data/"
    for path, headers in ((api, bearer), (page, cookie)):
        refused = answer_to(url, path, headers, 2 * free)
        assert refused.startswith(b"HTTP/1.1 507 "), refused[:200]
        assert b"Nothing was stored; tell your administrator" in refused
        assert b"Retry-After: 600\r\n" in refused
        assert answer_to(url, path, headers, 11 * free).startswith(b"HTTP/1.1 413 ")
