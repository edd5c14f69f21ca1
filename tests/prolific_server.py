"""A Prolific of the tests' own, on this machine: it speaks what its public documents say, refuses every other shape,
keeps states and a wallet, and fails on demand."""

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

TOKEN = "token-of-the-account"
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT"),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
MOVES = {
    "PUBLISH": (("UNPUBLISHED",), "ACTIVE"),
    "PAUSE": (("ACTIVE",), "PAUSED"),
    "START": (("PAUSED",), "ACTIVE"),
    "STOP": (("ACTIVE", "PAUSED"), "AWAITING REVIEW"),
}
STUDY = {
    "name": str,
    "internal_name": str,
    "description": str,
    "external_study_url": str,
    "prolific_id_option": str,
    "completion_codes": list,
    "reward": int,
    "total_available_places": int,
    "estimated_completion_time": int,
    "device_compatibility": list,
    "peripheral_requirements": list,
}


# What a study may have besides.
MORE = {"is_external_study_url_secure": bool}
KEYS_AT = "/.well-known/study/jwks.json"


@cache
def signing_key(name: str) -> rsa.RSAPrivateKey:
    """Make a key once for all tests of a process: it takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Refused(Exception):
    """An answer that is none: a status and an error document."""

    def __init__(self, status: int, detail: object) -> None:
        self.status = status
        self.document = {
            "error": {"status": status, "title": "Refused", "error_code": 140000 + status, "detail": detail}
        }


class PlatformServer(ThreadingHTTPServer):
    """Its account, studies, submissions and payments; `faults` are taken by the next requests, first come first.

    A fault is `(method, path pattern, what)`: a status, `lost` (done, and the answer lost), or `dead` (lost before
    anything is done). Every request that was answered is in `asked`.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.token, self.currency, self.wallet = TOKEN, "GBP", 100_000
        self.studies: dict[str, dict[str, Any]] = {}
        self.submissions: dict[str, dict[str, Any]] = {}
        self.sheets: dict[str, list[tuple[str, int]]] = {}
        self.paid: list[str] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.faults: list[tuple[str, str, int | str]] = []
        self.retry_after = ""
        self.shows_bonuses = True
        self.key_names = ["first"]
        self._numbers = itertools.count(1)
        self.lock = threading.Lock()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def new_id(self) -> str:
        """Make an id as long as Prolific's."""
        return f"{next(self._numbers):024x}"

    def come(self, study: str, participant: str, *, state: str = "AWAITING REVIEW", code: str | None = None) -> str:
        """Let a participant take a place; return the submission."""
        number = self.new_id()
        found = self.studies[study]
        self.submissions[number] = {
            "id": number,
            "study": study,
            "participant_id": participant,
            "status": state,
            "study_code": code,
            "started_at": "2026-11-25T10:00:00Z",
            "completed_at": None,
            "return_requested": None,
            "bonus_payments": [],
        }
        found["places_taken"] += 1
        return number

    def sign(self, parameters: dict[str, str], audience: object, *, key: str = "", **claims: Any) -> str:
        """Sign what a secured address says of a participant, by the newest key; a claim of None is left out."""
        now, name = int(time.time()), self.key_names[-1]
        said = {"iss": "https://www.prolific.com", "aud": audience, "sub": parameters["SESSION_ID"], "iat": now}
        said |= {"exp": now + 600, "prolific": parameters | {"workspace_id": "workspace"}} | claims
        kept = {claim: value for claim, value in said.items() if value is not None}
        return jwt.encode(kept, signing_key(key or name), algorithm="RS256", headers={"kid": name})

    def public_keys(self) -> list[dict[str, Any]]:
        more = {"use": "sig", "alg": "RS256", "key_ops": ["verify"]}
        return [
            jwt.algorithms.RSAAlgorithm.to_jwk(signing_key(name).public_key(), as_dict=True) | more | {"kid": name}
            for name in self.key_names
        ]

    def requests(self, method: str, pattern: str) -> list[Any]:
        return [body for asked, path, body in self.asked if asked == method and re.fullmatch(pattern, path)]


