"""Prolific's interface, as its public documents describe it: drafts, transitions, submissions, bonuses."""

import http.client
import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from django.conf import settings

from annotation.errors import AddressRefused, AnnotationError
from annotation.work.outgoing import (
    ReplyTooLong,
    Target,
    addresses_of,
    exchange,
    is_loopback,
    parse_target,
    pinned_address,
)
from privacy.wording import Message, as_message
from privacy.wording import gettext_noop as _

REQUEST_SECONDS: Final = 15.0
LARGEST_REPLY_BYTES: Final = 2 * 1024 * 1024
PAGE: Final = 200
MOST_PAGES: Final = 50
LONGEST_DETAIL: Final = 200
MOST_KEYS: Final = 50
ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What Prolific calls what our form asks for.
FIELDS: Final = {
    "name": _("Name"),
    "description": _("Description"),
    "reward": _("Pay of a place"),
    "total_available_places": _("Places"),
    "estimated_completion_time": _("Minutes"),
    "external_study_url": _("Address of this site"),
    "completion_codes": _("Completion code"),
    "message": _("Message"),
    "rejection_category": _("Reason"),
    "request_return_reasons": _("Message"),
    "csv_bonuses": _("Bonuses"),
}


class PlatformFault(AnnotationError):
    def __init__(
        self, message: Message, *, again: bool, after: float = 0.0, unclear: bool = False, is_token: bool = False
    ) -> None:
        super().__init__(message)
        self.message, self.again, self.after, self.unclear, self.is_token = message, again, after, unclear, is_token


@dataclass(frozen=True, slots=True)
class StudyDraft:
    name: str
    internal_name: str
    description: str
    address: str
    completion_code: str
    reward_cents: int
    places: int
    minutes: int
    signed: bool = False

    def as_document(self) -> dict[str, Any]:
        """Return the body of POST /studies/: nothing of a record, and everything decided by hand."""
        return {
            "name": self.name,
            "internal_name": self.internal_name,
            "description": self.description,
            "external_study_url": self.address,
            "prolific_id_option": "url_parameters",
            "completion_codes": [
                {"code": self.completion_code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}
            ],
            "reward": self.reward_cents,
            "total_available_places": self.places,
            "estimated_completion_time": self.minutes,
            "device_compatibility": ["desktop", "tablet", "mobile"],
            "peripheral_requirements": [],
            **({"is_external_study_url_secure": True} if self.signed else {}),
        }


@dataclass(frozen=True, slots=True)
class StudyThere:
    id: str
    internal_name: str
    state: str
    places_taken: int


@dataclass(frozen=True, slots=True)
class SubmissionThere:
    id: str
    participant: str = field(repr=False)
    state: str
    code: str = field(repr=False)
    return_asked: bool
    bonus_cents: int


