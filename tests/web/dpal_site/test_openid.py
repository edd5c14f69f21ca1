"""Sign-in by OpenID Connect, against a small issuer that really listens."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db
PERSON = {"sub": "42", "email": "ann@example.org", "email_verified": True, "preferred_username": "ann"}


class Issuer(BaseHTTPRequestHandler):
    """Knows one person, one code and, for it, the challenge it was asked with."""

    challenge = ""

    def do_GET(self) -> None:
        own = f"http://{self.headers['Host']}"
        if self.path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
            self.answer({"issuer": own, "jwks_uri": f"{own}/keys"} | {k: f"{own}/{v}" for k, v in names.items()})
        elif self.path == "/userinfo" and self.headers["Authorization"] == "Bearer secret":
            self.answer(PERSON)
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != Issuer.challenge or sent["code"] != ["the-code"]:
            self.send_error(400)
        else:
            self.answer({"access_token": "secret", "token_type": "Bearer"})

    def answer(self, body: dict[str, object]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@pytest.fixture
def issuer(settings) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    app = {
        "provider_id": "oidc",
        "name": "Our house",
        "client_id": "dpal",
        "secret": "s",
        "settings": {"server_url": url},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
    cache.clear()
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


def go_to_issuer(client: Client) -> dict[str, str]:
    away = client.post(reverse("openid_connect_login", args=["oidc"]))
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away["Location"]).query).items()}
    Issuer.challenge = asked["code_challenge"]
    return asked


def come_back(client: Client, **query: str):
    return client.get(reverse("openid_connect_callback", args=["oidc"]), query)


def test_whom_the_issuer_knows_gets_an_account(issuer):
    client = Client()
    assert "Continue with Our house" in client.get(reverse("login")).content.decode()
    asked = go_to_issuer(client)
    assert asked["redirect_uri"] == "http://testserver/accounts/oidc/oidc/login/callback/"
    come_back(client, code="the-code", state=asked["state"])
    assert User.objects.get().email == "ann@example.org"
    assert client.session["_auth_user_id"] == str(User.objects.get().pk)
    again = Client()
    come_back(again, code="the-code", state=go_to_issuer(again)["state"])
    assert User.objects.count() == 1


def test_looking_at_the_address_logs_nobody_in(issuer):
    page = Client().get(reverse("openid_connect_login", args=["oidc"]))
    assert page.status_code == 200
    assert b'method="post"' in page.content


@pytest.mark.parametrize("wrong", [{"code": "other"}, {"state": "other"}])
def test_a_code_or_state_from_elsewhere_is_refused(issuer, wrong):
    client = Client()
    asked = go_to_issuer(client)
    come_back(client, **({"code": "the-code", "state": asked["state"]} | wrong))
    assert "_auth_user_id" not in client.session
    assert not User.objects.exists()


def test_the_same_email_alone_takes_nobodys_account_over(issuer):
    User.objects.create_user("ann", email="ann@example.org", password="correct horse battery")
    client = Client()
    come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert "_auth_user_id" not in client.session


def test_a_site_that_goes_by_the_email_alone_would_be_taken_over(issuer, settings):
    """The test above can fail: with this setting the issuer's word about an email is a key to the account."""
    settings.SOCIALACCOUNT_EMAIL_AUTHENTICATION = settings.SOCIALACCOUNT_EMAIL_VERIFICATION = True
    User.objects.create_user("ann", email="ann@example.org", password="correct horse battery")
    client = Client()
    come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert "_auth_user_id" in client.session
