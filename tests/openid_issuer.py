"""A small OpenID Connect issuer that really listens: it knows one person and asks them on a page of its own."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

PERSON = {"sub": "42", "email": "ann@example.org", "email_verified": True, "preferred_username": "ann"}
NAME = "Our house"
CODE = "the-code"
KEY, KEY_ID = ec.generate_private_key(ec.SECP256R1()), "of this year"
PUBLIC = jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {
    "kid": KEY_ID,
    "alg": "ES256",
    "use": "sig",
}
PAGE = """<!doctype html><html lang="en"><title>{name}</title><h1>{name}</h1>
<form action="{redirect_uri}"><input type="hidden" name="state" value="{state}">
<input type="hidden" name="code" value="{code}"><button>Tell them who I am</button></form></html>"""


def signed(claims: dict[str, object]) -> str:
    return jwt.PyJWS().encode(json.dumps(claims).encode(), KEY, algorithm="ES256", headers={"kid": KEY_ID})


class Issuer(BaseHTTPRequestHandler):
    """Knows one person, one code and, for it, the challenge and the nonce it was asked with.

    A test may change each document before it is sent: `described`, `keys`, `person`, and `claims`, which `sign` signs.
    """

    challenge, nonce = "", ""
    changed: dict[str, dict[str, object]] = {}
    sign: Callable[[dict[str, object]], object] = staticmethod(signed)

    def do_GET(self) -> None:
        own, path = f"http://{self.headers['Host']}", urlsplit(self.path)
        if path.path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
            described = {"issuer": own, "jwks_uri": f"{own}/keys"} | {k: f"{own}/{v}" for k, v in names.items()}
            self.answer(described | self.changed.get("described", {}))
        elif path.path == "/keys":
            self.answer({"keys": [PUBLIC | {"kid": "of last year"}, PUBLIC]} | self.changed.get("keys", {}))
        elif path.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(path.query).items()}
            Issuer.challenge, Issuer.nonce = asked["code_challenge"], asked["nonce"]
            shown = {name: escape(asked[name]) for name in ("redirect_uri", "state")}
            self.send(PAGE.format(name=NAME, code=CODE, **shown), "text/html")
        elif path.path == "/userinfo" and self.headers["Authorization"] == "Bearer secret":
            self.answer(PERSON | self.changed.get("person", {}))
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != Issuer.challenge or sent["code"] != [CODE]:
            self.send_error(400)
        else:
            now = int(time.time())
            claims: dict[str, object] = {"iss": f"http://{self.headers['Host']}", "aud": "dpal", "sub": PERSON["sub"]}
            claims |= {"iat": now, "exp": now + 300, "nonce": Issuer.nonce} | self.changed.get("claims", {})
            self.answer({"access_token": "secret", "token_type": "Bearer", "id_token": Issuer.sign(claims)})

    def answer(self, body: dict[str, object]) -> None:
        self.send(json.dumps(body), "application/json")

    def send(self, text: str, kind: str) -> None:
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
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    app = {"provider_id": "oidc", "name": NAME, "client_id": "dpal", "secret": "s", "settings": {"server_url": url}}
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"] | {"form-action": ["'self'", url]}
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": directives}
    Issuer.changed, Issuer.sign = {}, staticmethod(signed)
    yield url
    server.shutdown()
    server.server_close()
    thread.join()