@dataclass(frozen=True, slots=True)
class Prolific:
    """The interface, on behalf of the account that a token stands for; what is public is asked for without one."""

    token: str = field(default="", repr=False)

    def signing_keys(self) -> list[dict[str, str]]:
        """Return the public keys that participants' parameters are signed with, each with what checking takes."""
        found = self._ask("GET", "/.well-known/study/jwks.json")
        keys = found.get("keys") if isinstance(found, dict) else None
        if not isinstance(keys, list) or len(keys) > MOST_KEYS:
            raise _unreadable()
        return [key for key in map(_signing_key, keys) if key]

    def currency(self) -> str:
        found = self._ask("GET", "/api/v1/users/me/")
        return _text(found, "currency_code")[:3].upper()

    def open_draft(self, draft: StudyDraft) -> StudyThere:
        return _study(self._ask("POST", "/api/v1/studies/", draft.as_document()))

    def find_draft(self, internal_name: str) -> StudyThere | None:
        for found in self._pages("/api/v1/studies/"):
            if found.get("internal_name") == internal_name:
                return _study(found)
        return None

    def study(self, study: str) -> StudyThere:
        return _study(self._ask("GET", f"/api/v1/studies/{_id(study)}/"))

    def move(self, study: str, action: str) -> StudyThere:
        return _study(self._ask("POST", f"/api/v1/studies/{_id(study)}/transition/", {"action": action}))

    def discard(self, study: str) -> None:
        self._ask("DELETE", f"/api/v1/studies/{_id(study)}/")

    def submissions(self, study: str) -> list[SubmissionThere]:
        return [_submission(found) for found in self._pages(f"/api/v1/studies/{_id(study)}/submissions/")]

    def submission(self, submission: str) -> SubmissionThere:
        return _submission(self._ask("GET", f"/api/v1/submissions/{_id(submission)}/"))

    def approve(self, submission: str) -> None:
        self._ask("POST", f"/api/v1/submissions/{_id(submission)}/transition/", {"action": "APPROVE"})

    def reject(self, submission: str, *, category: str, message: str) -> None:
        body = {"action": "REJECT", "rejection_category": category, "message": message}
        self._ask("POST", f"/api/v1/submissions/{_id(submission)}/transition/", body)

    def ask_return(self, submission: str, *, message: str) -> None:
        body = {"request_return_reasons": [message]}
        self._ask("POST", f"/api/v1/submissions/{_id(submission)}/request-return/", body)

    def set_up_bonuses(self, study: str, amounts: Sequence[tuple[str, str]]) -> str:
        """Write down bonuses by submission, which pays nothing yet; return what they are paid by."""
        lines = "\n".join(f"{_id(submission)},{amount}" for submission, amount in amounts)
        found = self._ask("POST", "/api/v1/submissions/bonus-payments/", {"study_id": _id(study), "csv_bonuses": lines})
        return _id(_text(found, "id"))

    def pay_bonuses(self, sheet: str) -> None:
        """Pay what was set up. **Not idempotent**: asked for twice, it pays twice."""
        self._ask("POST", f"/api/v1/bulk-bonus-payments/{_id(sheet)}/pay/", {})

    def _pages(self, path: str) -> Iterator[Mapping[str, Any]]:
        for page in range(MOST_PAGES):
            found = self._ask("GET", f"{path}?limit={PAGE}&offset={page * PAGE}")
            results = found.get("results") if isinstance(found, dict) else None
            if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
                raise _unreadable()
            yield from results
            if len(results) < PAGE:
                return

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask once; return the answer's document, which a payment's and a deletion's answer may lack."""
        changes = method != "GET"
        headers = {"Accept": "application/json", "User-Agent": "DPAL"}
        if self.token:
            headers["Authorization"] = f"Token {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            target, address, encrypted = platform_target(settings.PROLIFIC_URL.rstrip("/") + path)
        except AddressRefused as error:
            raise PlatformFault(
                as_message("Prolific cannot be reached: {reason}", reason=error.args[0]), again=True
            ) from error
        try:
            status, after, content = exchange(
                method,
                target,
                address=address,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                seconds=REQUEST_SECONDS,
                most_bytes=LARGEST_REPLY_BYTES,
                context=ssl.create_default_context() if encrypted else None,
            )
        except ConnectionRefusedError as error:
            raise PlatformFault(as_message("Prolific cannot be reached."), again=True) from error
        except (OSError, http.client.HTTPException, ReplyTooLong) as error:
            raise PlatformFault(as_message("Prolific's answer cannot be read."), again=True, unclear=changes) from error
        if not http.HTTPStatus.OK <= status < http.HTTPStatus.MULTIPLE_CHOICES:
            raise fault_of(status, after, content, changes=changes)
        if not content:
            return None
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _unreadable() from error


def platform_target(url: str) -> tuple[Target, str, bool]:
    parts = urlsplit(url)
    own = settings.PROLIFIC_LOOPBACK_IN_TESTS
    if own and parts.scheme == "http" and parts.netloc == own:
        target = Target(parts.hostname or "", parts.port or 0, parts.path + (f"?{parts.query}" if parts.query else ""))
        address = addresses_of(target)[0]
        if is_loopback(address):
            return target, address, False
    target = parse_target(url, allowed=[urlsplit(settings.PROLIFIC_URL).netloc.lower()])
    return target, pinned_address(target), True