class _Answer(BaseHTTPRequestHandler):
    server: PlatformServer

    def do_GET(self) -> None:
        self._take("GET")

    def do_POST(self) -> None:
        self._take("POST")

    def do_DELETE(self) -> None:
        self._take("DELETE")

    def _take(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        with self.server.lock:
            fault = self._fault(method, path)
            if fault == "dead":
                self.close_connection = True
                return
            if isinstance(fault, int):
                self._send(
                    fault, {"error": {"status": fault, "title": "Fault", "error_code": fault, "detail": "later"}}
                )
                return
            try:
                status, document = self._answer(method, path, body)
            except Refused as refused:
                status, document = refused.status, refused.document
            self.server.asked.append((method, path, json.loads(body) if body else None))
            if fault == "lost":
                self.close_connection = True
                return
            self._send(status, document)

    def _fault(self, method: str, path: str) -> int | str | None:
        for number, (wanted, pattern, what) in enumerate(self.server.faults):
            if wanted == method and re.fullmatch(pattern, path):
                del self.server.faults[number]
                return what
        return None

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        if (method, path) == ("GET", KEYS_AT):
            return 200, {"keys": self.server.public_keys()}
        if self.headers.get("Authorization") != f"Token {self.server.token}":
            raise Refused(401, "Invalid token.")
        document = json.loads(body) if body else {}
        for wanted, pattern, answer in ROUTES:
            found = re.fullmatch(pattern, path)
            if wanted == method and found:
                return answer(self.server, document, *found.groups(), **self._page())
        raise Refused(404, "Not found.")

    def _page(self) -> dict[str, int]:
        query = parse_qs(urlsplit(self.path).query)
        return {name: int(query[name][0]) for name in ("limit", "offset") if name in query}

    def _send(self, status: int, document: object) -> None:
        self.send_response(status)
        content = b"" if document is None else json.dumps(document).encode()
        if self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Stay silent."""


def _me(server: PlatformServer, _body: Any) -> tuple[int, object]:
    return 200, {"id": "me", "email": "someone@example.org", "currency_code": server.currency}


def _open(server: PlatformServer, body: dict[str, Any]) -> tuple[int, object]:
    wrong: dict[str, list[str]] = {name: ["This field is required."] for name in STUDY.keys() - body.keys()} | {
        name: ["Not a valid value."]
        for name, kind in (STUDY | MORE).items()
        if name in body and type(body[name]) is not kind
    }
    wrong |= {name: ["Unknown field."] for name in body.keys() - STUDY.keys() - MORE.keys()}
    if not wrong:
        places = ("{{%PROLIFIC_PID%}}", "{{%STUDY_ID%}}", "{{%SESSION_ID%}}")
        if not all(place in body["external_study_url"] for place in places):
            wrong["external_study_url"] = ["Lacks a placeholder."]
        if body["prolific_id_option"] not in ("question", "url_parameters", "not_required"):
            wrong["prolific_id_option"] = ["Not a valid choice."]
        if body["reward"] * 60 < 600 * body["estimated_completion_time"]:
            wrong["reward"] = ["The minimum reward per hour is 6.00."]
        if set(body["device_compatibility"]) - {"desktop", "tablet", "mobile"}:
            wrong["device_compatibility"] = ["Not a valid choice."]
        for code in body["completion_codes"]:
            if set(code) != {"code", "code_type", "actions"} or not code["actions"]:
                wrong["completion_codes"] = ["Not a valid code."]
    if wrong:
        raise Refused(400, wrong)
    number = server.new_id()
    server.studies[number] = body | {"id": number, "status": "UNPUBLISHED", "places_taken": 0}
    return 201, server.studies[number]


def _list(items: list[Any], limit: int, offset: int) -> tuple[int, object]:
    return 200, {"results": items[offset : offset + limit], "meta": {"count": len(items)}, "_links": {}}


def _studies(server: PlatformServer, _body: Any, limit: int = 20, offset: int = 0) -> tuple[int, object]:
    return _list(list(server.studies.values()), limit, offset)


def _study(server: PlatformServer, number: str) -> dict[str, Any]:
    if number not in server.studies:
        raise Refused(404, "Not found.")
    return server.studies[number]


def _get(server: PlatformServer, _body: Any, number: str) -> tuple[int, object]:
    return 200, _study(server, number)


def _delete(server: PlatformServer, _body: Any, number: str) -> tuple[int, object]:
    if _study(server, number)["status"] != "UNPUBLISHED":
        raise Refused(400, "Only drafts can be deleted.")
    del server.studies[number]
    return 204, None


def _move(server: PlatformServer, body: dict[str, Any], number: str) -> tuple[int, object]:
    study = _study(server, number)
    if set(body) != {"action"} or body["action"] not in MOVES:
        raise Refused(400, {"action": ["Not a valid choice."]})
    before, after = MOVES[body["action"]]
    if study["status"] not in before:
        raise Refused(400, f"A study that is {study['status']} cannot do this.")
    if body["action"] == "PUBLISH" and study["reward"] * study["total_available_places"] > server.wallet:
        raise Refused(400, "Not enough balance in the workspace.")
    study["status"] = after
    return 200, study


def _submissions(
    server: PlatformServer, _body: Any, number: str, limit: int = 20, offset: int = 0
) -> tuple[int, object]:
    _study(server, number)
    return _list([each for each in server.submissions.values() if each["study"] == number], limit, offset)


def _submission(server: PlatformServer, number: str) -> dict[str, Any]:
    if number not in server.submissions:
        raise Refused(404, "Not found.")
    return server.submissions[number]


def _decide(server: PlatformServer, body: dict[str, Any], number: str) -> tuple[int, object]:
    found, action = _submission(server, number), body.get("action")
    if action == "APPROVE" and set(body) == {"action"}:
        after = "APPROVED"
    elif action == "REJECT" and set(body) == {"action", "message", "rejection_category"}:
        after = "REJECTED"
        if len(body["message"]) < 100:
            raise Refused(400, {"message": ["It must be at least 100 chars long."]})
        if body["rejection_category"] not in CATEGORIES:
            raise Refused(400, {"rejection_category": ["Not a valid choice."]})
    else:
        raise Refused(400, {"action": ["Not a valid choice."]})
    if found["status"] == after:
        return 200, found
    if found["status"] != "AWAITING REVIEW":
        raise Refused(400, f"A submission that is {found['status']} cannot be decided on.")
    if after == "APPROVED":
        reward = server.studies[found["study"]]["reward"]
        if reward > server.wallet:
            raise Refused(400, "Not enough balance in the workspace.")
        server.wallet -= reward
    found["status"] = after
    return 200, found


def _ask_return(server: PlatformServer, body: dict[str, Any], number: str) -> tuple[int, object]:
    found = _submission(server, number)
    reasons = body.get("request_return_reasons")
    if set(body) != {"request_return_reasons"} or not isinstance(reasons, list) or not all(reasons):
        raise Refused(400, {"request_return_reasons": ["This field is required."]})
    found["return_requested"] = "2026-11-25T12:00:00Z"
    return 200, {"id": number, "status": found["status"], "participant": found["participant_id"]}


def _set_up(server: PlatformServer, body: dict[str, Any]) -> tuple[int, object]:
    if set(body) != {"study_id", "csv_bonuses"}:
        raise Refused(400, {"csv_bonuses": ["This field is required."]})
    lines = []
    for line in body["csv_bonuses"].split("\n"):
        number, _comma, amount = line.partition(",")
        if not re.fullmatch(r"\d+\.\d\d", amount) or _submission(server, number)["study"] != body["study_id"]:
            raise Refused(400, {"csv_bonuses": [f"Not valid: {line}"]})
        lines.append((number, round(float(amount) * 100)))
    sheet = server.new_id()
    server.sheets[sheet] = lines
    total = sum(cents for _number, cents in lines)
    return 201, {"id": sheet, "study": body["study_id"], "amount": total, "fees": 0, "vat": 0, "total_amount": total}


def _pay(server: PlatformServer, _body: Any, sheet: str) -> tuple[int, object]:
    if sheet not in server.sheets:
        raise Refused(404, "Not found.")
    lines = server.sheets[sheet]
    if sum(cents for _number, cents in lines) > server.wallet:
        raise Refused(400, "Not enough balance in the workspace.")
    server.paid.append(sheet)
    for number, cents in lines:
        server.wallet -= cents
        if server.shows_bonuses:
            server.submissions[number]["bonus_payments"].append(cents)
    return 202, f"Bulk bonus payment with ID {sheet} is being processed asynchronously."


ROUTES = (
    ("GET", "/api/v1/users/me/", _me),
    ("POST", "/api/v1/studies/", _open),
    ("GET", "/api/v1/studies/", _studies),
    ("GET", "/api/v1/studies/([0-9a-f]+)/", _get),
    ("DELETE", "/api/v1/studies/([0-9a-f]+)/", _delete),
    ("POST", "/api/v1/studies/([0-9a-f]+)/transition/", _move),
    ("GET", "/api/v1/studies/([0-9a-f]+)/submissions/", _submissions),
    ("POST", "/api/v1/submissions/([0-9a-f]+)/transition/", _decide),
    ("POST", "/api/v1/submissions/([0-9a-f]+)/request-return/", _ask_return),
    ("POST", "/api/v1/submissions/bonus-payments/", _set_up),
    ("POST", "/api/v1/bulk-bonus-payments/([0-9a-f]+)/pay/", _pay),
)


@contextmanager
def prolific_server(settings: Any) -> Iterator[PlatformServer]:
    with PlatformServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        settings.PROLIFIC_URL = f"http://{server.host}"
        settings.PROLIFIC_LOOPBACK_IN_TESTS = server.host
        yield server
        server.shutdown()
        thread.join()
