"""A small OpenID Connect issuer that really listens: it knows one person and asks them on a page of its own."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PERSON = {"sub": "42", "email": "ann@example.org", "email_verified": True, "preferred_username": "ann"}
NAME = "Our house"
CODE = "the-code"
PAGE = """<!doctype html><html lang="en"><title>{name}</title><h1>{name}</h1>
<form action="{redirect_uri}"><input type="hidden" name="state" value="{state}">
<input type="hidden" name="code" value="{code}"><button>Tell them who I am</button></form></html>"""


class Issuer(BaseHTTPRequestHandler):
    """Knows one person, one code and, for it, the challenge it was asked with."""

    challenge = ""

    def do_GET(self) -> None:
        """Describe the issuer, ask the person, or say who they are."""
        own, path = f"http://{self.headers['Host']}", urlsplit(self.path)
        if path.path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
            self.answer({"issuer": own, "jwks_uri": f"{own}/keys"} | {k: f"{own}/{v}" for k, v in names.items()})
        elif path.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(path.query).items()}
            Issuer.challenge = asked["code_challenge"]
            shown = {name: escape(asked[name]) for name in ("redirect_uri", "state")}
            self.send(PAGE.format(name=NAME, code=CODE, **shown), "text/html")
        elif path.path == "/userinfo" and self.headers["Authorization"] == "Bearer secret":
            self.answer(PERSON)
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Change the code into a token for whoever knows what its challenge was made from."""
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != Issuer.challenge or sent["code"] != [CODE]:
            self.send_error(400)
        else:
            self.answer({"access_token": "secret", "token_type": "Bearer"})

    def answer(self, body: dict[str, object]) -> None:
        """Send a document."""
        self.send(json.dumps(body), "application/json")

    def send(self, text: str, kind: str) -> None:
        """Send a text of a kind."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@contextmanager
def listening_issuer(settings: Any) -> Iterator[str]:
    """Let an issuer listen and the site know it; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    app = {"provider_id": "oidc", "name": NAME, "client_id": "dpal", "secret": "s", "settings": {"server_url": url}}
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
    settings.FORM_TARGETS = [url]
    yield url
    server.shutdown()
    server.server_close()
    thread.join()