def fault_of(status: int, after: float, content: bytes, *, changes: bool) -> PlatformFault:
    if status == http.HTTPStatus.TOO_MANY_REQUESTS:
        return PlatformFault(
            as_message("Prolific is rate-limiting requests. Try again later."), again=True, after=after
        )
    if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        return PlatformFault(as_message("API token: rejected by Prolific."), again=False, is_token=True)
    if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
        message = as_message("Prolific cannot be reached: {reason}", reason=f"HTTP {status}")
        return PlatformFault(message, again=True, after=after, unclear=changes)
    if status == http.HTTPStatus.NOT_FOUND:
        return PlatformFault(as_message("Unknown to Prolific, or of another account."), again=False)
    name, detail = _detail(content)
    if name:
        message = as_message(
            "{word_field}: Prolific refuses it: {detail}", word_field=as_message(FIELDS[name]), detail=detail
        )
    else:
        message = as_message("Prolific refuses it: {detail}", detail=detail or f"HTTP {status}")
    return PlatformFault(message, again=False)


def _detail(content: bytes) -> tuple[str, str]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return "", ""
    error = found.get("error", found) if isinstance(found, dict) else {}
    detail = error.get("detail") if isinstance(error, dict) else None
    name = ""
    if isinstance(detail, dict):
        name = next((each for each in detail if each in FIELDS), "")
        detail = detail[name] if name else next(iter(detail.values()), "")
    while isinstance(detail, list | dict) and detail:
        detail = detail[0] if isinstance(detail, list) else next(iter(detail.values()))
    words = " ".join(str(detail or "").split())
    return name, words[:LONGEST_DETAIL]


def _unreadable() -> PlatformFault:
    return PlatformFault(as_message("Prolific's answer cannot be read."), again=True, unclear=True)


def _id(found: str) -> str:
    if not ID.fullmatch(found):
        raise _unreadable()
    return quote(found, safe="")


def _signing_key(found: Any) -> dict[str, str]:
    key = found if isinstance(found, dict) else {}
    fits = (key.get("kty"), key.get("alg", "RS256"), key.get("use", "sig")) == ("RSA", "RS256", "sig")
    parameters = {name: str(key.get(name, "")) for name in ("kty", "kid", "n", "e")}
    return parameters if fits and all(parameters.values()) else {}


def _text(found: Any, name: str) -> str:
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, str):
        raise _unreadable()
    return value


def _count(found: Any, name: str) -> int:
    value = found.get(name, 0)
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


def _study(found: Any) -> StudyThere:
    state = _text(found, "status").replace("_", " ")[:20]
    internal_name = found.get("internal_name")
    return StudyThere(
        id=_id(_text(found, "id")),
        internal_name=internal_name if isinstance(internal_name, str) else "",
        state=state,
        places_taken=_count(found, "places_taken"),
    )


def _submission(found: Any) -> SubmissionThere:
    """Read a submission; a list says `participant_id` and `study_code`, a single one `participant`, `entered_code`."""
    bonuses = found.get("bonus_payments") if isinstance(found, dict) else None
    amounts = bonuses if isinstance(bonuses, list) else []
    amounts = [each for each in amounts if isinstance(each, int | float) and 0 <= each < 2**31]
    name = "participant_id" if isinstance(found, dict) and "participant_id" in found else "participant"
    return SubmissionThere(
        id=_id(_text(found, "id")),
        participant=_id(_text(found, name)),
        state=_text(found, "status").replace("_", " ")[:20],
        code=str(found.get("study_code") or found.get("entered_code") or ""),
        return_asked=bool(found.get("return_requested")),
        bonus_cents=round(sum(amounts)),
    )
