import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.clients import browser_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
STATIC = "/static/site.css"
ANSWERS = {
    "page": "/login/",
    "static file": STATIC,
    "page that is not there": "/nothing/here/",
    "route": "/api/v1/projects",
    "route that is not there": "/api/v1/nothing",
    "description": "/api/v1/openapi.json",
    "metrics": "/metrics",
}
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


def behind_tls(settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    return Client()


@pytest.mark.parametrize("address", ANSWERS.values(), ids=ANSWERS)
def test_every_answer_carries_the_headers(settings, address):
    answer = behind_tls(settings).get(address, secure=True)
    answer.close()
    assert set(answer["Content-Security-Policy"].split("; ")) == POLICY
    assert answer["Permissions-Policy"] == "camera=(), microphone=(), geolocation=()"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
    assert "Access-Control-Allow-Origin" not in answer
    assert answer["Content-Type"]
    if answer["Content-Type"].startswith("text/"):
        assert "charset=" in answer["Content-Type"]


@pytest.mark.parametrize("address", [each for each in ANSWERS.values() if each != STATIC])
def test_nothing_but_static_files_is_kept_by_a_cache(address):
    assert "no-store" in Client().get(address)["Cache-Control"]


def test_pages_of_a_person_are_kept_by_no_cache():
    client = browser_of(User.objects.create_user("ann"))
    for name in ("annotation:projects", "annotation:tokens", "account_email", "mfa_index", "usersessions_list"):
        answer = client.get(reverse(name), follow=True)
        assert answer.status_code == 200
        assert "no-store" in answer["Cache-Control"], name


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "GIMME"])
@pytest.mark.parametrize("address", ["/login/", "/api/v1/projects", "/healthz"])
def test_methods_nobody_needs_are_refused(method, address):
    assert Client().generic(method, address).status_code == 405


def test_a_program_without_tls_is_refused_and_a_person_is_sent_on(settings):
    client = behind_tls(settings)
    assert client.get("/login/").status_code == 301
    refused = client.get("/api/v1/projects", headers={"Authorization": "Bearer dpal_x"})
    assert refused.status_code == 403
    assert refused["Content-Type"] == "application/problem+json"
    assert client.get("/api/v1/projects", secure=True).status_code == 401
    assert client.get("/healthz").status_code == 200


def test_a_request_for_another_host_is_refused():
    assert Client().get("/login/", headers={"Host": "evil.example"}).status_code == 400


def test_cookies_are_for_this_site_and_not_for_scripts():
    User.objects.create_user("ann", password=PASSWORD)
    client = Client()
    client.get("/login/")
    client.post("/login/", {"login": "ann", "password": PASSWORD})
    client.post("/preferences/", {"language": "de", "zone": "Europe/Oslo"})
    assert {"sessionid", "csrftoken", "timezone"} <= set(client.cookies)
    assert {cookie["samesite"] for cookie in client.cookies.values() if cookie.value} == {"Lax"}
    assert client.cookies["sessionid"]["httponly"]
    assert client.cookies["csrftoken"]["httponly"]
    page = client.get(reverse("usersessions_list"))
    for key in (client.session.session_key, client.session.secret):
        assert key
        assert key not in page.content.decode()


def test_an_address_does_not_replace_what_a_form_sends():
    client = Client()
    sent = client.post("/preferences/?language=xx&zone=Mars", {"language": "de", "zone": "Europe/Oslo"})
    assert sent.status_code == 302
    assert client.cookies["timezone"].value == "Europe/Oslo"
    assert client.post("/preferences/?language=de&zone=Europe/Oslo", {"language": "xx"}).status_code == 422


def test_no_folder_is_listed():
    for address in ("/static/", "/static/annotation/", "/.git/HEAD", "/static/../manage.py"):
        assert Client().get(address).status_code == 404


def test_nothing_changes_by_looking(client):
    """A GET, as a picture on another site would send it, logs nobody out."""
    client.force_login(User.objects.create_user("ann"))
    opened = client.get(reverse("logout"))
    assert opened.status_code == 405
    assert "Not allowed" in opened.content.decode()
    assert opened["Allow"] == "POST, OPTIONS"
    assert "_auth_user_id" in client.session
